"""adjoin.onnx._rules_nn: layers, products and attention, as nodes of ONNX."""

import math

import adjoin

from . import _ir
from ._builder import plain, rule
from ._rules import _axes, axis, rank, result_dtype, variance
from ._rules_shape import counted


def _last_transposed(g, x):
    order = list(range(rank(x)))
    order[-1], order[-2] = order[-2], order[-1]
    return g.node("Transpose", x, perm=order)


@rule("nn::linear")
def _linear(g, a, call):
    if rank(a.input) == 2 and rank(a.weight) == 2:
        return g.node("Gemm", a.input, a.weight, a.bias, transB=1)
    made = g.node("MatMul", a.input, _last_transposed(g, a.weight) if rank(a.weight) == 2 else a.weight)
    return made if a.bias is None else g.node("Add", made, a.bias)


@rule("matmul", "mm", "bmm", "mv", "dot", "linalg::matmul", "inner")
def _matmul(g, a, call):
    x, y = list(vars(a).values())[:2]
    return g.node("MatMul", x, y)


@rule("addmm", "baddbmm", "addbmm", "addmv")
def _addmm(g, a, call):
    added, x, y = (v for v in vars(a).values() if isinstance(v, _ir.Value))
    if call.op == "addmm":
        return g.node("Gemm", x, y, added, alpha=float(a.alpha), beta=float(a.beta))
    made = g.node("MatMul", x, y)
    if a.alpha != 1:
        made = g.node("Mul", made, g.scalar(a.alpha, x.dtype))
    if a.beta != 1:
        added = g.node("Mul", added, g.scalar(a.beta, x.dtype))
    return g.node("Add", added, made)


@rule("einsum")
def _einsum(g, a, call):
    tensors = next(v for v in vars(a).values() if isinstance(v, list))
    equation = next(v for v in vars(a).values() if isinstance(v, str))
    return g.node("Einsum", *tensors, equation=equation.replace(" ", ""))


# Convolutions and pools
def _wide(number, n):
    number = number if isinstance(number, list) else [number]
    return number * n if len(number) == 1 else number


def _spatial(call):
    return int(next(c for c in reversed(call.op.partition(".")[0]) if c.isdigit()))


@rule(*(f"nn::conv{n}d{p}" for n in (1, 2, 3) for p in ("", ".padding")))
def _conv(g, a, call):
    n = _spatial(call)
    batched = rank(a.input) == n + 2
    x = g.name(a.input) if batched else g.node("Unsqueeze", a.input, g.ints([0]))
    dilations, kernel = _wide(a.dilation, n), list(a.weight.shape[2:])
    if isinstance(a.padding, str):
        total = [0] * n if a.padding == "valid" else [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
        pads = [t // 2 for t in total] + [t - t // 2 for t in total]
    else:
        pads = _wide(a.padding, n) * 2
    made = g.node(
        "Conv",
        x,
        a.weight,
        a.bias,
        strides=_wide(a.stride, n),
        pads=pads,
        dilations=dilations,
        group=a.groups,
        kernel_shape=kernel,
    )
    return made if batched else g.node("Squeeze", made, g.ints([0]))


@rule(*(f"nn::conv_transpose{n}d" for n in (1, 2, 3)))
def _conv_transpose(g, a, call):
    n = _spatial(call)
    batched = rank(a.input) == n + 2
    x = g.name(a.input) if batched else g.node("Unsqueeze", a.input, g.ints([0]))
    made = g.node(
        "ConvTranspose", x, a.weight, a.bias, strides=_wide(a.stride, n), pads=_wide(a.padding, n) * 2, dilations=_wide(a.dilation, n),
        output_padding=_wide(a.output_padding, n), group=a.groups, kernel_shape=list(a.weight.shape[2:]),
    )  # fmt: skip
    return made if batched else g.node("Squeeze", made, g.ints([0]))


@rule(*(f"nn::{kind}_pool{n}d" for n in (1, 2, 3) for kind in ("max", "avg")))
def _pool(g, a, call):
    n, largest = _spatial(call), call.op.startswith("nn::max")
    batched = rank(a.input) == n + 2
    x = g.name(a.input) if batched else g.node("Unsqueeze", a.input, g.ints([0]))
    kernel = _wide(a.kernel_size, n)
    said = {"kernel_shape": kernel, "strides": _wide(a.stride, n) if a.stride else kernel, "pads": _wide(a.padding, n) * 2, "ceil_mode": int(a.ceil_mode)}  # fmt: skip
    if largest:
        if a.return_indices:
            raise NotImplementedError(
                "onnx.export: max_pool with return_indices=True has no rule: ONNX counts its indices otherwise"
            )
        made = g.node("MaxPool", x, dilations=_wide(a.dilation, n), **said)
    elif getattr(a, "divisor_override", None):
        made = g.node("AveragePool", x, count_include_pad=1, **said)
        made = g.node("Mul", made, g.scalar(math.prod(kernel) / a.divisor_override, a.input.dtype))
    else:
        made = g.node("AveragePool", x, count_include_pad=int(a.count_include_pad), **said)
    return made if batched else g.node("Squeeze", made, g.ints([0]))


@rule(*(f"nn::adaptive_{kind}_pool{n}d" for n in (1, 2, 3) for kind in ("max", "avg")))
def _adaptive(g, a, call):
    n, kind = _spatial(call), "Max" if "max" in call.op else "Average"
    if getattr(a, "return_indices", False):
        raise NotImplementedError("onnx.export: adaptive_max_pool with return_indices=True has no rule")
    have, want = a.input.shape[-n:], _wide(a.output_size, n)
    want = [h if w is None else w for h, w in zip(have, want, strict=True)]
    if all(w == 1 for w in want):
        return g.node(f"Global{kind}Pool", a.input)
    if list(have) == want:
        return g.node("Identity", a.input)
    if any(isinstance(h, _ir.Size) or h % w for h, w in zip(have, want, strict=True)):
        raise NotImplementedError(
            f"onnx.export: {call.op} to {want} needs sizes that are known and multiples of it, not {[str(h) for h in have]}"
        )
    kernel = [h // w for h, w in zip(have, want, strict=True)]
    return g.node(f"{kind}Pool", a.input, kernel_shape=kernel, strides=kernel)


# Norms
def _vector(g, given, n, number, dtype):
    return g.name(given) if given is not None else g.constant(adjoin.full((n,), float(number), dtype=plain(dtype)))


@rule("nn::batch_norm")
def _batch_norm(g, a, call):
    if a.training or a.running_mean is None:
        raise NotImplementedError(
            "onnx.export: batch_norm in training mode has no rule; call eval() on the module first"
        )
    x, n = a.input, a.running_mean.shape[0]
    weight, bias = _vector(g, a.weight, n, 1, x.dtype), _vector(g, a.bias, n, 0, x.dtype)
    return g.node("BatchNormalization", x, weight, bias, a.running_mean, a.running_var, epsilon=float(a.eps))


@rule("nn::layer_norm")
def _layer_norm(g, a, call):
    x, n = a.input, len(a.normalized_shape)
    shape = tuple(a.normalized_shape)
    weight = g.name(a.weight) if a.weight is not None else g.constant(adjoin.ones(shape, dtype=plain(x.dtype)))
    if g.opset >= 17:
        return g.node("LayerNormalization", x, weight, a.bias, axis=-n, epsilon=float(a.eps))
    return _normed(g, x, list(range(rank(x) - n, rank(x))), a.weight, a.bias, a.eps)


def _normed(g, x, dims, weight, bias, eps):
    centre = g.node("Sub", x, _axes(g, "ReduceMean", x, dims, True))
    deviation = g.node("Sqrt", g.node("Add", variance(g, x, dims, True, 0), g.scalar(float(eps), x.dtype)))
    made = g.node("Div", centre, deviation)
    made = made if weight is None else g.node("Mul", made, weight)
    return made if bias is None else g.node("Add", made, bias)


@rule("nn::rms_norm")
def _rms_norm(g, a, call):
    x = a.input
    dims = list(range(rank(x) - len(a.normalized_shape), rank(x)))
    eps = adjoin.finfo(plain(x.dtype)).eps if a.eps is None else a.eps
    square = _axes(g, "ReduceMean", g.node("Mul", x, x), dims, True)
    made = g.node("Div", x, g.node("Sqrt", g.node("Add", square, g.scalar(float(eps), x.dtype))))
    return made if a.weight is None else g.node("Mul", made, a.weight)


@rule("nn::group_norm", "nn::instance_norm")
def _group_norm(g, a, call):
    x, channels = a.input, a.input.shape[1]
    if call.op == "nn::instance_norm":
        if not a.use_input_stats:
            return g.node("BatchNormalization", x, _vector(g, a.weight, channels, 1, x.dtype), _vector(g, a.bias, channels, 0, x.dtype), a.running_mean, a.running_var, epsilon=float(a.eps))  # fmt: skip
        return g.node("InstanceNormalization", x, _vector(g, a.weight, channels, 1, x.dtype), _vector(g, a.bias, channels, 0, x.dtype), epsilon=float(a.eps))  # fmt: skip
    parts = g.node("Reshape", x, g.ints([0, a.num_groups, -1]))
    one = g.constant(adjoin.ones(a.num_groups, dtype=plain(x.dtype)))
    none = g.constant(adjoin.zeros(a.num_groups, dtype=plain(x.dtype)))
    made = g.node("InstanceNormalization", parts, one, none, epsilon=float(a.eps))
    made = g.node("Reshape", made, g.node("Shape", x))
    last = [channels] + [1] * (rank(x) - 2)
    if a.weight is not None:
        made = g.node("Mul", made, g.reshape(a.weight, last))
    return made if a.bias is None else g.node("Add", made, g.reshape(a.bias, last))


@rule("nn::normalize")
def _normalize(g, a, call):
    if a.p not in (1, 2):
        raise NotImplementedError(f"onnx.export: normalize with p={a.p} has no rule")
    length = _axes(
        g,
        f"ReduceL{int(a.p)}",
        a.input,
        [axis(d, a.input) for d in (a.dim if isinstance(a.dim, list) else [a.dim])],
        True,
    )
    return g.node("Div", a.input, g.node("Max", length, g.scalar(float(a.eps), a.input.dtype)))


@rule("nn::local_response_norm")
def _lrn(g, a, call):
    return g.node("LRN", a.input, size=a.size, alpha=float(a.alpha), beta=float(a.beta), bias=float(a.k))


# Activations
@rule("softmax", "log_softmax")
def _softmax(g, a, call):
    x = g.cast(a.input, a.input.dtype, result_dtype(call))
    return g.node("Softmax" if call.op == "softmax" else "LogSoftmax", x, axis=axis(a.dim, a.input))


@rule("nn::gelu")
def _gelu(g, a, call):
    x, dtype = a.input, a.input.dtype
    if g.opset >= 20:
        return g.node("Gelu", x, approximate=a.approximate)
    half, one = g.scalar(0.5, dtype), g.scalar(1.0, dtype)
    if a.approximate == "tanh":
        cube = g.node("Mul", g.node("Mul", x, x), x)
        inside = g.node("Add", x, g.node("Mul", cube, g.scalar(0.044715, dtype)))
        part = g.node("Tanh", g.node("Mul", inside, g.scalar(math.sqrt(2 / math.pi), dtype)))
    else:
        part = g.node("Erf", g.node("Mul", x, g.scalar(math.sqrt(0.5), dtype)))
    return g.node("Mul", g.node("Mul", x, half), g.node("Add", part, one))


@rule(
    "nn::silu",
    "nn::mish",
    "nn::relu6",
    "nn::hardtanh",
    "nn::tanhshrink",
    "nn::logsigmoid",
    "nn::glu",
    "nn::log_sigmoid",
)
def _activation(g, a, call):
    x, op = a.input, call.op[4:]
    if op == "silu":
        return g.node("Mul", x, g.node("Sigmoid", x))
    if op == "mish":
        return g.node("Mul", x, g.node("Tanh", g.node("Softplus", x)))
    if op in ("logsigmoid", "log_sigmoid"):
        return g.node("Neg", g.node("Softplus", g.node("Neg", x)))
    if op == "tanhshrink":
        return g.node("Sub", x, g.node("Tanh", x))
    if op == "glu":
        d = axis(a.dim, x)
        half = x.shape[d] // 2
        left, right = g.node("Split", x, g.ints([half, half]), outputs=2, axis=d)
        return g.node("Mul", left, g.node("Sigmoid", right))
    low, high = (0, 6) if op == "relu6" else (a.min_val, a.max_val)
    return g.node("Clip", x, g.scalar(low, x.dtype), g.scalar(high, x.dtype))


@rule(
    "nn::leaky_relu",
    "nn::elu",
    "nn::celu",
    "nn::selu",
    "nn::hardswish",
    "nn::hardsigmoid",
    "nn::prelu",
    "nn::softplus",
    "nn::threshold",
    "nn::softmin",
)
def _parametric(g, a, call):
    x, op = a.input, call.op[4:]
    if op == "leaky_relu":
        return g.node("LeakyRelu", x, alpha=float(a.negative_slope))
    if op in ("elu", "celu"):
        return g.node(op.capitalize(), x, alpha=float(a.alpha))
    if op == "selu":
        return g.node("Selu", x)
    if op in ("hardswish", "hardsigmoid"):
        made = g.node("HardSigmoid", x, alpha=1 / 6, beta=0.5)
        return made if op == "hardsigmoid" else g.node("Mul", x, made)
    if op == "softplus":
        if a.beta == 1:
            return g.node("Softplus", x)
        return g.node("Div", g.node("Softplus", g.node("Mul", x, g.scalar(a.beta, x.dtype))), g.scalar(a.beta, x.dtype))
    if op == "threshold":
        return g.node("Where", g.node("Greater", x, g.scalar(a.threshold, x.dtype)), x, g.scalar(a.value, x.dtype))
    if op == "softmin":
        return g.node("Softmax", g.node("Neg", x), axis=axis(a.dim, x))
    weight = g.name(a.weight)
    if a.weight.shape and a.weight.shape[0] != 1 and rank(x) > 2:
        weight = g.reshape(a.weight, [a.weight.shape[0]] + [1] * (rank(x) - 2))
    return g.node("PRelu", x, weight)


@rule(
    "nn::dropout",
    "nn::feature_dropout",
    "nn::alpha_dropout",
    "nn::dropout2d",
    "nn::dropout1d",
    "nn::dropout3d",
    "nn::feature_alpha_dropout",
)
def _dropout(g, a, call):
    if a.training and a.p:
        if call.op != "nn::dropout":
            raise NotImplementedError(
                f"onnx.export: {call.op} in training mode has no rule; call eval() on the module first"
            )
        return g.node("Dropout", a.input, g.scalar(float(a.p), adjoin.float32), g.constant(adjoin.tensor(True)))
    return g.node("Identity", a.input)


@rule("nn::embedding")
def _embedding(g, a, call):
    if a.max_norm is not None:
        raise NotImplementedError("onnx.export: embedding with max_norm writes its weight, which has no rule")
    return g.node("Gather", a.weight, a.input, axis=0)


@rule("nn::one_hot")
def _one_hot(g, a, call):
    return g.node(
        "OneHot", a.input, g.scalar(call.results[0].shape[-1], adjoin.int64), g.constant(adjoin.tensor([0, 1])), axis=-1
    )


@rule("nn::scaled_dot_product_attention")
def _attention(g, a, call):
    q, k, v = a.query, a.key, a.value
    if a.dropout_p:
        raise NotImplementedError("onnx.export: attention with dropout has no rule; call eval() on the module first")
    if a.enable_gqa:
        raise NotImplementedError(
            "onnx.export: attention with enable_gqa=True has no rule; repeat the heads of key and value"
        )
    width = q.shape[-1]
    scale = (1 / math.sqrt(width)) if a.scale is None else a.scale
    root = g.scalar(math.sqrt(abs(scale)), q.dtype)
    keys = g.node("Mul", _last_transposed(g, k), root)
    scores = g.node("MatMul", g.node("Mul", q, root), keys)
    scores = g.node("Neg", scores) if scale < 0 else scores
    mask = a.attn_mask
    if a.is_causal:
        n, s = q.shape[-2], k.shape[-2]
        rows = g.node("Unsqueeze", counted(g, n), g.ints([1]))
        seen = g.node("GreaterOrEqual", rows, g.node("Unsqueeze", counted(g, s), g.ints([0])))
        scores = g.node("Where", seen, scores, g.scalar(-math.inf, q.dtype))
    if mask is not None and mask.dtype == "bool":
        scores = g.node("Where", mask, scores, g.scalar(-math.inf, q.dtype))
    elif mask is not None:
        scores = g.node("Add", scores, mask)
    return g.node("MatMul", g.node("Softmax", scores, axis=-1), v)


# Pictures
@rule("nn::pad")
def _pad(g, a, call):
    x, mode = a.input, a.mode
    pads, n = a.pad, rank(x)
    begin, end = [0] * n, [0] * n
    for i in range(len(pads) // 2):
        begin[n - 1 - i], end[n - 1 - i] = pads[2 * i], pads[2 * i + 1]
    if mode == "circular" and g.opset < 19:
        raise NotImplementedError("onnx.export: circular padding needs opset 19")
    said = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    value = g.scalar(a.value or 0, x.dtype) if said == "constant" else None
    return g.node("Pad", x, g.ints(begin + end), value, mode=said)


@rule("nn::interpolate", "nn::upsample")
def _interpolate(g, a, call):
    x, out = a.input, call.results[0]
    how = {"nearest": "nearest", "nearest-exact": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(a.mode)  # fmt: skip
    if how is None or getattr(a, "antialias", False):
        raise NotImplementedError(f"onnx.export: interpolate with mode={a.mode!r} or antialias has no rule")
    place = (
        "align_corners"
        if a.align_corners
        else "asymmetric"
        if a.mode == "nearest"
        else "pytorch_half_pixel"
        if how == "linear"
        else "half_pixel"
    )
    rounding = "floor" if a.mode == "nearest" else "round_prefer_floor" if how != "nearest" else "round_prefer_ceil"
    said = {"mode": how, "coordinate_transformation_mode": place, "nearest_mode": rounding, "cubic_coeff_a": -0.75}
    if a.scale_factor and not a.recompute_scale_factor:
        n = rank(x) - 2
        factor = a.scale_factor if len(a.scale_factor) == n else a.scale_factor * n
        return g.node("Resize", x, None, g.constant(adjoin.tensor([1.0, 1.0, *map(float, factor)])), **said)
    return g.node("Resize", x, None, None, g.ints(out.shape), **said)


@rule("pixel_shuffle", "nn::pixel_shuffle", "pixel_unshuffle", "nn::pixel_unshuffle")
def _shuffle(g, a, call):
    if call.op.endswith("pixel_shuffle"):
        return g.node("DepthToSpace", a.input, blocksize=a.upscale_factor, mode="CRD")
    x, r = a.input, a.downscale_factor
    b, c, h, w = x.shape
    if any(isinstance(n, _ir.Size) for n in (h, w)):
        raise NotImplementedError("onnx.export: pixel_unshuffle of a size that is not known has no rule")
    parts = g.node("Reshape", x, g.ints([0, c, h // r, r, w // r, r]))
    return g.node(
        "Reshape", g.node("Transpose", parts, perm=[0, 1, 3, 5, 2, 4]), g.ints([0, c * r * r, h // r, w // r])
    )
