/* Elementwise operators on bool and bitset. */
#ifndef OIC_SCALAR_BOOL_H
#define OIC_SCALAR_BOOL_H

#include "../version.h"

#include "../num.h"

/* A bool adds by OR, and multiplies by AND. */
static inline uint8_t oic_add_bool(uint8_t a, uint8_t b) { return (uint8_t)(a | b); }
static inline uint8_t oic_mul_bool(uint8_t a, uint8_t b) { return (uint8_t)(a & b); }
static inline uint8_t oic_and_bool(uint8_t a, uint8_t b) { return (uint8_t)(a & b); }
static inline uint8_t oic_or_bool(uint8_t a, uint8_t b) { return (uint8_t)(a | b); }
static inline uint8_t oic_xor_bool(uint8_t a, uint8_t b) { return (uint8_t)(a ^ b); }
static inline uint8_t oic_not_bool(uint8_t x) { return (uint8_t)(x ^ 1u); }
static inline uint8_t oic_eq_bool(uint8_t a, uint8_t b) { return (uint8_t)(a == b); }
static inline uint8_t oic_ne_bool(uint8_t a, uint8_t b) { return (uint8_t)(a != b); }
static inline uint8_t oic_where_bool(uint8_t c, uint8_t a, uint8_t b) { return c ? a : b; }
static inline uint8_t oic_filter_bool(uint8_t a, uint8_t b, uint8_t c) { return c != 0 ? a : b; }

/* A bitset adds and multiplies as a wrapping 8-bit number. */
static inline uint8_t oic_add_bitset(uint8_t a, uint8_t b) { return (uint8_t)(a + b); }
static inline uint8_t oic_mul_bitset(uint8_t a, uint8_t b) { return (uint8_t)(a * b); }
static inline uint8_t oic_eq_bitset(uint8_t a, uint8_t b) { return (uint8_t)(a == b); }
static inline uint8_t oic_ne_bitset(uint8_t a, uint8_t b) { return (uint8_t)(a != b); }
static inline uint8_t oic_where_bitset(uint8_t c, uint8_t a, uint8_t b) { return c ? a : b; }
static inline uint8_t oic_filter_bitset(uint8_t a, uint8_t b, uint8_t c) { return c != 0 ? a : b; }

#endif
