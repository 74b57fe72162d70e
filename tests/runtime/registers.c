/* Every function of registers.h and its lanes, on special and random numbers and all those of 16 bits: a line a function,
   with a hash of all results.  NaNs are equal. */
#include "kernels/common/requantized_bytes.h"
#include "simd/bytes.h"
#include "simd/lanes.h"
#include "simd/slow_fma.h"
#include "simd/words.h"

#define COUNT 8192 /* of random numbers, and of pairs of special ones */

void say(const char *name, uint32_t high, uint32_t low);

static float as[COUNT], bs[COUNT], cs[COUNT];
static double as64[COUNT], bs64[COUNT], cs64[COUNT];
static int32_t is[COUNT], js[COUNT];
static uint16_t halves[65536];
static int8_t bytes[COUNT], others[COUNT];
static uint64_t hash;

static void seen(uint32_t bits)
{
    hash = (hash ^ bits) * 0x100000001b3u;
    hash ^= hash >> 29;
}

static void seen_f32(float v)
{
    seen(v == v ? oic_bits_f32(v) : 0x7fc00000u);
}

static void seen_f64(double v)
{
    const uint64_t bits = v == v ? oic_bits_f64(v) : 0x7ff8000000000000u;
    seen((uint32_t)bits);
    seen((uint32_t)(bits >> 32));
}

static void said(const char *name)
{
    say(name, (uint32_t)(hash >> 32), (uint32_t)hash);
    hash = 0xcbf29ce484222325u;
}

static uint64_t random64(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1du;
}

static const uint32_t special[] = {
    0x00000000u, 0x00000001u, 0x007fffffu, 0x00800000u, 0x33000000u, 0x387fc000u, 0x38800000u, 0x3effffffu, 0x3f000000u,
    0x3f000001u, 0x3f800000u, 0x3fc00000u, 0x40200000u, 0x40600000u, 0x42ff0000u, 0x43000000u, 0x477fe000u, 0x477fefffu,
    0x477ff000u, 0x4a7ffffdu, 0x4affffffu, 0x4b000000u, 0x4b7fffffu, 0x4effffffu, 0x7f7f7fffu, 0x7f7f8000u, 0x7f7fffffu,
    0x7f800000u, 0x7fc00000u, 0x3eaaaaabu, 0x3f7fffffu, 0x4b000001u,
};
#define SPECIALS ((uint32_t)(sizeof special / sizeof special[0]))

static void fill(void)
{
    for (uint32_t i = 0; i < COUNT; ++i) {
        const uint64_t r = random64(), q = random64(), p = random64();
        uint32_t a = (uint32_t)r, b = (uint32_t)(r >> 32), c = (uint32_t)q;
        if (i < 4u * SPECIALS * SPECIALS) { /* all pairs, of both signs */
            a = special[i / 4u % SPECIALS] | (i & 1u) << 31;
            b = special[i / 4u / SPECIALS] | (i & 2u) << 30;
        } else if (i % 2u == 0u) { /* neighbours in size */
            a = (a & 0x87ffffffu) | 0x38000000u;
            b = (b & 0x87ffffffu) | 0x38000000u;
            c = (c & 0x87ffffffu) | 0x38000000u;
        }
        as[i] = oic_from_bits_f32(a);
        bs[i] = oic_from_bits_f32(b);
        cs[i] = oic_from_bits_f32(c);
        as64[i] = i % 2u ? (double)as[i] : oic_from_bits_f64((r & 0x8007ffffffffffffu) | 0x3ff0000000000000u);
        bs64[i] = i % 2u ? (double)bs[i] : oic_from_bits_f64((p & 0x8007ffffffffffffu) | 0x3ff0000000000000u);
        cs64[i] = i % 2u ? (double)cs[i] : oic_from_bits_f64((q & 0x8007ffffffffffffu) | 0x3ff0000000000000u);
        is[i] = i < 4u ? (int32_t)(0x7ffffffeu + i) : (int32_t)(q >> 32) >> (i % 31u);
        js[i] = i % 4u ? (int32_t)p : is[i];
        bytes[i] = (int8_t)(p >> 48);
        others[i] = (int8_t)(q >> 24);
        others[i] = others[i] == -128 ? (int8_t)127 : others[i];
        if (i / 64u % 2u) { /* the largest sums */
            bytes[i] = (int8_t)(r & 1u ? 127 : -128);
            others[i] = (int8_t)(r & 2u ? 127 : -127);
        }
    }
    for (uint32_t i = 0; i < 65536u; ++i) {
        halves[i] = (uint16_t)i;
    }
}

/* A number that an integer of 32 bits can hold. */
static float whole(float v)
{
    return v >= -0x1p31f && v <= 0x1.fffffep30f ? v : 0.5f;
}

static oic_register_f32 two(const float *p) { return oic_register_load_f32(p); }

#define EACH for (ptrdiff_t i = 0; i < COUNT; i += OIC_WIDTH)
#define F32(name, value)                                 \
    EACH                                                 \
    {                                                    \
        const oic_register_f32 a = two(as + i), b = two(bs + i), c = two(cs + i); \
        float y[OIC_WIDTH];                              \
        (void)a, (void)b, (void)c;                       \
        oic_register_store_f32(y, value);                \
        for (int l = 0; l < OIC_WIDTH; ++l) {            \
            seen_f32(y[l]);                              \
        }                                                \
    }                                                    \
    said(name)
#define F64(name, value)                                 \
    for (ptrdiff_t i = 0; i < COUNT; i += OIC_WIDTH_F64) \
    {                                                    \
        const oic_register_f64 a = oic_register_load_f64(as64 + i), b = oic_register_load_f64(bs64 + i); \
        const oic_register_f64 c = oic_register_load_f64(cs64 + i); \
        double y[OIC_WIDTH_F64];                         \
        (void)b, (void)c;                                \
        oic_register_store_f64(y, value);                \
        for (int l = 0; l < OIC_WIDTH_F64; ++l) {        \
            seen_f64(y[l]);                              \
        }                                                \
    }                                                    \
    said(name)
#define I32(name, value)                                 \
    EACH                                                 \
    {                                                    \
        const oic_register_i32 a = oic_register_load_i32(is + i), b = oic_register_load_i32(js + i); \
        float w[OIC_WIDTH];                              \
        int32_t y[OIC_WIDTH];                            \
        for (int l = 0; l < OIC_WIDTH; ++l) {            \
            w[l] = whole(as[i + l]);                     \
        }                                                \
        const oic_register_f32 f = two(w);               \
        (void)a, (void)b, (void)f;                       \
        oic_register_store_i32(y, value);                \
        for (int l = 0; l < OIC_WIDTH; ++l) {            \
            seen((uint32_t)y[l]);                        \
        }                                                \
    }                                                    \
    said(name)
#define CHOSEN(m) oic_register_select_f32(m, oic_register_of_f32(1.0f), a)
#define KNOWN(m) oic_register_signed(oic_register_select_u32(m, oic_register_unsigned(a), oic_register_unsigned(b) ^ 5u))
#define EACH_HALF for (ptrdiff_t i = 0; i < 65536; i += OIC_WIDTH)

static void floats(void)
{
    F32("add", a + b);
    F32("subtract", a - b);
    F32("multiply", a * b);
    F32("divide", a / b);
    F32("sqrt", oic_register_sqrt_f32(a));
    F32("madd", oic_register_madd_f32(a, b, c));
    F32("max", oic_register_max_f32(a, b));
    F32("min", oic_register_min_f32(a, b));
    F32("less", CHOSEN(oic_register_less_f32(a, b)));
    F32("equal", CHOSEN(oic_register_equal_f32(a, b)));
    F32("and", CHOSEN(oic_mask_and(oic_register_less_f32(a, b), oic_register_less_f32(b, c))));
    F32("or", CHOSEN(oic_mask_or(oic_register_less_f32(a, b), oic_register_less_f32(b, c))));
    F32("not", CHOSEN(oic_mask_not(oic_register_less_f32(a, b))));
    F32("abs", oic_register_abs_f32(a));
    F32("copysign", oic_register_copysign_f32(a, b));
    F32("limit", oic_register_limit_f32(a, -105.0f, 89.0f));
    F32("round", oic_register_round_f32(a));
    F64("add f64", a + b);
    F64("divide f64", a / b);
    F64("madd f64", oic_register_madd_f64(a, b, c));
    F64("sqrt f64", oic_register_sqrt_f64(a));
#if defined(OIC_FUSED_REGISTERS)
    F32("fused", oic_register_fused_f32(a, b, c));
    F64("fused f64", oic_register_fused_f64(a, b, c));
#elif OIC_WIDTH == 1
    F32("fused", oic_slow_fma_f32(a, b, c));
    F64("fused f64", oic_slow_fma_f64(a, b, c));
#endif
}

static void integers(void)
{
    I32("less i32", KNOWN(oic_register_less_i32(a, b)));
    I32("equal i32", KNOWN(oic_register_equal_i32(a, b)));
    I32("to i32", oic_register_to_i32(f));
    I32("nearest i32", oic_register_nearest_i32(f));
    F32("to f32", oic_register_to_f32(oic_register_load_i32(is + i)));
    F32("power", oic_register_power_f32(oic_register_load_i32(is + i) % 126));
    F32("scale", oic_register_scale_f32(oic_register_copysign_f32(oic_register_from_bits_f32(
                     (oic_register_bits_f32(a) & 0x007fffffu) | 0x3f800000u), b), oic_register_load_i32(is + i) % 250));
    I32("load i8", oic_register_load_i8(bytes + i));
    I32("load u8", oic_register_signed(oic_register_load_u8((const uint8_t *)bytes + i)));
    I32("dot i16", oic_register_signed(oic_register_dot_i16(oic_register_unsigned(a) * 3u, oic_register_unsigned(a),
                                                            oic_register_unsigned(b))));
    I32("max i32", oic_register_max_i32(a, b));
    I32("min i32", oic_register_min_i32(a, b));
    I32("high half", oic_register_high_half_i32(a, b));
    I32("high half of less", oic_register_high_half_i32(a, oic_register_signed(oic_register_unsigned(b) << 16)));
    for (int n = 0; n < 32; ++n) {
        I32("shift rounded", oic_register_shift_rounded_i32(a, n));
        I32("shift rounded of halves", oic_register_shift_rounded_i32(oic_register_signed(oic_register_unsigned(a) << n), n < 31 ? n + 1 : 31));
    }
    EACH
    {
        int8_t y[OIC_WIDTH];
        oic_register_store_i8(y, oic_register_load_i8(bytes + i));
        for (int l = 0; l < OIC_WIDTH; ++l) {
            seen((uint32_t)(int32_t)y[l]);
        }
    }
    said("store i8");
    for (int n = 0; n < 12; ++n) {
        static const int16_t more[] = {0, 3, -7, 128, -32512, 32512};
        for (ptrdiff_t i = 0; i + 4 * OIC_WIDTH <= COUNT; i += 4 * OIC_WIDTH) {
            uint8_t y[4 * OIC_WIDTH];
            oic_register_i32 v[4];
            for (int l = 0; l < 4; ++l) {
                v[l] = oic_register_load_i32((n < 6 ? is : js) + i + l * OIC_WIDTH);
            }
            oic_register_store_limited(y, v, more[n % 6], n % 2);
            for (int l = 0; l < 4 * OIC_WIDTH; ++l) {
                seen(y[l]);
            }
        }
    }
    said("store limited");
    for (ptrdiff_t i = 0; i + 256 <= COUNT; i += 64) {
        int32_t sums[16];
        for (int l = 0; l < 16; ++l) {
            sums[l] = l * 1000 - 8000;
        }
        oic_dots_i8(sums, others + i, bytes + i, 4);
        for (int l = 0; l < 16; ++l) {
            seen((uint32_t)sums[l]);
        }
    }
    said("dots i8");
}

/* All numbers of 16 bits, and each with those between it and the next. */
static void narrow(void)
{
    uint32_t wrong = 0;
    float y[OIC_WIDTH];
    uint16_t h[OIC_WIDTH];
    EACH_HALF
    {
        oic_register_store_f32(y, oic_register_load_f16(halves + i));
        for (int l = 0; l < OIC_WIDTH; ++l) {
            seen_f32(y[l]);
        }
    }
    said("load f16");
    for (ptrdiff_t i = 0, n = 1; i < 65536; i += n, n = n % 19 + 1) { /* as many together as there are */
        float wide[19];
        n = n < 65536 - i ? n : 65536 - i;
        const float *const from = oic_widen_f16(halves + i, n, wide);
        for (ptrdiff_t l = 0; l < n; ++l) {
            seen_f32(from[l]);
        }
    }
    said("widen f16");
    EACH_HALF
    {
        oic_register_store_f32(y, oic_register_load_bf16(halves + i));
        for (int l = 0; l < OIC_WIDTH; ++l) {
            seen_f32(y[l]);
        }
    }
    said("load bf16");
    for (int part = 0; part < 14; ++part) { /* the first seven of f16 */
        static const uint32_t beyond[7] = {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x8000u, 0x7fffu};
        EACH_HALF
        {
            for (int l = 0; l < OIC_WIDTH; ++l) {
                const uint32_t more = part % 7 == 6 ? (uint32_t)random64() & 0xffffu : beyond[part % 7];
                const float near = part % 7 < 5 ? oic_f16_to_f32(halves[i + l]) : oic_bf16_to_f32(halves[i + l]);
                y[l] = oic_from_bits_f32(oic_bits_f32(near) + more);
            }
            if (part < 7) {
                oic_register_store_f16(h, two(y));
            } else {
                oic_register_store_bf16(h, two(y));
            }
            for (int l = 0; l < OIC_WIDTH; ++l) {
                const uint16_t one = part < 7 ? oic_f32_to_f16(y[l]) : oic_f32_to_bf16(y[l]);
                const float made = part < 7 ? oic_f16_to_f32(h[l]) : oic_bf16_to_f32(h[l]);
                seen_f32(made);
                wrong += made == made && h[l] != one;
            }
        }
        if (part == 6 || part == 13) {
            said(part < 7 ? "store f16" : "store bf16");
        }
    }
    seen(wrong);
    said("as num.h");
}

static void over(void)
{
    uint32_t wrong = 0;
    oic_lanes_f32 v;
    for (ptrdiff_t i = 0; i + 16 <= COUNT; i += 16) {
        oic_lanes_load_f32(&v, i % 32 ? as + i : bs + i);
        seen_f32(oic_lanes_largest_f32(&v));
        seen_f32(oic_lanes_sum_f32(&v));
        oic_lanes_load_f32(&v, cs + i); /* finite, for the most part */
        seen_f32(oic_lanes_sum_f32(&v));
    }
    said("sum and largest");
    for (uint32_t i = 0; i < 2 * COUNT; i += OIC_WIDTH) { /* in each lane by itself */
        float y[OIC_WIDTH] = {0.0f};
        y[i / OIC_WIDTH % OIC_WIDTH] = as[i / 2u] == bs[i / 2u] ? -0.0f : 1.0f;
        wrong += oic_mask_any(oic_register_less_f32(oic_register_of_f32(0.0f), two(y))) != (y[i / OIC_WIDTH % OIC_WIDTH] > 0.0f);
    }
    seen(wrong);
    said("any");
    oic_lanes_f64 w;
    for (ptrdiff_t i = 0; i + 16 <= COUNT; i += 16) {
        oic_lanes_load_f64(&w, cs64 + i);
        seen_f64(oic_lanes_sum_f64(&w));
    }
    said("sum f64");
    for (ptrdiff_t n = 0; n <= 16; ++n) {
        float y[16];
        for (ptrdiff_t i = 0; i < 16; i += OIC_WIDTH) { /* what follows is not ours */
            const ptrdiff_t left = n < i ? 0 : n - i;
            oic_register_store_f32(y + i, oic_register_load_some_f32(as + COUNT - left, left < OIC_WIDTH ? left : OIC_WIDTH));
        }
        for (int l = 0; l < 16; ++l) {
            seen_f32(y[l]);
        }
    }
    said("some");
}

/* Products of bytes along rows, and along taps: of any length, at any place, of extremes too. */
static void byte_rows(void)
{
    uint32_t sum[OIC_BYTE_ROWS], taps[16];
    for (ptrdiff_t n = 0; n <= 70; ++n) {
        for (ptrdiff_t at = 0; at < 5; ++at) {
            oic_byte_rows(sum, bytes + at, others + 3 * n + at, n + 7 * at, n);
            for (ptrdiff_t r = 0; r < OIC_BYTE_ROWS; ++r) {
                seen(sum[r]);
            }
            for (ptrdiff_t m = 1; m <= 16; m += 5) {
                for (ptrdiff_t i = 0; i < m; ++i) {
                    taps[i] = (uint32_t)i;
                }
                oic_byte_taps(taps, m, bytes + n, 1 + at % 3, others + at, n % 20, 1 + n % 7 / 6);
                for (ptrdiff_t i = 0; i < m; ++i) {
                    seen(taps[i]);
                }
            }
        }
    }
    said("bytes");
    for (ptrdiff_t n = 0; n <= 70; ++n) {
        seen(oic_byte_dot(bytes + n, others + 5 * n, n));
    }
    said("dots of bytes");
}

/* Windows of bytes: of any taps, many of three by three, whose rows are `wide` apart. */
static void byte_windows(void)
{
    uint32_t sum[24];
    for (ptrdiff_t i = 0; i < 2000; ++i) {
        const ptrdiff_t m = i % 24, y = i % 3 ? 3 : i % 5, x = i % 4 ? 3 : i % 7, step = i % 5 ? 1 : 1 + i % 3, apart = i % 6 ? 1 : i % 4;
        oic_byte_windows(sum, m, (uint32_t)is[i], bytes + i, step, i % 91, others + 3 * i, y, x, apart);
        for (ptrdiff_t e = 0; e < m; ++e) {
            seen(sum[e]);
        }
    }
    said("windows of bytes");
}

/* What scales sums to bytes does as what scales them, and that as it is defined: of ties too. */
static void scaled(void)
{
    static const int zeros[] = {-128, 0, 127, 255, -32512, 32512, 77};
    static int8_t shifts[COUNT];
    uint32_t wrong = 0;
    for (int shift = -40; shift < 40; ++shift) {
        const int left = oic_shift_of(shift), right = oic_shift_of(-shift);
        for (ptrdiff_t i = 0; i < COUNT; ++i) {
            const int32_t some[] = {is[i], (int32_t)(i - COUNT / 2)}, by[] = {js[i], INT32_MIN, INT32_MAX, 1 << 30, 3 << 29};
            for (int k = 0; k < 10; ++k) {
                const int32_t x = some[k / 5], m = by[k % 5], high = oic_high_half(oic_wrap_i32((uint32_t)x << left), m);
                wrong += oic_scale_tflite(x, m, shift) != oic_shift_rounded(high, right);
            }
        }
    }
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        shifts[i] = (int8_t)(i % 8 ? -(int)(i % 31) : (int)(i % 80) - 40);
    }
    for (ptrdiff_t i = 0; i < 2000; ++i) {
        enum { MOST = 21, STEP = 3 };
        const ptrdiff_t n = i % (MOST + 1), step = 1 + i % STEP;
        const int sign = i % 3 != 0, each = i % 4 != 0;
        const oic_requantized by = {js, shifts, i % 5 != 0, zeros[i % 7], 0};
        const oic_requantized_range within = oic_requantized_within(sign ? -128 : 0, sign ? 127 : 255, by.zero_point);
        uint32_t sum[MOST + OIC_WIDTH], expected[MOST + OIC_WIDTH];
        uint8_t y[MOST * STEP];
        memset(y, 0x55, sizeof y);
        for (ptrdiff_t e = 0; e < n; ++e) {
            sum[e] = (uint32_t)is[i + e] >> i % 20;
            expected[e] = sum[e] + (i % 2 ? (uint32_t)js[i + e] : 0u);
        }
        oic_requantized_store(&by, sum, i % 2 ? js + i : NULL, n, i, each, within, y, step);
        if (each) {
            oic_requantized_each(&by, expected, n, i, within);
        } else {
            oic_requantized_sums(&by, expected, n, i, within);
        }
        for (ptrdiff_t e = 0; e < n; ++e) {
            wrong += y[e * step] != (uint8_t)expected[e];
        }
        for (ptrdiff_t e = 0; e < MOST * STEP; ++e) { /* what lies between */
            wrong += (e % step != 0 || e >= n * step) && y[e] != 0x55;
            seen(y[e]);
        }
    }
    said("bytes of sums");
    seen(wrong);
    said("scaled");
}

/* Words of four numbers, of four rows and of one, and their products with others: whatever a word has, sums are the same. */
static void words(void)
{
    enum { MOST = 40, EACH_FOUR = 4 / OIC_WORD };
    uint32_t x[OIC_WORD_ROWS * EACH_FOUR], start[OIC_WORD_ROWS], planes[EACH_FOUR * (MOST + OIC_LANES)];
    uint32_t sum[OIC_WORD_ROWS * (MOST + OIC_LANES)];
    int32_t at[EACH_FOUR], place[(MOST + OIC_LANES) / OIC_EIGHT];
    uint32_t wrong = 0;
    for (int i = 0; i < (MOST + OIC_LANES) / OIC_EIGHT; ++i) { /* the second eight first */
        place[i] = OIC_EIGHT * (i ^ 1) % (MOST + OIC_LANES);
    }
    for (ptrdiff_t r = 0; r < OIC_WORD_ROWS; ++r) {
        start[r] = 0u;
        for (ptrdiff_t i = 0; i < 4 && OIC_WORD_BIAS; ++i) {
            start[r] -= 128u * (uint32_t)(int32_t)others[4 * (r % 3) + i];
        }
        oic_words_of_x(x + r * EACH_FOUR, others + 4 * (r % 3), 4);
    }
    for (ptrdiff_t step = 1; step <= 5; ++step) {
        for (ptrdiff_t n = 1; n <= MOST; ++n) {
            for (int one = 0; one < 3; ++one) { /* of four rows, of one, and of one that is 0 outside */
                const int8_t *const from = bytes + 64 * step + n;
                const ptrdiff_t first = one == 2 ? step - n : 0, size = one == 2 ? n * step / 2 + 3 : COUNT;
                if (one == 2 && !oic_words_pad(step)) {
                    continue;
                }
                oic_words_zero(planes, EACH_FOUR * (MOST + OIC_LANES));
                for (ptrdiff_t i = 0; i < EACH_FOUR; ++i) {
                    const int8_t *rows[OIC_WORD];
                    for (ptrdiff_t l = 0; l < OIC_WORD; ++l) {
                        rows[l] = from + 300 * (i * OIC_WORD + l);
                    }
                    at[i] = (int32_t)(i * (MOST + OIC_LANES));
                    if (one == 2) {
                        uint32_t three[3 * MOST + OIC_LANES];
                        oic_words_of_padded(three, n, from - 300, 300, 3, size, first, step); /* the second of three rows */
                        memcpy(planes + at[i], three + n, (size_t)n * sizeof *three);
                    } else if (one) {
                        oic_words_of_row(planes + at[i], from + i * OIC_WORD, n, step);
                    } else {
                        oic_words_of_w(planes + at[i], rows, n, step);
                    }
                }
                for (ptrdiff_t rows = 1; rows <= OIC_WORD_ROWS; ++rows) {
                    oic_words_sum(sum, MOST + OIC_LANES, rows, x, EACH_FOUR, planes, at, EACH_FOUR, start, place, n);
                    for (ptrdiff_t e = 0; e < rows * n; ++e) {
                        const ptrdiff_t r = e / n, lane = e % n, i = place[lane / OIC_EIGHT] + lane % OIC_EIGHT;
                        int32_t expected = 0;
                        for (ptrdiff_t l = 0; l < 4; ++l) {
                            const ptrdiff_t k = first + i * step + (one ? l : 300 * l);
                            expected += others[4 * (r % 3) + l] * (k >= 0 && k < size ? from[k] : 0);
                        }
                        wrong += i < n && sum[r * (MOST + OIC_LANES) + lane] != (uint32_t)expected;
                    }
                }
            }
        }
    }
    seen(wrong);
    said("words");
}

int registers(void);
int registers(void)
{
    hash = 0xcbf29ce484222325u;
    fill();
    floats();
    integers();
    narrow();
    over();
    words();
    byte_rows();
    byte_windows();
    scaled();
    return OIC_WIDTH;
}

#if defined(__wasm__)
#include "wasm.h"

void say(const char *name, uint32_t high, uint32_t low) { wasm_say(name, high, low); }

int run(void) { return registers(); }

#elif defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M' /* a board, which its emulator lets print */
#include "board.h"

void say(const char *name, uint32_t high, uint32_t low) { board_say(name, high, low); }

static void run(void) { board_print(registers() == 1 ? "width: 1\n" : "width: more\n"); }

#else
#include <stdio.h>

void say(const char *name, uint32_t high, uint32_t low)
{
    printf("%s: %08lx%08lx\n", name, (unsigned long)high, (unsigned long)low);
}

int main(void)
{
    printf("width: %d\n", registers());
    return 0;
}
#endif
