/* A pool, of a stride along rows of 1 or 2: rows of x, with FIRST for the padding, are copied into lines as they are computed with,
   for each phase of the stride, where what neighbouring windows meet are neighbours, and windows are taken a register at a time.
   A kernel that includes this has POOL(f), names of its own; POOL_ARGS; FIRST, what a window begins with, which changes no
   result; NEXT(r, v), registers r that take elements v; LAST(r, n), what windows of n elements become; ALL(a), whether padding
   counts for n; and FEW, of how many elements a window without padding is that a plain loop does better. */
#define WIDTH ((ptrdiff_t)(sizeof(MATH(oic_register)) / sizeof(C)))
#define LINES (32 * OIC_CONV_PART) /* elements of lines, */
#define WINDOW 16                  /* and columns of the widest window */

/* A line of phases, `pitch` apart, = n numbers from position `at` of it on; up to a register of what lies behind it is lost. */
OIC_INLINE void POOL(line)(C *restrict line, ptrdiff_t pitch, ptrdiff_t step, ptrdiff_t at, const C *restrict from, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < step * pitch; i += WIDTH) {
        MATH(oic_register_store)(line + i, MATH(oic_register_of)(FIRST));
    }
    if (step == 1) {
        MATH(oic_row_copy)(line + at, from, n);
        return;
    }
    C *const even = line + at % 2 * pitch + at / 2, *const odd = line + (at + 1) % 2 * pitch + (at + 1) / 2;
    const ptrdiff_t pairs = n / 2;
    if (pairs >= OIC_ROW_PAIRS) {
        for (ptrdiff_t i = 0; i < pairs; i += OIC_ROW_PAIRS) {
            const ptrdiff_t e = i + OIC_ROW_PAIRS <= pairs ? i : pairs - OIC_ROW_PAIRS; /* the last ones, perhaps twice */
            MATH(oic_row_pairs)(OIC_ROW_PAIRS, even + e, odd + e, from + 2 * e);
        }
    } else if (pairs >= OIC_ROW_FEW) {
        for (ptrdiff_t i = 0; i < pairs; i += OIC_ROW_FEW) {
            const ptrdiff_t e = i + OIC_ROW_FEW <= pairs ? i : pairs - OIC_ROW_FEW;
            MATH(oic_row_pairs)(OIC_ROW_FEW, even + e, odd + e, from + 2 * e);
        }
    } else {
        for (ptrdiff_t i = 0; i < pairs; ++i) {
            MATH(oic_row_pairs)(1, even + i, odd + i, from + 2 * i);
        }
    }
    if (n % 2 != 0) {
        even[pairs] = from[n - 1];
    }
}

/* Results `some` from x0 on of all rows of a plane; at most `deep` lines at a time. */
OIC_INLINE void POOL(results)(const POOL_ARGS *a, const T *x, T *y, ptrdiff_t step, ptrdiff_t window, ptrdiff_t x0, ptrdiff_t some,
                           ptrdiff_t pitch, ptrdiff_t deep, const C *count)
{
    const ptrdiff_t left = x0 * step - a->padding_x, first = oic_pool_first(left), span = (some - 1) * step + a->window_x;
    const ptrdiff_t last = oic_pool_last(left, span, a->width), each = (deep - a->window_y) / a->stride_y + 1;
    C lines[LINES + WIDTH], wide[2 * OIC_CONV_PART + WINDOW], to[OIC_CONV_PART + WIDTH];
    for (ptrdiff_t r0 = 0; r0 < a->out_height; r0 += each) {
        const ptrdiff_t rows = a->out_height - r0 < each ? a->out_height - r0 : each, above = r0 * a->stride_y - a->padding_y;
        const ptrdiff_t top = oic_pool_first(above), below = oic_pool_last(above, (rows - 1) * a->stride_y + a->window_y, a->height);
        for (ptrdiff_t iy = top; iy < below; ++iy) {
            const C *const from = WIDEN(x + iy * a->width + first, last - first, wide);
            POOL(line)(lines + (iy - top) * step * pitch, pitch, step, first - left, from, last - first);
        }
        for (ptrdiff_t r = r0; r < r0 + rows; ++r) {
            const ptrdiff_t up = r * a->stride_y - a->padding_y;
            const ptrdiff_t first_y = oic_pool_first(up), last_y = oic_pool_last(up, a->window_y, a->height);
            const C high = (C)(int32_t)(ALL(a) ? a->window_y : last_y - first_y);
            for (ptrdiff_t e = 0; e < some; e += WIDTH) {
                MATH(oic_register) result = MATH(oic_register_of)(FIRST);
                for (ptrdiff_t iy = first_y; iy < last_y; ++iy) {
                    const C *const line = lines + (iy - top) * step * pitch + e;
                    for (ptrdiff_t k = 0; k < window; ++k) {
                        NEXT(result, MATH(oic_register_load)(line + (step == 1 ? k : k % 2 * pitch + k / 2)));
                    }
                }
                MATH(oic_register_store)(to + e, LAST(result, MATH(oic_register_load)(count + e) * MATH(oic_register_of)(high)));
            }
#if X_IS_COMPUTED
            MATH(oic_row_copy)(y + r * a->out_width + x0, to, some);
#else
            T narrow[OIC_CONV_PART + WIDTH];
            for (ptrdiff_t e = 0; e < some; e += WIDTH) {
                for (ptrdiff_t i = 0; i < WIDTH; ++i) { /* so many as vectors have */
                    STORE(narrow, e + i, to[e + i]);
                }
            }
            oic_move(y, r * a->out_width + x0, narrow, 0, some, BITS);
#endif
        }
    }
}

/* Whether planes begin..end-1 were computed so.  It is no part of its caller, whose other loops compilers make worse if they know more of them. */
OIC_LOOP int POOL(by_lines)(const POOL_ARGS *a, ptrdiff_t begin, ptrdiff_t end)
{
    const ptrdiff_t most = a->out_width < OIC_CONV_PART ? a->out_width : OIC_CONV_PART, step = a->stride_x, window = a->window_x;
    if (X_IS_COMPUTED && a->padding_x == 0 && window * a->window_y <= FEW) { /* compilers do well with these */
        return 0;
    }
    if (WIDTH == 1 || step > 2 || most < 2 * step || window > WINDOW) {
        return 0;
    }
    const ptrdiff_t pitch = (most + WIDTH - 1) / WIDTH * WIDTH + (window - 1) / step, deep = LINES / (step * pitch);
    if (a->window_y > deep) {
        return 0;
    }
    for (ptrdiff_t x0 = 0; x0 < a->out_width; x0 += most) {
        const ptrdiff_t some = a->out_width - x0 < most ? a->out_width - x0 : most;
        C count[OIC_CONV_PART + WIDTH] = {0}; /* columns of each window */
        for (ptrdiff_t e = 0; e < some; ++e) {
            const ptrdiff_t left = (x0 + e) * step - a->padding_x;
            const ptrdiff_t columns = oic_pool_last(left, window, a->width) - oic_pool_first(left);
            count[e] = (C)(int32_t)(ALL(a) ? window : columns);
        }
        for (ptrdiff_t plane = begin; plane < end; ++plane) {
            const T *const x = a->x + plane * a->height * a->width;
            T *const y = a->y + plane * a->out_height * a->out_width;
            if (step == 1 && window == 3) {
                POOL(results)(a, x, y, 1, 3, x0, some, pitch, deep, count);
            } else if (step == 1) {
                POOL(results)(a, x, y, 1, window, x0, some, pitch, deep, count);
            } else if (window == 3) {
                POOL(results)(a, x, y, 2, 3, x0, some, pitch, deep, count);
            } else if (window == 2) {
                POOL(results)(a, x, y, 2, 2, x0, some, pitch, deep, count);
            } else {
                POOL(results)(a, x, y, 2, window, x0, some, pitch, deep, count);
            }
        }
    }
    return 1;
}

#undef WIDTH
#undef LINES
#undef WINDOW
#undef POOL
#undef POOL_ARGS
#undef FIRST
#undef NEXT
#undef LAST
#undef ALL
#undef FEW
