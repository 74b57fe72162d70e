/* What a step may answer.  Every refusal at run time is one of these; OIC_OK is zero. */
#ifndef OIC_STATUS_H
#define OIC_STATUS_H

#include "version.h"

typedef enum {
    OIC_OK = 0,
    OIC_ERR_SHAPE,      /* sizes that must agree differ, or a size is beyond its maximum */
    OIC_ERR_INDEX,      /* an index, slice or id outside what it selects from */
    OIC_ERR_CACHE_FULL, /* a write beyond the capacity of a persistent variable */
    OIC_ERR_INPUT,      /* a pointer is NULL or not aligned, or memory overlaps that must not */
    OIC_ERR_STATE,      /* a step failed after its first effect: reset or load before going on */
    OIC_ERR_WEIGHTS,    /* the weights blob is not the one the code was built with */
    OIC_ERR_OVERFLOW,   /* index arithmetic left 64 bits */
    OIC_ERR_MEMORY,     /* too little memory was given, or the system has none */
    OIC_ERR_BUILD       /* the caller was compiled with the header of another build */
} oic_status;

/* "OIC_OK", "OIC_ERR_SHAPE", ... */
static inline const char *oic_status_name(oic_status status)
{
    static const char *const names[] = {"OIC_OK", "OIC_ERR_SHAPE", "OIC_ERR_INDEX", "OIC_ERR_CACHE_FULL",
                                        "OIC_ERR_INPUT", "OIC_ERR_STATE", "OIC_ERR_WEIGHTS", "OIC_ERR_OVERFLOW",
                                        "OIC_ERR_MEMORY", "OIC_ERR_BUILD"};
    const unsigned number = status;
    return number < sizeof names / sizeof *names ? names[number] : "no status";
}

#endif
