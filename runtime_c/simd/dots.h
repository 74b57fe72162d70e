/* Exact products of small integers for sixteen rows of weights at a time, in groups of 32 along K.

   Weights lie in steps of 64 bytes: four neighbours along K of each of sixteen rows.  A group of q8 is eight steps of i8, of
   any value; one of q4 is four, whose low nibbles are steps 0 to 3 and whose high ones are steps 4 to 7: q + 8.  A group of
   x is OIC_DOTS_X bytes, as the machine's instructions want it, made by oic_dots_quantize of numbers of at most 127 either
   way, together with a number that its sums start at.

   Every machine has the same functions, for up to OIC_DOTS_ROWS rows of x at a time, of q8 OIC_DOTS_ROWS_8: the portable ones
   are the definition. */
#ifndef OIC_DOTS_H
#define OIC_DOTS_H

#include "../version.h"

#include "../num.h"
#include "tiles.h"

#define OIC_PANEL 16 /* rows of weights */
#define OIC_GROUP 32 /* neighbours along K that have a scale of their own */

#if defined(__GNUC__)
#define OIC_INLINE static inline __attribute__((always_inline))
#define OIC_AHEAD(p) __builtin_prefetch(p) /* what will be read: an address that need not exist */
#define OIC_AHEAD_FAR(p) __builtin_prefetch(p, 0, 2) /* the same, into L2 */
#else
#define OIC_INLINE static inline
#define OIC_AHEAD(p) (void)(p)
#define OIC_AHEAD_FAR(p) (void)(p)
#endif
#define OIC_AHEAD_IF(p, ahead) ((ahead) == 0 ? (void)0 : OIC_AHEAD((p) + (ahead))) /* 0: not */

/* What will be read of line c of a panel.  Most machines that fetch are asked into L2, because into L1 there are few places in
   which lines are waited for; of several panels at once, where memory is the limit, for one line in four: they go on by
   themselves. */
#if OIC_ASKED_NEAR || !OIC_FETCHES
#define OIC_AHEAD_LINE(p, c, P, ahead) OIC_AHEAD_IF(p, ahead)
#else
#define OIC_AHEAD_LINE(p, c, P, ahead) \
    ((ahead) == 0 || ((P) > 1 && (c) % 4 != 0) ? (void)0 : OIC_AHEAD_FAR((p) + (ahead)))
#endif

/* q = x to 8 bits; gives dx.  A quotient that would be infinite is 0. */
static inline float oic_quantized_group(const float *x, int8_t *q)
{
    uint32_t top = 0;
    for (int i = 0; i < OIC_GROUP; ++i) { /* of bits: as numbers, but for NaNs, which are above infinity */
        const uint32_t size = oic_bits_f32(x[i]) & 0x7fffffffu;
        top = size > top ? size : top;
    }
    const int finite = top < 0x7f800000u;
    const float amax = oic_from_bits_f32(finite ? top : 0x7fc00000u), inv = finite && amax >= 0x1p-119f ? 127.0f / amax : 0.0f;
    for (int i = 0; i < OIC_GROUP; ++i) { /* the sum has whole numbers as its last digits */
        const float v = oic_from_bits_f32(finite ? oic_bits_f32(x[i]) : 0u) * inv + 0x1.8p23f;
        q[i] = (int8_t)(int32_t)(oic_bits_f32(v) - oic_bits_f32(0x1.8p23f));
    }
    return amax / 127.0f;
}

#if defined(OIC_PORTABLE) /* for tests: the definition */
#include "dots_portable.h"
#elif !defined(__GNUC__)
#include "dots_portable.h"
#elif defined(__AVX512VNNI__) || (defined(__AVXVNNI__) && defined(__AVX2__) && defined(__F16C__))
#include "dots_vnni.h"
#elif defined(__AVX2__)
#include "dots_avx2.h"
#elif defined(__SSE2__) || defined(__wasm_simd128__)
#include "dots_pairs.h"
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include "dots_neon.h"
#elif defined(__ARM_FEATURE_SIMD32) && !defined(__ARM_NEON) && !defined(__ARM_FEATURE_MVE) && !defined(__ARM_BIG_ENDIAN)
#include "dots_dsp.h"
#elif defined(__ARM_FEATURE_MVE) && !defined(__ARM_BIG_ENDIAN)
#include "dots_helium.h"
#else
#include "dots_portable.h"
#endif

#if !defined(OIC_DOTS_ROWS_8)
#define OIC_DOTS_ROWS_8 OIC_DOTS_ROWS
#endif

#endif
