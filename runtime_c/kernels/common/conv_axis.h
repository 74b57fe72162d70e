/* One axis of a convolution that is computed in planes (conv_planes.h). */
#ifndef OIC_CONV_AXIS_H
#define OIC_CONV_AXIS_H

#include "../../version.h"

#include "own.h"

#include <stddef.h>

#define OIC_CONV_OUTPUTS 48 /* output channels that a thread takes at a time at most, which share what is copied of x */
#define OIC_CONV_WHOLE 12   /* and so few are not divided */
#define OIC_CONV_FILTERS 8  /* rows of a tile, at most */

/* Positions `classes` apart meet the same taps, at neighbours of one plane: class f has positions f + j * classes, j from 0 on.
   Element r of phase p of the planes of a block from j0 on is element (j0 + r) * step + p + low of x. */
typedef struct {
    ptrdiff_t size, out, taps, stride, padding, dilation; /* of the operator */
    int transposed;
    ptrdiff_t classes, count;                             /* of positions; those of one class in a block, at most */
    ptrdiff_t phases, step, low, extent;                  /* of planes, each of so many elements */
} oic_conv_axis;

/* What follows from the operator and `count`.  A convolution has one class, and a plane for each phase of the stride that taps
   meet; a transposed one has a class for each phase, and one plane. */
static inline void oic_conv_axis_set(oic_conv_axis *axis)
{
    const ptrdiff_t reach = (axis->taps - 1) * axis->dilation, back = reach - axis->padding, s = axis->stride;
    axis->classes = axis->transposed ? s : 1;
    axis->phases = axis->transposed ? 1 : axis->dilation % s == 0 ? 1 : reach + 1 < s ? reach + 1 : s;
    axis->step = axis->transposed ? 1 : s;
    axis->low = !axis->transposed ? -axis->padding : back > 0 ? -(back / s) : (s - 1 - back) / s;
    axis->extent = axis->count + (axis->transposed ? (axis->padding + s - 1) / s - axis->low : reach / s);
}

/* Where tap k lies for position 0 of class f: the phase, and the element of its plane; -1 if the class does not meet it. */
static inline ptrdiff_t oic_conv_tap(const oic_conv_axis *axis, ptrdiff_t f, ptrdiff_t k, ptrdiff_t *phase)
{
    const ptrdiff_t at = k * axis->dilation, s = axis->stride;
    *phase = 0;
    if (!axis->transposed) {
        *phase = at % s;
        return at / s;
    }
    return (f + axis->padding - at) % s == 0 ? (f + axis->padding - at) / s - axis->low : -1;
}

/* Which element of x tap k meets at a position of the result; -1 for none. */
static inline ptrdiff_t oic_conv_element(const oic_conv_axis *axis, ptrdiff_t position, ptrdiff_t k)
{
    const ptrdiff_t s = axis->transposed ? axis->stride : 1, at = k * axis->dilation;
    const ptrdiff_t i = axis->transposed ? position + axis->padding - at : position * axis->stride + at - axis->padding;
    return i >= 0 && i % s == 0 && i / s < axis->size ? i / s : -1;
}

/* Parts of so many output channels: an even number, for threads. */
static inline ptrdiff_t oic_conv_parts(ptrdiff_t outputs)
{
    return outputs <= OIC_CONV_WHOLE ? 1 : (outputs + 2 * OIC_CONV_OUTPUTS - 1) / (2 * OIC_CONV_OUTPUTS) * 2;
}

/* The last number of `room` bytes of a worker, a multiple of its size: which block the worker has copied what it meets of x of, and
   1; 0: none.  Whoever goes on with other output channels of that block has it, from one call of a part to the next. */
static inline ptrdiff_t *oic_conv_held(void *own, ptrdiff_t room)
{
    return (ptrdiff_t *)(void *)((unsigned char *)own + room) - 1;
}

/* Before the parts of a call: nothing is copied. */
static inline void oic_conv_begin(void *work, int workers, ptrdiff_t room)
{
    for (int i = 0; i < workers; ++i) {
        *oic_conv_held(oic_own(work, i, (size_t)room), room) = 0;
    }
}

/* Positions of class f. */
static inline ptrdiff_t oic_conv_positions(const oic_conv_axis *axis, ptrdiff_t f)
{
    return (axis->out - f + axis->classes - 1) / axis->classes;
}

/* Blocks; where positions are rows, each has as many as others, or one less. */
static inline ptrdiff_t oic_conv_blocks(const oic_conv_axis *axis)
{
    return (oic_conv_positions(axis, 0) + axis->count - 1) / axis->count;
}

/* The first row of block b of so many; of as many as there are, the end.  Columns are divided by `count`, into whole registers. */
static inline ptrdiff_t oic_conv_start(const oic_conv_axis *axis, ptrdiff_t blocks, ptrdiff_t b)
{
    if (b == 0) { /* often the only one: divisions take longer than a short row */
        return 0;
    }
    return b == blocks ? oic_conv_positions(axis, 0) : oic_conv_positions(axis, 0) * b / blocks;
}

#endif
