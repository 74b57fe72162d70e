/* Tiles of numbers and bytes that are widened (tiles.h). */
#ifndef OIC_SIMD_TILES_BYTES_H
#define OIC_SIMD_TILES_BYTES_H

#include "../version.h"

#include "tiles.h"

#define OIC_WIDENS_i8_f32 1

#define OIC_S f32
#define OIC_TILE_W i8
#define OIC_TILE_ROOM (OIC_REGISTER ? OIC_TILE_REGISTERS * OIC_REGISTER / (4 * OIC_LANES) : 1)
#include "tiles.inc.h"

#endif
