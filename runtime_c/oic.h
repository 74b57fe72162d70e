/* The types that every generated library shares: elements, export mark, refusal, thread pool.  What its header includes
   is this and <stddef.h> and <stdint.h>, for C and for C++. */
#ifndef OIC_OIC_H
#define OIC_OIC_H

#include "version.h"

#include <stddef.h>
#include <stdint.h>

#include "status.h"

/* Elements of narrow floats: their bits. */
typedef uint8_t oic_f8;
typedef uint16_t oic_f16;
typedef uint16_t oic_bf16;

#if !defined(OIC_API)
#if defined(__GNUC__)
#define OIC_API __attribute__((visibility("default")))
#else
#define OIC_API
#endif
#endif

/* A function that no step calls: small rather than fast. */
#if defined(__GNUC__)
#define OIC_SELDOM static __attribute__((cold, noinline, unused))
#else
#define OIC_SELDOM static inline
#endif

/* A place of the source: the line alone, where that is enough. */
#define OIC_AT(line, column) ((int32_t)(line) + ((int32_t)(column) << OIC_LINE_BITS))
#define OIC_LINE_BITS 20

/* Why the last refused call was refused. */
typedef struct {
    oic_status status;
    int32_t line;         /* of the graph's source; 0: none */
    int32_t column;       /* on that line, where several places of it may refuse; else 0 */
    const char *variable; /* what the check was about; NULL: nothing in particular */
    int64_t value;        /* what was refused, */
    int64_t bound;        /* and the limit that it passed */
    int32_t spoiled;      /* 1: the state had been changed; steps are OIC_ERR_STATE until reset or load;
                             2: for good, as its memory was changed from outside */
} oic_refusal;

typedef struct oic_pool oic_pool; /* threads; a session without a pool runs on the caller's thread */

#endif
