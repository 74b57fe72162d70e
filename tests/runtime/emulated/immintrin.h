/* The instructions of AVX-512, VNNI and BF16 that the runtime uses, lane by lane, for machines that have AVX2 alone: so that
   the code upon them runs, and is compared, everywhere.  Put before the compiler's own header, with -D__AVX512F__
   -D__AVX512VNNI__ -D__AVX512BF16__ -D__AVX512VL__ -D__AVX512BW__ -D__AVX512DQ__ beside the flags of AVX2; -DOIC_EMULATES_ZEN5 or INTEL: what tells of
   these is defined, too. */
#ifndef OIC_EMULATED_IMMINTRIN_H
#define OIC_EMULATED_IMMINTRIN_H

#undef __AVX512F__
#undef __AVX512VNNI__
#undef __AVX512BF16__
#undef __AVX512VL__
#undef __AVX512BW__
#undef __AVX512DQ__
#include_next <immintrin.h>
#define __AVX512F__ 1
#define __AVX512VNNI__ 1
#define __AVX512BF16__ 1
#define __AVX512VL__ 1
#define __AVX512BW__ 1
#define __AVX512DQ__ 1
#if defined(OIC_EMULATES_ZEN5) /* not by flags: compilers' own headers would take them back */
#define __AVXVNNI__ 1
#define __AVX512VP2INTERSECT__ 1
#endif
#if defined(OIC_EMULATES_INTEL)
#define __AVX512FP16__ 1
#endif

#include <stdint.h>
#include <string.h>

typedef union {
    __m512 f;
    __m512d d;
    __m512i i;
    __m256 f2[2];
    __m256d d2[2];
    __m256i i2[2];
    float f32[16];
    double f64[8];
    int64_t i64[8];
    uint64_t u64[8];
    int32_t i32[16];
    uint32_t u32[16];
    int16_t i16[32];
    int8_t i8[64];
    uint8_t u8[64];
} emulated;

#define E_FN static inline __attribute__((unused))
#define E_LANES for (int i_ = 0; i_ < 16; ++i_)

E_FN __m512 e_ps(emulated u) { return u.f; }
E_FN emulated e_of(__m512 a) { emulated u; u.f = a; return u; }
E_FN emulated e_ofd(__m512d a) { emulated u; u.d = a; return u; }
E_FN emulated e_ofi(__m512i a) { emulated u; u.i = a; return u; }

E_FN __m512 e_set1_ps(float x) { emulated u; E_LANES u.f32[i_] = x; return u.f; }
E_FN __m512i e_set1_epi32(int32_t x) { emulated u; E_LANES u.i32[i_] = x; return u.i; }
E_FN __m512i e_zero(void) { return e_set1_epi32(0); }
E_FN __m512 e_loadu_ps(const void *p) { emulated u; memcpy(&u, p, 64); return u.f; }
E_FN __m512i e_loadu_si(const void *p) { emulated u; memcpy(&u, p, 64); return u.i; }
E_FN void e_storeu_ps(void *p, __m512 a) { memcpy(p, &a, 64); }
E_FN __m512 e_maskz_loadu_ps(__mmask16 m, const float *p)
{
    emulated u = {0};
    E_LANES { if (m >> i_ & 1) { u.f32[i_] = p[i_]; } }
    return u.f;
}
E_FN void e_mask_storeu_ps(float *p, __mmask16 m, __m512 a)
{
    const emulated u = e_of(a);
    E_LANES { if (m >> i_ & 1) { p[i_] = u.f32[i_]; } }
}

E_FN __m512 e_add_ps(__m512 a, __m512 b) { emulated u = e_of(a), v = e_of(b); E_LANES u.f32[i_] += v.f32[i_]; return u.f; }
E_FN __m512 e_mul_ps(__m512 a, __m512 b) { emulated u = e_of(a), v = e_of(b); E_LANES u.f32[i_] *= v.f32[i_]; return u.f; }
/* a * 2^b, rounded once: powers of whole numbers b, of which those beyond 300 make 0 or infinity all the same. */
E_FN __m512 e_scalef_ps(__m512 a, __m512 b)
{
    emulated u = e_of(a), v = e_of(b);
    E_LANES {
        const float most = v.f32[i_] > 300.0f ? 300.0f : v.f32[i_] < -300.0f ? -300.0f : v.f32[i_];
        const int32_t k = (int32_t)most;
        double power = 1.0;
        for (int32_t n = 0; n < (k < 0 ? -k : k); ++n) {
            power *= k < 0 ? 0.5 : 2.0;
        }
        u.f32[i_] = (float)(u.f32[i_] * power);
    }
    return u.f;
}
E_FN __m512 e_fmadd_ps(__m512 a, __m512 b, __m512 c)
{
    emulated u = e_of(a), v = e_of(b), w = e_of(c);
    E_LANES u.f32[i_] = __builtin_fmaf(u.f32[i_], v.f32[i_], w.f32[i_]);
    return u.f;
}
E_FN __m512d e_fmadd_pd(__m512d a, __m512d b, __m512d c)
{
    emulated u = e_ofd(a), v = e_ofd(b), w = e_ofd(c);
    for (int i = 0; i < 8; ++i) { u.f64[i] = __builtin_fma(u.f64[i], v.f64[i], w.f64[i]); }
    return u.d;
}
/* The second operand where either is a NaN, or both are zeros. */
E_FN __m512 e_min_ps(__m512 a, __m512 b)
{
    emulated u = e_of(a), v = e_of(b);
    E_LANES u.f32[i_] = u.f32[i_] < v.f32[i_] ? u.f32[i_] : v.f32[i_];
    return u.f;
}
E_FN __m512 e_max_ps(__m512 a, __m512 b)
{
    emulated u = e_of(a), v = e_of(b);
    E_LANES u.f32[i_] = u.f32[i_] > v.f32[i_] ? u.f32[i_] : v.f32[i_];
    return u.f;
}
E_FN __m512 e_sqrt_ps(__m512 a) { emulated u = e_of(a); E_LANES u.f32[i_] = __builtin_sqrtf(u.f32[i_]); return u.f; }
E_FN __m512d e_sqrt_pd(__m512d a)
{
    emulated u = e_ofd(a);
    for (int i = 0; i < 8; ++i) { u.f64[i] = __builtin_sqrt(u.f64[i]); }
    return u.d;
}
E_FN __m512 e_round_ps(__m512 a)
{
    emulated u = e_of(a);
    for (int h = 0; h < 2; ++h) { u.f2[h] = _mm256_round_ps(u.f2[h], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
    return u.f;
}

E_FN __m512i e_min_epi32(__m512i a, __m512i b)
{
    emulated u = e_ofi(a), v = e_ofi(b);
    E_LANES u.i32[i_] = u.i32[i_] < v.i32[i_] ? u.i32[i_] : v.i32[i_];
    return u.i;
}
E_FN __m512i e_max_epi32(__m512i a, __m512i b)
{
    emulated u = e_ofi(a), v = e_ofi(b);
    E_LANES u.i32[i_] = u.i32[i_] > v.i32[i_] ? u.i32[i_] : v.i32[i_];
    return u.i;
}
#define E_EIGHT for (int i_ = 0; i_ < 8; ++i_)
E_FN __m512i e_set1_epi64(int64_t x) { emulated u; E_EIGHT u.i64[i_] = x; return u.i; }
E_FN __m512i e_add_epi64(__m512i a, __m512i b) { emulated u = e_ofi(a), v = e_ofi(b); E_EIGHT u.u64[i_] += v.u64[i_]; return u.i; }
E_FN __m512i e_slli_epi64(__m512i a, int n) { emulated u = e_ofi(a); E_EIGHT u.u64[i_] <<= n; return u.i; }
E_FN __m512i e_srli_epi64(__m512i a, int n) { emulated u = e_ofi(a); E_EIGHT u.u64[i_] >>= n; return u.i; }
E_FN __m512i e_mul_epi32(__m512i a, __m512i b)
{
    emulated u = e_ofi(a), v = e_ofi(b);
    E_EIGHT u.i64[i_] = (int64_t)u.i32[2 * i_] * v.i32[2 * i_];
    return u.i;
}

E_FN __mmask16 e_cmp_ps(__m512 a, __m512 b, int how)
{
    emulated u = e_of(a), v = e_of(b);
    unsigned m = 0;
    E_LANES {
        const float x = u.f32[i_], y = v.f32[i_];
        const int yes = how == _CMP_LT_OQ ? x < y : how == _CMP_EQ_OQ ? x == y : how == _CMP_LE_OQ ? x <= y : x != y;
        m |= (unsigned)yes << i_;
    }
    return (__mmask16)m;
}
E_FN __mmask16 e_lt_epi32(__m512i a, __m512i b)
{
    emulated u = e_ofi(a), v = e_ofi(b);
    unsigned m = 0;
    E_LANES m |= (unsigned)(u.i32[i_] < v.i32[i_]) << i_;
    return (__mmask16)m;
}
E_FN __mmask16 e_eq_epi32(__m512i a, __m512i b)
{
    emulated u = e_ofi(a), v = e_ofi(b);
    unsigned m = 0;
    E_LANES m |= (unsigned)(u.i32[i_] == v.i32[i_]) << i_;
    return (__mmask16)m;
}
E_FN __m512 e_blend_ps(__mmask16 m, __m512 a, __m512 b)
{
    emulated u = e_of(a), v = e_of(b);
    E_LANES u.f32[i_] = m >> i_ & 1 ? v.f32[i_] : u.f32[i_];
    return u.f;
}
E_FN __m512i e_blend_epi32(__mmask16 m, __m512i a, __m512i b)
{
    emulated u = e_ofi(a), v = e_ofi(b);
    E_LANES u.i32[i_] = m >> i_ & 1 ? v.i32[i_] : u.i32[i_];
    return u.i;
}

E_FN __m512i e_xor(__m512i a, __m512i b) { emulated u = e_ofi(a), v = e_ofi(b); E_LANES u.u32[i_] ^= v.u32[i_]; return u.i; }
E_FN __m512i e_and(__m512i a, __m512i b) { emulated u = e_ofi(a), v = e_ofi(b); E_LANES u.u32[i_] &= v.u32[i_]; return u.i; }
E_FN __m512i e_sub32(__m512i a, __m512i b) { emulated u = e_ofi(a), v = e_ofi(b); E_LANES u.u32[i_] -= v.u32[i_]; return u.i; }
E_FN __m512i e_srl32(__m512i a, unsigned n) { emulated u = e_ofi(a); E_LANES u.u32[i_] >>= n; return u.i; }
/* Sums of four products of unsigned with signed bytes. */
E_FN __m512i e_dpbusd(__m512i s, __m512i a, __m512i b)
{
    emulated w = e_ofi(s), u = e_ofi(a), v = e_ofi(b);
    E_LANES {
        int32_t sum = 0;
        for (int j = 0; j < 4; ++j) { sum += (int32_t)u.u8[4 * i_ + j] * v.i8[4 * i_ + j]; }
        w.u32[i_] += (uint32_t)sum;
    }
    return w.i;
}

/* Sums of two products of 16 bits. */
E_FN __m512i e_madd16(__m512i a, __m512i b)
{
    emulated w, u = e_ofi(a), v = e_ofi(b);
    E_LANES w.u32[i_] = (uint32_t)(u.i16[2 * i_] * v.i16[2 * i_]) + (uint32_t)(u.i16[2 * i_ + 1] * v.i16[2 * i_ + 1]);
    return w.i;
}

/* A multiplication and addition of bf16 in one rounding to nearest; subnormal numbers are zeros before and after. */
E_FN float e_flushed(float v) { return __builtin_fabsf(v) < 0x1p-126f ? __builtin_copysignf(0.0f, v) : v; }
E_FN float e_widened(uint32_t upper)
{
    const uint32_t bits = upper << 16;
    float v;
    memcpy(&v, &bits, 4);
    return e_flushed(v);
}
/* Of each pair the upper one first, as the manual has it. */
E_FN __m512 e_dpbf16(__m512 s, __m512bh a, __m512bh b)
{
    emulated w = e_of(s), u = e_ofi((__m512i)a), v = e_ofi((__m512i)b);
    E_LANES {
        const float high = e_flushed(__builtin_fmaf(e_widened(u.u32[i_] >> 16), e_widened(v.u32[i_] >> 16), e_flushed(w.f32[i_])));
        w.f32[i_] = e_flushed(__builtin_fmaf(e_widened(u.u32[i_] & 0xffffu), e_widened(v.u32[i_] & 0xffffu), high));
    }
    return w.f;
}
/* Rounded to nearest, halves to even; subnormal numbers are zeros, NaNs quiet.  The numbers of b come first. */
E_FN __m512bh e_cvtne2ps(__m512 a, __m512 b)
{
    uint16_t to[32];
    __m512bh r;
    for (int i = 0; i < 32; ++i) {
        const emulated u = e_of(i < 16 ? b : a);
        const float v = e_flushed(u.f32[i % 16]);
        uint32_t bits;
        memcpy(&bits, &v, 4);
        to[i] = (uint16_t)(v != v ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
    }
    memcpy(&r, to, 64);
    return r;
}
E_FN __m512i e_permute16(__m512i order, __m512i a)
{
    uint16_t at[32], from[32], to[32];
    __m512i r;
    memcpy(at, &order, 64);
    memcpy(from, &a, 64);
    for (int i = 0; i < 32; ++i) { to[i] = from[at[i] & 31]; }
    memcpy(&r, to, 64);
    return r;
}
#define E_TWICE(name, half)                                                       \
    E_FN __m512i name(__m512i a, __m512i b)                                       \
    {                                                                             \
        emulated u = e_ofi(a), v = e_ofi(b);                                      \
        for (int h = 0; h < 2; ++h) { u.i2[h] = half(u.i2[h], v.i2[h]); }          \
        return u.i;                                                               \
    }
E_TWICE(e_packs32, _mm256_packs_epi32)
E_TWICE(e_packs16, _mm256_packs_epi16)
E_TWICE(e_packus16, _mm256_packus_epi16)
E_TWICE(e_adds16, _mm256_adds_epi16)
E_FN __m512i e_set1_epi16(int16_t x) { emulated u; for (int i = 0; i < 32; ++i) { u.i16[i] = x; } return u.i; }
E_FN void e_storeu_si(void *p, __m512i a) { memcpy(p, &a, 64); }
E_FN __m512i e_maskz_permute16(__mmask32 m, __m512i order, __m512i a)
{
    uint16_t to[32];
    __m512i r = e_permute16(order, a);
    memcpy(to, &r, 64);
    for (int i = 0; i < 32; ++i) { to[i] = m >> i & 1 ? to[i] : 0; }
    memcpy(&r, to, 64);
    return r;
}

E_FN __m512 e_cvtepi32_ps(__m512i a) { emulated u = e_ofi(a); E_LANES u.f32[i_] = (float)u.i32[i_]; return u.f; }
E_FN __m512i e_cvtps_epi32(__m512 a)
{
    emulated u = e_of(a);
    for (int h = 0; h < 2; ++h) { u.i2[h] = _mm256_cvtps_epi32(u.f2[h]); }
    return u.i;
}
E_FN __m512i e_cvttps_epi32(__m512 a)
{
    emulated u = e_of(a);
    for (int h = 0; h < 2; ++h) { u.i2[h] = _mm256_cvttps_epi32(u.f2[h]); }
    return u.i;
}
E_FN __m512 e_cvtph_ps(__m256i a)
{
    emulated u;
    u.f2[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(a));
    u.f2[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1));
    return u.f;
}
E_FN __m256i e_cvtps_ph(__m512 a)
{
    const emulated u = e_of(a);
    return _mm256_set_m128i(_mm256_cvtps_ph(u.f2[1], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                            _mm256_cvtps_ph(u.f2[0], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
#define OF_BYTES(name, type)                                                                                            \
    E_FN __m512i name(__m128i a)                                                                                           \
    {                                                                                                                   \
        type from[16];                                                                                                  \
        emulated u;                                                                                                     \
        memcpy(from, &a, 16);                                                                                           \
        E_LANES u.i32[i_] = from[i_];                                                                                      \
        return u.i;                                                                                                     \
    }
OF_BYTES(e_cvtepu8, uint8_t)
OF_BYTES(e_cvtepi8, int8_t)
E_FN __m512i e_cvtepu16(__m256i a)
{
    uint16_t from[16];
    emulated u;
    memcpy(from, &a, 32);
    E_LANES u.i32[i_] = from[i_];
    return u.i;
}
E_FN __m128i e_to_epi8(__m512i a)
{
    const emulated u = e_ofi(a);
    uint8_t to[16];
    __m128i r;
    E_LANES to[i_] = (uint8_t)u.u32[i_];
    memcpy(&r, to, 16);
    return r;
}
E_FN __m256i e_to_epi16(__m512i a)
{
    const emulated u = e_ofi(a);
    uint16_t to[16];
    __m256i r;
    E_LANES to[i_] = (uint16_t)u.u32[i_];
    memcpy(&r, to, 32);
    return r;
}

E_FN __m512i e_maskz_loadu8(uint64_t m, const void *p)
{
    emulated u = {0};
    for (int i = 0; i < 64; ++i) { if (m >> i & 1) { u.i8[i] = ((const int8_t *)p)[i]; } }
    return u.i;
}
E_FN __m512i e_permute32(__m512i at, __m512i a)
{
    emulated u = e_ofi(a), v = e_ofi(at), w;
    E_LANES w.u32[i_] = u.u32[v.u32[i_] % 16];
    return w.i;
}
E_FN __m512i e_shuffle8(__m512i a, __m512i at)
{
    emulated u = e_ofi(a), v = e_ofi(at), w;
    for (int i = 0; i < 64; ++i) { w.u8[i] = v.i8[i] < 0 ? 0 : u.u8[i / 16 * 16 + v.u8[i] % 16]; }
    return w.i;
}
E_FN __m512i e_abs32(__m512i a)
{
    emulated u = e_ofi(a);
    E_LANES u.u32[i_] = u.i32[i_] < 0 ? 0u - u.u32[i_] : u.u32[i_];
    return u.i;
}
E_FN __mmask16 e_negative(__m512i a)
{
    const emulated u = e_ofi(a);
    unsigned m = 0;
    E_LANES m |= (unsigned)(u.i32[i_] < 0) << i_;
    return (__mmask16)m;
}
E_FN __m512i e_mask_sub32(__m512i from, __mmask16 m, __m512i a, __m512i b)
{
    emulated t = e_ofi(from), u = e_ofi(a), v = e_ofi(b);
    E_LANES { if (m >> i_ & 1) { t.u32[i_] = u.u32[i_] - v.u32[i_]; } }
    return t.i;
}
E_FN __m256 e_low_ps(__m512 a) { return e_of(a).f2[0]; }
E_FN __m256d e_low_pd(__m512d a) { return e_ofd(a).d2[0]; }
E_FN __m256d e_part_pd(__m512d a, int n) { return e_ofd(a).d2[n]; }
E_FN __m512d e_ps_pd(__m512 a) { return e_of(a).d; }
E_FN __m512i e_si256(__m256i a) { emulated u = {0}; u.i2[0] = a; return u.i; }
E_FN __m512i e_insert(__m512i a, __m256i b, int n) { emulated u = e_ofi(a); u.i2[n] = b; return u.i; }
E_FN __m512 e_ps256(__m256 a) { emulated u = {0}; u.f2[0] = a; return u.f; }
E_FN __m512d e_insert_pd(__m512d a, __m256d b, int n) { emulated u = e_ofd(a); u.d2[n] = b; return u.d; }

#define _mm512_set1_ps e_set1_ps
#define _mm512_scalef_ps e_scalef_ps
#define _mm512_set1_epi32 e_set1_epi32
#define _mm512_set1_epi64 e_set1_epi64
#define _mm512_add_epi64 e_add_epi64
#undef _mm512_slli_epi64
#define _mm512_slli_epi64 e_slli_epi64
#undef _mm512_srli_epi64
#define _mm512_srli_epi64 e_srli_epi64
#define _mm512_mul_epi32 e_mul_epi32
#define _mm512_min_epi32 e_min_epi32
#define _mm512_max_epi32 e_max_epi32
#define _mm512_setzero_si512 e_zero
#define _mm512_loadu_ps e_loadu_ps
#define _mm512_loadu_si512 e_loadu_si
#define _mm512_storeu_si512 e_storeu_si
#define _mm512_set1_epi16 e_set1_epi16
#define _mm512_packs_epi32 e_packs32
#define _mm512_packs_epi16 e_packs16
#define _mm512_packus_epi16 e_packus16
#define _mm512_adds_epi16 e_adds16
#define _mm512_storeu_ps e_storeu_ps
#define _mm512_maskz_loadu_ps e_maskz_loadu_ps
#define _mm512_mask_storeu_ps e_mask_storeu_ps
#define _mm512_add_ps e_add_ps
#define _mm512_mul_ps e_mul_ps
#define _mm512_fmadd_ps e_fmadd_ps
#define _mm512_fmadd_pd e_fmadd_pd
#define _mm512_min_ps e_min_ps
#define _mm512_max_ps e_max_ps
#define _mm512_sqrt_ps e_sqrt_ps
#define _mm512_sqrt_pd e_sqrt_pd
#undef _mm512_roundscale_ps
#define _mm512_roundscale_ps(a, how) e_round_ps(a)
#undef _mm512_cmp_ps_mask
#define _mm512_cmp_ps_mask e_cmp_ps
#define _mm512_cmplt_epi32_mask e_lt_epi32
#define _mm512_cmpeq_epi32_mask e_eq_epi32
#define _mm512_mask_blend_ps e_blend_ps
#define _mm512_mask_blend_epi32 e_blend_epi32
#define _mm512_xor_si512 e_xor
#define _mm512_and_si512 e_and
#define _mm512_sub_epi32 e_sub32
#undef _mm512_srli_epi32
#define _mm512_srli_epi32 e_srl32
#define _mm512_dpbusd_epi32 e_dpbusd
#define _mm512_madd_epi16 e_madd16
#define _mm512_dpbf16_ps e_dpbf16
#define _mm512_cvtne2ps_pbh e_cvtne2ps
#define _mm512_permutexvar_epi16 e_permute16
#define _mm512_maskz_permutexvar_epi16 e_maskz_permute16
#define _mm512_permutexvar_epi32 e_permute32
#define _mm512_shuffle_epi8 e_shuffle8
#define _mm512_maskz_loadu_epi8 e_maskz_loadu8
#define _mm512_abs_epi32 e_abs32
#define _mm512_movepi32_mask e_negative
#define _mm512_mask_sub_epi32 e_mask_sub32
#define _mm512_cvtepi32_ps e_cvtepi32_ps
#define _mm512_cvtps_epi32 e_cvtps_epi32
#define _mm512_cvttps_epi32 e_cvttps_epi32
#define _mm512_cvtph_ps e_cvtph_ps
#undef _mm512_cvtps_ph
#define _mm512_cvtps_ph(a, how) e_cvtps_ph(a)
#define _mm512_cvtepu8_epi32 e_cvtepu8
#define _mm512_cvtepi8_epi32 e_cvtepi8
#define _mm512_cvtepu16_epi32 e_cvtepu16
#define _mm512_cvtepi32_epi8 e_to_epi8
#define _mm512_cvtepi32_epi16 e_to_epi16
#define _mm512_castps512_ps256 e_low_ps
#define _mm512_castpd512_pd256 e_low_pd
#undef _mm512_extractf64x4_pd
#define _mm512_extractf64x4_pd e_part_pd
#define _mm512_castps_pd e_ps_pd
#define _mm512_castsi256_si512 e_si256
#undef _mm512_inserti64x4
#define _mm512_inserti64x4 e_insert
#undef _mm512_insertf64x4
#define _mm512_insertf64x4 e_insert_pd
#define _mm512_castps256_ps512 e_ps256

#endif
