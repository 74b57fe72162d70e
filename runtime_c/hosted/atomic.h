/* Numbers that threads share, by the operations that gcc and clang have for them: C99 has none.  All of them are in one
   order, which every thread sees. */
#ifndef OIC_ATOMIC_H
#define OIC_ATOMIC_H

#include "../version.h"

#include <stdint.h>

static inline uint32_t oic_atomic_load(const uint32_t *at)
{
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

static inline void oic_atomic_store(uint32_t *at, uint32_t value)
{
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);
}

/* Add, modulo 2^32; gives what there was before. */
static inline uint32_t oic_atomic_add(uint32_t *at, uint32_t more)
{
    return __atomic_fetch_add(at, more, __ATOMIC_SEQ_CST);
}

/* Store `value` if the number is still *seen, which otherwise becomes what it is. */
static inline int oic_atomic_exchange(uint32_t *at, uint32_t *seen, uint32_t value)
{
    return __atomic_compare_exchange_n(at, seen, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Where machines of 32 bits have no instruction for it, the compiler calls libatomic: link with -latomic. */
typedef uint64_t oic_atomic_64 __attribute__((aligned(8)));

static inline uint64_t oic_atomic_load_64(const oic_atomic_64 *at)
{
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

/* Store the larger of `value` and the number. */
static inline void oic_atomic_raise_64(oic_atomic_64 *at, uint64_t value)
{
    uint64_t seen = oic_atomic_load_64(at);
    while (seen < value && !__atomic_compare_exchange_n(at, &seen, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
}

/* What a thread does between two looks at such a number. */
static inline void oic_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" : : : "memory");
#endif
}

#endif
