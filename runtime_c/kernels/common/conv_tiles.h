/* Tiles whose sixteen columns are positions of a convolution: for each product they lie where a table says. */
#ifndef OIC_CONV_TILES_H
#define OIC_CONV_TILES_H

#include "../../version.h"

#include "../../simd/sums.h"
#include "../../simd/tiles.h"

#define OIC_S f32
#define OIC_TILE_AT
#if defined(OIC_EIGHTS)
#define OIC_TILE_EIGHTS oic_register_eights_f32
#endif
#define OIC_TILE_ROOM (OIC_REGISTER ? OIC_TILE_REGISTERS * OIC_REGISTER / (4 * OIC_LANES) : 1)
#include "../../simd/tiles.inc.h"

#if !defined(OIC_NO_F64)
#define OIC_S f64
#define OIC_TILE_AT
#define OIC_TILE_ROOM (OIC_REGISTER ? OIC_TILE_REGISTERS * OIC_REGISTER / (8 * OIC_LANES) : 1)
#include "../../simd/tiles.inc.h"
#endif

#endif
