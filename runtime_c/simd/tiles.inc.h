/* The tiles of tiles.h for numbers of type OIC_S, f32 or f64; OIC_TILE_ROOM panels of sixteen sums fit the registers.  w is of
   type OIC_TILE_W, where that is defined: bf16, f16 or i8, widened on the way into a register.  With OIC_TILE_AT defined, the
   elements of k lie where a table says. */
#define S OIC_PASTE(oic_stored_, OIC_S)
#define OF(f) OIC_PASTE(f##_, OIC_S)
#define REGISTER OF(oic_register)
#define WIDTH ((int)(sizeof(REGISTER) / sizeof(S)))
#define COUNT ((int)(OIC_LANES * sizeof(S) / sizeof(REGISTER)))
#define ROOM OIC_TILE_ROOM
#if defined(OIC_TILE_W)
#define W_S OIC_PASTE(oic_stored_, OIC_TILE_W)
#define W_REGISTER OIC_PASTE(oic_row_, OIC_TILE_W)
#define TILED(f) OIC_JOIN_3(f, OIC_TILE_W, OIC_S)
#else
#define W_S S
#define W_REGISTER OF(oic_register_load)
#if defined(OIC_TILE_AT)
#define TILED(f) OIC_JOIN_3(f, at, OIC_S)
#else
#define TILED(f) OF(f)
#endif
#endif
#define SUMS (ROOM * COUNT)

#if !defined(OIC_TILE_W) && !defined(OIC_TILE_AT)
enum {
    OF(oic_tile_rows) = ROOM < 8 ? ROOM : 8,
    OF(oic_tile_side) = ROOM >= 24 ? 3 : 1 /* panels beside four rows and more */
};

/* Where the operands of tiles lie, `times` of them, one below the other: rows of x are xm apart and their elements xk; panel p
   of w is at w + p * wg, and its sixteen elements of each k at k * wk.  What is read later lies at the address next, `step` bytes
   for each k of each tile, of panels `apart`; a few addresses may lie beyond.  Few rows of oic_tile_beside panels ask for what lies so
   many bytes ahead in w instead, 0: nothing, and only where OIC_ASKED_NEAR.  `many`: several tiles go through w.

   With OIC_TILE_AT there is one tile, elements of a row of x are neighbours, and eight elements of w each lie at w + at[k] and as
   much further as `place` says. */
typedef struct {
    const S *x;
    const void *w;
    ptrdiff_t xm, xk, wk, wg, n, times;
    const int32_t *at, *place;
    uintptr_t next, step, apart, ahead;
    int many;
} OF(oic_tile);

/* The most panels of a tile of so many rows. */
static inline ptrdiff_t OF(oic_tile_panels)(ptrdiff_t rows)
{
    const ptrdiff_t panels = rows > 3 ? OF(oic_tile_side) : ROOM / rows;
    return panels < OIC_TILE_PANELS ? panels : OIC_TILE_PANELS;
}

/* The panels of a tile of few rows where memory is the limit. */
static inline ptrdiff_t OF(oic_tile_beside)(ptrdiff_t rows)
{
    const ptrdiff_t panels = OF(oic_tile_panels)(rows), most = rows == 1 ? OIC_TILE_BESIDE_ONE : OIC_TILE_BESIDE;
    return panels > most && (rows == 1 || ROOM == 24) ? most : panels;
}

/* How many of the `left` panels, fewer than the most, a tile takes: of one row all. */
static inline ptrdiff_t OF(oic_tile_rest)(ptrdiff_t rows, ptrdiff_t left)
{
    return rows == 1 ? left : ROOM == 24 && rows < 4 && left >= 4 ? 4 : 1;
}

#endif

#if defined(OIC_TILE_AT)
/* Register i of the elements of one k, of which eight each lie at `eight`. */
OIC_INLINE REGISTER TILED(oic_tile_load)(const S *w, const ptrdiff_t *eight, int i)
{
#if defined(OIC_TILE_EIGHTS)
    return OIC_TILE_EIGHTS(w + eight[2 * i], w + eight[2 * i + 1]);
#else
    return OF(oic_register_load)(w + eight[i * WIDTH / OIC_EIGHT] + i * WIDTH % OIC_EIGHT);
#endif
}

/* sum[r][16 p + l], rows ld apart: the chain of x[r][k] * w[p][k][l] over n values of k, ascending.  Rows of x are xm apart. */
OIC_INLINE void TILED(oic_tile_add_up)(const OF(oic_tile) *t, int rows, int panels, S *restrict sum, ptrdiff_t ld, int how)
{
    const S *four[(OF(oic_tile_rows) + 3) / 4 + 1];
    const ptrdiff_t xm = t->xm;
    ptrdiff_t eight[2 * SUMS];
    REGISTER a[SUMS];
    OIC_UNROLLED
    for (int i = 0; i < 2 * panels; ++i) {
        eight[i] = t->place[i];
    }
    OIC_UNROLLED
    for (int r = 0; r < rows; r += 4) {
        four[r / 4] = t->x + r * xm;
    }
    OIC_UNROLLED
    for (int i = 0; i < rows * panels * COUNT; ++i) {
        a[i] = (REGISTER){0};
    }
    const int32_t *at = t->at;
    OIC_UNROLLED_TWICE
    for (ptrdiff_t k = t->n; k > 0; --k) {
        const S *const from = (const S *)t->w + *at++;
        REGISTER held[SUMS];
        OIC_UNROLLED
        for (int r = 0; r < rows; r += 4) { /* or compilers have an address for every row, and too few registers */
            OIC_OPAQUE(four[r / 4]);
        }
        OIC_UNROLLED
        for (int i = 0; i < panels * COUNT; ++i) {
            held[i] = TILED(oic_tile_load)(from, eight, i);
        }
        OIC_UNROLLED
        for (int r = 0; r < rows; ++r) {
            const REGISTER all = OF(oic_register_of)(four[r / 4][r % 4 * xm]);
            OIC_UNROLLED
            for (int i = 0; i < panels * COUNT; ++i) {
                a[r * panels * COUNT + i] = OF(oic_register_madd)(all, held[i], a[r * panels * COUNT + i]);
            }
        }
        OIC_UNROLLED
        for (int r = 0; r < rows; r += 4) {
            ++four[r / 4];
        }
    }
    OIC_UNROLLED
    for (int i = 0; i < rows * panels * COUNT; ++i) { /* added to zero: -0 becomes 0 */
        S *const to = sum + i / (panels * COUNT) * ld + i % (panels * COUNT) * WIDTH;
        const REGISTER all = (how == OIC_TILE_ADD ? OF(oic_register_load)(to) : (REGISTER){0}) + a[i];
        memcpy(to, &all, sizeof all);
    }
}

#else
/* One k: sum[r] += x[r * xm] * w, of all panels; `dense` as below. */
OIC_INLINE void TILED(oic_tile_step)(REGISTER *restrict sum, int rows, int panels, const S *x, ptrdiff_t xm, const W_S *w,
                                     ptrdiff_t wg, int dense)
{
    REGISTER held[SUMS];
    if (rows <= panels * COUNT) { /* what are fewer are held in registers */
        OIC_UNROLLED
        for (int r = 0; r < rows; ++r) {
            held[r] = OF(oic_register_of)(x[r * xm]);
        }
        OIC_UNROLLED
        for (int i = 0; i < panels * COUNT; ++i) {
            const REGISTER v = W_REGISTER(w + i / COUNT * wg + i % COUNT * WIDTH);
            OIC_UNROLLED
            for (int r = 0; r < rows; ++r) {
                sum[r * panels * COUNT + i] = OF(oic_register_madd)(held[r], v, sum[r * panels * COUNT + i]);
            }
        }
    } else {
        OIC_UNROLLED
        for (int i = 0; i < panels * COUNT; ++i) {
            held[i] = W_REGISTER(w + i / COUNT * wg + i % COUNT * WIDTH);
            if (dense) {
                OIC_TILE_HELD(held[i]);
            }
        }
        OIC_UNROLLED
        for (int r = 0; r < rows; ++r) {
            const REGISTER all = OF(oic_register_of)(x[r * xm]);
            OIC_UNROLLED
            for (int i = 0; i < panels * COUNT; ++i) {
                sum[r * panels * COUNT + i] = OF(oic_register_madd)(all, held[i], sum[r * panels * COUNT + i]);
            }
        }
    }
}

/* sum[r][16 p + l], rows ld apart: the chain of x[r][k] * w[p][k][l] over n values of k, ascending, of all tiles.  Strides xm, xk
   and wk are those of t, and known when this is compiled, if dense: then rows are many, and their sums lie far away.  If asks,
   t->ahead counts. */
OIC_INLINE void TILED(oic_tile_strided)(const OF(oic_tile) *t, int rows, int panels, ptrdiff_t xm, ptrdiff_t xk, ptrdiff_t wk,
                                        int dense, int asks, S *restrict sum, ptrdiff_t ld, int how)
{
    enum { EACH = OIC_LANES * sizeof(W_S) < 64 ? 64 / (OIC_LANES * sizeof(W_S)) : 1 }; /* k of a line */
    uintptr_t next = t->next;
    const uintptr_t later = t->ahead;
    const ptrdiff_t wg = t->wg;
    const int ahead = rows > 3 ? panels : 0; /* fewer rows read memory at more places at once */
    for (ptrdiff_t tile = 0; tile < t->times; ++tile, sum += rows * ld) {
        const S *x = t->x + tile * rows * xm;
        const W_S *w = (const W_S *)t->w;
        REGISTER a[SUMS];
        ptrdiff_t apart = ld;
        if (dense) {
            OIC_OPAQUE(apart); /* or addresses of sums are made before the loop, and leave it too few registers */
        }
        OIC_UNROLLED
        for (int i = 0; i < rows * panels * COUNT; ++i) {
            a[i] = (REGISTER){0};
        }
        if (OIC_BLOCK < OIC_CHUNK && how == OIC_TILE_GO_ON) {
            OIC_UNROLLED
            for (int i = 0; i < rows * panels * COUNT; ++i) {
                a[i] = OF(oic_register_load)(sum + i / (panels * COUNT) * apart + i % (panels * COUNT) * WIDTH);
            }
        } else if (dense) {
            OIC_UNROLLED
            for (int i = 0; i < rows * panels; ++i) {
                OIC_TILE_AHEAD_SUMS(sum + i / panels * apart + i % panels * OIC_LANES);
            }
        }
        OIC_UNROLLED_TWICE
        for (ptrdiff_t k = t->n; k > 0; --k, x += xk, w += wk, next += t->step) {
            if (dense && OIC_WIDTH == 16) {
                OIC_UNROLLED
                for (int p = 0; p < ahead; ++p) {
                    OIC_TILE_AHEAD_NEAR((const void *)(next + (uintptr_t)p * t->apart));
                }
            } else {
                OIC_UNROLLED
                for (int p = 0; p < ahead; ++p) {
                    OIC_TILE_AHEAD((const void *)(next + (uintptr_t)p * t->apart));
                }
            }
            if (asks && k % EACH == 0) {
                OIC_UNROLLED
                for (int p = 0; p < panels; ++p) {
                    OIC_TILE_AHEAD_NEAR((const void *)((uintptr_t)(const void *)(w + p * wg) + later));
                }
            }
            TILED(oic_tile_step)(a, rows, panels, x, xm, w, wg, dense);
        }
        if (dense) {
            OIC_OPAQUE(apart);
        }
        if (how == OIC_TILE_ADD) {
            OIC_UNROLLED
            for (int i = 0; i < rows * panels * COUNT; ++i) {
                const S *const from = sum + i / (panels * COUNT) * apart + i % (panels * COUNT) * WIDTH;
                a[i] = OF(oic_register_load)(from) + a[i];
            }
        } else if (how == OIC_TILE_SET) { /* added to zero: -0 becomes 0 */
            OIC_UNROLLED
            for (int i = 0; i < rows * panels * COUNT; ++i) {
                a[i] = (REGISTER){0} + a[i];
            }
        }
        OIC_UNROLLED
        for (int i = 0; i < rows * panels * COUNT; ++i) {
            memcpy(sum + i / (panels * COUNT) * apart + i % (panels * COUNT) * WIDTH, &a[i], sizeof a[i]);
        }
    }
}

/* The same.  Where chunks of x were copied side by side and w lies in panels, the strides are constants; that of rows is not where
   OIC_TILE_AS_IS. */
OIC_INLINE void TILED(oic_tile_add_up)(const OF(oic_tile) *t, int rows, int panels, S *restrict sum, ptrdiff_t ld, int how)
{
    const int dense = rows > 3 && t->xk == 1 && t->wk == OIC_LANES;
    if (OIC_TILE_AS_IS && dense && t->many) {
        TILED(oic_tile_strided)(t, rows, panels, t->xm, 1, OIC_LANES, 1, 0, sum, ld, how);
    } else if (!OIC_TILE_AS_IS && dense && t->xm == OIC_CHUNK) {
        TILED(oic_tile_strided)(t, rows, panels, OIC_CHUNK, 1, OIC_LANES, 1, 0, sum, ld, how);
    } else if (OIC_ASKED_NEAR && rows < 4 && panels == OF(oic_tile_beside)(rows) && t->ahead != 0) {
        TILED(oic_tile_strided)(t, rows, panels, t->xm, t->xk, t->wk, 0, 1, sum, ld, how);
    } else {
        TILED(oic_tile_strided)(t, rows, panels, t->xm, t->xk, t->wk, 0, 0, sum, ld, how);
    }
}

#endif

/* The same for 1 to oic_tile_rows rows, and oic_tile_panels of these rows or a rest of so many as oic_tile_rest says. */
#if defined(OIC_TILE_AT)
#define TILE_MOST 8 /* its rows are output channels */
#else
#define TILE_MOST OIC_ROWS_MOST
#endif
#define TILE_OF(r, p) \
    case 16 * (p) + (r): \
        if ((r) <= TILE_MOST) { \
            TILED(oic_tile_add_up)(t, r, p, sum, ld, how); \
            return; \
        } \
        break;
OIC_LOOP void TILED(oic_tile_sum)(const OF(oic_tile) *t, ptrdiff_t rows, ptrdiff_t panels, S *restrict sum, ptrdiff_t ld, int how)
{
    switch (16 * panels + rows) {
#if ROOM == 24
    TILE_OF(1, 8)
    TILE_OF(2, 8)
    TILE_OF(3, 8)
    TILE_OF(2, 4)
    TILE_OF(3, 4)
    TILE_OF(4, 3)
    TILE_OF(5, 3)
    TILE_OF(6, 3)
    TILE_OF(7, 3)
    TILE_OF(8, 3)
#elif ROOM == 12
    TILE_OF(1, 8)
    TILE_OF(2, 6)
    TILE_OF(3, 4)
#elif ROOM == 6
    TILE_OF(1, 6)
    TILE_OF(2, 3)
    TILE_OF(3, 2)
#elif ROOM == 3
    TILE_OF(1, 3)
#elif ROOM != 1
#error "oic: tiles of this many sums are not written"
#endif
#if ROOM >= 8
    TILE_OF(1, 7)
    TILE_OF(1, 6)
#endif
#if ROOM >= 6
    TILE_OF(1, 5)
    TILE_OF(1, 4)
    TILE_OF(1, 3)
#endif
#if ROOM >= 3
    TILE_OF(1, 2)
#endif
#if ROOM >= 8
    TILE_OF(8, 1)
    TILE_OF(7, 1)
#endif
#if ROOM >= 6
    TILE_OF(6, 1)
    TILE_OF(5, 1)
    TILE_OF(4, 1)
#endif
#if ROOM >= 3
    TILE_OF(3, 1)
    TILE_OF(2, 1)
#endif
    TILE_OF(1, 1)
    default: break;
    }
#if TILE_MOST < 8
    OF(oic_tile) one = *t; /* more rows than generated code spoke of: one by one */
    one.times = 1;
    for (ptrdiff_t r = 0; r < t->times * rows; ++r, one.x += t->xm) {
        for (ptrdiff_t p = 0; p < panels; ++p) {
            one.w = (const W_S *)t->w + p * t->wg;
            TILED(oic_tile_add_up)(&one, 1, 1, sum + r * ld + p * OIC_LANES, ld, how);
        }
    }
#endif
}

#undef S
#undef OF
#undef REGISTER
#undef WIDTH
#undef COUNT
#undef ROOM
#undef W_S
#undef W_REGISTER
#undef TILED
#undef TILE_OF
#undef TILE_MOST
#undef OIC_TILE_W
#undef OIC_TILE_AT
#undef OIC_TILE_EIGHTS
#undef SUMS
#undef OIC_S
#undef OIC_TILE_ROOM
