/* oic_gru_cell_X: y[rows, U] from x[rows, I], h[rows, U], w_ih[3U, I], w_hh[3U, U] and biases [3U]; r, z and n are the
   places of the gates.  y may be h, and overlaps nothing else.  work holds 7 * U numbers.  Order: gate.inc.h. */
#include "../math/scalar_math.h"
#include "../simd/sums.h"
#include "element.h"

typedef struct {
    const T *x, *h, *w_ih, *w_hh, *b_ih, *b_hh;
    T *y;
    C *work;
    ptrdiff_t rows, I, U, r, z, n;
    int reset_after;
} ARGS(oic_gru_cell);

#define GATE NAME(oic_gru_gate)
#include "gate.inc.h"

static inline void NAME(oic_gru_cell)(const ARGS(oic_gru_cell) *a)
{
    const ptrdiff_t I_ = a->I, U = a->U;
    C *const xs = a->work, *const hs = xs + 3 * U, *const kept = xs + 6 * U;
    for (ptrdiff_t row = 0; row < a->rows; ++row) {
        for (ptrdiff_t g = 0; g < 3 * U; ++g) {
            xs[g] = GATE(a->x, row * I_, a->w_ih, g * I_, I_) + LOAD(a->b_ih, g);
            hs[g] = GATE(a->h, row * U, a->w_hh, g * U, U) + LOAD(a->b_hh, g);
        }
        for (ptrdiff_t u = 0; u < U; ++u) {
            const C reset = MATH(oic_sigmoid)(xs[a->r * U + u] + hs[a->r * U + u]);
            kept[u] = a->reset_after ? reset : reset * LOAD(a->h, row * U + u);
        }
        for (ptrdiff_t u = 0; u < U; ++u) {
            C inner = kept[u] * hs[a->n * U + u];
            if (!a->reset_after) {
                inner = LOAD(a->b_hh, a->n * U + u);
                for (ptrdiff_t v = 0; v < U; ++v) {
                    inner = MATH(oic_madd)(kept[v], LOAD(a->w_hh, (a->n * U + u) * U + v), inner);
                }
            }
            inner = MATH(oic_tanh)(xs[a->n * U + u] + inner);
            const C update = MATH(oic_sigmoid)(xs[a->z * U + u] + hs[a->z * U + u]);
            const C old = LOAD(a->h, row * U + u);
            STORE(a->y, row * U + u, ((C)1 - update) * inner + update * old);
        }
    }
}

#undef GATE
#include "end.h"
