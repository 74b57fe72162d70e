/* What generated code asks of the compiler and of the machine.  It counts on every operation on floats being the one
   that is written, rounded once, and on little-endian memory. */
#ifndef OIC_MACHINE_H
#define OIC_MACHINE_H

#include "version.h"

#include <float.h>
#include <limits.h>

#if defined(__FAST_MATH__)
#error "oic: -ffast-math and -Ofast change results: compile generated code without them"
#elif defined(__ASSOCIATIVE_MATH__)
#error "oic: -fassociative-math (of -funsafe-math-optimizations) changes results: compile generated code without it"
#elif defined(__RECIPROCAL_MATH__)
#error "oic: -freciprocal-math (of -funsafe-math-optimizations) changes results: compile generated code without it"
#elif defined(__NO_SIGNED_ZEROS__)
#error "oic: -fno-signed-zeros changes results: compile generated code without it"
#elif defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "oic: -ffinite-math-only changes results: compile generated code without it"
#elif defined(_M_FP_FAST)
#error "oic: /fp:fast changes results: compile generated code with /fp:precise"
#endif

#if (defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__) || defined(__BIG_ENDIAN__) || \
    defined(__ARMEB__)
#error "oic: generated code, its weights and saved states are for little-endian machines"
#endif

#if defined(INT_MAX) && (INT_MAX < 0x7fffffff || DBL_MANT_DIG != 53)
#error "oic: generated code is for machines whose int has at least 32 bits, and whose double has 64"
#endif

#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
#error "oic: floats are computed with excess precision: for x86 of 32 bits, compile with -msse2 -mfpmath=sse"
#endif

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#error "oic: vectors of floats of this machine take subnormals for zeros: leave them out, with +nomve.fp behind the processor (-mcpu=cortex-m55+nomve.fp)"
#endif

/* Sizes, and what kernels are written with (kernels/element.h). */
#if defined(C) || defined(D) || defined(F) || defined(H) || defined(K) || defined(M) || defined(N) || defined(P) || \
    defined(Q) || defined(R) || defined(S) || defined(T) || defined(V) || defined(W) || defined(ARGS) || \
    defined(AT_ONCE) || defined(BITS) || defined(BYTES) || defined(EACH) || defined(HALF) || defined(HIGH) || \
    defined(LOAD) || defined(LOW) || defined(MANY) || defined(MATH) || defined(MOST) || defined(NAME) || \
    defined(REGS) || defined(SOME) || defined(STEPS) || defined(STORE) || defined(WIDEN)
#error "oic: C, D, F, H, K, M, N, P, Q, R, S, T, V, W, ARGS, AT_ONCE, BITS, BYTES, EACH, HALF, HIGH, LOAD, LOW, MANY, MATH, MOST, NAME, REGS, SOME, STEPS, STORE and WIDEN are names in generated code: none may be a macro here, or -D"
#endif

/* What is refused.  Code behind many checks compilers take for code that hardly runs, and make no vectors of its loops, unless
   they are told that no check fails. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_expect_with_probability)
#define OIC_UNLIKELY(condition) __builtin_expect_with_probability((condition), 0, 1.0)
#endif
#endif
#if !defined(OIC_UNLIKELY)
#define OIC_UNLIKELY(condition) (condition)
#endif

/* A function of one element, which is part of the loop that calls it where there are vectors: they are made of whole loops. */
#if defined(__GNUC__) && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__) && \
    (defined(__SSE2__) || defined(__ARM_NEON) || defined(__ARM_FEATURE_MVE) || defined(__wasm_simd128__))
#define OIC_ELEMENT static inline __attribute__((always_inline))
#else
#define OIC_ELEMENT static inline
#endif

/* A pointer or distance of which a compiler knows nothing any more. */
#if defined(__GNUC__)
#define OIC_OPAQUE(v) __asm__("" : "+r"(v))
#else
#define OIC_OPAQUE(v) (void)(v)
#endif

/* -fsingle-precision-constant changes constants of type double. */
typedef char oic_constants_are_double[sizeof(0.1) == sizeof(double) ? 1 : -1];

/* gcc makes one operation of a product and a sum where nothing forbids it: in its own C (-std=gnu11, or no -std), and in any
   with -ffp-contract=fast.  Buffers of several types share the arena. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off", "no-strict-aliasing") /* as the Makefile has it */
#if defined(__thumb__) && !defined(__thumb2__)
#pragma GCC optimize("no-ipa-ra") /* gcc with -Os: the end of a function changes registers that callers take for untouched */
#endif
#endif

/* clang shows few parts of -ffast-math by a macro, so they are switched off from here on. */
#if defined(__clang__) && __clang_major__ >= 12
#if defined(__x86_64__) || defined(__i386__)
#pragma float_control(precise, on) /* all of them; elsewhere not supported */
#endif
#pragma clang fp reassociate(off)
#pragma STDC FP_CONTRACT OFF
#endif

#endif
