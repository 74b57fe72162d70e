/* What the statements of generated code are made of: addresses, checks, index arithmetic. */
#ifndef OIC_SESSION_H
#define OIC_SESSION_H

#include "version.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "machine.h"
#include "oic.h"

/* Leave the function with the status of a failed check. */
#define OIC_TRY(check)                      \
    do {                                    \
        const oic_status oic_s = (check);   \
        if (OIC_UNLIKELY(oic_s != OIC_OK)) {\
            return oic_s;                   \
        }                                   \
    } while (0)

/* OIC_TRY for a check that comes after the state was changed. */
#define OIC_TRY_LATE(why, check)            \
    do {                                    \
        const oic_status oic_s = (check);   \
        if (OIC_UNLIKELY(oic_s != OIC_OK)) {\
            (why)->spoiled = 1;             \
            return oic_s;                   \
        }                                   \
    } while (0)

/* The only places where an offset, in bytes, becomes an address. */
static inline void *oic_at(void *base, ptrdiff_t offset)
{
    return (unsigned char *)base + offset;
}

static inline const void *oic_at_const(const void *base, ptrdiff_t offset)
{
    return (const unsigned char *)base + offset;
}

static inline int oic_is_aligned(const void *p, uintptr_t bytes)
{
    return (uintptr_t)p % bytes == 0;
}

/* Note a refusal and return its status; `line` may be an OIC_AT. */
static inline oic_status oic_refuse(oic_refusal *why, oic_status status, int32_t line, const char *variable,
                                    int64_t value, int64_t bound)
{
    why->status = status;
    why->line = line & ((INT32_C(1) << OIC_LINE_BITS) - 1);
    why->column = line >> OIC_LINE_BITS;
    why->variable = variable;
    why->value = value;
    why->bound = bound;
    return status;
}

/* Memory of the caller's: there, aligned, and of enough bytes. */
OIC_SELDOM oic_status oic_check_memory(oic_refusal *why, const char *name, const void *memory, size_t bytes,
                                       uint64_t needed, uintptr_t align)
{
    if (memory == NULL || !oic_is_aligned(memory, align)) {
        return oic_refuse(why, OIC_ERR_INPUT, 0, name, 0, 0);
    }
    if (bytes < needed) {
        return oic_refuse(why, OIC_ERR_MEMORY, 0, name, (int64_t)bytes, (int64_t)needed);
    }
    return OIC_OK;
}

/* No byte of one memory is in another. */
static inline int oic_are_apart(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a_bytes == 0 || b_bytes == 0 || (x < y ? y - x >= a_bytes : x - y >= b_bytes);
}

static inline oic_status oic_check_apart(oic_refusal *why, const char *name, const void *a, uint64_t a_bytes,
                                         const void *b, uint64_t b_bytes)
{
    return oic_are_apart(a, a_bytes, b, b_bytes) ? OIC_OK : oic_refuse(why, OIC_ERR_INPUT, 0, name, 0, 0);
}

/* The structures of a call are given. */
static inline oic_status oic_check_given(oic_refusal *why, const void *in, const void *out)
{
    const char *const name = in == NULL ? "in" : out == NULL ? "out" : NULL;
    return name == NULL ? OIC_OK : oic_refuse(why, OIC_ERR_INPUT, 0, name, 0, 0);
}

/* There is a state, and no step has spoiled it. */
static inline oic_status oic_check_ready(oic_refusal *why, const void *state)
{
    return state != NULL && !why->spoiled ? OIC_OK : oic_refuse(why, OIC_ERR_STATE, 0, NULL, 0, 0);
}

/* A count in the state is one that there can be: it addresses memory. */
static inline int oic_is_count(int64_t count, int64_t most)
{
    return count >= 0 && count <= most;
}

static inline oic_status oic_check_count(oic_refusal *why, const char *variable, int64_t count, int64_t most)
{
    return oic_is_count(count, most) ? OIC_OK : oic_refuse(why, OIC_ERR_STATE, 0, variable, count, most);
}

/* The counts in the state add up to what they did when they were set. */
static inline oic_status oic_check_counts(oic_refusal *why, int hold)
{
    return hold ? OIC_OK : oic_refuse(why, OIC_ERR_STATE, 0, "counts", 0, 0);
}

/* Memory that a step reads or writes. */
typedef struct {
    const char *name;
    const void *at;
    uintptr_t align;
    uint64_t bytes; /* as far as they are known before the step */
} oic_span;

/* All memory is given and aligned.  That from number `inputs` on is written: no other may share a byte with it; the
   last two spans are those of the session, state and arena. */
static inline oic_status oic_check_spans(oic_refusal *why, const oic_span *spans, int inputs, int count)
{
    for (int j = 0; j < count; ++j) {
        if (spans[j].at == NULL || !oic_is_aligned(spans[j].at, spans[j].align)) {
            return oic_refuse(why, OIC_ERR_INPUT, 0, spans[j].name, 0, 0);
        }
        for (int i = 0; i < j && j >= inputs; ++i) {
            const char *const name = spans[j < count - 2 ? j : i].name;
            OIC_TRY(oic_check_apart(why, name, spans[i].at, spans[i].bytes, spans[j].at, spans[j].bytes));
        }
    }
    return OIC_OK;
}

/* low <= value <= high; otherwise the status `below` or `above`. */
static inline oic_status oic_check_range(oic_refusal *why, int32_t line, const char *variable, int64_t value,
                                         int64_t low, int64_t high, oic_status below, oic_status above)
{
    if (value < low) {
        return oic_refuse(why, below, line, variable, value, low);
    }
    if (value > high) {
        return oic_refuse(why, above, line, variable, value, high);
    }
    return OIC_OK;
}

/* A condition holds; otherwise what is reported is `value`. */
static inline oic_status oic_check_that(oic_refusal *why, int32_t line, const char *variable, int holds,
                                        int64_t value, oic_status status)
{
    return holds ? OIC_OK : oic_refuse(why, status, line, variable, value, 0);
}

/* 0 <= value < bound. */
static inline oic_status oic_check_id(oic_refusal *why, int32_t line, const char *variable, int64_t value,
                                      int64_t bound)
{
    return value >= 0 && value < bound ? OIC_OK : oic_refuse(why, OIC_ERR_INDEX, line, variable, value, bound);
}

/* Two sizes agree. */
static inline oic_status oic_check_size(oic_refusal *why, int32_t line, const char *variable, int64_t size,
                                        int64_t expected)
{
    return size == expected ? OIC_OK : oic_refuse(why, OIC_ERR_SHAPE, line, variable, size, expected);
}

/* Index arithmetic whose operands may be anything: a result beyond 64 bits is refused, and 0. */
static inline oic_status oic_index_add(oic_refusal *why, int32_t line, int64_t a, int64_t b, int64_t *result)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) {
        *result = 0;
        return oic_refuse(why, OIC_ERR_OVERFLOW, line, NULL, a, b > 0 ? INT64_MAX - b : INT64_MIN - b);
    }
    *result = a + b;
    return OIC_OK;
}

static inline oic_status oic_index_sub(oic_refusal *why, int32_t line, int64_t a, int64_t b, int64_t *result)
{
    if (b > 0 ? a < INT64_MIN + b : a > INT64_MAX + b) {
        *result = 0;
        return oic_refuse(why, OIC_ERR_OVERFLOW, line, NULL, a, b > 0 ? INT64_MIN + b : INT64_MAX + b);
    }
    *result = a - b;
    return OIC_OK;
}

static inline oic_status oic_index_mul(oic_refusal *why, int32_t line, int64_t a, int64_t b, int64_t *result)
{
    const uint64_t x = a < 0 ? 0u - (uint64_t)a : (uint64_t)a;
    const uint64_t y = b < 0 ? 0u - (uint64_t)b : (uint64_t)b;
    const int negative = (a < 0) != (b < 0);
    const uint64_t most = (uint64_t)INT64_MAX + (negative ? 1u : 0u);
    if (y != 0 && x > most / y) {
        *result = 0;
        return oic_refuse(why, OIC_ERR_OVERFLOW, line, NULL, a, b);
    }
    if (negative && x * y != 0) {
        *result = -(int64_t)(x * y - 1u) - 1;
    } else {
        *result = (int64_t)(x * y);
    }
    return OIC_OK;
}

/* An unsigned value as an index. */
static inline oic_status oic_index_of_u64(oic_refusal *why, int32_t line, const char *variable, uint64_t value,
                                          int64_t *result)
{
    if (value > (uint64_t)INT64_MAX) {
        *result = 0;
        return oic_refuse(why, OIC_ERR_OVERFLOW, line, variable, INT64_MAX, INT64_MAX);
    }
    *result = (int64_t)value;
    return OIC_OK;
}

/* A number of elements as a size; a compiler that cannot see that it is not below 0 would warn of a cast. */
static inline size_t oic_run(int64_t count)
{
    return count > 0 ? (size_t)count : 0;
}

static inline int64_t oic_index_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t oic_index_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* a / b rounded toward minus infinity; 0 where b < 1, which the step refuses. */
static inline int64_t oic_index_div(int64_t a, int64_t b)
{
    if (b < 1) {
        return 0;
    }
    return a >= 0 ? a / b : -1 - (-1 - a) / b;
}

/* a modulo b, at least 0; 0 where b < 1, which the step refuses. */
static inline int64_t oic_index_mod(int64_t a, int64_t b)
{
    if (b < 1) {
        return 0;
    }
    const int64_t r = a % b;
    return r < 0 ? r + b : r;
}

/* As oic_index_div, of sizes. */
static inline ptrdiff_t oic_floor_div(ptrdiff_t a, ptrdiff_t b)
{
    if (b < 1) {
        return 0;
    }
    return a >= 0 ? a / b : -1 - (-1 - a) / b;
}

#endif
