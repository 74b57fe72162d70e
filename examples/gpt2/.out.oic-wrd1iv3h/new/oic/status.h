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
    switch (status) {
    case OIC_OK: return "OIC_OK";
    case OIC_ERR_SHAPE: return "OIC_ERR_SHAPE";
    case OIC_ERR_INDEX: return "OIC_ERR_INDEX";
    case OIC_ERR_CACHE_FULL: return "OIC_ERR_CACHE_FULL";
    case OIC_ERR_INPUT: return "OIC_ERR_INPUT";
    case OIC_ERR_STATE: return "OIC_ERR_STATE";
    case OIC_ERR_WEIGHTS: return "OIC_ERR_WEIGHTS";
    case OIC_ERR_OVERFLOW: return "OIC_ERR_OVERFLOW";
    case OIC_ERR_MEMORY: return "OIC_ERR_MEMORY";
    case OIC_ERR_BUILD: return "OIC_ERR_BUILD";
    }
    return "no status";
}

#endif
