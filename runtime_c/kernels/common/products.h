/* What products of matrices have in common. */
#ifndef OIC_PRODUCTS_H
#define OIC_PRODUCTS_H

#include "../../version.h"

#include "batch.h"
#include "../../num.h"
#include "../../simd/sums.h"
#include "../../simd/tiles.h"

/* Rows of x that go through a chunk of w together: as many as stay in a cache, and those whose sums are on the stack. */
#if OIC_SMALL_STACK
#define OIC_ROWS 8
#define OIC_ROWS_OF_SUMS 8
#else
#define OIC_ROWS 128
#define OIC_ROWS_OF_SUMS 48
#endif

/* Rows of x that go through many panels are copied first, a chunk of K side by side, so that they are read in order: where
   stacks are large.  Where x could be used as it lies, so many rows and panels pay for that, or so many rows go through w as
   those that were copied do (OIC_TILE_AS_IS). */
#define OIC_COPIES (OIC_BLOCK == OIC_CHUNK)
#define OIC_ROWS_COPIED (OIC_WIDTH == 16 ? 16 : 1) /* wide tiles of few rows go better without */
#define OIC_PANELS_COPIED 24

/* Panels that these go through before the next chunk: as many as leave the sums in that cache, or, where x was copied for them,
   in the one behind it.  Zen 4, where it is not copied: 24 to 66 are as fast, 96 take 1.003, 192 1.005 times as long. */
#define OIC_PANELS 16
#define OIC_PANELS_OF_MANY (OIC_TILE_AS_IS ? 48 : 192)

/* Up to how many rows numbers of w that are narrow are widened in every tile, and not once for all of them: one or two instructions
   take less time than a copy in memory.  Zen 5: 0.95 instead of 0.90 of the multiply-add peak for 128 rows, 0.92 instead of 0.75
   for 16; as AVX2 there 0.95 and 0.94, 0.90 and 0.80.  Intel's do it with the units that multiply: 0.75 instead of 0.89 for 128
   rows, 0.74 instead of 0.64 for 16.  Where stacks are small there is no room for what is widened. */
#if OIC_INTEL && !OIC_SMALL_STACK
#define OIC_WIDENS_AGAIN 24
#elif OIC_REGISTER >= 32 || defined(__aarch64__) || OIC_SMALL_STACK
#define OIC_WIDENS_AGAIN OIC_ROWS
#else
#define OIC_WIDENS_AGAIN 0
#endif

#define OIC_ROWS_AS_IS 24 /* of x, for which it does not pay to gather panels from a row-major w */

/* Few rows go through shares of w side by side if it has so many bytes: what is less may well be in a cache, where tiles of
   more panels are faster, above all where w is widened, because that is then what takes the time. */
#define OIC_SHARED_BYTES(widens) ((ptrdiff_t)((widens) ? 1 << 20 : 1 << 18))

/* How many bytes ahead these ask for w, 0: not.  Zen 5: what is widened comes 1.15 times as fast; the rest 1.12 times as fast from
   L3, but 0.8 to 0.97 from memory, so that the code says whether all its weights may stay in a cache.  Sapphire Rapids: what is widened
   comes 1.18 times as fast, the rest 1.04 times. */
#if !defined(OIC_WEIGHTS_CACHED)
#define OIC_WEIGHTS_CACHED 0
#endif
#define OIC_PRODUCT_AHEAD(widens) \
    ((uintptr_t)(OIC_INTEL ? 1024 : !OIC_ASKED_NEAR ? 0 : (widens) ? 4096 : OIC_WEIGHTS_CACHED ? 1024 : 0))

/* Neighbouring columns of a row-major w that one row of x goes along: enough for memory to be read in order, or, where
   stacks are small, few.  They are sums of their own, so that their number has no part in any. */
#if OIC_SMALL_STACK
#define OIC_STRETCH 64
#else
#define OIC_STRETCH 1024
#endif

/* Panels of sixteen columns. */
static inline ptrdiff_t oic_product_panels(ptrdiff_t columns)
{
    return (columns + OIC_LANES - 1) / OIC_LANES;
}

/* How many of `rows` rows are taken now, at most `most`: all parts are about as large, and but for the last whole tiles. */
static inline ptrdiff_t oic_rows(ptrdiff_t rows, ptrdiff_t most, ptrdiff_t tile)
{
    const ptrdiff_t parts = (rows + most - 1) / most, even = (rows + parts - 1) / parts;
    const ptrdiff_t whole = (even + tile - 1) / tile * tile;
    return rows <= most ? rows : whole < most ? whole : most;
}

#endif
