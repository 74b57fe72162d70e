/* Lanes of a block of a convolution that is computed in planes (conv_planes.h). */
#ifndef OIC_CONV_LANES_H
#define OIC_CONV_LANES_H

#include "../../version.h"

#include "../../simd/lanes.h"

#define OIC_CONV_LANES (24 * OIC_LANES) /* of one output channel that are computed together, at most */
#define OIC_CONV_BESIDE 4               /* eights of lanes of a tile, some of which may be none */
#define OIC_CONV_PLACES (OIC_CONV_LANES / OIC_EIGHT + OIC_CONV_BESIDE)

/* Lane i of a block is column i % pitch of row i / pitch.  `span` lanes are computed together, of which eight each begin at `place`
   in a plane. */
typedef struct {
    ptrdiff_t columns, pitch, span;
    int32_t place[OIC_CONV_PLACES];
} oic_conv_lanes;

/* Those of rows of so many columns, `wide` apart in a plane, of which `most` are computed together, and `tile` at a time.  The pitch is
   `wide`, so that neighbours of planes are neighbours, or, where fewer tiles hold whole rows then, the columns up to a multiple of eight. */
OIC_LOOP void oic_conv_lanes_set(oic_conv_lanes *l, ptrdiff_t columns, ptrdiff_t wide, ptrdiff_t most, ptrdiff_t tile)
{
    const ptrdiff_t even = (columns + OIC_EIGHT - 1) / OIC_EIGHT * OIC_EIGHT;
    ptrdiff_t rows = 0, least = wide, each = 1; /* lanes of so many rows */
    if (l->columns == columns) {
        return;
    }
    for (ptrdiff_t r = most / even; even < wide && r > 0; --r) {
        const ptrdiff_t lanes = (r * even + tile - 1) / tile * tile;
        if (lanes * each < least * r) {
            rows = each = r;
            least = lanes;
        }
    }
    l->columns = columns;
    l->pitch = rows > 0 ? even : wide;
    l->span = rows > 0 ? rows * even : 16 * OIC_LANES / tile * tile;
    for (ptrdiff_t i = 0, row = 0, column = 0; i * OIC_EIGHT < l->span; ++i, column += OIC_EIGHT) {
        if (rows > 0 && column == even) {
            column = 0;
            ++row;
        }
        l->place[i] = (int32_t)(row * wide + column);
    }
}

/* Where eight lanes each of n begin, of which there may be fewer than a span; those of the last registers that are none, at the
   first one: memory may end behind the last row. */
static inline const int32_t *oic_conv_places(const oic_conv_lanes *l, ptrdiff_t n, int32_t *few)
{
    const ptrdiff_t eights = (n + OIC_EIGHT - 1) / OIC_EIGHT;
    if (n % (OIC_CONV_BESIDE * OIC_EIGHT) == 0) {
        return l->place;
    }
    memcpy(few, l->place, (size_t)eights * sizeof *few);
    memset(few + eights, 0, (OIC_CONV_BESIDE - 1) * sizeof *few);
    return few;
}

#endif
