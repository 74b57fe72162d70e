/* Products in pairs, and rows of their tables: every bit is that of plain loops over the machine's instruction, whatever the sizes, the rows computed along
   and the division; and is within the bound of the operators.  Prints what differs, and how many results there were. */
#define OIC_FUSED 2
#include <stddef.h>
#include <stdint.h>
#include <string.h>


#define OIC_X f32
#define OIC_W bf16
#define OIC_B f32
#include "kernels/linear_pairs.h"

#define OIC_X bf16
#define OIC_W bf16
#define OIC_B bf16
#include "kernels/linear_pairs.h"

#define OIC_X bf16
#define OIC_W f32
#define OIC_B i64
#include "kernels/gather_pairs.h"

#define OIC_X bf16
#define OIC_W bf16
#define OIC_B i32
#include "kernels/gather_pairs.h"

#include <math.h>
#include <stdio.h>

#define MOST_M 60
#define MOST_K 1800
#define MOST_N 1010

static float x[MOST_M * (MOST_K + 3)], b[MOST_N], y[MOST_M * MOST_N];
static uint16_t narrow[MOST_M * (MOST_K + 3)], w[(MOST_N + 15) * (MOST_K + 1)], short_b[MOST_N], short_y[MOST_M * MOST_N];
static uint16_t work[MOST_M * (MOST_K + 1)];
static uint32_t state = 1;
static int results, wrong;

static float drawn(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)(int32_t)state * 0x1p-31f;
}

/* Element k of column j of w. */
static ptrdiff_t at(ptrdiff_t j, ptrdiff_t k, ptrdiff_t K)
{
    return (j / 16 * (K + K % 2) + k / 2 * 2) * 16 + j % 16 * 2 + k % 2;
}

static float one(float sum, const uint16_t *p, const uint16_t *q, int both)
{
    const uint32_t xs = p[0] | (uint32_t)(both ? p[1] : 0u) << 16, ws = q[0] | (uint32_t)(both ? q[1] : 0u) << 16;
    const oic_register_f32 v = oic_register_pairs(oic_register_of_f32(sum), oic_register_of_u32(ws), oic_register_of_u32(xs));
    return v[0];
}

static float plain(const uint16_t *row, ptrdiff_t j, ptrdiff_t K)
{
    float sum = 0.0f;
    for (ptrdiff_t k0 = 0; k0 < K; k0 += OIC_CHUNK) {
        float chain = 0.0f;
        for (ptrdiff_t k = k0; k < K && k < k0 + OIC_CHUNK; k += 2) {
            chain = one(chain, row + k, w + at(j, k, K), k + 1 < K);
        }
        sum += chain;
    }
    return sum;
}

static void compare(const char *what, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N, ptrdiff_t i, ptrdiff_t j, float found, float expected)
{
    const int same = oic_bits_f32(found) == oic_bits_f32(expected) || (found != found && expected != expected);
    ++results;
    if (!same && ++wrong < 10) {
        printf("%s %d %d %d at %d %d: %a, not %a\n", what, (int)M, (int)K, (int)N, (int)i, (int)j, (double)found, (double)expected);
    }
}

static void product(ptrdiff_t M, ptrdiff_t K, ptrdiff_t N, ptrdiff_t room, ptrdiff_t share, int special)
{
    const ptrdiff_t ld = K + 3, streams = (N + 63) / 64;
    for (ptrdiff_t i = 0; i < M * ld; ++i) {
        x[i] = drawn() * (special && i % 7 == 0 ? 0x1p-130f : special && i % 11 == 0 ? 0x1p-100f : 1.0f);
        narrow[i] = oic_f32_to_bf16(x[i]);
    }
    memset(w, 0, sizeof w);
    for (ptrdiff_t i = 0; i < (N + 15) / 16 * 16 * K; ++i) {
        const float v = special && i % 5 == 0 ? drawn() * 0x1p-30f : special && i % 997 == 0 ? INFINITY : drawn();
        w[at(i / K, i % K, K)] = oic_f32_to_bf16(v);
    }
    for (ptrdiff_t j = 0; j < N; ++j) {
        b[j] = drawn();
        short_b[j] = oic_f32_to_bf16(b[j]);
    }
    const ptrdiff_t shape[1] = {2 - M % 2}, strides[1] = {M / 2 * ld};
    const oic_linear_pairs_f32_bf16_f32_args a = {.x = x, .w = w, .b = special ? NULL : b, .y = y, .work = work, .rank = 1,
        .shape = shape, .xs = strides, .M = M / shape[0], .K = K, .N = N, .ldx = ld, .room = room};
    const oic_linear_pairs_bf16_bf16_bf16_args c = {.x = narrow, .w = w, .b = short_b, .y = short_y, .work = work,
        .M = M, .K = K, .N = N, .ldx = ld, .room = MOST_M};
    oic_linear_pairs_f32_bf16_f32(&a);
    oic_linear_pairs_prepare_bf16_bf16_bf16(&c, 0, oic_linear_pairs_rows_bf16_bf16_bf16(&c), 0);
    for (ptrdiff_t end = streams; end > 0; end -= share) {
        oic_linear_pairs_part_bf16_bf16_bf16(&c, end < share ? 0 : end - share, end, 1);
    }
    for (ptrdiff_t i = 0; i < M; ++i) {
        for (ptrdiff_t j = 0; j < N; ++j) {
            const float sum = plain(narrow + i * ld, j, K), found = y[i * N + j], expected = special ? sum : sum + b[j];
            double exact = special ? 0.0 : (double)b[j], size = fabs(exact);
            compare("f32", M, K, N, i, j, found, expected);
            compare("bf16", M, K, N, i, j, oic_bf16_to_f32(short_y[i * N + j]),
                    oic_bf16_to_f32(oic_f32_to_bf16(sum + oic_bf16_to_f32(short_b[j]))));
            for (ptrdiff_t k = 0; k < K; ++k) {
                const double term = (double)x[i * ld + k] * (double)oic_bf16_to_f32(w[at(j, k, K)]);
                exact += term;
                size += fabs(term);
            }
            if (fabs(exact - (double)found) > size * (0x1p-8 + 2.0 * (double)(K + 2) * 0x1p-24) + 0x1p-110) {
                printf("%d %d %d: %a is too far from %a\n", (int)M, (int)K, (int)N, (double)found, exact);
            }
        }
    }
}

/* Rows of a table, the last and the first among them, of numbers of all kinds: subnormal, infinite, NaN. */
static void rows_of(ptrdiff_t K, ptrdiff_t N)
{
    enum { ROWS = 5 };
    const int64_t ids[ROWS] = {N - 1, 0, N / 2, N / 3, N - 1};
    const int32_t short_ids[ROWS] = {(int32_t)N - 1, 0, (int32_t)(N / 2), (int32_t)(N / 3), (int32_t)N - 1};
    const oic_gather_pairs_bf16_f32_i64_args a = {.table = w, .ids = ids, .y = y, .inner = K, .n = ROWS};
    const oic_gather_pairs_bf16_bf16_i32_args c = {.table = w, .ids = short_ids, .y = short_y, .inner = K, .n = ROWS};
    for (ptrdiff_t i = 0; i < (N + 15) / 16 * 16 * (K + K % 2); ++i) {
        w[i] = (uint16_t)(i * 40503 % 65536);
    }
    y[ROWS * K] = 7.0f;
    short_y[ROWS * K] = 7;
    oic_gather_pairs_bf16_f32_i64(&a);
    oic_gather_pairs_bf16_bf16_i32(&c);
    for (ptrdiff_t i = 0; i < ROWS; ++i) {
        for (ptrdiff_t k = 0; k < K; ++k) {
            const float expected = oic_from_bits_f32((uint32_t)w[at(ids[i], k, K)] << 16);
            compare("rows, f32", ROWS, K, N, i, k, y[i * K + k], expected);
            compare("rows, bf16", ROWS, K, N, i, k, oic_bf16_to_f32(short_y[i * K + k]), expected);
        }
    }
    compare("behind rows", ROWS, K, N, ROWS, 0, y[ROWS * K], 7.0f);
    compare("behind rows", ROWS, K, N, ROWS, 0, (float)short_y[ROWS * K], 7.0f);
}

int main(void)
{
    static const ptrdiff_t sizes[][3] = {
        {2, 1, 1}, {2, 300, 210}, {2, 0, 20}, {2, 257, 128}, {4, 31, 65}, {6, 513, 48}, {6, 40, 130}, {8, 70, 50}, {10, 2, 17},
        {12, 256, 33}, {14, 33, 16}, {16, 258, 100}, {18, 19, 49}, {26, 255, 70}, {60, 64, 80},
        {18, 1799, 50}, {20, 600, 50}, /* a tile goes through several chunks, and through more than follow each other */
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        for (ptrdiff_t room = 1; room <= MOST_M; room += room < 4 ? 1 : MOST_M - 4) {
            product(sizes[i][0], sizes[i][1], sizes[i][2], room, room, 0);
        }
    }
    for (ptrdiff_t rows = 1; rows <= (OIC_PAIRS_BESIDE ? 8 : 1); ++rows) { /* of a w that caches may not hold: 62 to 64 panels */
        product(rows, 600 - rows % 2, 1010 - rows % 3 * 16, rows, 3, rows == 7);
    }
    product(18, 300, 70, 9, 1, 1);
    for (ptrdiff_t K = 0; K < 40; K += 1 + K / 5) {
        rows_of(K, 1);
        rows_of(K, 47);
    }
    rows_of(MOST_K - 1, MOST_N);
    printf("%d results, %d wrong\n", results, wrong);
    return wrong != 0;
}
