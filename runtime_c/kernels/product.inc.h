/* The body that products of matrices share.  The kernel that includes it defines PRODUCT, the name of the function, and
   PANELS: w lies in panels, sixteen columns side by side for each k, the last ones filled up with zeros.

   y[M, N] = x[M, K] * w[K, N] * scale[N] + b[N]; scale (float, neighbours ds apart) and b may be NULL.

   Order: the products of an element are added over k ascending, in chunks of OIC_CHUNK from zero, and the sums of the
   chunks in order; then come scale and b.  No other element and no size but K has a part in it.

   x lies at the strides xm and xk.  Column j = 16 * g + l of w, element k, is w[g * wg + l * wn + k * wk].  Where w is of
   the type C and its columns are neighbours, it is used where it lies; else OIC_BLOCK steps of sixteen columns at a time
   are widened into a panel on the stack: at most 16 * OIC_BLOCK numbers, as many for x, and 2 * 16 * OIC_ROWS for sums, or
   2 * OIC_STRETCH for one row of x. */
#if PANELS
/* One row of x times four panels. */
static inline void PRODUCT_ROW(const C *restrict x, ptrdiff_t xk, const C *restrict w, ptrdiff_t wk, ptrdiff_t wg,
                               C *restrict sum, ptrdiff_t K)
{
    C chunk[4 * OIC_LANES];
    MATH(oic_chains_1x4_of)(sum, x, xk, w, wk, wg, K < OIC_CHUNK ? K : OIC_CHUNK);
    for (ptrdiff_t k = OIC_CHUNK; k < K; k += OIC_CHUNK) {
        MATH(oic_chains_1x4_of)(chunk, x + k * xk, xk, w + k * wk, wk, wg, K - k < OIC_CHUNK ? K - k : OIC_CHUNK);
        for (ptrdiff_t l = 0; l < 4 * OIC_LANES; ++l) {
            sum[l] += chunk[l];
        }
    }
}
#else
/* One row of x times a row-major w. */
static inline void PRODUCT_ROW(const C *restrict x, ptrdiff_t xk, const C *restrict w, ptrdiff_t wk,
                               const float *restrict scale, ptrdiff_t ds, const B_T *restrict b, T *restrict y,
                               ptrdiff_t K, ptrdiff_t N)
{
    for (ptrdiff_t j = 0; j < N; j += OIC_STRETCH) {
        const ptrdiff_t n = N - j < OIC_STRETCH ? N - j : OIC_STRETCH;
        C sum[OIC_STRETCH] = {0};
        for (ptrdiff_t k = 0; k < K; k += OIC_CHUNK) {
            C chunk[OIC_STRETCH] = {0};
            MATH(oic_chains)(chunk, x + k * xk, xk, w + k * wk + j, wk, K - k < OIC_CHUNK ? K - k : OIC_CHUNK, n);
            for (ptrdiff_t l = 0; l < n; ++l) {
                sum[l] += chunk[l];
            }
        }
        for (ptrdiff_t l = 0; l < n; ++l) {
            const C v = scale != NULL ? sum[l] * (C)scale[(j + l) * ds] : sum[l];
            STORE(y, j + l, b != NULL ? v + (C)B_LOAD(b, j + l) : v);
        }
    }
}
#endif

static inline void PRODUCT(const T *restrict x, ptrdiff_t xm, ptrdiff_t xk, const W_T *restrict w, ptrdiff_t wk,
                           ptrdiff_t wg, ptrdiff_t wn, const float *restrict scale, ptrdiff_t ds,
                           const B_T *restrict b, T *restrict y, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N)
{
    C xs[X_IS_COMPUTED ? 1 : OIC_ROWS * OIC_BLOCK], ws[PANELS && W_IS_COMPUTED ? 1 : OIC_LANES * OIC_BLOCK];
    const int neighbours = W_IS_COMPUTED && (PANELS || wn == 1);
#if !PANELS
    if (M == 1 && neighbours && X_IS_COMPUTED) {
        PRODUCT_ROW((const C *)(const void *)x, xk, (const C *)(const void *)w, wk, scale, ds, b, y, K, N);
        return;
    }
#endif
    for (ptrdiff_t j = 0; j < N;) {
        const ptrdiff_t lanes = N - j < OIC_LANES ? N - j : OIC_LANES, at = j / OIC_LANES * wg;
        const int direct = neighbours && (PANELS || lanes == OIC_LANES);
        const ptrdiff_t block = X_IS_COMPUTED && direct ? OIC_CHUNK : OIC_BLOCK;
#if PANELS
        if (OIC_REGISTER && M == 1 && direct && X_IS_COMPUTED && N - j >= 4 * OIC_LANES) { /* else 64 sums are in memory */
            C sum[4 * OIC_LANES];
            PRODUCT_ROW((const C *)(const void *)x, xk, (const C *)(const void *)(w + at), wk, wg, sum, K);
            for (ptrdiff_t l = 0; l < 4 * OIC_LANES; ++l) {
                const C v = scale != NULL ? sum[l] * (C)scale[(j + l) * ds] : sum[l];
                STORE(y, j + l, b != NULL ? v + (C)B_LOAD(b, j + l) : v);
            }
            j += 4 * OIC_LANES;
            continue;
        }
#endif
        for (ptrdiff_t i0 = 0; i0 < M; i0 += OIC_ROWS) {
            const ptrdiff_t rows = M - i0 < OIC_ROWS ? M - i0 : OIC_ROWS;
            C sum[OIC_ROWS * OIC_LANES] = {0};
            for (ptrdiff_t k0 = 0; k0 < K; k0 += OIC_CHUNK) {
                const ptrdiff_t k1 = K - k0 < OIC_CHUNK ? K : k0 + OIC_CHUNK;
                C chunk[OIC_ROWS * OIC_LANES] = {0};
                for (ptrdiff_t k = k0; k < k1; k += block) {
                    const ptrdiff_t n = k1 - k < block ? k1 - k : block;
                    const C *const xp = X_IS_COMPUTED ? (const C *)(const void *)(x + i0 * xm + k * xk) : xs;
                    const C *const wp = direct ? (const C *)(const void *)(w + at + k * wk) : ws;
                    const ptrdiff_t xpm = X_IS_COMPUTED ? xm : OIC_BLOCK, xpk = X_IS_COMPUTED ? xk : 1;
                    const ptrdiff_t wpk = direct ? wk : OIC_LANES;
                    ptrdiff_t i = 0;
                    for (ptrdiff_t r = 0; !X_IS_COMPUTED && r < rows; ++r) {
                        for (ptrdiff_t e = 0; e < n; ++e) {
                            xs[r * OIC_BLOCK + e] = (C)LOAD(x, (i0 + r) * xm + (k + e) * xk);
                        }
                    }
                    for (ptrdiff_t e = 0; !direct && e < n; ++e) {
                        for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
                            ws[e * OIC_LANES + l] = l < lanes ? (C)W_LOAD(w, at + (k + e) * wk + l * wn) : (C)0;
                        }
                    }
                    for (; OIC_REGISTER && i + 4 <= rows; i += 4) {
                        MATH(oic_chains_4x1)(chunk + i * OIC_LANES, xp + i * xpm, xpm, xpk, wp, wpk, n);
                    }
                    for (; i < rows; ++i) {
                        MATH(oic_chains_1x1)(chunk + i * OIC_LANES, xp + i * xpm, xpk, wp, wpk, n);
                    }
                }
                for (ptrdiff_t l = 0; l < rows * OIC_LANES; ++l) {
                    sum[l] += chunk[l];
                }
            }
            for (ptrdiff_t i = 0; i < rows; ++i) {
                for (ptrdiff_t l = 0; l < lanes; ++l) {
                    C v = sum[i * OIC_LANES + l];
                    v = scale != NULL ? v * (C)scale[(j + l) * ds] : v;
                    STORE(y, (i0 + i) * N + j + l, b != NULL ? v + (C)B_LOAD(b, j + l) : v);
                }
            }
        }
        j += OIC_LANES;
    }
}
