/* oic_lstm_cell_X: y and d, the new c, [rows, U] from x[rows, I], h, c, w_ih[4U, I], w_hh[4U, U] and biases [4U]; i, f, g
   and o are the places of the gates.  y and d may be h and c, in any order, and overlap nothing else.  work holds 4 * U
   numbers.  Order: gate.inc.h. */
#include "../math/scalar_math.h"
#include "../simd/sums.h"
#include "element.h"

typedef struct {
    const T *x, *h, *c, *w_ih, *w_hh, *b_ih, *b_hh;
    T *y, *d;
    C *work;
    ptrdiff_t rows, I, U, i, f, g, o;
} ARGS(oic_lstm_cell);

#define GATE NAME(oic_lstm_gate)
#include "gate.inc.h"

static inline void NAME(oic_lstm_cell)(const ARGS(oic_lstm_cell) *a)
{
    const ptrdiff_t I_ = a->I, U = a->U;
    C *const work = a->work;
    for (ptrdiff_t row = 0; row < a->rows; ++row) {
        for (ptrdiff_t k = 0; k < 4 * U; ++k) {
            work[k] = (GATE(a->x, row * I_, a->w_ih, k * I_, I_) + LOAD(a->b_ih, k))
                      + (GATE(a->h, row * U, a->w_hh, k * U, U) + LOAD(a->b_hh, k));
        }
        for (ptrdiff_t u = 0; u < U; ++u) {
            const C kept = MATH(oic_sigmoid)(work[a->f * U + u]) * LOAD(a->c, row * U + u);
            const C cell = kept + MATH(oic_sigmoid)(work[a->i * U + u]) * MATH(oic_tanh)(work[a->g * U + u]);
            STORE(a->y, row * U + u, MATH(oic_sigmoid)(work[a->o * U + u]) * MATH(oic_tanh)(cell));
            STORE(a->d, row * U + u, cell);
        }
    }
}

#undef GATE
#include "end.h"
