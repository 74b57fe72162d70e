/* Exact sums of products of small integers, modulo 2^32, sixteen side by side.

   A word is 32 bits that hold OIC_WORD neighbours of a sum: four bytes where a machine multiplies four at once, else two
   numbers of 16 bits.  The products of a word of x and one of w are added to a sum.  Numbers of x are those of bytes from -128
   to 127, and so are w's; where an instruction takes unsigned ones, those of w lie 128 higher, and a sum starts 128 times
   those of x lower.  Words of halves hold two numbers of 16 bits on every machine. */
#ifndef OIC_WORDS_H
#define OIC_WORDS_H

#include "../version.h"

#include "../num.h"
#include "tiles.h"

#if defined(OIC_DOT_BYTES)
#define OIC_WORD 4
#define OIC_WORD_BIAS (OIC_DOT_BYTES == 2)
#define WORDS_DOT oic_register_dot_bytes
#else
#define OIC_WORD 2
#define OIC_WORD_BIAS 0
#define WORDS_DOT oic_register_dot_i16
#endif

#define WORDS_PARTS (OIC_LANES / OIC_WIDTH) /* registers of sixteen sums */
#define WORDS_GROUPS (OIC_WIDTH == 16 ? 2 : 1) /* of sixteen sums of a row, that registers can hold of all rows */

/* Rows of x that go through words of w together: as many as registers can hold the sums of. */
#if OIC_WIDTH == 16
#define OIC_WORD_ROWS 12
#elif OIC_WIDTH == 8 || OIC_MANY_REGISTERS
#define OIC_WORD_ROWS 6
#elif OIC_WIDTH == 4
#define OIC_WORD_ROWS 3
#else
#define OIC_WORD_ROWS 1
#endif

/* to = words of x of n neighbours, which fill them. */
static inline void oic_words_of_x(uint32_t *restrict to, const int8_t *restrict from, ptrdiff_t n)
{
#if OIC_WORD == 4
    memcpy(to, from, (size_t)n);
#else
    for (ptrdiff_t i = 0; i < n / 2; ++i) {
        to[i] = (uint32_t)(uint16_t)(int16_t)from[2 * i] | (uint32_t)(int32_t)from[2 * i + 1] << 16;
    }
#endif
}

/* to[i] = a word of w of numbers i * step of as many rows as a word has; of the same, where a sum has fewer. */
static inline void oic_words_of_w(uint32_t *restrict to, const int8_t *const *rows, ptrdiff_t n, ptrdiff_t step)
{
    const int8_t *const p = rows[0], *const q = rows[1];
#if OIC_WORD == 4
    const int8_t *const r = rows[2], *const s = rows[3];
    const uint32_t bias = OIC_WORD_BIAS ? 0x80808080u : 0u;
    if (step == 1 && n >= OIC_WIDTH) {
        for (ptrdiff_t i = 0; i < n; i += OIC_WIDTH) {
            const ptrdiff_t first = i + OIC_WIDTH <= n ? i : n - OIC_WIDTH; /* the last ones, some of them once more */
            const oic_register_u32 words = oic_register_fours(p + first, q + first, r + first, s + first) ^ bias;
            memcpy(to + first, &words, sizeof words);
        }
        return;
    }
    for (ptrdiff_t i = 0, at = 0; i < n; ++i, at += step) {
        to[i] = ((uint32_t)(uint8_t)p[at] | (uint32_t)(uint8_t)q[at] << 8 | (uint32_t)(uint8_t)r[at] << 16 |
                 (uint32_t)(uint8_t)s[at] << 24) ^ bias;
    }
#else
    if (step == 1) {
        for (ptrdiff_t i = 0; i < n; ++i) {
            to[i] = (uint32_t)(uint16_t)(int16_t)p[i] | (uint32_t)(int32_t)q[i] << 16;
        }
        return;
    }
    for (ptrdiff_t i = 0, at = 0; i < n; ++i, at += step) {
        to[i] = (uint32_t)(uint16_t)(int16_t)p[at] | (uint32_t)(int32_t)q[at] << 16;
    }
#endif
}

/* to[i] = a word of w of neighbours from i * step on, which fill it. */
static inline void oic_words_of_row(uint32_t *restrict to, const int8_t *restrict from, ptrdiff_t n, ptrdiff_t step)
{
#if OIC_WORD == 4
    const uint32_t bias = OIC_WORD_BIAS ? 0x80808080u : 0u;
    for (ptrdiff_t i = 0; i < n; ++i) {
        uint32_t bits;
        memcpy(&bits, from + i * step, sizeof bits);
        to[i] = bits ^ bias;
    }
#else
    if (step == 2) {
        int16_t *restrict const halves = (int16_t *)(void *)to;
        for (ptrdiff_t i = 0; i < 2 * n; ++i) {
            halves[i] = from[i];
        }
        return;
    }
    const int8_t *const rows[2] = {from, from + 1};
    oic_words_of_w(to, rows, n, step);
#endif
}

/* Whether oic_words_of_padded makes words so far apart. */
static inline int oic_words_pad(ptrdiff_t step)
{
#if defined(OIC_NEIGHBOURS)
    return step <= OIC_NEIGHBOURS;
#else
    return (void)step, 0;
#endif
}

/* to[r][i], `wide` words a row = a word of w of neighbours from first + i * step on of a row of so many numbers, 0 outside.  Rows
   lie `apart`.  Of the last row, as many as fill registers are written: up to OIC_WIDTH - 1 more. */
OIC_LOOP void oic_words_of_padded(uint32_t *to, ptrdiff_t wide, const int8_t *from, ptrdiff_t apart, ptrdiff_t rows,
                                  ptrdiff_t size, ptrdiff_t first, ptrdiff_t step)
{
#if defined(OIC_NEIGHBOURS)
    const ptrdiff_t last = (wide - 1) / OIC_WIDTH * OIC_WIDTH;
    for (ptrdiff_t k = 0; k <= last; k += OIC_WIDTH) {
        const ptrdiff_t i = k == 0 ? last : k - OIC_WIDTH; /* the last ones, which reach into the next row, before the first */
        const uint64_t inside = oic_neighbours_inside(size, first + i * step, (int)step);
        for (ptrdiff_t r = 0; r < rows; ++r) {
            oic_register_u32 words = oic_register_neighbours(from + r * apart, inside, first + i * step, (int)step);
            words ^= OIC_WORD_BIAS ? 0x80808080u : 0u;
            memcpy(to + r * wide + i, &words, sizeof words);
        }
    }
#else
    (void)to, (void)wide, (void)from, (void)apart, (void)rows, (void)size, (void)first, (void)step;
#endif
}

/* Zeros as words of w. */
static inline void oic_words_zero(uint32_t *to, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; ++i) {
        to[i] = OIC_WORD_BIAS ? 0x80808080u : 0u;
    }
}

/* sum[rows][16 * groups], rows ld apart: start[row] + the products of x[row][n], rows xm apart, with as many words at w + at[n];
   eight of sixteen words each lie at `place` from there, where that is not NULL. */
OIC_INLINE void oic_words_tile(uint32_t *sum, ptrdiff_t ld, int rows, int groups, const uint32_t *x, ptrdiff_t xm, const uint32_t *w,
                               const int32_t *at, ptrdiff_t n, const uint32_t *start, const int32_t *place, int halves)
{
    ptrdiff_t eight[2 * WORDS_GROUPS];
    OIC_UNROLLED
    for (int i = 0; i < 2 * groups; ++i) {
        eight[i] = place != NULL ? place[i] : OIC_EIGHT * i;
    }
    oic_register_u32 a[OIC_WORD_ROWS * WORDS_GROUPS * WORDS_PARTS];
    const int parts = groups * WORDS_PARTS;
    OIC_UNROLLED
    for (int i = 0; i < rows * parts; ++i) {
        a[i] = oic_register_of_u32(start[i / parts]);
    }
    const uint32_t *four[(OIC_WORD_ROWS + 3) / 4];
    OIC_UNROLLED
    for (int r = 0; r < rows; r += 4) {
        four[r / 4] = x + r * xm;
    }
    for (ptrdiff_t k = 0; k < n; ++k) {
        const uint32_t *const from = w + at[k];
        OIC_UNROLLED
        for (int r = 0; r < rows; r += 4) { /* or compilers have an address for every row, and too few registers */
            OIC_OPAQUE(four[r / 4]);
        }
        oic_register_u32 held[WORDS_GROUPS * WORDS_PARTS];
        OIC_UNROLLED
        for (int i = 0; i < parts; ++i) {
#if defined(OIC_EIGHTS)
            if (place != NULL) {
                held[i] = oic_register_eights_u32(from + eight[2 * i], from + eight[2 * i + 1]);
                continue;
            }
#endif
            memcpy(&held[i], from + eight[i * OIC_WIDTH / OIC_EIGHT] + i * OIC_WIDTH % OIC_EIGHT, sizeof held[i]);
        }
        OIC_UNROLLED
        for (int r = 0; r < rows; ++r) {
            const oic_register_u32 all = oic_register_of_u32(four[r / 4][r % 4 * xm]);
            OIC_UNROLLED
            for (int i = 0; i < parts; ++i) {
                oic_register_u32 *const to = &a[r * parts + i];
                *to = halves ? oic_register_dot_i16(*to, held[i], all) : WORDS_DOT(*to, held[i], all);
            }
        }
        OIC_UNROLLED
        for (int r = 0; r < rows; r += 4) {
            ++four[r / 4];
        }
    }
    OIC_UNROLLED
    for (int i = 0; i < rows * parts; ++i) {
        memcpy(sum + i / parts * ld + i % parts * OIC_WIDTH, &a[i], sizeof a[i]);
    }
}

/* The same for 1 to OIC_WORD_ROWS rows. */
OIC_INLINE void oic_words_rows(uint32_t *sum, ptrdiff_t ld, ptrdiff_t rows, int groups, const uint32_t *x, ptrdiff_t xm,
                               const uint32_t *w, const int32_t *at, ptrdiff_t n, const uint32_t *start, const int32_t *place,
                               int halves)
{
    switch (rows) {
#if OIC_WORD_ROWS >= 12
    case 12: oic_words_tile(sum, ld, 12, groups, x, xm, w, at, n, start, place, halves); return;
    case 11: oic_words_tile(sum, ld, 11, groups, x, xm, w, at, n, start, place, halves); return;
    case 10: oic_words_tile(sum, ld, 10, groups, x, xm, w, at, n, start, place, halves); return;
    case 9: oic_words_tile(sum, ld, 9, groups, x, xm, w, at, n, start, place, halves); return;
    case 8: oic_words_tile(sum, ld, 8, groups, x, xm, w, at, n, start, place, halves); return;
    case 7: oic_words_tile(sum, ld, 7, groups, x, xm, w, at, n, start, place, halves); return;
#endif
#if OIC_WORD_ROWS >= 6
    case 6: oic_words_tile(sum, ld, 6, groups, x, xm, w, at, n, start, place, halves); return;
    case 5: oic_words_tile(sum, ld, 5, groups, x, xm, w, at, n, start, place, halves); return;
    case 4: oic_words_tile(sum, ld, 4, groups, x, xm, w, at, n, start, place, halves); return;
#endif
#if OIC_WORD_ROWS >= 3
    case 3: oic_words_tile(sum, ld, 3, groups, x, xm, w, at, n, start, place, halves); return;
#endif
#if OIC_WORD_ROWS >= 2
    case 2: oic_words_tile(sum, ld, 2, groups, x, xm, w, at, n, start, place, halves); return;
#endif
    default: oic_words_tile(sum, ld, 1, groups, x, xm, w, at, n, start, place, halves); return;
    }
}

/* The same for `count` words of w, sixteen at a time or more.  Not inlined: within larger functions compilers run out of
   registers. */
OIC_LOOP void oic_words_sum(uint32_t *sum, ptrdiff_t ld, ptrdiff_t rows, const uint32_t *x, ptrdiff_t xm, const uint32_t *w,
                            const int32_t *at, ptrdiff_t n, const uint32_t *start, const int32_t *place, ptrdiff_t count)
{
    ptrdiff_t e = 0;
    for (; WORDS_GROUPS > 1 && e + OIC_LANES < count; e += WORDS_GROUPS * OIC_LANES) {
        oic_words_rows(sum + e, ld, rows, WORDS_GROUPS, x, xm, w, at, n, start, place + e / OIC_EIGHT, OIC_WORD == 2);
    }
    for (; e < count; e += OIC_LANES) {
        oic_words_rows(sum + e, ld, rows, 1, x, xm, w, at, n, start, place + e / OIC_EIGHT, OIC_WORD == 2);
    }
}

/* Sixteen of words of halves. */
OIC_LOOP void oic_halves_sum(uint32_t *sum, ptrdiff_t ld, ptrdiff_t rows, const uint32_t *x, ptrdiff_t xm, const uint32_t *w,
                             const int32_t *at, ptrdiff_t n, const uint32_t *start)
{
    oic_words_rows(sum, ld, rows, 1, x, xm, w, at, n, start, NULL, 1);
}

/* Numbers of words of w are 128 higher, if OIC_WORD_BIAS: by how much that makes a sum of products with n words of x higher. */
static inline uint32_t oic_words_higher(const uint32_t *x, ptrdiff_t n)
{
    uint32_t sum = 0;
#if OIC_WORD_BIAS
    oic_register_u32 higher = oic_register_of_u32(0u);
    ptrdiff_t k = 0;
    for (; k + OIC_WIDTH <= n; k += OIC_WIDTH) {
        oic_register_u32 words;
        memcpy(&words, x + k, sizeof words);
        higher = WORDS_DOT(higher, oic_register_of_u32(0x80808080u), words);
    }
    for (int i = 0; k > 0 && i < OIC_WIDTH; ++i) {
        sum += higher[i];
    }
    for (; k < n; ++k) {
        int8_t numbers[4];
        memcpy(numbers, x + k, sizeof numbers);
        sum += 128u * (uint32_t)(numbers[0] + numbers[1] + numbers[2] + numbers[3]);
    }
#else
    (void)x, (void)n;
#endif
    return sum;
}

#if !defined(OIC_NEAR)
#define OIC_NEAR 0
#endif

/* Whether oic_words_near computes sums of words that lie among so many numbers. */
static inline int oic_words_are_near(ptrdiff_t reach)
{
    return OIC_NEAR > 0 && reach <= OIC_NEAR;
}

/* sum[count], of at most four registers: `start` and the products of n words of the numbers of x with words of w of a row of so
   many numbers that is 0 outside.  A word k is of the numbers `first` + places[k][4], a byte a number. */
OIC_INLINE void oic_words_near(int count, const int8_t *x, ptrdiff_t n, const uint32_t *places, const int8_t *row, ptrdiff_t size,
                               ptrdiff_t first, uint32_t start, oic_register_u32 *sum)
{
    oic_register_u32 higher = oic_register_of_u32(0u);
    OIC_UNROLLED
    for (int i = 0; i < count; ++i) {
        sum[i] = oic_register_of_u32(start);
    }
#if OIC_NEAR > 0
    const oic_register_row numbers = oic_register_load_row(row, size, first);
    for (ptrdiff_t k = 0; k < n; ++k) {
        uint32_t word;
        memcpy(&word, x + k * OIC_WORD, sizeof word);
        const oic_register_u32 all = oic_register_of_u32(word);
        higher = WORDS_DOT(higher, oic_register_of_u32(0x80808080u), all);
        OIC_UNROLLED
        for (int i = 0; i < count; ++i) {
            oic_register_u32 four;
            memcpy(&four, places + (4 * k + i) * OIC_WIDTH, sizeof four);
            sum[i] = WORDS_DOT(sum[i], oic_register_near(numbers, four), all);
        }
    }
#else
    (void)x, (void)n, (void)places, (void)row, (void)size, (void)first;
#endif
    OIC_UNROLLED
    for (int i = 0; i < count; ++i) {
        sum[i] -= higher;
    }
}

/* What sums of rows of words of w are computed of.
   x, at, n  words that every sum is of, and where the words of w lie that they meet
   apart     words of a row that lie before those that it has in common with the next row, at most n
   below     between rows of w
   start     of sums */
typedef struct {
    const uint32_t *x;
    const int32_t *at;
    ptrdiff_t n, apart, below;
    uint32_t start;
} oic_words_lines;

/* sum += the products of a word with registers of words, which lie next to each other, the last one at `last`. */
OIC_INLINE void oic_words_tap(int count, uint32_t x, const uint32_t *w, ptrdiff_t last, oic_register_u32 *sum)
{
    const oic_register_u32 all = oic_register_of_u32(x);
    OIC_UNROLLED
    for (int i = 0; i < count; ++i) {
        oic_register_u32 held;
        memcpy(&held, w + (i < count - 1 ? i * OIC_WIDTH : last), sizeof held);
        sum[i] = WORDS_DOT(sum[i], held, all);
    }
}

/* `count` registers of sums of one row, or of two, ld apart, the last one `last` behind the first.  What the second row meets at a
   word is what the first meets `apart` words later: it is loaded once for both. */
OIC_INLINE void oic_words_registers(int rows, int count, const oic_words_lines *l, const uint32_t *w, ptrdiff_t last, uint32_t *sum,
                                    ptrdiff_t ld)
{
    oic_register_u32 a[2][8];
    const uint32_t *const x = l->x;
    const int32_t *const at = l->at;
    const ptrdiff_t n = l->n, apart = rows == 2 ? l->apart : 0;
    OIC_UNROLLED
    for (int i = 0; i < count; ++i) {
        a[0][i] = a[1][i] = oic_register_of_u32(l->start);
    }
    for (ptrdiff_t k = 0; k < apart; ++k) {
        oic_words_tap(count, x[k], w + at[k], last, a[0]);
    }
    for (ptrdiff_t k = apart; k < n; ++k) {
        const uint32_t *const from = w + at[k];
        oic_words_tap(count, x[k], from, last, a[0]);
        if (rows == 2) {
            oic_words_tap(count, x[k - apart], from, last, a[1]);
        }
    }
    for (ptrdiff_t k = n - apart; k < n; ++k) {
        oic_words_tap(count, x[k], w + l->below + at[k], last, a[1]);
    }
    OIC_UNROLLED
    for (int r = 0; r < rows; ++r) {
        OIC_UNROLLED
        for (int i = 0; i < count; ++i) {
            memcpy(sum + r * ld + (i < count - 1 ? i * OIC_WIDTH : last), &a[r][i], sizeof a[r][i]);
        }
    }
}

/* sum[n] of one row, of at most 8 registers; up to OIC_WIDTH - 1 more are written. */
static inline void oic_words_row(const oic_words_lines *l, const uint32_t *w, ptrdiff_t n, uint32_t *sum)
{
    switch ((n - 1) / OIC_WIDTH) {
    case 7: oic_words_registers(1, 8, l, w, 7 * OIC_WIDTH, sum, 0); return;
    case 6: oic_words_registers(1, 7, l, w, 6 * OIC_WIDTH, sum, 0); return;
    case 5: oic_words_registers(1, 6, l, w, 5 * OIC_WIDTH, sum, 0); return;
    case 4: oic_words_registers(1, 5, l, w, 4 * OIC_WIDTH, sum, 0); return;
    case 3: oic_words_registers(1, 4, l, w, 3 * OIC_WIDTH, sum, 0); return;
    case 2: oic_words_registers(1, 3, l, w, 2 * OIC_WIDTH, sum, 0); return;
    case 1: oic_words_registers(1, 2, l, w, 1 * OIC_WIDTH, sum, 0); return;
    default: oic_words_registers(1, 1, l, w, 0 * OIC_WIDTH, sum, 0); return;
    }
}

/* sum[2][n]; up to OIC_WIDTH - 1 more are written.  The last ones of a row may be computed twice. */
static inline void oic_words_two_rows(const oic_words_lines *l, const uint32_t *w, ptrdiff_t n, uint32_t *sum)
{
    enum { MOST = 4 * OIC_WIDTH };
    for (ptrdiff_t e = 0; e < n; e += MOST) {
        const ptrdiff_t left = n - e < MOST ? n - e : MOST, last = n < OIC_WIDTH ? 0 : left - OIC_WIDTH;
        switch ((last + 2 * OIC_WIDTH - 1) / OIC_WIDTH) {
        case 4: oic_words_registers(2, 4, l, w + e, last, sum + e, n); break;
        case 3: oic_words_registers(2, 3, l, w + e, last, sum + e, n); break;
        case 2: oic_words_registers(2, 2, l, w + e, last, sum + e, n); break;
        default: oic_words_registers(2, 1, l, w + e, last, sum + e, n); break;
        }
    }
}

#undef WORDS_DOT
#undef WORDS_GROUPS
#undef WORDS_PARTS

#endif
