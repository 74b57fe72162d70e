/* What convolutions of bytes X with sums of 32 bits have in common, for machines that multiply few of them at once.  The kernel
   that includes it defines BYTES, what its function is called. */
#include "conv_range.h"

#define OIC_CONV_RUN 64 /* sums at a time */

typedef struct {
    const T *x, *w;
    const B_T *b;
    W_T *y;
    T *work; /* see there */
    ptrdiff_t batch, channels, height, width, outputs, taps_y, taps_x, out_height, out_width;
    ptrdiff_t stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x, groups;
#if defined(OIC_REQUANTIZES)
    oic_requantized by;
#endif
} ARGS(BYTES);

/* y[n], `step` apart, from element `at` on = sums of output channel o, whose b they have; or each of one more channel, and b. */
static inline void NAME(OIC_JOIN_2(BYTES, keep))(const ARGS(BYTES) *a, W_SUM *sum, ptrdiff_t n, ptrdiff_t o,
                                                 int each, ptrdiff_t at, ptrdiff_t step)
{
#if defined(OIC_REQUANTIZES)
    const oic_requantized_range within = oic_requantized_within((int64_t)W_LOW, (int64_t)W_HIGH, a->by.zero_point);
    if (W_BITS == 8 && oic_requantized_stores(&a->by, within)) {
        const B_T *const b = each && a->b != NULL ? a->b + o : NULL;
        oic_requantized_store(&a->by, sum, b, n, o, each, within, (uint8_t *)(void *)(a->y + at), step);
        return;
    }
#endif
    for (ptrdiff_t l = 0; each && a->b != NULL && l < n; ++l) {
        const W_SUM b = (W_SUM)B_LOAD(a->b, o + l);
        sum[l] = sum[l] + b;
    }
#if defined(OIC_REQUANTIZES)
    if (each) {
        oic_requantized_each(&a->by, sum, n, o, within);
    } else {
        oic_requantized_sums(&a->by, sum, n, o, within);
    }
#endif
    for (ptrdiff_t l = 0; l < n; ++l) {
        W_STORE(a->y, at + l * step, (W_C)sum[l]);
    }
}
