/* Float matrix products whose wide operand is f8, f16, bf16 (computed in float) or f64 (in double). */
#ifndef OIC_MATMUL_NARROW_H
#define OIC_MATMUL_NARROW_H

#include "version.h"

#include "matmul_float.h"

OIC_FLOAT_MATMUL(f8, oic_f8, 0, f8, oic_f8, 0, float)
OIC_FLOAT_MATMUL(f16, oic_f16, 0, f16, oic_f16, 0, float)
OIC_FLOAT_MATMUL(f16, oic_f16, 0, f8, oic_f8, 0, float)
OIC_FLOAT_MATMUL(bf16, oic_bf16, 0, bf16, oic_bf16, 0, float)
OIC_FLOAT_MATMUL(bf16, oic_bf16, 0, f8, oic_f8, 0, float)
OIC_FLOAT_MATMUL(f64, double, 1, f64, double, 1, double)
OIC_FLOAT_MATMUL(f64, double, 1, f32, float, 0, double)
OIC_FLOAT_MATMUL(f64, double, 1, f16, oic_f16, 0, double)
OIC_FLOAT_MATMUL(f64, double, 1, bf16, oic_bf16, 0, double)
OIC_FLOAT_MATMUL(f64, double, 1, f8, oic_f8, 0, double)

#endif
