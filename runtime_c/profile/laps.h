/* The clock of a profiling build, read where a statement begins: the time since it was last read is that of the place
   before.  What other threads do counts for the place that waits for them.

   Without an operating system OIC_CLOCK() is the user's, a counter of the type OIC_TICKS that may wrap, as in
   -DOIC_TICKS=uint32_t '-DOIC_CLOCK()=(*(volatile uint32_t *)0xE0001004u)' for the cycles of a Cortex-M. */
#ifndef OIC_LAPS_H
#define OIC_LAPS_H

#include "../version.h"

#include "places.h"

#ifndef OIC_TICKS
#define OIC_TICKS uint64_t
#endif

#ifndef OIC_CLOCK
#if OIC_HOSTED
#include <time.h>

/* Nanoseconds of a clock that never goes back. */
static inline uint64_t oic_nanoseconds(void)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
#define OIC_CLOCK() oic_nanoseconds()
#else
#error "oic: a profiling build reads OIC_CLOCK(), a counter of the machine: define it (and OIC_TICKS, its type)"
#endif
#endif

/* A step begins at a place. */
static inline void oic_lap_begin(oic_lap *lap, oic_place *places, int32_t place)
{
    lap->at = place;
    places[place].runs += 1;
    lap->since = OIC_CLOCK();
}

/* The time until now is that of the place where the step was. */
static inline void oic_lap_end(oic_lap *lap, oic_place *places)
{
    const uint64_t now = OIC_CLOCK();
    places[lap->at].ticks += (int64_t)(OIC_TICKS)(now - lap->since);
    lap->since = now;
}

/* The step comes to another place. */
static inline void oic_lap_to(oic_lap *lap, oic_place *places, int32_t place)
{
    oic_lap_end(lap, places);
    lap->at = place;
    places[place].runs += 1;
}

/* What is done at a place. */
static inline void oic_lap_work(oic_place *place, int64_t read, int64_t written, int64_t operations)
{
    place->read += read;
    place->written += written;
    place->operations += operations;
}

#endif
