/* One step of a GRU or LSTM, in C (float; double for f64), rounded once.  Results overlap no
   operand but the state before the step: y may be h, and for an LSTM y and d may be h and c, in any order. */
#ifndef OIC_RECURRENT_H
#define OIC_RECURRENT_H

#include "version.h"

#include "dot.h"
#include "scalar_math.h"

#define OIC_GATE_PART 128 /* elements that are widened at a time */

/* gate: x[n] times w[n], from elements x0 and w0 on.
   gru_cell: y[rows, U] from x[rows, I], h[rows, U], w_ih[3U, I], w_hh[3U, U], biases [3U]; r, z, n are the places of
   the gates.  work holds 7 * U numbers.
   lstm_cell: y and d, the new c, [rows, U] from x, h, c, w_ih[4U, I], w_hh[4U, U], biases [4U].  work holds 4 * U. */
#define OIC_RECURRENT(T, S, C, F)                                                                           \
    static inline C oic_gate_##T(const S *restrict x, ptrdiff_t x0, const S *restrict w, ptrdiff_t w0, ptrdiff_t n) \
    {                                                                                                       \
        C p[OIC_GATE_PART], q[OIC_GATE_PART], sum = (C)0;                                                   \
        for (ptrdiff_t i = 0; i < n; i += OIC_GATE_PART) {                                                  \
            const ptrdiff_t m = n - i < OIC_GATE_PART ? n - i : OIC_GATE_PART;                              \
            oic_widen_##T##_##C(x, x0 + i, m, p);                                                           \
            oic_widen_##T##_##C(w, w0 + i, m, q);                                                           \
            sum += oic_dot_1x1_##C(p, q, m);                                                                \
        }                                                                                                   \
        return sum;                                                                                         \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_gru_cell_##T(const S *restrict x, const S *h, const S *restrict w_ih,            \
                                        const S *restrict w_hh, const S *restrict b_ih, const S *restrict b_hh, \
                                        S *y, C *restrict work, ptrdiff_t rows, ptrdiff_t I, ptrdiff_t U,   \
                                        ptrdiff_t r, ptrdiff_t z, ptrdiff_t n, ptrdiff_t reset_after)       \
    {                                                                                                       \
        C *const xs = work, *const hs = work + 3 * U, *const kept = work + 6 * U;                           \
        for (ptrdiff_t row = 0; row < rows; ++row) {                                                        \
            for (ptrdiff_t g = 0; g < 3 * U; ++g) {                                                         \
                xs[g] = oic_gate_##T(x, row * I, w_ih, g * I, I) + oic_load_##T(b_ih, g);                   \
                hs[g] = oic_gate_##T(h, row * U, w_hh, g * U, U) + oic_load_##T(b_hh, g);                   \
            }                                                                                               \
            for (ptrdiff_t u = 0; u < U; ++u) {                                                             \
                const C reset = oic_sigmoid_##F(xs[r * U + u] + hs[r * U + u]);                             \
                kept[u] = reset_after ? reset : reset * oic_load_##T(h, row * U + u);                       \
            }                                                                                               \
            for (ptrdiff_t u = 0; u < U; ++u) {                                                             \
                C inner = kept[u] * hs[n * U + u];                                                          \
                if (!reset_after) {                                                                         \
                    inner = oic_load_##T(b_hh, n * U + u);                                                  \
                    for (ptrdiff_t v = 0; v < U; ++v) {                                                     \
                        inner += kept[v] * oic_load_##T(w_hh, (n * U + u) * U + v);                         \
                    }                                                                                       \
                }                                                                                           \
                inner = oic_tanh_##F(xs[n * U + u] + inner);                                                \
                const C update = oic_sigmoid_##F(xs[z * U + u] + hs[z * U + u]);                            \
                const C old = oic_load_##T(h, row * U + u);                                                 \
                oic_store_##T(y, row * U + u, ((C)1 - update) * inner + update * old);                      \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_lstm_cell_##T(const S *restrict x, const S *h, const S *c,                        \
                                         const S *restrict w_ih, const S *restrict w_hh, const S *restrict b_ih, \
                                         const S *restrict b_hh, S *y, S *d, C *restrict work,              \
                                         ptrdiff_t rows, ptrdiff_t I, ptrdiff_t U, ptrdiff_t i, ptrdiff_t f, \
                                         ptrdiff_t g, ptrdiff_t o)                                          \
    {                                                                                                       \
        for (ptrdiff_t row = 0; row < rows; ++row) {                                                        \
            for (ptrdiff_t k = 0; k < 4 * U; ++k) {                                                         \
                work[k] = (oic_gate_##T(x, row * I, w_ih, k * I, I) + oic_load_##T(b_ih, k))                \
                          + (oic_gate_##T(h, row * U, w_hh, k * U, U) + oic_load_##T(b_hh, k));             \
            }                                                                                               \
            for (ptrdiff_t u = 0; u < U; ++u) {                                                             \
                const C kept = oic_sigmoid_##F(work[f * U + u]) * oic_load_##T(c, row * U + u);             \
                const C cell = kept + oic_sigmoid_##F(work[i * U + u]) * oic_tanh_##F(work[g * U + u]);     \
                oic_store_##T(y, row * U + u, oic_sigmoid_##F(work[o * U + u]) * oic_tanh_##F(cell));       \
                oic_store_##T(d, row * U + u, cell);                                                        \
            }                                                                                               \
        }                                                                                                   \
    }

OIC_RECURRENT(f8, oic_f8, float, f32)
OIC_RECURRENT(f16, oic_f16, float, f32)
OIC_RECURRENT(bf16, oic_bf16, float, f32)
OIC_RECURRENT(f32, float, float, f32)
OIC_RECURRENT(f64, double, double, f64)

#endif
