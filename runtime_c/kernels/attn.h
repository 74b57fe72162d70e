/* oic_attn_X_W_B, the operator of the persistent-memory page: y[rows, Hq * Dv] = attention of h[rows, D] * w[D, Hq * Dk]
   over k[keys, Hk, Dk] and v[keys, Hk, Dv], every key taking part; k and v of type W, w of type B.

   The product is summed over D ascending, and kept in C.  h and w have rows hs and ws apart; k and v lie at (kt, kh) and
   (vt, vh).  work holds Hq * (Dk + Dv) numbers, and those of a step of one query (attention.inc.h). */
#include "common/attending.h"
#include "../simd/sums.h"
#include "element.h"

#define PAIRED 0
#define PART(f) NAME(oic_attn_##f)
#define Q_T C
#define Q_LOAD MATH(oic_load)
#define Q_STORE MATH(oic_store)
#include "attention.inc.h"

typedef struct {
    const T *h;
    const W_T *k, *v;
    const B_T *w;
    T *y;
    C *work;
    ptrdiff_t rows, D, keys, Hq, Hk, Dk, Dv, hs, kt, kh, vt, vh, ws;
    C scale;
} ARGS(oic_attn);

static inline void NAME(oic_attn)(const ARGS(oic_attn) *a)
{
    const ptrdiff_t width = a->Hq * a->Dk, qs[2] = {0, a->Dk}, ks[2] = {a->kt, a->kh}, vs[2] = {a->vt, a->vh};
    C *restrict const q = a->work, *restrict const out = q + width;
    PART(args) given = {0};
    given.q = q;
    given.k = a->k;
    given.v = a->v;
    given.y = out;
    given.work = out + a->Hq * a->Dv;
    given.N = 1;
    given.keys = a->keys;
    given.Hq = a->Hq;
    given.Hk = a->Hk;
    given.Dk = a->Dk;
    given.Dv = a->Dv;
    given.qs = qs;
    given.ks = ks;
    given.vs = vs;
    given.length = (int64_t)a->keys;
    given.scale = a->scale;
    given.window = -1;
    for (ptrdiff_t row = 0; row < a->rows; ++row) {
        for (ptrdiff_t j = 0; j < width; ++j) {
            q[j] = (C)0;
        }
        for (ptrdiff_t i = 0; i < a->D; ++i) {
            const C p = LOAD(a->h, row * a->hs + i);
            for (ptrdiff_t j = 0; j < width; ++j) {
                q[j] = MATH(oic_madd)(p, (C)B_LOAD(a->w, i * a->ws + j), q[j]);
            }
        }
        PART(heads)(&given);
        for (ptrdiff_t j = 0; j < a->Hq * a->Dv; ++j) {
            STORE(a->y, row * a->Hq * a->Dv + j, out[j]);
        }
    }
}

#undef PAIRED
#undef PART
#undef Q_T
#undef Q_LOAD
#undef Q_STORE
#include "end.h"
