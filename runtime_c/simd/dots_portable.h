/* The products of dots.h in plain C. */
#define OIC_DOTS_X 32

typedef struct {
    int32_t v[OIC_PANEL];
} oic_dots;

typedef struct {
    float v[OIC_PANEL];
} oic_dots_f32;

/* 32 numbers to 8 bits, for weights of 8 or 4; gives where sums start. */
static inline int32_t oic_dots_quantize(const float *x, int8_t *to, float *dx, int bits)
{
    int32_t sum = 0;
    *dx = oic_quantized_group(x, to);
    for (int i = 0; i < OIC_GROUP; ++i) {
        sum += to[i];
    }
    return bits == 4 ? -8 * sum : 0;
}

/* a[R] = start[R] + the products of a group of x, R rows, with a group of w. */
static inline void oic_dots_group_8(oic_dots *a, int R, const uint8_t *w, const uint8_t *x, const uint8_t *start)
{
    for (int r = 0; r < R; ++r) {
        int32_t from;
        memcpy(&from, start + 4 * r, sizeof from);
        for (int l = 0; l < OIC_PANEL; ++l) {
            int32_t sum = from;
            for (int k = 0; k < OIC_GROUP; ++k) {
                sum += (int32_t)(int8_t)w[k / 4 * 64 + 4 * l + k % 4] * (int8_t)x[r * OIC_DOTS_X + k];
            }
            a[r].v[l] = sum;
        }
    }
}

static inline void oic_dots_group_4(oic_dots *a, int R, const uint8_t *w, const uint8_t *x, const uint8_t *start)
{
    for (int r = 0; r < R; ++r) {
        int32_t from;
        memcpy(&from, start + 4 * r, sizeof from);
        for (int l = 0; l < OIC_PANEL; ++l) {
            int32_t sum = from;
            for (int k = 0; k < OIC_GROUP / 2; ++k) {
                const uint8_t two = w[k / 4 * 64 + 4 * l + k % 4];
                sum += (two & 15) * (int8_t)x[r * OIC_DOTS_X + k] + (two >> 4) * (int8_t)x[r * OIC_DOTS_X + OIC_GROUP / 2 + k];
            }
            a[r].v[l] = sum;
        }
    }
}

/* Sixteen scales, widened. */
static inline void oic_dots_scales(oic_dots_f32 *to, const oic_f16 *from)
{
    for (int l = 0; l < OIC_PANEL; ++l) {
        to->v[l] = oic_f16_to_f32(from[l]);
    }
}

/* y += a * (dw * dx) */
static inline void oic_dots_add(float *y, const oic_dots *a, const oic_dots_f32 *dw, float dx)
{
    for (int l = 0; l < OIC_PANEL; ++l) {
        y[l] += (float)a->v[l] * (dw->v[l] * dx);
    }
}
