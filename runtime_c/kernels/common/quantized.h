/* What products with quantised weights have in common: x in groups of 8 bits, and sums over groups. */
#ifndef OIC_QUANTIZED_H
#define OIC_QUANTIZED_H

#include "../../version.h"

#include "../../num.h"
#include "../../simd/dots.h"

#define OIC_STREAM_PANELS 4
#define OIC_STREAM (OIC_STREAM_PANELS * OIC_PANEL) /* rows of weights that lie side by side */
#define OIC_QUANTIZED_BYTES 80 /* of working memory for a group of a row of x, at most */

/* Streams that few rows go through together, because memory that is read at several places gives more; in each place one
   stream after the other, because to begin somewhere else costs time. */
#if OIC_HOSTED && OIC_ASKED_NEAR
#define OIC_STREAMS 2
#elif OIC_HOSTED
#define OIC_STREAMS 4
#else
#define OIC_STREAMS 1
#endif
#define OIC_AHEAD_BYTES 640 /* how far ahead weights are asked for */
#if !defined(OIC_QUANTIZED_NEAR)
#define OIC_QUANTIZED_NEAR (1 << 17) /* bytes of weights for which one row does without streams side by side */
#endif

/* The same for n rows, few: nearer for up to so many, of which memory is the limit.  Zen 4, into L2: 1.02 to 1.25 times as fast
   as unasked; two rows of 8 bits have 0.9 of that if asked farther ahead.  Zen 5, into L1: 1.2 (8 bits) to 1.5 times (4 bits) as
   fast as when asked like Zen 4; Sapphire Rapids 1.09 and 1.12 times. */
#if OIC_ASKED_NEAR
#define OIC_AHEAD_FEW(n, nearer) ((n) <= (nearer) ? 2048 : 4096)
#else
#define OIC_AHEAD_FEW(n, nearer) (!OIC_FETCHES ? OIC_AHEAD_BYTES : (n) <= (nearer) ? 1024 : 2048)
#endif
#define OIC_NEARER_8 4
#define OIC_NEARER_4 (OIC_ASKED_NEAR ? 0 : 1)
#define OIC_FEW_8 OIC_FEW(OIC_DOTS_ROWS_8 > 1 ? OIC_DOTS_ROWS_8 : 8)
#define OIC_FEW_4 OIC_FEW(OIC_DOTS_ROWS)
#define OIC_FEW(n) ((n) < OIC_ROWS_MOST ? (n) : OIC_ROWS_MOST)

/* Rows of x, a block, whose sums are on the stack together: a group of a stream, or as many as go in a chain, stays in L1 for
   all of them. */
#if OIC_HOSTED && (defined(OIC_DOTS_MANY) || defined(OIC_DOTS_CHAIN))
#define OIC_TURN 128
#elif OIC_HOSTED
#define OIC_TURN 64
#else
#define OIC_TURN OIC_DOTS_ROWS
#endif

#define OIC_RECORD (OIC_DOTS_X + 8) /* bytes of a group of a row of x: numbers, then its scale and its start */

typedef char oic_records_fit[OIC_RECORD <= OIC_QUANTIZED_BYTES ? 1 : -1];

static inline ptrdiff_t oic_groups(ptrdiff_t K)
{
    return (K + OIC_GROUP - 1) / OIC_GROUP;
}

static inline ptrdiff_t oic_panels(ptrdiff_t N)
{
    return (N + OIC_PANEL - 1) / OIC_PANEL;
}

static inline ptrdiff_t oic_streams(ptrdiff_t N)
{
    return (N + OIC_STREAM - 1) / OIC_STREAM;
}

/* Rows of x are kept in blocks of OIC_TURN, the last one smaller; a block group by group: the numbers of its rows, then
   their scales, then their starts.  Where the block of row r begins, and how many it has of so many. */
static inline ptrdiff_t oic_block(ptrdiff_t r, ptrdiff_t groups)
{
    return r / OIC_TURN * OIC_TURN * groups * OIC_RECORD;
}

static inline ptrdiff_t oic_block_rows(ptrdiff_t r, ptrdiff_t rows)
{
    const ptrdiff_t left = rows - r / OIC_TURN * OIC_TURN;
    return left < OIC_TURN ? left : OIC_TURN;
}

/* Row `at` of n in a record: 32 numbers, quantised for weights of 8 or 4 bits. */
OIC_INLINE void oic_quantize_group(uint8_t *record, ptrdiff_t at, ptrdiff_t n, const float *x, int bits)
{
    float scale;
    int32_t start = oic_dots_quantize(x, record + at * OIC_DOTS_X, &scale, bits);
#if defined(OIC_DOTS_MANY)
    if (bits == 8 && n >= OIC_DOTS_MANY) {
        start = oic_dots_quantize_many(record + at * OIC_DOTS_X);
    }
#endif
    memcpy(record + n * OIC_DOTS_X + at * 4, &scale, sizeof scale);
    memcpy(record + n * (OIC_DOTS_X + 4) + at * 4, &start, sizeof start);
}

/* Some rows of a record. */
typedef struct {
    const uint8_t *numbers, *scales, *starts;
} oic_quantized_rows;

/* Those from row r on, of n. */
static inline oic_quantized_rows oic_quantized_at(const uint8_t *record, ptrdiff_t n, ptrdiff_t r)
{
    const uint8_t *const scales = record + n * OIC_DOTS_X;
    const oic_quantized_rows rows = {record + r * OIC_DOTS_X, scales + r * 4, scales + (n + r) * 4};
    return rows;
}

/* Where the results of a block's rows will be written, which is asked for: some bytes of each, rows `pitch` bytes apart; NULL:
   it is not known. */
typedef struct {
    const void *at;
    ptrdiff_t pitch, bytes;
} oic_quantized_results;

/* A product of rows of x with a stream of w of so many panels, or for few rows with OIC_STREAMS of full width, which are so many
   panels of groups apart. */
typedef struct {
    const uint8_t *x, *w;
    const oic_f16 *scales;
    ptrdiff_t panels, groups, apart;
    const oic_quantized_results *results;
} oic_quantized;

#if defined(OIC_DOTS_CHAIN)
/* A block of so many rows goes in chains.  For fewer, asking for the weights to come costs more than chains save: on Zen 4 0.86
   to 0.98 of the speed where weights are in a cache.  On Zen 5 so few gain where memory is read, 1.05 to 1.2
   times (8 bits, fewer than 16 rows) and 1.45 to 1.75 times (4 bits, fewer than 32), and lose 0.01 to 0.03 in a cache; on
   Sapphire Rapids they gain 1.1 to 1.2 times. */
#define OIC_CHAINED_8 (OIC_ASKED_NEAR ? 10 : 16)
#define OIC_CHAINED_4 (OIC_ASKED_NEAR ? 9 : 32)

/* Whether bytes of w become what products take once for all tiles of a chain, by way of memory that stays in L1, or in every tile:
   Intel's do that with the units that multiply. */
#define OIC_DOTS_ONCE OIC_INTEL

/* Whether tiles have all panels of a stream, beside so many rows, or two panels or one, beside as many as make OIC_DOTS_ROWS sums.
   A product of Intel's waits five cycles for the one before it, so that eight sums would leave its units idle. */
#define OIC_ALL_BESIDE OIC_INTEL
#define OIC_ROWS_BESIDE 3
#define OIC_CHAINS (OIC_ALL_BESIDE ? OIC_ROWS_BESIDE * OIC_STREAM_PANELS : OIC_DOTS_ROWS) /* sums of a tile, at most */

/* Groups of a stream, at most OIC_DOTS_CHAIN, and a block of rows: sums stay in registers from group to group. */
typedef struct {
    const uint8_t *x, *w, *plain; /* plain: what products take of w, of OIC_DOTS_ONCE */
    const uint8_t *ahead;         /* what is asked for into L2, so many lines with each group of a tile */
    ptrdiff_t n, panels, groups, lines;
    oic_dots_factors dw[OIC_STREAM_PANELS][OIC_DOTS_CHAIN];
} oic_quantized_chain;

/* Ask for where results of n rows from r on will be written. */
OIC_LOOP void oic_quantized_ask(const oic_quantized_results *to, ptrdiff_t r, ptrdiff_t n)
{
    uintptr_t at = (uintptr_t)to->at + (uintptr_t)(r * to->pitch);
    OIC_ASKS;
    for (; to->at != NULL && n > 0; --n, at += (uintptr_t)to->pitch) {
        for (uintptr_t i = 0; i < (uintptr_t)to->bytes; i += 64) {
            OIC_AHEAD_FAR((const void *)(at + i));
        }
    }
}
#endif

#define OIC_Q 8
#include "quantized.inc.h"

#define OIC_Q 4
#include "quantized.inc.h"

#endif
