/* The names in which the body of a kernel is written, for the element types that it is included for: OIC_X and, where
   it takes them, OIC_W and OIC_B.  `end.h` takes them back.

   T, LOAD, STORE   stored elements of type OIC_X, and how they become numbers and back (num.h)
   C                the type that they are computed in; MATH(f) is f_f32 or f_f64, for that type
   NAME(f), ARGS(f) f, with the element types, and the struct of its arguments: oic_softmax_f32, oic_softmax_f32_args
   BITS, LOW, HIGH  of a stored element; the range of an integer type
   W_T, B_T, …      the same for OIC_W and OIC_B
   W_SUM, ADDED(f)  what sums of products are taken in for a result of type OIC_W: f32, f64, u32 or u64
   X_IS_COMPUTED    1 if T is C; W_IS_COMPUTED: if W_T is */
#include "../num.h"

#define T OIC_PASTE(oic_stored_, OIC_X)
#define LOAD OIC_PASTE(oic_load_, OIC_X)
#define STORE OIC_PASTE(oic_store_, OIC_X)
#define WIDEN OIC_PASTE(oic_widen_, OIC_X)
#define BITS OIC_PASTE(OIC_BITS_, OIC_X)
#define LOW OIC_PASTE(OIC_LOW_, OIC_X)
#define HIGH OIC_PASTE(OIC_HIGH_, OIC_X)
#define OIC_COMPUTED OIC_PASTE(OIC_COMPUTED_, OIC_X)
#define C OIC_PASTE(oic_stored_, OIC_COMPUTED)
#define MATH(f) OIC_PASTE(f##_, OIC_COMPUTED)

#if defined(OIC_B)
#define NAME(f) OIC_JOIN_4(f, OIC_X, OIC_W, OIC_B)
#define ARGS(f) OIC_JOIN_5(f, OIC_X, OIC_W, OIC_B, args)
#elif defined(OIC_W)
#define NAME(f) OIC_JOIN_3(f, OIC_X, OIC_W)
#define ARGS(f) OIC_JOIN_4(f, OIC_X, OIC_W, args)
#else
#define NAME(f) OIC_JOIN_2(f, OIC_X)
#define ARGS(f) OIC_JOIN_3(f, OIC_X, args)
#endif

/* Sums of products of f64 are not there where the machine fuses those of f32 alone (simd/registers.h). */
#define OIC_IS_F64_f64 1
#if defined(OIC_NO_F64) && OIC_IS_ONE(OIC_PASTE(OIC_IS_F64_, OIC_COMPUTED))
#error "oic: this machine multiplies and adds in one instruction in f32, and not in f64: build with --numerics separate"
#endif

/* Elements of the type that is computed in are used where they lie. */
#define OIC_SAME_f32_f32 1
#define OIC_SAME_f64_f64 1
#if OIC_IS_ONE(OIC_PASTE(OIC_SAME_, OIC_PASTE(OIC_X, OIC_PASTE(_, OIC_COMPUTED))))
#define X_IS_COMPUTED 1
#else
#define X_IS_COMPUTED 0
#endif

#if defined(OIC_W)
#if OIC_IS_ONE(OIC_PASTE(OIC_SAME_, OIC_PASTE(OIC_W, OIC_PASTE(_, OIC_COMPUTED))))
#define W_IS_COMPUTED 1
#else
#define W_IS_COMPUTED 0
#endif
#define W_T OIC_PASTE(oic_stored_, OIC_W)
#define W_LOAD OIC_PASTE(oic_load_, OIC_W)
#define W_BITS OIC_PASTE(OIC_BITS_, OIC_W)
#define W_LOW OIC_PASTE(OIC_LOW_, OIC_W)
#define W_HIGH OIC_PASTE(OIC_HIGH_, OIC_W)
#define W_STORE OIC_PASTE(oic_store_, OIC_W)
#define W_WIDEN OIC_PASTE(oic_widen_, OIC_W)
#define W_COMPUTED OIC_PASTE(OIC_COMPUTED_, OIC_W)
#define W_C OIC_PASTE(oic_stored_, W_COMPUTED)
#define W_SUMS OIC_PASTE(OIC_SUMS_, OIC_W)
#define W_SUM OIC_PASTE(oic_stored_, W_SUMS)
#define ADDED(f) OIC_PASTE(f##_, W_SUMS)
#endif

#if defined(OIC_B)
#define B_T OIC_PASTE(oic_stored_, OIC_B)
#define B_LOAD OIC_PASTE(oic_load_, OIC_B)
#endif
