"""Operators and settings as PyTorch, ONNX, Keras and NumPy call them, and what does it here.

A row: the names, and the statements.  Case and underscores do not count: `ReduceMean` is
`reduce_mean`.  Every statement is compiled by a test, with the variables declared there.
"""

from __future__ import annotations

_RESHAPE = "op reshape(x, shape=[-1, 6]) >> y;"
_COPY = "transfer x >> y;"

# Operators that are here as they are there, but for the name: how they are called, and names by operator.
RENAMED = {
    "op {}(x) >> y;": {
        "silu": "swish", "sigmoid": "logistic expit", "neg": "negative", "abs": "absolute",
        "recip": "reciprocal inverse",
    },
    "op {}(a, b) >> y;": {
        "add": "plus bias_add add_n", "sub": "subtract", "mul": "multiply", "div": "divide true_divide",
        "max": "maximum", "min": "minimum", "pow": "power", "eq": "equal", "ne": "not_equal", "gt": "greater",
        "ge": "greater_equal greater_or_equal", "lt": "less", "le": "less_equal less_or_equal",
    },
    "op {}(x, axes=[1]) >> y;": {
        "sum_axis": "sum reduce_sum reduce_sum_v2", "mean_axis": "mean reduce_mean average",
        "prod_axis": "prod reduce_prod", "max_axis": "amax reduce_max", "min_axis": "amin reduce_min",
    },
    "op {}(c, c) >> y;": {
        "and": "logical_and bitwise_and", "or": "logical_or bitwise_or", "xor": "logical_xor bitwise_xor",
    },
    "op {}(i, bits=1) >> y;": {"shl": "left_shift bitwise_left_shift", "shr": "right_shift bitwise_right_shift"},
}  # fmt: skip

TABLE: tuple[tuple[str, str], ...] = (
    *((names, call.format(name)) for call, renamed in RENAMED.items() for name, names in renamed.items()),
    # shapes and places
    ("squeeze unsqueeze expand_dims view view_as flatten unflatten ravel resize", _RESHAPE),
    ("permute swapaxes swapdims movedim moveaxis t", "op transpose(x, perm=[1, 0]) >> y;"),
    ("identity copy clone detach contiguous assign stop_gradient dropout", _COPY),
    ("expand expand_as broadcast", "op broadcast_to(x, shape=[2, 4, 6]) >> y;"),
    ("tile", "op concat(x, x, axis=0) >> y;"),
    ("repeat_interleave repeat_elements", "op repeat(x, times=2, axis=0) >> y;"),
    ("cat concatenate hstack vstack append", "op concat(a, b, axis=0) >> y;"),
    ("stack",
     "op reshape(a, shape=[1, 4, 6]) >> a1; op reshape(b, shape=[1, 4, 6]) >> b1; op concat(a1, b1, axis=0) >> y;"),
    ("chunk unbind unstack split_with_sizes tensor_split split_v",
     "op split(x, axis=1, sizes=[3, 3]) >> p, g;"),
    ("narrow select strided_slice crop", "op slice(x, axis=0, start=1, end=3) >> y;"),
    ("embedding embedding_lookup index_select take lookup token_embedding", "op gather(table, ids) >> y;"),
    ("one_hot", "op iota(shape=[10]) >> k; op eq(i, k) >> y;"),
    ("fill_ full full_like zeros zeros_like ones ones_like constant_of_shape", "op fill(x, value=1.0) >> y;"),
    ("arange range", "op iota(shape=[10]) >> y;"),
    ("masked_fill masked_select select_v2 cond_take", "op where(c, a, x) >> y;"),
    ("zero_padding_1d zero_padding_2d constant_pad mirror_pad", "op pad(x, before=[0, 1], after=[0, 1]) >> y;"),
    ("reverse fliplr flipud", "op flip(x, axes=[1]) >> y;"),
    ("roll",
     "op slice(x, axis=1, start=5, end=6) >> p; op slice(x, axis=1, start=0, end=5) >> g;"
     " op concat(p, g, axis=1) >> y;"),
    ("scatter scatter_nd scatter_elements index_put index_copy slice_scatter kv_cache_update",
     "cache.write x >> K[n];"),
    ("to astype type cast_like float half int long", "op cast(x, to=f16) >> y;"),
    # activations
    ("clip hardtanh clip_by_value threshold", "op clamp(x, min=0.0, max=1.0) >> y;"),
    ("relu6", "op relu(x, clamp_max=6.0) >> y;"),
    ("leaky_relu", "op relu(x, alpha=0.01) >> y;"),
    ("prelu", "op is_neg(x) >> n0; op mul(x, a) >> t; op where(n0, t, x) >> y;"),
    ("elu", "op exp(x) >> t; op sub(t, one) >> t; op is_neg(x) >> n0; op where(n0, t, x) >> y;"),
    ("gelu_new gelu_tanh gelu_fast quick_gelu fast_gelu", 'op gelu(x, approx="tanh") >> y;'),
    ("hardsigmoid", "op fma(x, sixth, half) >> t; op clamp(t, min=0.0, max=1.0) >> y;"),
    ("hardswish", "op fma(x, sixth, half) >> t; op clamp(t, min=0.0, max=1.0) >> t; op mul(x, t) >> y;"),
    ("mish", "op softplus(x) >> t; op tanh(t) >> t; op mul(x, t) >> y;"),
    ("softsign", "op abs(x) >> t; op add(t, one) >> t; op div(x, t) >> y;"),
    ("logsigmoid", "op neg(x) >> t; op softplus(t) >> t; op neg(t) >> y;"),
    ("glu", "op split(x, axis=1, sizes=[3, 3]) >> p, g; op sigmoid(g) >> g; op mul(p, g) >> y;"),
    ("swiglu silu_and_mul", "op silu(a) >> t; op mul(t, b) >> y;"),
    ("geglu", "op gelu(a) >> t; op mul(t, b) >> y;"),
    # layers
    ("gemm dense fully_connected inner_product addmm fc", "op linear(x, w, b=bias) >> y;"),
    ("mm bmm dot einsum tensordot batch_matmul", "op matmul(x, m) >> y;"),
    ("conv convolution convolution2d", "op conv2d(image, filters) >> y;"),
    ("convolution1d causal_conv1d", "op conv1d(signal, kernel) >> y;"),
    ("depthwise_conv2d depthwise_conv_2d_native separable_conv2d",
     "op conv2d(image, depthwise, groups=3) >> y;"),
    ("conv_transpose deconvolution conv2d_transpose", "op conv_transpose2d(image, transposed) >> y;"),
    ("conv1d_transpose", "op conv_transpose1d(signal, adjoint) >> y;"),
    ("max_pool_1d max_pool_2d max_pooling_1d max_pooling_2d", "op max_pool(image, kernel=[2, 2]) >> y;"),
    ("avg_pool_1d avg_pool_2d average_pool average_pooling_1d average_pooling_2d",
     "op avg_pool(image, kernel=[2, 2]) >> y;"),
    ("global_average_pool global_average_pooling_2d adaptive_avg_pool_2d",
     "op mean_axis(image, axes=[2, 3]) >> y;"),
    ("global_max_pool global_max_pooling_2d adaptive_max_pool_2d", "op max_axis(image, axes=[2, 3]) >> y;"),
    ("upsample upsampling_2d interpolate resize_nearest_neighbor",
     "op repeat(image, times=2, axis=2) >> rows; op repeat(rows, times=2, axis=3) >> y;"),
    ("batch_normalization batch_norm_1d batch_norm_2d",
     "op batch_norm(image, scale, shift, mean, variance) >> y;"),
    ("layer_normalization", "op layer_norm(x, gamma, beta=beta, eps=1e-5) >> y;"),
    ("rms_normalization simplified_layer_normalization llama_rms_norm t5_layer_norm",
     "op rms_norm(x, gamma, eps=1e-6) >> y;"),
    ("normalize l2_normalize lp_normalization",
     "op mul(x, x) >> t; op sum_axis(t, axes=[1], keepdims=true) >> s; op rsqrt(s) >> s; op mul(x, s) >> y;"),
    ("gru", "op gru_cell(x, h, w_ih, w_hh, b_ih, b_hh) >> h1;"),
    ("lstm", "op lstm_cell(x, h, c0, v_ih, v_hh, d_ih, d_hh) >> h1, c1;"),
    ("rnn rnn_cell simple_rnn simple_rnn_cell elman",
     "op linear(x, w, b=bias) >> h1; op linear(h, u) >> h2; op add(h1, h2) >> h1; op tanh(h1) >> h1;"),
    ("scaled_dot_product_attention sdpa flash_attention multihead_attention group_query_attention",
     "op attention(q, keys, values, causal=true) >> y;"),
    ("rotary_embedding apply_rotary_pos_emb rotary_position_embedding", "op rope(q, pos=n) >> y;"),
    # reductions
    ("arg_max", "op argmax_axis(x, axis=1) >> y;"),
    ("arg_min", "op argmin_axis(x, axis=1) >> y;"),
    ("any reduce_any", "op cast(c, to=u8) >> flags; op max_axis(flags, axes=[1]) >> y;"),
    ("all reduce_all", "op cast(c, to=u8) >> flags; op min_axis(flags, axes=[1]) >> y;"),
    ("var variance reduce_variance",
     "op mean_axis(x, axes=[1], keepdims=true) >> s; op sub(x, s) >> t; op mul(t, t) >> t; "
     "op mean_axis(t, axes=[1]) >> y;"),
    ("norm reduce_l2 vector_norm", "op mul(x, x) >> t; op sum_axis(t, axes=[1]) >> r; op sqrt(r) >> y;"),
    ("sort argsort", "op top_k(x, k=6) >> y, k46;"),
    ("multinomial categorical", "op sample(logits, u0) >> y;"),
    # arithmetic
    ("logical_not bitwise_not invert", "op not(c) >> y;"),
    ("square", "op mul(x, x) >> y;"),
    ("log1p", "op add(x, one) >> t; op log(t) >> y;"),
    ("expm1", "op exp(x) >> t; op sub(t, one) >> y;"),
    ("tan", "op sin(x) >> t; op cos(x) >> t2; op div(t, t2) >> y;"),
    ("mod fmod remainder", "op rem(i, i) >> y;"),
    ("floor_mod", "op floor_div(i, i) >> i2; op mul(i2, i) >> i2; op sub(i, i2) >> y;"),
    ("lerp", "op sub(b, a) >> t; op fma(t, half, a) >> y;"),
    ("addcmul multiply_add mul_add", "op fma(a, b, x) >> y;"),
    # numbers in fewer bits
    ("quantize_linear quantize_per_tensor fake_quantize", "op quantize(x, unit, to=i8) >> y;"),
    ("dequantize_linear", "op dequantize(codes, unit, to=f32) >> y;"),
)  # fmt: skip

# Settings by the names that others give them.
SETTINGS = {
    "dim": ("axis", "axes", "dims"), "dims": ("axes", "perm"), "axis": ("axes",), "axes": ("axis", "perm"),
    "keepdim": ("keepdims",), "keep_dims": ("keepdims",), "epsilon": ("eps",), "permutation": ("perm",),
    "strides": ("stride",), "pads": ("padding", "before"), "padding": ("before",), "dilations": ("dilation",),
    "group": ("groups",), "kernel_size": ("kernel",), "kernel_shape": ("kernel",), "ksize": ("kernel",),
    "pool_size": ("kernel",), "dtype": ("to",), "target": ("to",), "negative_slope": ("alpha",),
    "slope": ("alpha",), "approximate": ("approx",), "is_causal": ("causal",), "attn_mask": ("mask",),
    "bias": ("b", "bias"), "theta": ("base",), "rope_theta": ("base",), "repeats": ("times",),
    "repeat": ("times",), "largest": (), "split_size_or_sections": ("sizes",), "sections": ("sizes",),
    "size": ("shape", "sizes"), "newshape": ("shape",), "begin": ("start",), "starts": ("start",),
    "stop": ("end",), "ends": ("end",), "steps": ("step",), "minimum": ("min",), "maximum": ("max",),
    "temp": ("temperature",), "sm_scale": ("scale",), "fill_value": ("value",),
}  # fmt: skip


def plain(name: str) -> str:
    """A name without what frameworks write differently: case and underscores."""
    return name.replace("_", "").lower()


STATEMENTS = {plain(name): statements for names, statements in TABLE for name in names.split()}
