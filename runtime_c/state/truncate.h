/* Taking back the last positions of a state: entries from the new end on become such as were never written, and
   counts and the ends of rings what they were.  Which graphs can, `oic.ir.truncation` says. */
#ifndef OIC_TRUNCATE_H
#define OIC_TRUNCATE_H

#include "../version.h"

#include <stddef.h>
#include <stdint.h>

#include "../session.h"
#include "saved.h"

/* A table with entries of positions: its part of the form of saved states, and which of its indices the position is. */
typedef struct {
    const char *name; /* of that index: `K.t` */
    int32_t part, axis;
} oic_truncated;

/* Forget the entries of a table at positions `from` up to `end`. */
OIC_SELDOM void oic_truncate_entries(const oic_saved_view *v, const oic_saved_part *p, int32_t axis, int64_t from,
                                     int64_t end)
{
    int64_t outer = 1, inner = 1, left;
    const int64_t length = oic_saved_length(v, &p->axes[axis]);
    end = end < length ? end : length;
    for (int32_t i = 0; i < p->table; ++i) {
        const int64_t many = oic_saved_length(v, &p->axes[i]);
        outer *= i < axis ? many : 1;
        inner *= i > axis ? many : 1;
    }
    for (int64_t o = 0; o < outer && oic_saved_is_filled(v, p); ++o) {
        for (int64_t n = (o * length + from) * inner; n < (o * length + end) * inner; ++n) {
            unsigned char *const at = oic_saved_at(v, p, n, &left);
            oic_saved_change(OIC_SAVED_CLEAR, v, p, at, at);
        }
    }
}

/* What is kept beside a table: the counts of its indices, and where its rings end.  Where no position is left, nothing
   was ever written. */
OIC_SELDOM void oic_truncate_counts(const oic_saved_view *v, const oic_saved_part *p, int32_t axis, int64_t from,
                                    int empty)
{
    if (p->again != 0) {
        const int64_t rings = oic_saved_entries(v, p + 1);
        int64_t left;
        for (int64_t n = 0; n < rings; ++n) {
            unsigned char *const next = p[1].table == 0 ? v->state + p[1].at : oic_saved_at(v, p + 1, n, &left);
            oic_saved_set_i64(next, empty || oic_saved_i64(next) == 0 ? 0 : from);
        }
    }
    for (int32_t i = 0; i < p->table; ++i) {
        if (p->axes[i].count >= 0 && (empty || i == axis)) {
            oic_saved_set_i64(v->state + v->form->counts[p->axes[i].count].at, empty ? 0 : from);
        }
    }
}

/* Take `n` positions back of those from `first` up to `*counter`, in `tables` and in the counter.  A refusal has
   changed nothing: OIC_ERR_INDEX, there are not so many, or they would bring back what a ring has overwritten. */
OIC_SELDOM oic_status oic_truncate(oic_refusal *why, const oic_saved_form *form, void *state,
                                   const oic_truncated *tables, int32_t count, const char *name, int64_t *counter,
                                   int64_t first, int64_t n)
{
    const oic_saved_view view = {form, state, NULL, 0};
    const int64_t end = *counter;
    if (end < first) {
        return oic_refuse(why, OIC_ERR_STATE, 0, name, end, first);
    }
    OIC_TRY(oic_check_range(why, 0, name, n, 0, end - first, OIC_ERR_INDEX, OIC_ERR_INDEX));
    for (int32_t i = 0; i < count; ++i) {
        const oic_saved_part *const p = &form->parts[tables[i].part];
        const int64_t length = oic_saved_length(&view, &p->axes[tables[i].axis]);
        if (p->again != 0 && end > length && n > 0 && n < end - first) {
            const int64_t oldest = end - n - length;
            return oic_refuse(why, OIC_ERR_INDEX, 0, tables[i].name, oldest < 0 ? 0 : oldest, end - length);
        }
    }
    for (int32_t i = 0; i < count && n > 0; ++i) {
        const oic_saved_part *const p = &form->parts[tables[i].part];
        const int empty = n == end - first; /* a ring is cleared wherever it has come to */
        oic_truncate_entries(&view, p, tables[i].axis, empty ? 0 : end - n, end);
        oic_truncate_counts(&view, p, tables[i].axis, end - n, empty);
    }
    *counter = end - n;
    return OIC_OK;
}

#endif
