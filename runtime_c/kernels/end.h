/* The names of element.h end, and the element types. */
#undef T
#undef LOAD
#undef STORE
#undef WIDEN
#undef OIC_COMPUTED
#undef C
#undef MATH
#undef NAME
#undef ARGS
#undef W_T
#undef W_LOAD
#undef W_WIDEN
#undef B_T
#undef B_LOAD
#undef OIC_X
#undef OIC_W
#undef OIC_B
