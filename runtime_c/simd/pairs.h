/* Sums of products of bf16 in pairs, by the instruction that a machine has for them (the class `native`).

   A step is sum + x[2k] * w[2k] + x[2k + 1] * w[2k + 1], rounded and ordered inside as the machine does, which takes subnormal
   numbers for zeros.  Steps of a chain follow each other, k ascending; a last element without a neighbour has zeros beside it.
   So each sum has the same bits whatever is computed along with it, on one machine; none is defined in plain C. */
#ifndef OIC_PAIRS_H
#define OIC_PAIRS_H

#include "../version.h"

#include "lanes.h"
#include "tiles.h"

#if OIC_FUSED != 2
#error "oic: products in pairs are of the class native"
#endif

/* sum + pairs of w * pairs of x. */
static inline oic_register_f32 oic_register_pairs(oic_register_f32 sum, oic_register_u32 w, oic_register_u32 x)
{
#if defined(__AVX512BF16__)
    return (oic_register_f32)_mm512_dpbf16_ps((__m512)sum, (__m512bh)w, (__m512bh)x);
#else
    return (oic_register_f32)vbfdotq_f32((float32x4_t)sum, (bfloat16x8_t)w, (bfloat16x8_t)x);
#endif
}

enum {
    oic_pairs_room = OIC_TILE_REGISTERS / OIC_PARTS_OF_LANES, /* panels of sixteen sums in registers */
    oic_pairs_rows = oic_pairs_room < 8 ? oic_pairs_room : 8, /* of x, at most */
    oic_pairs_side = oic_pairs_room < 8 ? 1 : 3               /* panels beside four rows and more */
};

/* Rows of x, xm numbers apart, from some element on; w likewise, of panels wg apart: sixteen pairs a step, n steps.  What is read
   later lies at the address next, `step` bytes for each step, of panels `apart`; a few addresses may lie beyond. */
typedef struct {
    const uint16_t *x, *w;
    ptrdiff_t xm, wg, n;
    uintptr_t next, step, apart;
} oic_pairs;

/* Few rows read two panels far from each other, and ask for both where processors want to be asked.  Zen 4: a step of one row takes
   0.85 of what eight panels side by side take, of four rows 0.77; where it is asked too, as long as those. */
#define OIC_PAIRS_BESIDE (OIC_HOSTED && OIC_WIDTH == 16)

/* Elements of K of a tile that follow each other, in whole chunks: of all rows before the next.  Where that is one chunk, its w stays
   in L1; where it is more, sums do, a tile of them.  Zen 4: products of 32 rows and more take 0.99 of the time. */
#define OIC_PAIRS_SPAN (OIC_TILE_AS_IS ? 6 * OIC_CHUNK : OIC_CHUNK)

/* The most panels of a tile of so many rows. */
static inline ptrdiff_t oic_pairs_panels(ptrdiff_t rows)
{
    const ptrdiff_t panels = rows > 3 ? oic_pairs_side : oic_pairs_room / rows;
    return panels < 8 ? panels : 8;
}

/* A step of all chains of a tile. */
OIC_INLINE void oic_pairs_step(oic_register_f32 *a, int rows, int registers, const uint16_t *x, ptrdiff_t xm,
                               const oic_register_u32 *w)
{
    OIC_UNROLLED
    for (int r = 0; r < rows; ++r) {
        uint32_t pair;
        memcpy(&pair, x + r * xm, sizeof pair);
        const oic_register_u32 all = oic_register_of_u32(pair);
        OIC_UNROLLED
        for (int i = 0; i < registers; ++i) {
            a[r * registers + i] = oic_register_pairs(a[r * registers + i], w[i], all);
        }
    }
}

/* sum[r][16 p + l], rows ld apart: the chain of these rows and panels is what it begins with, or is added to it. */
OIC_INLINE void oic_pairs_add_up(const oic_pairs *t, int rows, int panels, int ahead, float *restrict sum, ptrdiff_t ld, int how)
{
    const int registers = panels * OIC_PARTS_OF_LANES;
    oic_register_f32 a[OIC_TILE_REGISTERS];
    oic_register_u32 held[8 * OIC_PARTS_OF_LANES];
    uintptr_t next = t->next;
    OIC_UNROLLED
    for (int i = 0; i < rows * registers; ++i) {
        a[i] = (oic_register_f32){0};
    }
    for (ptrdiff_t k = 0; k < t->n; ++k, next += t->step) {
        const uint16_t *const w = t->w + 2 * k * OIC_LANES;
        OIC_UNROLLED
        for (int p = 0; ahead && p < panels; ++p) {
            OIC_TILE_AHEAD_NEAR((const void *)(next + (uintptr_t)p * t->apart));
        }
        if (OIC_ASKED_NEAR && panels == 2) {
            OIC_TILE_AHEAD_NEAR((const void *)((uintptr_t)w + 4096));
            OIC_TILE_AHEAD_NEAR((const void *)((uintptr_t)(w + t->wg) + 4096));
        }
        OIC_UNROLLED
        for (int i = 0; i < registers; ++i) {
            memcpy(&held[i], w + i / OIC_PARTS_OF_LANES * t->wg + 2 * (i % OIC_PARTS_OF_LANES * OIC_WIDTH), sizeof held[i]);
        }
        oic_pairs_step(a, rows, registers, t->x + 2 * k, t->xm, held);
    }
    OIC_UNROLLED
    for (int i = 0; i < rows * registers; ++i) {
        float *const to = sum + i / registers * ld + i % registers * OIC_WIDTH;
        oic_register_store_f32(to, (how == OIC_TILE_ADD ? oic_register_load_f32(to) : (oic_register_f32){0}) + a[i]);
    }
}

/* The same for 1 to oic_pairs_rows rows; panels are 1, or oic_pairs_panels of these rows, or, OIC_PAIRS_BESIDE, two. */
OIC_LOOP void oic_pairs_sum(const oic_pairs *t, ptrdiff_t rows, ptrdiff_t panels, float *restrict sum, ptrdiff_t ld, int how)
{
    switch (16 * panels + rows) {
#if OIC_WIDTH == 16
    case 16 * 8 + 1: oic_pairs_add_up(t, 1, 8, 0, sum, ld, how); return;
    case 16 * 2 + 1: oic_pairs_add_up(t, 1, 2, 0, sum, ld, how); return;
    case 16 * 2 + 2: oic_pairs_add_up(t, 2, 2, 0, sum, ld, how); return;
    case 16 * 2 + 3: oic_pairs_add_up(t, 3, 2, 0, sum, ld, how); return;
    case 16 * 2 + 4: oic_pairs_add_up(t, 4, 2, 0, sum, ld, how); return;
    case 16 * 2 + 5: oic_pairs_add_up(t, 5, 2, 0, sum, ld, how); return;
    case 16 * 2 + 6: oic_pairs_add_up(t, 6, 2, 0, sum, ld, how); return;
    case 16 * 2 + 7: oic_pairs_add_up(t, 7, 2, 0, sum, ld, how); return;
    case 16 * 2 + 8: oic_pairs_add_up(t, 8, 2, 0, sum, ld, how); return;
    case 16 * 8 + 2: oic_pairs_add_up(t, 2, 8, 0, sum, ld, how); return;
    case 16 * 8 + 3: oic_pairs_add_up(t, 3, 8, 0, sum, ld, how); return;
    case 16 * 3 + 4: oic_pairs_add_up(t, 4, 3, 1, sum, ld, how); return;
    case 16 * 3 + 5: oic_pairs_add_up(t, 5, 3, 1, sum, ld, how); return;
    case 16 * 3 + 6: oic_pairs_add_up(t, 6, 3, 1, sum, ld, how); return;
    case 16 * 3 + 7: oic_pairs_add_up(t, 7, 3, 1, sum, ld, how); return;
    case 16 * 3 + 8: oic_pairs_add_up(t, 8, 3, 1, sum, ld, how); return;
    case 16 * 1 + 8: oic_pairs_add_up(t, 8, 1, 1, sum, ld, how); return;
    case 16 * 1 + 7: oic_pairs_add_up(t, 7, 1, 1, sum, ld, how); return;
#else
    case 16 * 6 + 1: oic_pairs_add_up(t, 1, 6, 0, sum, ld, how); return;
    case 16 * 3 + 2: oic_pairs_add_up(t, 2, 3, 0, sum, ld, how); return;
    case 16 * 2 + 3: oic_pairs_add_up(t, 3, 2, 0, sum, ld, how); return;
#endif
    case 16 * 1 + 6: oic_pairs_add_up(t, 6, 1, 1, sum, ld, how); return;
    case 16 * 1 + 5: oic_pairs_add_up(t, 5, 1, 1, sum, ld, how); return;
    case 16 * 1 + 4: oic_pairs_add_up(t, 4, 1, 1, sum, ld, how); return;
    case 16 * 1 + 3: oic_pairs_add_up(t, 3, 1, 1, sum, ld, how); return;
    case 16 * 1 + 2: oic_pairs_add_up(t, 2, 1, 0, sum, ld, how); return;
    default: oic_pairs_add_up(t, 1, 1, 0, sum, ld, how); return;
    }
}

#endif
