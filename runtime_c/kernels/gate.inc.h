/* The body that cells of recurrent networks share; the kernel that includes it defines GATE, the name of the function.

   x[n] times row w[n], from elements x0 and w0 on, in parts of OIC_PART.  Order: a part is sixteen sums, product i in
   sum i mod 16, and their tree; parts are added in order.  Weights are rows, which no panel is made of. */
static inline C GATE(const T *restrict x, ptrdiff_t x0, const T *restrict w, ptrdiff_t w0, ptrdiff_t n)
{
    C p[X_IS_COMPUTED ? 1 : OIC_PART], q[X_IS_COMPUTED ? 1 : OIC_PART], sum = (C)0;
    for (ptrdiff_t i = 0; i < n; i += OIC_PART) {
        const ptrdiff_t m = n - i < OIC_PART ? n - i : OIC_PART;
        sum += MATH(oic_dot)(WIDEN(x + x0 + i, m, p), WIDEN(w + w0 + i, m, q), m);
    }
    return sum;
}
