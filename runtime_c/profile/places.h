/* What a profiling build counts: a row for each place of the code, and where the step is. */
#ifndef OIC_PLACES_H
#define OIC_PLACES_H

#include "../version.h"

#include <stdint.h>

/* One statement of the source, or what a step does before the first. */
typedef struct {
    int64_t ticks;      /* of OIC_CLOCK: nanoseconds, where there is an operating system */
    int64_t runs;       /* how often the step came here */
    int64_t read;       /* bytes of operands */
    int64_t written;    /* bytes of results */
    int64_t operations; /* products and sums count one each */
} oic_place;

/* Since when the step is at which place. */
typedef struct {
    uint64_t since;
    int32_t at;
} oic_lap;

#endif
