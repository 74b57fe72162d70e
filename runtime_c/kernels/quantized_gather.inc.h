/* The body of gathers of rows of quantised weights.  The kernel that includes it defines GATHER, its name, and WEIGHT_BITS. */
#include "element.h"

#include "common/quantized.h"

typedef struct {
    const void *table;
    const B_T *ids;
    W_T *y;
    ptrdiff_t size, inner, n;
} ARGS(GATHER);

/* Rows first..end-1 of y. */
static inline void NAME(OIC_PASTE(GATHER, _part))(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(GATHER) *const a = args;
    const ptrdiff_t groups = oic_groups(a->inner), panels = oic_panels(a->size);
    const ptrdiff_t bytes = OIC_GROUP * OIC_PANEL / 8 * WEIGHT_BITS; /* of a panel of a group */
    const uint8_t *const w = (const uint8_t *)a->table;
    const oic_f16 *const scales = (const oic_f16 *)(const void *)(w + panels * groups * bytes);
    (void)worker;
    for (ptrdiff_t i = first; i < end; ++i) {
        const ptrdiff_t row = (ptrdiff_t)a->ids[i], panel = row / OIC_PANEL, stream = panel - panel % OIC_STREAM_PANELS;
        const ptrdiff_t width = panels - stream < OIC_STREAM_PANELS ? panels - stream : OIC_STREAM_PANELS;
        for (ptrdiff_t g = 0; g < groups; ++g) {
            const ptrdiff_t at = stream * groups + g * width + panel - stream;
            const float scale = oic_f16_to_f32(scales[at * OIC_PANEL + row % OIC_PANEL]);
            const uint8_t *const step = w + at * bytes + row % OIC_PANEL * 4;
            const ptrdiff_t k = g * OIC_GROUP, n = a->inner - k < OIC_GROUP ? a->inner - k : OIC_GROUP;
            uint8_t codes[OIC_GROUP * WEIGHT_BITS / 8];
            float all[OIC_GROUP];
            for (ptrdiff_t e = 0; e < (ptrdiff_t)sizeof codes; e += 4) {
                memcpy(codes + e, step + e * OIC_PANEL, 4);
            }
            for (ptrdiff_t e = 0; e < OIC_GROUP; ++e) {
                const int code = WEIGHT_BITS == 8 ? (int8_t)codes[e] : (codes[e % 16] >> e / 16 * 4 & 15) - 8;
                all[e] = (float)code * scale;
            }
            for (ptrdiff_t e = 0; e < n; ++e) {
                W_STORE(a->y, i * a->inner + k + e, (W_C)all[e]);
            }
        }
    }
}

static inline void NAME(GATHER)(const ARGS(GATHER) *a)
{
    NAME(OIC_PASTE(GATHER, _part))(a, 0, a->n, 0);
}

#undef GATHER
#undef WEIGHT_BITS
#include "end.h"
