/* The modes in which the machine computes with floats: rounding, and what becomes of subnormal numbers.  Another library
   of the process may have changed those of a thread (-ffast-math at start-up does, and fesetround); a step computes to
   nearest, with subnormals, and then puts back what it found.  Exceptions do not trap meanwhile.

   Machines of which nothing is known here compute in the modes they are in.  Memory is a barrier on both sides: what is
   computed in between reads and writes it. */
#ifndef OIC_FLOAT_MODES_H
#define OIC_FLOAT_MODES_H

#include "version.h"

#include <stdint.h>

typedef uint64_t oic_float_modes;

#if defined(__GNUC__) && defined(__SSE__)
#define OIC_FLOAT_MODES 0x1f80u /* all exceptions masked */
#define OIC_FLOAT_FLAGS 0x3fu   /* exceptions that there were */

static inline oic_float_modes oic_float_modes_get(void)
{
    uint32_t modes;
    __asm__ volatile("stmxcsr %0" : "=m"(modes) : : "memory");
    return modes;
}

static inline void oic_float_modes_put(oic_float_modes modes)
{
    const uint32_t bits = (uint32_t)modes;
    __asm__ volatile("ldmxcsr %0" : : "m"(bits) : "memory");
}

#elif defined(__GNUC__) && defined(__aarch64__)
#define OIC_FLOAT_MODES 0u
#define OIC_FLOAT_FLAGS 0u /* in a register of their own */

static inline oic_float_modes oic_float_modes_get(void)
{
    uint64_t modes;
    __asm__ volatile("mrs %0, fpcr" : "=r"(modes) : : "memory");
    return modes;
}

static inline void oic_float_modes_put(oic_float_modes modes)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(modes) : "memory");
}

#elif defined(__GNUC__) && defined(__arm__) && defined(__ARM_FP) && !defined(__SOFTFP__)
#define OIC_FLOAT_MODES 0u
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define OIC_FLOAT_FLAGS 0xf807009fu /* also of vectors' loops (LTPSIZE), which are no mode of floats */
#else
#define OIC_FLOAT_FLAGS 0xf800009fu /* of comparisons, and exceptions that there were */
#endif

static inline oic_float_modes oic_float_modes_get(void)
{
    uint32_t modes;
    __asm__ volatile("vmrs %0, fpscr" : "=r"(modes) : : "memory");
    return modes;
}

static inline void oic_float_modes_put(oic_float_modes modes)
{
    const uint32_t bits = (uint32_t)modes;
    __asm__ volatile("vmsr fpscr, %0" : : "r"(bits) : "memory", "cc");
}

#elif defined(__GNUC__) && defined(__riscv_flen)
#define OIC_FLOAT_MODES 0u
#define OIC_FLOAT_FLAGS 0u /* in a register of their own */

static inline oic_float_modes oic_float_modes_get(void)
{
    unsigned long modes;
    __asm__ volatile("frrm %0" : "=r"(modes) : : "memory");
    return modes;
}

static inline void oic_float_modes_put(oic_float_modes modes)
{
    const unsigned long bits = (unsigned long)modes;
    __asm__ volatile("fsrm %0" : : "r"(bits) : "memory");
}

#else
#define OIC_FLOAT_MODES 0u
#define OIC_FLOAT_FLAGS 0u

static inline oic_float_modes oic_float_modes_get(void)
{
    return OIC_FLOAT_MODES;
}

static inline void oic_float_modes_put(oic_float_modes modes)
{
    (void)modes;
}
#endif

/* Set the modes that every number is defined in; gives those that were set. */
static inline oic_float_modes oic_float_modes_set(void)
{
    const oic_float_modes before = oic_float_modes_get(), flags = before & OIC_FLOAT_FLAGS;
    if (before != (OIC_FLOAT_MODES | flags)) {
        oic_float_modes_put(OIC_FLOAT_MODES | flags);
    }
    return before;
}

/* Put back those that were set; flags of exceptions stay raised. */
static inline void oic_float_modes_restore(oic_float_modes before)
{
    if (before != (OIC_FLOAT_MODES | (before & OIC_FLOAT_FLAGS))) {
        oic_float_modes_put(before | (oic_float_modes_get() & OIC_FLOAT_FLAGS));
    }
}

#endif
