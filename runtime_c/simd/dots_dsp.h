/* The products of dots.h with pairs of halves, of Arm's processors of 32 bits: two products of 16 bits and their sum are one
   instruction.  x lies as pairs, so that bytes of w need no order: of each four neighbours the first and the third, then the
   others. */
#include "../version.h"

#include "bytes.h"

#define OIC_DOTS_ROWS 4
#define OIC_DOTS_X 64 /* x of 16 bits */

typedef struct {
    int32_t v[OIC_PANEL];
} oic_dots;

typedef struct {
    float v[OIC_PANEL];
} oic_dots_factors;

static inline int32_t oic_dots_quantize(const float *x, uint8_t *to, float *dx, int bits)
{
    int32_t sum = 0;
    int8_t q[OIC_GROUP];
    int16_t pairs[OIC_GROUP];
    *dx = oic_quantized_group(x, q);
    for (int i = 0; i < OIC_GROUP; i += 4) {
        pairs[i] = q[i];
        pairs[i + 1] = q[i + 2];
        pairs[i + 2] = q[i + 1];
        pairs[i + 3] = q[i + 3];
        sum += q[i] + q[i + 1] + q[i + 2] + q[i + 3];
    }
    memcpy(to, pairs, sizeof pairs);
    return bits == 4 ? -8 * sum : 0;
}

/* A pair of x. */
static inline int16x2_t oic_dots_pair(const uint8_t *from)
{
    int16x2_t pair;
    memcpy(&pair, from, sizeof pair);
    return pair;
}

/* What lies at w and x is read once sums are made: compilers otherwise read all at once, and have too few registers. */
#define OIC_DOTS_AFTER(w, x, sum) \
    __asm__("" : "+r"(w), "+r"(x), "+r"((sum)[0]), "+r"((sum)[1]), "+r"((sum)[2]), "+r"((sum)[3]))

/* a = start + the products of a row of a group of x with a panel of w: four rows of w at a time, for which there are registers
   enough in a function of its own. */
OIC_LOOP void oic_dots_panel_8(oic_dots *a, const uint8_t *w, const uint8_t *x, const uint8_t *start)
{
    int32_t from, *to = a->v;
    memcpy(&from, start, sizeof from);
    for (const int32_t *const end = to + OIC_PANEL; to < end; to += 4, w += 16) {
        int32_t sum[4] = {from, from, from, from};
        OIC_UNROLLED
        for (int c = 0; c < 8; ++c) {
            OIC_DOTS_AFTER(w, x, sum);
            const int16x2_t even = oic_dots_pair(x + 8 * c), odd = oic_dots_pair(x + 8 * c + 4);
            OIC_UNROLLED
            for (int l = 0; l < 4; ++l) {
                sum[l] = oic_bytes_four((const int8_t *)w + 64 * c + 4 * l, even, odd, sum[l]);
            }
        }
        memcpy(to, sum, sizeof sum);
    }
}

OIC_LOOP void oic_dots_panel_4(oic_dots *a, const uint8_t *w, const uint8_t *x, const uint8_t *start)
{
    int32_t from, *to = a->v;
    uint32_t low = 0x000f000fu;
    memcpy(&from, start, sizeof from);
    OIC_OPAQUE(low); /* in a register: one instruction shifts nibbles there and takes them */
    for (const int32_t *const end = to + OIC_PANEL; to < end; to += 4, w += 16) {
        int32_t sum[4] = {from, from, from, from};
        OIC_UNROLLED
        for (int c = 0; c < 4; ++c) {
            OIC_DOTS_AFTER(w, x, sum);
            const int16x2_t even = oic_dots_pair(x + 8 * c), odd = oic_dots_pair(x + 8 * c + 4);
            const int16x2_t even_high = oic_dots_pair(x + 8 * c + 32), odd_high = oic_dots_pair(x + 8 * c + 36);
            OIC_UNROLLED
            for (int l = 0; l < 4; ++l) {
                uint32_t v;
                memcpy(&v, w + 64 * c + 4 * l, sizeof v);
                sum[l] = __smlad((int16x2_t)(v & low), even, sum[l]);
                sum[l] = __smlad((int16x2_t)(v >> 8 & low), odd, sum[l]);
                sum[l] = __smlad((int16x2_t)(v >> 4 & low), even_high, sum[l]);
                sum[l] = __smlad((int16x2_t)(v >> 12 & low), odd_high, sum[l]);
            }
        }
        memcpy(to, sum, sizeof sum);
    }
}

/* a[P][R] = start[R] + the products of a group of x, R rows, with one of w, P panels `apart` bytes from each other. */
static inline void oic_dots_group_8(oic_dots *a, int R, int P, const uint8_t *w, const uint8_t *x, const uint8_t *start,
                                    ptrdiff_t apart, ptrdiff_t ahead)
{
    (void)ahead;
    for (int i = 0; i < P * R; ++i) {
        oic_dots_panel_8(&a[i], w + i / R * apart, x + i % R * OIC_DOTS_X, start + 4 * (i % R));
    }
}

static inline void oic_dots_group_4(oic_dots *a, int R, int P, const uint8_t *w, const uint8_t *x, const uint8_t *start,
                                    ptrdiff_t apart, ptrdiff_t ahead)
{
    (void)ahead;
    for (int i = 0; i < P * R; ++i) {
        oic_dots_panel_4(&a[i], w + i / R * apart, x + i % R * OIC_DOTS_X, start + 4 * (i % R));
    }
}

static inline void oic_dots_scales(oic_dots_factors *to, const oic_f16 *from)
{
    (void)oic_widen_f16(from, OIC_PANEL, to->v);
}

/* y += a * (dw * dx) */
OIC_LOOP void oic_dots_add(float *y, const oic_dots *a, const oic_dots_factors *dw, float dx)
{
    for (int l = 0; l < OIC_PANEL; l += 4) {
        OIC_UNROLLED
        for (int i = l; i < l + 4; ++i) {
            y[i] += (float)a->v[i] * (dw->v[i] * dx);
        }
    }
}
