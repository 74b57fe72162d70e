/* Steps of the graph `modes` on a board, in several modes of floats: the sum of the bits of what they give. */
#include <string.h>

#include "board.h"
#include "modes.h"
#include "oic/float_modes.h"

static modes_state state;
static uint64_t arena[MODES_ARENA_BYTES / 8];

static void run(void)
{
    static const uint32_t modes[] = {0, UINT32_C(1) << 22, UINT32_C(1) << 24}; /* usual; upward; no subnormals */
    const modes_memory memory = {&state, sizeof state, arena, sizeof arena, modes_weights.bytes, MODES_WEIGHTS_BYTES};
    modes_session session;
    float x[64], p[64], q[64], y[64], tiny[64];
    const modes_inputs in = {.x = x};
    modes_outputs out = {.p = p, .q = q, .y = y, .tiny = tiny};
    for (int i = 0; i < 64; ++i) {
        x[i] = (float)(i - 20) / 16.0f;
    }
    board_say("init", 0, (uint32_t)modes_init(&session, &memory));
    for (int m = 0; m < 3; ++m) {
        const oic_float_modes found = oic_float_modes_get() | modes[m];
        uint32_t sum = 0;
        oic_float_modes_put(found);
        board_say("step", 0, (uint32_t)modes_step(&session, &in, &out));
        board_say("kept", 0, ((oic_float_modes_get() ^ found) & 0x07ff0000u) == 0);
        oic_float_modes_put(found ^ modes[m]);
        for (int i = 0; i < 64; ++i) {
            const float all[] = {p[i], q[i], y[i], tiny[i]};
            uint32_t bits[4];
            memcpy(bits, all, sizeof bits);
            for (int k = 0; k < 4; ++k) {
                sum = 31u * sum + bits[k];
            }
        }
        board_say("bits", 0, sum);
    }
}
