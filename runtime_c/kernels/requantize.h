/* oic_requantize_X: y[outer, n, inner] of integer type X = x scaled by multiplier[n] * 2^(shift[n] - 31), plus
   zero_point, saturated; with one rounding if `nearest`, else as TensorFlow Lite does.  y overlaps no operand. */
#include "element.h"

#include "../simd/sums.h"
#include "common/requantized.h"
#include "common/scaled.h"

#define WRAP OIC_PASTE(oic_wrap_, OIC_X)

typedef struct {
    const int32_t *x, *multiplier;
    const int8_t *shift;
    T *y;
    ptrdiff_t outer, n, inner;
    int64_t zero_point;
    int nearest;
} ARGS(oic_requantize);

/* Elements at..last-1 of rows of fewer elements than registers may have, or that many columns, each of which has a multiplier and
   a shift: these are laid out for as many rows as are held, and all of them scaled together. */
static inline void NAME(oic_requantize_short)(const ARGS(oic_requantize) *a, ptrdiff_t columns, ptrdiff_t at, ptrdiff_t last,
                                              oic_requantized_range within)
{
    enum { ROOM = OIC_HELD + OIC_LANES };
    const ptrdiff_t held = OIC_HELD / columns * columns; /* whole rows: columns, once laid out, are those of every time */
    const int each = a->inner == 1, begun = (int)(at % columns);
    int32_t multiplier[ROOM];
    int8_t shift[ROOM];
    const oic_requantized by = {multiplier, shift, 1, a->zero_point, a->nearest};
    for (ptrdiff_t from = at, m; from < last; from += m) {
        uint32_t v[OIC_HELD];
        m = last - from < held ? last - from : held;
        if (each && from == at) {
            for (ptrdiff_t e = 0, p = begun; e < m; ++e, p = p + 1 < columns ? p + 1 : 0) {
                multiplier[e] = a->multiplier[p];
                shift[e] = a->shift[p];
            }
        } else if (!each) {
            ptrdiff_t p = from / columns % a->n;
            for (ptrdiff_t e = -begun; e < m; e += columns, p = p + 1 < a->n ? p + 1 : 0) {
                for (ptrdiff_t i = e < 0 ? 0 : e; i < e + OIC_LANES; ++i) { /* more than there are, which the next ones write over */
                    multiplier[i] = a->multiplier[p];
                    shift[i] = a->shift[p];
                }
            }
        }
        memcpy(v, a->x + from, (size_t)m * sizeof *a->x);
        oic_requantized_each(&by, v, m, 0, within);
        for (ptrdiff_t e = 0; e < m; ++e) {
            STORE(a->y, from + e, WRAP(v[e]));
        }
    }
}

/* Units first..end-1 of elements. */
static inline void NAME(oic_requantize_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_requantize) *const a = args;
    const oic_requantized_range within = oic_requantized_within((int64_t)LOW, (int64_t)HIGH, a->zero_point);
    const int each = a->inner == 1; /* they go along the last axis */
    const ptrdiff_t columns = each ? a->n : a->inner, last = oic_scaled_end(a->outer * a->n * a->inner, end);
    oic_scaled_run run = oic_scaled_before(first * OIC_SCALED_UNIT, columns);
    const oic_requantized by = {a->multiplier, a->shift, a->n > 1, a->zero_point, a->nearest};
    uint32_t v[OIC_HELD + OIC_LANES] = {0};
    (void)worker;
    if (OIC_SHIFTS_EACH && a->n > 1 && columns > 0 && columns < OIC_LANES) {
        NAME(oic_requantize_short)(a, columns, first * OIC_SCALED_UNIT, last, within);
        return;
    }
    while (oic_scaled_next(&run, columns, OIC_HELD, last)) {
        memcpy(v, a->x + run.at, (size_t)run.count * sizeof *a->x);
        if (each) {
            oic_requantized_each(&by, v, run.count, run.column, within);
        } else {
            const ptrdiff_t whole = (run.count + OIC_WIDTH - 1) / OIC_WIDTH * OIC_WIDTH; /* registers, the last with what is lost */
            oic_requantized_sums(&by, v, whole, run.row % a->n, within);
        }
        for (ptrdiff_t e = 0; e < run.count; ++e) {
            STORE(a->y, run.at + e, WRAP(v[e]));
        }
    }
}

static inline void NAME(oic_requantize)(const ARGS(oic_requantize) *a)
{
    NAME(oic_requantize_part)(a, 0, oic_scaled_units(a->outer * a->n * a->inner), 0);
}

#undef WRAP
#include "end.h"
