/* What oic_conv_planes_X_W_B is given, of floats and of bytes: for every element type that a kernel is included for. */
typedef struct {
    const T *x, *w;
    const B_T *b;
    W_T *y;
    void *work;
    ptrdiff_t batch, channels, height, width, outputs, taps_y, taps_x, out_height, out_width;
    ptrdiff_t stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x, groups, rows, columns, room;
    int along; /* see conv_planes_int.h */
    int given; /* see conv_planes.h; 2: infinities or NaN are among the weights */
#if defined(OIC_REQUANTIZES)
    oic_requantized by;
#endif
} ARGS(oic_conv_planes);
