/* a * b + c in one rounding, from integers: exact on every machine, and slow.  It lets tests compute `fused` where there is
   no such instruction:

       cc -D_DEFAULT_SOURCE -include slow_fma.h -DOIC_FMA_F32=oic_slow_fma_f32 -DOIC_FMA_F64=oic_slow_fma_f64 ... */
#ifndef OIC_SIMD_SLOW_FMA_H
#define OIC_SIMD_SLOW_FMA_H

#include <stdint.h>
#include <string.h>

/* A number of 128 bits. */
typedef struct {
    uint64_t high, low;
} oic_wide;

static inline oic_wide oic_wide_product(uint64_t a, uint64_t b)
{
    const uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    const uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & 0xffffffffu);
    return (oic_wide){a1 * b1 + (middle >> 32) + (other >> 32), (other << 32) | (a0 * b0 & 0xffffffffu)};
}

static inline oic_wide oic_wide_left(oic_wide v, int n)
{
    if (n >= 64) {
        return (oic_wide){n >= 128 ? 0 : v.low << (n - 64), 0};
    }
    return n == 0 ? v : (oic_wide){v.high << n | v.low >> (64 - n), v.low << n};
}

/* Shifted to the right; its last bit is 1 if any that went was. */
static inline oic_wide oic_wide_right(oic_wide v, int n)
{
    oic_wide to = {0, 0};
    if (n <= 0) {
        return v;
    }
    if (n < 64) {
        to = (oic_wide){v.high >> n, v.low >> n | v.high << (64 - n)};
    } else if (n < 128) {
        to.low = v.high >> (n - 64);
    }
    const oic_wide back = n < 128 ? oic_wide_left(to, n) : to;
    to.low |= back.high != v.high || back.low != v.low;
    return to;
}

static inline int oic_wide_zeros(oic_wide v)
{
    uint64_t word = v.high != 0 ? v.high : v.low;
    int n = v.high != 0 ? 0 : 64;
    for (int step = 32; step > 0; step /= 2) {
        if (!(word >> (64 - step))) {
            word <<= step;
            n += step;
        }
    }
    return word == 0 ? 128 : n;
}

static inline uint64_t oic_fma_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* |x| = *m * 2^e for a finite x; gives e. */
static inline int oic_fma_parts(double x, uint64_t *m)
{
    const int exponent = (int)(oic_fma_bits(x) >> 52 & 0x7ff);
    *m = (oic_fma_bits(x) & 0xfffffffffffffu) | (exponent ? (uint64_t)1 << 52 : 0);
    return (exponent ? exponent : 1) - 1075;
}

/* (-1)^negative * v * 2^e with `digits` binary digits, and none below 2^least: rounded to nearest, ties to even. */
static inline double oic_fma_rounded(uint64_t negative, oic_wide v, int e, int digits, int least)
{
    double y;
    uint64_t bits = 0;
    int drop, exponent;
    if (v.high != 0 || v.low != 0) {
        drop = 128 - oic_wide_zeros(v) - digits;
        drop = drop < least - e ? least - e : drop;
        if (drop > 0) {
            const oic_wide cut = oic_wide_right(v, drop - 2 < 0 ? 0 : drop - 2);
            const oic_wide two = drop == 1 ? oic_wide_left(v, 1) : cut; /* two more digits, the last of them jammed */
            const uint64_t rest = two.low & 3u;
            v = (oic_wide){0, (two.low >> 2 | two.high << 62) + (rest > 2 || (rest == 2 && (two.low >> 2 & 1u)))};
            e += drop;
        }
        /* Its value as bits of a double: v < 2^54, with a carry that leaves it even, or of fewer digits. */
        drop = 75 - oic_wide_zeros(v);
        drop = drop < -1074 - e ? -1074 - e : drop;
        v = drop > 0 ? oic_wide_right(v, drop) : oic_wide_left(v, -drop);
        e += drop;
        exponent = v.low >> 52 ? e + 1075 : 0;
        bits = exponent >= 0x7ff ? (uint64_t)0x7ff << 52 : (uint64_t)exponent << 52 | (v.low & 0xfffffffffffffu);
    }
    bits |= negative << 63;
    memcpy(&y, &bits, sizeof y);
    return y;
}

/* Not inlined: where it takes the place of an instruction, it is called in a great many places. */
#if defined(__GNUC__)
__attribute__((noinline, unused))
#endif
static double oic_slow_fma(double a, double b, double c, int digits, int least)
{
    uint64_t ma, mb, mc, minus = (oic_fma_bits(a) ^ oic_fma_bits(b)) >> 63, minus_c = oic_fma_bits(c) >> 63;
    if (!(a - a == 0.0 && b - b == 0.0) || a == 0.0 || b == 0.0) {
        return a * b + c; /* infinite, NaN, or a product that is exact */
    }
    if (!(c - c == 0.0)) {
        return c; /* whatever the product, which may be too large */
    }
    int e = oic_fma_parts(a, &ma) + oic_fma_parts(b, &mb), ec = oic_fma_parts(c, &mc);
    oic_wide p = oic_wide_product(ma, mb), q = {0, mc};
    /* Both as far to the left as leaves room for a carry; then the smaller one to where the larger is. */
    int n = oic_wide_zeros(p) - 2;
    p = oic_wide_left(p, n);
    e -= n;
    if (mc != 0) {
        n = oic_wide_zeros(q) - 2;
        q = oic_wide_left(q, n);
        ec -= n;
        if (e >= ec) {
            q = oic_wide_right(q, e - ec);
        } else {
            p = oic_wide_right(p, ec - e);
            e = ec;
        }
    }
    if (minus == minus_c) {
        p.low += q.low;
        p.high += q.high + (p.low < q.low);
    } else {
        if (p.high < q.high || (p.high == q.high && p.low < q.low)) {
            const oic_wide other = p;
            p = q;
            q = other;
            minus = minus_c;
        }
        p.high -= q.high + (p.low < q.low);
        p.low -= q.low;
        if (p.high == 0 && p.low == 0) {
            minus = 0;
        }
    }
    return oic_fma_rounded(minus, p, e, digits, least);
}

static inline double oic_slow_fma_f64(double a, double b, double c)
{
    return oic_slow_fma(a, b, c, 53, -1074);
}

static inline float oic_slow_fma_f32(float a, float b, float c)
{
    return (float)oic_slow_fma((double)a, (double)b, (double)c, 24, -149); /* of 24 digits: exact, or infinite */
}

#endif
