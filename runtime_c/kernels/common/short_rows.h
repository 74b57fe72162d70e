/* Rows of a few numbers, for which a call of memcpy or a loop of a length that is not known costs more than the move itself: parts of
   constant size are moved, which compilers have registers for, some perhaps twice. */
#ifndef OIC_SHORT_ROWS_H
#define OIC_SHORT_ROWS_H

#include "../../version.h"

#include "../../simd/tiles.h"

#define OIC_ROW_FEW 4
#define OIC_ROW_PAIRS (OIC_WIDTH == 16 ? 16 : OIC_ROW_FEW) /* taken apart at once: what compilers have shuffles for */

#define OIC_S f32
#include "short_rows.inc.h"

#if !defined(OIC_NO_F64)
#define OIC_S f64
#include "short_rows.inc.h"
#endif

#endif
