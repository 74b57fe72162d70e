/* The body that kernels of attention share.  The kernel that includes it defines PART(f), the names of its functions, and
   Q_T, Q_LOAD, Q_STORE: queries and results; keys and values are of type W_T.

   y[.., N, Hq, Dv] = softmax(cap(scale * q * k') + bias) * v over the keys that take part; zeros where none does.
   cap(s) = softcap * tanh(s / softcap), or s.

   Order: a score is the sum of its products in sixteen sums, product d in sum d mod 16, and their tree (keys lie as rows
   in the state, and are not copied into panels).  Keys come in blocks of OIC_ATTENTION_KEYS, at multiples of it; a block
   brings sum and results to the largest score so far, adds its weights in sixteen sums, and its values key by key.  A
   query's bits depend on the keys that take part and on nothing else: not on the other queries of a step.

   Stack: OIC_ATTENTION_ROWS * OIC_ATTENTION_KEYS numbers and as many bytes; 16 * OIC_ATTENTION_KEYS numbers where values
   are widened.  */

/* One block of one row: the scores s[n] become weights relative to the largest so far, *top; the sum of weights so far,
   *sum, and acc[D] are brought to the same scale. */
static inline void PART(weigh)(C *restrict s, const uint8_t *restrict ok, ptrdiff_t n, C *restrict top, C *restrict sum,
                               C *restrict acc, ptrdiff_t D)
{
    C high = *top, lane[OIC_LANES] = {0};
    for (ptrdiff_t j = 0; j < n; ++j) {
        high = ok[j] && s[j] > high ? s[j] : high;
    }
    if (high > *top) {
        const C factor = MATH(oic_exp)(*top - high);
        *sum *= factor;
        for (ptrdiff_t d = 0; d < D; ++d) {
            acc[d] *= factor;
        }
        *top = high;
    }
    if (high == (C)-INFINITY) { /* only -inf so far, or NaN, which the sum keeps */
        for (ptrdiff_t j = 0; j < n; ++j) {
            *sum += ok[j] && s[j] != s[j] ? s[j] : (C)0;
            s[j] = (C)0;
        }
        return;
    }
    for (ptrdiff_t j = 0; j < OIC_ATTENTION_KEYS; ++j) {
        s[j] = MATH(oic_exp)(s[j] - high);
    }
    for (ptrdiff_t j = 0; j < OIC_ATTENTION_KEYS; ++j) {
        s[j] = j < n && ok[j] ? s[j] : (C)0;
    }
    for (ptrdiff_t j = 0; j < OIC_ATTENTION_KEYS; j += OIC_LANES) {
        for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
            lane[l] += s[j + l];
        }
    }
    *sum += MATH(oic_tree)(lane);
}

/* s[R][KEYS] = q[R, D] * k[n, D]', keys ld apart from element at on; wide holds D numbers where keys are widened. */
static inline void PART(scores)(const C *restrict q, const W_T *restrict k, ptrdiff_t at, ptrdiff_t ld, ptrdiff_t R,
                                ptrdiff_t n, ptrdiff_t D, C *restrict s, C *restrict wide)
{
    ptrdiff_t j = 0;
    (void)wide;
    if (W_IS_COMPUTED && R == 1) {
        const C *const keys = (const C *)(const void *)(k + at);
        for (; j + 4 <= n; j += 4) {
            MATH(oic_dots_4)(keys + j * ld, ld, q, D, s + j);
        }
    }
    for (; j < n; ++j) {
        const C *const key = W_IS_COMPUTED ? (const C *)(const void *)(k + at + j * ld) : wide;
        ptrdiff_t r = 0;
        for (ptrdiff_t d = 0; !W_IS_COMPUTED && d < D; ++d) {
            wide[d] = (C)W_LOAD(k, at + j * ld + d);
        }
        for (; r + 4 <= R; r += 4) {
            C four[4];
            MATH(oic_dots_4)(q + r * D, D, key, D, four);
            for (ptrdiff_t e = 0; e < 4; ++e) {
                s[(r + e) * OIC_ATTENTION_KEYS + j] = four[e];
            }
        }
        for (; r < R; ++r) {
            s[r * OIC_ATTENTION_KEYS + j] = MATH(oic_dot)(q + r * D, key, D);
        }
    }
}

/* acc[R, D] += s[R][KEYS] * v[n, D] for the keys with ok[R][KEYS], key by key; whole: all of them for every row. */
static inline void PART(values)(const C *restrict s, const uint8_t *restrict ok, int whole, const W_T *restrict v,
                                ptrdiff_t at, ptrdiff_t ld, ptrdiff_t R, ptrdiff_t n, ptrdiff_t D, C *restrict acc)
{
    C wide[W_IS_COMPUTED ? 1 : OIC_LANES * OIC_ATTENTION_KEYS];
    for (ptrdiff_t d = 0; d < D; d += OIC_LANES) {
        const ptrdiff_t m = D - d < OIC_LANES ? D - d : OIC_LANES, step = W_IS_COMPUTED ? ld : OIC_LANES;
        const C *const p = W_IS_COMPUTED ? (const C *)(const void *)(v + at + d) : wide;
        for (ptrdiff_t j = 0; !W_IS_COMPUTED && j < n; ++j) {
            for (ptrdiff_t e = 0; e < m; ++e) {
                wide[j * OIC_LANES + e] = (C)W_LOAD(v, at + j * ld + d + e);
            }
        }
        if (whole && W_IS_COMPUTED && R == 1 && D - d >= 4 * OIC_LANES) {
            MATH(oic_chains_1x4)(acc + d, s, 1, p, step, OIC_LANES, n);
            d += 3 * OIC_LANES;
            continue;
        }
        for (ptrdiff_t r = 0; r < R; ++r) {
            const C *const w = s + r * OIC_ATTENTION_KEYS;
            const uint8_t *const in = ok + r * OIC_ATTENTION_KEYS;
            C *restrict const to = acc + r * D + d;
            if (whole && m == OIC_LANES) {
                MATH(oic_chains_1x1)(to, w, 1, p, step, n);
                continue;
            }
            for (ptrdiff_t j = 0; j < n; ++j) {
                for (ptrdiff_t e = 0; in[j] && e < m; ++e) {
                    to[e] = MATH(oic_madd)(w[j], p[j * step + e], to[e]);
                }
            }
        }
    }
}

/* Where everything lies, in elements; arrays of strides are those of the leading axes, then as said. */
typedef struct {
    const Q_T *q;           /* [.., N, Hq, Dk], strides qs of N and heads */
    const W_T *k, *v;       /* [.., T, Hk, D], strides ks and vs of T and heads */
    const float *bias;      /* strides bs of heads, N and T; NULL: none */
    const uint8_t *mask;    /* strides ms of heads, N and T; NULL: none */
    const int32_t *kv_len;  /* strides ls; NULL: `length` */
    const float *k_scale;   /* strides kss of T and heads; NULL: 1 */
    const float *v_scale;   /* strides vss of T and heads; NULL: 1 */
    Q_T *y;                 /* dense */
    C *work;                /* OIC_ATTENTION_ROWS * (Dk + Dv) + Dk numbers */
    ptrdiff_t rank;
    const ptrdiff_t *shape; /* [rank] */
    ptrdiff_t N, keys, Hq, Hk, Dk, Dv;
    const ptrdiff_t *qs, *ks, *vs, *bs, *ms, *kss, *vss, *ls;
    int64_t length;         /* keys in use */
    C scale, softcap;       /* 0: no cap */
    int causal;
    int64_t window;         /* -1: none */
} PART(args);

/* The queries of one key head, OIC_ATTENTION_ROWS of them: rows are a query, and the heads that share its keys. */
static inline void PART(rows)(const PART(args) *a, ptrdiff_t b, ptrdiff_t hk, ptrdiff_t first, ptrdiff_t R)
{
    const ptrdiff_t group = a->Hq / a->Hk, rank = a->rank, keys = a->keys, Dk = a->Dk, Dv = a->Dv;
    const int64_t used = a->kv_len != NULL ? a->kv_len[oic_offset(b, rank, a->shape, a->ls)] : a->length;
    const ptrdiff_t k0 = oic_offset(b, rank, a->shape, a->ks) + hk * a->ks[rank + 1];
    const ptrdiff_t v0 = oic_offset(b, rank, a->shape, a->vs) + hk * a->vs[rank + 1];
    const ptrdiff_t q0 = oic_offset(b, rank, a->shape, a->qs), y0 = b * a->N * a->Hq * Dv;
    C *const rows = a->work, *const acc = rows + OIC_ATTENTION_ROWS * Dk, *const wide = acc + OIC_ATTENTION_ROWS * Dv;
    ptrdiff_t lo[OIC_ATTENTION_ROWS], hi[OIC_ATTENTION_ROWS], from = keys, to = 0;
    C top[OIC_ATTENTION_ROWS], sum[OIC_ATTENTION_ROWS] = {0};
    int any[OIC_ATTENTION_ROWS] = {0};
    for (ptrdiff_t r = 0; r < R; ++r) {
        const ptrdiff_t i = (first + r) / group, h = hk * group + (first + r) % group;
        oic_attention_range(i, a->N, keys, used, a->causal, a->window, &lo[r], &hi[r]);
        from = lo[r] < from ? lo[r] : from;
        to = hi[r] > to ? hi[r] : to;
        top[r] = (C)-INFINITY;
        for (ptrdiff_t d = 0; d < Dk; ++d) {
            rows[r * Dk + d] = (C)Q_LOAD(a->q, q0 + i * a->qs[rank] + h * a->qs[rank + 1] + d) * a->scale;
        }
        for (ptrdiff_t d = 0; d < Dv; ++d) {
            acc[r * Dv + d] = (C)0;
        }
    }
    for (ptrdiff_t j0 = from - from % OIC_ATTENTION_KEYS; j0 < to; j0 += OIC_ATTENTION_KEYS) {
        const ptrdiff_t n = to - j0 < OIC_ATTENTION_KEYS ? to - j0 : OIC_ATTENTION_KEYS;
        C s[OIC_ATTENTION_ROWS * OIC_ATTENTION_KEYS] = {0};
        uint8_t ok[OIC_ATTENTION_ROWS * OIC_ATTENTION_KEYS];
        int whole = 1;
        PART(scores)(rows, a->k, k0 + j0 * a->ks[rank], a->ks[rank], R, n, Dk, s, wide);
        for (ptrdiff_t r = 0; r < R; ++r) {
            const ptrdiff_t i = (first + r) / group, h = hk * group + (first + r) % group;
            C *const sr = s + r * OIC_ATTENTION_KEYS;
            uint8_t *const in = ok + r * OIC_ATTENTION_KEYS;
            for (ptrdiff_t j = 0; j < n; ++j) {
                in[j] = (uint8_t)(j0 + j >= lo[r] && j0 + j < hi[r]);
            }
            if (a->mask != NULL) {
                const ptrdiff_t m0 = oic_offset(b, rank, a->shape, a->ms) + h * a->ms[rank] + i * a->ms[rank + 1];
                for (ptrdiff_t j = 0; j < n; ++j) {
                    in[j] &= a->mask[m0 + (j0 + j) * a->ms[rank + 2]];
                }
            }
            if (a->k_scale != NULL) {
                const ptrdiff_t c0 = oic_offset(b, rank, a->shape, a->kss) + hk * a->kss[rank + 1];
                for (ptrdiff_t j = 0; j < n; ++j) {
                    sr[j] *= (C)a->k_scale[c0 + (j0 + j) * a->kss[rank]];
                }
            }
            if (a->softcap > (C)0) {
                for (ptrdiff_t j = 0; j < n; ++j) {
                    sr[j] = a->softcap * MATH(oic_tanh)(sr[j] / a->softcap);
                }
            }
            if (a->bias != NULL) {
                const ptrdiff_t c0 = oic_offset(b, rank, a->shape, a->bs) + h * a->bs[rank] + i * a->bs[rank + 1];
                for (ptrdiff_t j = 0; j < n; ++j) {
                    sr[j] += (C)a->bias[c0 + (j0 + j) * a->bs[rank + 2]];
                }
            }
            for (ptrdiff_t j = 0; j < n; ++j) {
                any[r] |= in[j];
                whole &= in[j];
            }
            PART(weigh)(sr, in, n, &top[r], &sum[r], acc + r * Dv, Dv);
            if (a->v_scale != NULL) {
                const ptrdiff_t c0 = oic_offset(b, rank, a->shape, a->vss) + hk * a->vss[rank + 1];
                for (ptrdiff_t j = 0; j < n; ++j) {
                    sr[j] *= in[j] ? (C)a->v_scale[c0 + (j0 + j) * a->vss[rank]] : (C)0;
                }
            }
        }
        PART(values)(s, ok, whole, a->v, v0 + j0 * a->vs[rank], a->vs[rank], R, n, Dv, acc);
    }
    for (ptrdiff_t r = 0; r < R; ++r) {
        const ptrdiff_t i = (first + r) / group, h = hk * group + (first + r) % group;
        for (ptrdiff_t d = 0; d < Dv; ++d) {
            Q_STORE(a->y, y0 + (i * a->Hq + h) * Dv + d, any[r] ? acc[r * Dv + d] / sum[r] : (C)0);
        }
    }
}

static inline void PART(heads)(const PART(args) *a)
{
    const ptrdiff_t queries = a->Hk > 0 ? a->N * (a->Hq / a->Hk) : 0, count = oic_product(a->rank, a->shape) * a->Hk;
    for (ptrdiff_t bh = 0; bh < count; ++bh) {
        for (ptrdiff_t first = 0; first < queries; first += OIC_ATTENTION_ROWS) {
            const ptrdiff_t left = queries - first, R = left < OIC_ATTENTION_ROWS ? left : OIC_ATTENTION_ROWS;
            PART(rows)(a, bh / a->Hk, bh % a->Hk, first, R);
        }
    }
}
