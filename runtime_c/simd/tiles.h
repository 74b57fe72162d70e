/* Tiles of a product: sums of a few rows of x times a few panels of sixteen columns of w, all of which stay in registers
   while k goes on.  How many depends on the machine's registers; no sum depends on how many there are. */
#ifndef OIC_SIMD_TILES_H
#define OIC_SIMD_TILES_H

#include "../version.h"

#include "lanes.h"
#include "sums.h"

/* Registers that hold sums: the others hold elements of x and w. */
#if OIC_MANY_REGISTERS
#define OIC_TILE_REGISTERS 24
#else
#define OIC_TILE_REGISTERS 12
#endif

#define OIC_TILE_PANELS 8 /* at most, side by side: places that memory is read at */
#define OIC_TILE_BESIDE 4  /* the same, where memory is the limit: machines follow so many places by themselves */
#define OIC_TILE_BESIDE_ONE (OIC_ASKED_NEAR && !OIC_INTEL ? 2 : OIC_TILE_BESIDE) /* of one row: Zen 5 fewer, where it is asked */

/* Rows of x that products have at most, if generated code says so: tiles of more are left out, and such rows would be slow. */
#if !defined(OIC_ROWS_MOST)
#define OIC_ROWS_MOST 8
#endif

/* Many rows of x, whose elements are neighbours, are read where they lie, and not copied before.  Zen 4: copies take 1 to 3 % of a
   product, the more the longer K is, and products go as fast without. */
#define OIC_TILE_AS_IS (OIC_FETCHES && !OIC_ASKED_NEAR)

/* Types of w that a tile widens; those of bytes in tiles_bytes.h. */
#define OIC_WIDENS_bf16_f32 1
#define OIC_WIDENS_f16_f32 1

/* A register of numbers from elements that lie side by side. */
static inline oic_register_f32 oic_row_f32(const float *p) { return oic_register_load_f32(p); }
static inline oic_register_f32 oic_row_f16(const oic_f16 *p) { return oic_register_load_f16(p); }
static inline oic_register_f32 oic_row_bf16(const oic_bf16 *p) { return oic_register_load_bf16(p); }
static inline oic_register_f32 oic_row_i8(const int8_t *p) { return oic_register_to_f32(oic_register_load_i8(p)); }

/* What becomes of a chain that has been added up. */
#define OIC_TILE_SET 0  /* it is the sum */
#define OIC_TILE_ADD 1  /* it is added to the sum */
#define OIC_TILE_GO_ON 2 /* the sum was where it began, if blocks are parts of a chunk */

#if !defined(__OPTIMIZE__)
#define OIC_UNROLLED
#define OIC_UNROLLED_TWICE
#elif defined(__clang__)
#define OIC_UNROLLED _Pragma("clang loop unroll(full)")
#define OIC_UNROLLED_TWICE _Pragma("clang loop unroll_count(2)")
#elif defined(__GNUC__)
#define OIC_UNROLLED _Pragma("GCC unroll 64")
#define OIC_UNROLLED_TWICE _Pragma("GCC unroll 2")
#else
#define OIC_UNROLLED
#define OIC_UNROLLED_TWICE
#endif

#if defined(__GNUC__)
#define OIC_INLINE static inline __attribute__((always_inline))
#else
#define OIC_INLINE static inline
#endif

/* What is read a little later, while other memory is waited for: into L2, or into L1, too, which costs where memory is all that
   is waited for; and what is written. */
#if OIC_REGISTER && OIC_HOSTED
#define OIC_TILE_AHEAD(p) __builtin_prefetch((p), 0, 2)
#define OIC_TILE_AHEAD_NEAR(p) __builtin_prefetch((p), 0, 3)
#define OIC_TILE_AHEAD_SUMS(p) __builtin_prefetch((p), 1, 3)
#define OIC_TILE_AHEAD_ROW(p) __builtin_prefetch((p), 0, OIC_ASKED_NEAR ? 3 : 2) /* rows that are read in turn */
#else
#define OIC_TILE_AHEAD(p) ((void)(p))
#define OIC_TILE_AHEAD_NEAR(p) ((void)(p))
#define OIC_TILE_AHEAD_SUMS(p) ((void)(p))
#define OIC_TILE_AHEAD_ROW(p) ((void)(p))
#endif

/* In a function that does nothing but ask: without it, calls of that function would be dropped. */
#if defined(__GNUC__)
#define OIC_ASKS __asm__ volatile("")
#else
#define OIC_ASKS ((void)0)
#endif

/* A register that holds what was read: gcc would read memory anew for each use. */
#if defined(OIC_TILE_HELD) /* by a test, for registers that the machine has not */
#elif defined(__x86_64__) && defined(__GNUC__) && OIC_REGISTER
#define OIC_TILE_HELD(v) __asm__("" : "+v"(v))
#else
#define OIC_TILE_HELD(v) ((void)(v))
#endif

#define OIC_S f32
#define OIC_TILE_ROOM (OIC_REGISTER ? OIC_TILE_REGISTERS * OIC_REGISTER / (4 * OIC_LANES) : 1)
#include "tiles.inc.h"

#define OIC_S f32
#define OIC_TILE_W bf16
#define OIC_TILE_ROOM (OIC_REGISTER ? OIC_TILE_REGISTERS * OIC_REGISTER / (4 * OIC_LANES) : 1)
#include "tiles.inc.h"

#define OIC_S f32
#define OIC_TILE_W f16
#define OIC_TILE_ROOM (OIC_REGISTER ? OIC_TILE_REGISTERS * OIC_REGISTER / (4 * OIC_LANES) : 1)
#include "tiles.inc.h"

#if !defined(OIC_NO_F64)
#define OIC_S f64
#define OIC_TILE_ROOM (OIC_REGISTER ? OIC_TILE_REGISTERS * OIC_REGISTER / (8 * OIC_LANES) : 1)
#include "tiles.inc.h"
#endif

#endif
