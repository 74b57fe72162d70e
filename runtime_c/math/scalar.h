/* Elementwise operators on one element: oic_<op>_<T>(operands..., settings...), computed values in
   and out (num.h).  T is f32, f64 or an integer type; f8, f16 and bf16 are computed in f32. */
#ifndef OIC_SCALAR_H
#define OIC_SCALAR_H

#include "../version.h"

#include "scalar_cast.h"
#include "scalar_float.h"
#include "scalar_int.h"
#include "scalar_math.h"

#endif
