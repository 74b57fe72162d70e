/* The products of dots.h in plain C. */
#include "../version.h"

#define OIC_DOTS_ROWS 4
#define OIC_DOTS_X 32

typedef struct {
    int32_t v[OIC_PANEL];
} oic_dots;

typedef struct {
    float v[OIC_PANEL];
} oic_dots_factors;

/* 32 numbers to 8 bits, for weights of 8 or 4; gives where sums start. */
static inline int32_t oic_dots_quantize(const float *x, uint8_t *to, float *dx, int bits)
{
    int32_t sum = 0;
    int8_t q[OIC_GROUP];
    *dx = oic_quantized_group(x, q);
    for (int i = 0; i < OIC_GROUP; ++i) {
        sum += q[i];
    }
    memcpy(to, q, sizeof q);
    return bits == 4 ? -8 * sum : 0;
}

#if !defined(OIC_DOTS_GROUPS) /* of a file that has them in fewer instructions */
/* a[P][R] = start[R] + the products of a group of x, R rows, with one of w, P panels `apart` bytes from each other.  What lies `ahead` bytes behind w will be
   read soon. */
static inline void oic_dots_group_8(oic_dots *a, int R, int P, const uint8_t *w, const uint8_t *x, const uint8_t *start,
                                    ptrdiff_t apart, ptrdiff_t ahead)
{
    (void)ahead;
    for (int i = 0; i < P * R; ++i) {
        int32_t from;
        memcpy(&from, start + 4 * (i % R), sizeof from);
        for (int l = 0; l < OIC_PANEL; ++l) {
            const int8_t *row = (const int8_t *)w + i / R * apart + 4 * l, *four = (const int8_t *)x + i % R * OIC_DOTS_X;
            int32_t sum = from;
            for (int c = 0; c < 8; ++c, row += 64, four += 4) {
                sum += row[0] * four[0] + row[1] * four[1] + row[2] * four[2] + row[3] * four[3];
            }
            a[i].v[l] = sum;
        }
    }
}

static inline void oic_dots_group_4(oic_dots *a, int R, int P, const uint8_t *w, const uint8_t *x, const uint8_t *start,
                                    ptrdiff_t apart, ptrdiff_t ahead)
{
    (void)ahead;
    for (int i = 0; i < P * R; ++i) {
        int32_t from;
        memcpy(&from, start + 4 * (i % R), sizeof from);
        for (int l = 0; l < OIC_PANEL; ++l) {
            const uint8_t *row = w + i / R * apart + 4 * l;
            const int8_t *four = (const int8_t *)x + i % R * OIC_DOTS_X;
            int32_t sum = from;
            for (int c = 0; c < 4; ++c, row += 64, four += 4) {
                for (int e = 0; e < 4; ++e) {
                    sum += (row[e] & 15) * four[e] + (row[e] >> 4) * four[16 + e];
                }
            }
            a[i].v[l] = sum;
        }
    }
}
#endif

/* Sixteen scales, widened. */
static inline void oic_dots_scales(oic_dots_factors *to, const oic_f16 *from)
{
    for (int l = 0; l < OIC_PANEL; ++l) {
        to->v[l] = oic_f16_to_f32(from[l]);
    }
}

/* y += a * (dw * dx) */
static inline void oic_dots_add(float *y, const oic_dots *a, const oic_dots_factors *dw, float dx)
{
    for (int l = 0; l < OIC_PANEL; ++l) {
        y[l] += (float)a->v[l] * (dw->v[l] * dx);
    }
}
