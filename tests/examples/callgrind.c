/* Steps of a decoder to be counted: one by one over its cache, or every token with all before it fed again.

   cached N        N steps of one token
   recomputed N    for n = 1..N: reset, and a step of n tokens */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpt2.h"

static uint64_t state[GPT2_STATE_BYTES / 8 + 8], arena[GPT2_ARENA_BYTES / 8 + 8];
static float logits[GPT2_STEP_LOGITS_BYTES / 4];
static int64_t next[GPT2_STEP_NEXT_BYTES / 8];
static int32_t tokens[256];

int main(int argc, char **argv)
{
    gpt2_session session;
    const gpt2_memory memory = {state, sizeof state, arena, sizeof arena, gpt2_weights.bytes, GPT2_WEIGHTS_BYTES};
    const int again = argc > 2 && strcmp(argv[1], "recomputed") == 0;
    const int count = argc > 2 ? atoi(argv[2]) : 0; /* 256 at most */
    for (int i = 0; i < 256; ++i) {
        tokens[i] = i * 7 % 24;
    }
    if (gpt2_init(&session, &memory) != OIC_OK) {
        return 1;
    }
    for (int n = 1; n <= count; ++n) {
        const gpt2_inputs in = {again ? tokens : tokens + n - 1, again ? n : 1};
        gpt2_outputs out;
        memset(&out, 0, sizeof out);
        out.logits = logits;
        out.next = next;
        if (again) {
            gpt2_reset(&session);
        }
        if (gpt2_step(&session, &in, &out) != OIC_OK) {
            return 2;
        }
    }
    printf("%.9g\n", (double)logits[again ? (count - 1) * 24 : 0]);
    return 0;
}
