/* The functions of short_rows.h for numbers of type OIC_S, f32 or f64. */
#define S OIC_PASTE(oic_stored_, OIC_S)
#define OF(f) OIC_PASTE(f##_, OIC_S)
#define WIDTH ((ptrdiff_t)(sizeof(OF(oic_register)) / sizeof(S)))

/* to = n numbers. */
OIC_INLINE void OF(oic_row_copy)(S *restrict to, const S *restrict from, ptrdiff_t n)
{
    if (n < OIC_ROW_FEW) {
        for (ptrdiff_t i = 0; i < n; ++i) {
            to[i] = from[i];
        }
        return;
    }
    if (n < 2 * OIC_ROW_FEW) {
        memcpy(to, from, OIC_ROW_FEW * sizeof *to);
        memcpy(to + n - OIC_ROW_FEW, from + n - OIC_ROW_FEW, OIC_ROW_FEW * sizeof *to);
        return;
    }
    if (WIDTH > 2 * OIC_ROW_FEW && n < WIDTH) {
        memcpy(to, from, 2 * OIC_ROW_FEW * sizeof *to);
        memcpy(to + n - 2 * OIC_ROW_FEW, from + n - 2 * OIC_ROW_FEW, 2 * OIC_ROW_FEW * sizeof *to);
        return;
    }
    for (ptrdiff_t i = 0; i + WIDTH < n; i += WIDTH) {
        OF(oic_register_store)(to + i, OF(oic_register_load)(from + i));
    }
    OF(oic_register_store)(to + n - WIDTH, OF(oic_register_load)(from + n - WIDTH));
}

/* `some` pairs of numbers, apart. */
OIC_INLINE void OF(oic_row_pairs)(int some, S *restrict even, S *restrict odd, const S *restrict from)
{
#if OIC_IS_ONE(OIC_PASTE(OIC_APART_, OIC_S))
    if (some == WIDTH) {
        OF(oic_register_apart)(even, odd, from);
        return;
    }
#endif
    for (int i = 0; i < some; ++i) {
        even[i] = from[2 * i];
        odd[i] = from[2 * i + 1];
    }
}

#undef S
#undef OF
#undef WIDTH
#undef OIC_S
