/* Which instruction sets this processor has, and the system keeps the registers of.  For libraries that have several. */
#ifndef OIC_PROCESSOR_H
#define OIC_PROCESSOR_H

#include "../version.h"

#include <stdint.h>

#define OIC_HAS_SSE2 1u
#define OIC_HAS_AVX2 2u   /* x86-64-v3: with FMA, F16C, BMI */
#define OIC_HAS_AVX512 4u /* x86-64-v4 */
#define OIC_HAS_VNNI 8u   /* and its dot products of bytes */
#define OIC_HAS_NEON 16u
#define OIC_HAS_DOTPROD 32u /* its dot products of bytes */
#define OIC_HAS_I8MM 64u    /* and its products of matrices of bytes */
#define OIC_HAS_ZEN5 128u   /* OIC_HAS_VNNI, and what tells that memory is asked for as Zen 5 wants it (simd/registers.h) */
#define OIC_HAS_INTEL 256u  /* OIC_HAS_VNNI, and what tells of Intel's since Sapphire Rapids (the same) */

#if defined(__x86_64__)
#include <cpuid.h>

static inline uint32_t oic_processor(void)
{
    const uint32_t v2 = 1u << 9 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 23; /* of leaf 1, in ecx; also below */
    const uint32_t v3 = v2 | 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29;
    const uint32_t avx2 = 1u << 3 | 1u << 5 | 1u << 8, avx512 = avx2 | 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;
    uint32_t found = OIC_HAS_SSE2;
    unsigned a = 0, b = 0, c = 0, d = 0, more = 0, saved = 0, high = 0, pairs = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & v3) != v3) {
        return found;
    }
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if ((saved & 0x06u) != 0x06u || !__get_cpuid(0x80000001u, &a, &b, &more, &d) || !(more & 1u << 5) ||
        !__get_cpuid_count(7, 0, &a, &b, &c, &pairs) || (b & avx2) != avx2) {
        return found;
    }
    found |= OIC_HAS_AVX2;
    if ((saved & 0xe6u) == 0xe6u && (b & avx512) == avx512) {
        found |= OIC_HAS_AVX512 | (c & 1u << 11 ? OIC_HAS_VNNI : 0u);
        found |= found & OIC_HAS_VNNI && pairs & 1u << 23 && !(more & 1u << 6) ? OIC_HAS_INTEL : 0u; /* AVX512_FP16, no SSE4a */
        if (found & OIC_HAS_VNNI && pairs & 1u << 8 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && a & 1u << 4) {
            found |= OIC_HAS_ZEN5; /* AVX512_VP2INTERSECT and AVX_VNNI */
        }
    }
    return found;
}

#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

static inline uint32_t oic_processor(void)
{
    const uint32_t dots = getauxval(AT_HWCAP) >> 20 & 1u ? OIC_HAS_NEON | OIC_HAS_DOTPROD : OIC_HAS_NEON;
    return dots & OIC_HAS_DOTPROD && getauxval(AT_HWCAP2) >> 13 & 1u ? dots | OIC_HAS_I8MM : dots;
}

#elif defined(__aarch64__) && defined(__APPLE__)
static inline uint32_t oic_processor(void)
{
    return OIC_HAS_NEON | OIC_HAS_DOTPROD;
}

#else
static inline uint32_t oic_processor(void)
{
    return OIC_HAS_SSE2 | OIC_HAS_NEON; /* what every machine of the compiler has */
}
#endif

#endif
