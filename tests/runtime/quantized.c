/* Products with weights of 8 and 4 bits, and products and convolutions of bytes, of random numbers and of the largest: prints a hash of the results of each shape. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OIC_QUANTIZED_NEAR 16384 /* some of the shapes have more */

#define OIC_X f32
#define OIC_W f32
#define OIC_B f32
#include "kernels/linear_q8.h"

#define OIC_X f32
#define OIC_W f32
#define OIC_B f32
#include "kernels/linear_q4.h"

#define OIC_X i8
#define OIC_W i32
#define OIC_B i32
#include "kernels/conv_planes_int.h"

#define OIC_X i8
#define OIC_W i32
#define OIC_B i32
#include "kernels/conv_winograd.h"

#define OIC_X i8
#define OIC_W i32
#include "kernels/matmul_words.h"

static void say(const char *name, uint32_t high, uint32_t low);

#define MOST_ROWS 19
#define MOST_K 300
#define MOST_N 288

static float x[MOST_ROWS * MOST_K], y[MOST_ROWS * MOST_N], b[MOST_N];
static uint8_t w[MOST_N * 320 / 32 * 34];
static int32_t work[MOST_ROWS * 10 * OIC_QUANTIZED_BYTES / 4];
static uint32_t state;

static uint32_t drawn(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

/* Weights, scales and x: `kind` 0 random, 1 the largest, 2 of all exponents. */
static void make(int bits, ptrdiff_t K, ptrdiff_t N, int kind)
{
    const ptrdiff_t groups = oic_groups(K), bytes = oic_panels(N) * 16 * groups * 4 * bits;
    for (ptrdiff_t i = 0; i < bytes; ++i) {
        const uint32_t v = drawn();
        w[i] = kind != 1 ? (uint8_t)v : bits == 8 ? (v & 1u ? 0x80u : 0x7fu) : (v & 1u ? 0x0fu : 0xf0u);
    }
    for (ptrdiff_t i = 0; i < oic_panels(N) * 16 * groups; ++i) {
        const uint32_t scale = 0x1800u + (drawn() & 0x0fffu) + (drawn() & 1u ? 0x8000u : 0u);
        w[bytes + 2 * i] = (uint8_t)scale;
        w[bytes + 2 * i + 1] = (uint8_t)(scale >> 8);
    }
    for (ptrdiff_t i = 0; i < MOST_ROWS * K; ++i) {
        x[i] = ((float)drawn() - 8388608.0f) * (kind == 2 ? oic_from_bits_f32((drawn() % 200u) << 23) : 0x1p-20f);
        x[i] = kind == 1 ? (drawn() & 1u ? 1.0f : -1.0f) : x[i];
    }
    for (ptrdiff_t i = 0; i < N; ++i) {
        b[i] = (float)drawn() * 0x1p-24f;
    }
}

static void product(const char *name, int bits, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N, int kind)
{
    uint64_t hash = 0xcbf29ce484222325u;
    make(bits, K, N, kind);
    if (bits == 8) {
        oic_linear_q8_f32_f32_f32(&(oic_linear_q8_f32_f32_f32_args){
            .x = x, .w = w, .b = b, .y = y, .work = work, .M = M, .K = K, .N = N, .ldx = K, .room = MOST_ROWS});
    } else {
        oic_linear_q4_f32_f32_f32(&(oic_linear_q4_f32_f32_f32_args){
            .x = x, .w = w, .b = b, .y = y, .work = work, .M = M, .K = K, .N = N, .ldx = K, .room = MOST_ROWS});
    }
    for (ptrdiff_t i = 0; i < M * N; ++i) {
        hash = (hash ^ (y[i] == y[i] ? oic_bits_f32(y[i]) : 0x7fc00000u)) * 0x100000001b3u;
    }
    say(name, (uint32_t)(hash >> 32), (uint32_t)hash);
}

static void say_sums(const char *name, const int32_t *to, size_t n)
{
    uint32_t high = 0, low = 0;
    for (size_t i = 0; i < n; ++i) {
        low = low * 31u + (uint32_t)to[i];
        high = high * 37u + (uint32_t)to[i];
    }
    say(name, high, low);
}

/* Of so many channels, 5 outputs, 3 x 2 taps and 4 x 20 elements, in blocks of 2 x 19 positions; words may go `along` rows. */
static void convolution(const char *name, ptrdiff_t channels, int kind, int along)
{
    static int8_t from[8 * 4 * 20], filters[5 * 8 * 12];
    static int32_t to[5 * 4 * 21], room[2048];
    for (size_t i = 0; i < sizeof from; ++i) {
        from[i] = (int8_t)(kind != 1 ? (int)(drawn() & 255u) - 128 : drawn() & 1u ? 127 : -128);
    }
    for (size_t i = 0; i < sizeof filters; ++i) {
        const size_t channel = i % 4 + i / 24 % (size_t)((channels + 3) / 4) * 4;
        const int filled = along ? i % 4 >= 2 : channel >= (size_t)channels; /* fours, with zeros */
        filters[i] = (int8_t)(filled ? 0 : kind != 1 ? (int)(drawn() & 255u) - 128 : -128);
    }
    const oic_conv_planes_i8_i32_i32_args a = {
        .x = from, .w = filters, .y = to, .work = room, .batch = 1, .channels = channels, .height = 4, .width = 20, .outputs = 5,
        .taps_y = 3, .taps_x = 2, .out_height = 4, .out_width = 21, .stride_y = 1, .stride_x = 1, .padding_y = 1, .padding_x = 1,
        .dilation_y = 1, .dilation_x = 1, .groups = 1, .rows = 2, .columns = 19, .room = sizeof room, .along = along};
    oic_conv_planes_i8_i32_i32(&a);
    say_sums(name, to, sizeof to / sizeof *to);
}

/* Of so many channels, 5 outputs, 3 x 2 taps, a stride of 2 x 2 and 4 x 20 elements, in blocks of 2 x 16 positions of each class. */
static void transposed(const char *name, ptrdiff_t channels, int kind)
{
    static int8_t from[8 * 4 * 20], filters[5 * 8 * 6];
    static int32_t to[5 * 7 * 38], room[2048];
    for (size_t i = 0; i < sizeof from; ++i) {
        from[i] = (int8_t)(kind != 1 ? (int)(drawn() & 255u) - 128 : drawn() & 1u ? 127 : -128);
    }
    const size_t fours = (size_t)((channels + 3) / 4), each = fours * 24;
    const size_t taps[] = {1, 1, 2, 2}; /* of the classes */
    for (size_t o = 0; o < 5; ++o) {
        size_t i = o * each;
        for (size_t f = 0; f < 4; ++f) {
            for (size_t k = 0; k < fours * taps[f] * 4; ++k, ++i) {
                const int filled = k / (taps[f] * 4) * 4 + k % 4 >= (size_t)channels;
                filters[i] = (int8_t)(filled ? 0 : kind != 1 ? (int)(drawn() & 255u) - 128 : -128);
            }
        }
    }
    const oic_conv_transpose_planes_i8_i32_i32_args a = {
        .x = from, .w = filters, .y = to, .work = room, .batch = 1, .channels = channels, .height = 4, .width = 20, .outputs = 5,
        .taps_y = 3, .taps_x = 2, .out_height = 7, .out_width = 38, .stride_y = 2, .stride_x = 2, .padding_y = 1, .padding_x = 1,
        .dilation_y = 1, .dilation_x = 1, .groups = 1, .rows = 2, .columns = 16, .room = sizeof room};
    oic_conv_transpose_planes_i8_i32_i32(&a);
    say_sums(name, to, sizeof to / sizeof *to);
}

/* Of 6 channels, 14 outputs, 3 x 3 taps and 7 x 21 elements, in blocks of 2 x 6 tiles. */
static void tiles(const char *name, int kind)
{
    static int8_t from[6 * 7 * 21], filters[14 * 8 * 9];
    static int32_t to[14 * 7 * 21], room[4096];
    for (size_t i = 0; i < sizeof from; ++i) {
        from[i] = (int8_t)(kind != 1 ? (int)(drawn() & 255u) - 128 : drawn() & 1u ? 127 : -128);
    }
    for (size_t i = 0; i < sizeof filters; ++i) { /* fours, with zeros */
        filters[i] = (int8_t)(i % 4 >= 2 && i / 36 % 2 == 1 ? 0 : kind != 1 ? (int)(drawn() & 255u) - 128 : -128);
    }
    const oic_conv_winograd_i8_i32_i32_args a = {
        .x = from, .w = filters, .y = to, .work = room, .batch = 1, .channels = 6, .height = 7, .width = 21, .outputs = 14,
        .taps_y = 3, .out_height = 7, .out_width = 21, .padding_y = 1, .padding_x = 1, .dilation_y = 1, .dilation_x = 1, .groups = 1, .rows = 2, .columns = 6,
        .room = sizeof room};
    oic_conv_winograd_i8_i32_i32(&a);
    say_sums(name, to, sizeof to / sizeof *to);
}

/* Of 17 x 13 and 13 x 37 bytes, of which both may be transposed, in blocks of 16 columns. */
static void columns(const char *name, int kind, int turned)
{
    static int8_t from[17 * 13], with[13 * 37];
    static int32_t to[17 * 37], room[7 * (16 + 13)];
    for (size_t i = 0; i < sizeof from; ++i) {
        from[i] = (int8_t)(kind != 1 ? (int)(drawn() & 255u) - 128 : -128);
    }
    for (size_t i = 0; i < sizeof with; ++i) {
        with[i] = (int8_t)(kind != 1 ? (int)(drawn() & 255u) - 128 : drawn() & 1u ? 127 : -128);
    }
    oic_matmul_words_i8_i32(&(oic_matmul_words_i8_i32_args){
        .a = from, .b = with, .y = to, .work = room, .M = 17, .K = 13, .N = 37, .am = turned ? 1 : 13, .ak = turned ? 17 : 1, .bk = turned ? 1 : 37,
        .bn = turned ? 13 : 1, .room = sizeof room});
    say_sums(name, to, sizeof to / sizeof *to);
}

static void products(void)
{
    state = 1;
    columns("columns of bytes", 0, 0);
    columns("columns of largest bytes", 1, 0);
    columns("columns of bytes, transposed", 0, 1);
    tiles("tiles of bytes", 0);
    tiles("tiles of largest bytes", 1);
    convolution("bytes", 7, 0, 0);
    convolution("some bytes", 5, 0, 0);
    convolution("largest bytes", 8, 1, 0);
    convolution("bytes along rows", 3, 0, 1);
    convolution("bytes of a channel along rows", 1, 0, 1);
    transposed("transposed bytes", 7, 0);
    transposed("transposed largest bytes", 8, 1);
    product("q8 row", 8, 1, 300, 288, 0);
    product("q8 rows", 8, 3, 64, 270, 0);
    product("q8 many rows", 8, 19, 300, 100, 0);
    product("q8 four rows more", 8, 12, 70, 48, 0);
    product("q8 five rows more", 8, 13, 70, 48, 0);
    product("q8 six rows more", 8, 14, 70, 48, 0);
    product("q8 largest", 8, 10, 96, 64, 1);
    product("q8 all exponents", 8, 7, 256, 64, 2);
    product("q4 row", 4, 1, 300, 288, 0);
    product("q4 rows", 4, 3, 64, 270, 0);
    product("q4 many rows", 4, 19, 300, 100, 0);
    product("q4 four rows more", 4, 12, 70, 48, 0);
    product("q4 five rows more", 4, 13, 70, 48, 0);
    product("q4 six rows more", 4, 14, 70, 48, 0);
    product("q4 largest", 4, 10, 96, 64, 1);
    product("q4 all exponents", 4, 7, 256, 64, 2);
}

#if defined(BOARD_STACK)
#include "board.h"

static void say(const char *name, uint32_t high, uint32_t low) { board_say(name, high, low); }

static void run(void) { products(); }
#elif defined(__wasm__)
#include "wasm.h"

static void say(const char *name, uint32_t high, uint32_t low) { wasm_say(name, high, low); }

int run(void)
{
    products();
    return 0;
}
#else
#include <stdio.h>

static void say(const char *name, uint32_t high, uint32_t low)
{
    printf("%s: %08x%08x\n", name, (unsigned)high, (unsigned)low);
}

int main(void)
{
    products();
    return 0;
}
#endif
