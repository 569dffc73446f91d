"""adjoin.onnx._ops_nn: products, convolutions, pools, norms and losses, as nodes of ONNX say them."""

import math

import adjoin
from adjoin.nn import functional as F

from ._ops import op


@op("Gemm")
def _gemm(c):
    a, b = c[0], c[1]
    a = a.t() if c.attribute("transA", 0) else a
    b = b.t() if c.attribute("transB", 0) else b
    alpha, beta = c.attribute("alpha", 1.0), c.attribute("beta", 1.0)
    made = a @ b
    made = made if alpha == 1 else (made * alpha).to(made.dtype)
    if c[2] is None:
        return made
    return made + (c[2] if beta == 1 else (c[2] * beta).to(made.dtype))


@op("Einsum")
def _einsum(c):
    return adjoin.einsum(c.attribute("equation"), *c.every())


# Convolutions and pools
def paddings(c, kernel, strides, dilations, sizes):
    """(begin, end) of each dimension."""
    how, n = c.attribute("auto_pad", "NOTSET"), len(kernel)
    if how in ("NOTSET", "VALID"):
        pads = c.attribute("pads") if how == "NOTSET" else None
        pads = pads or [0] * (2 * n)
        return list(zip(pads[:n], pads[n:], strict=True))
    made = []
    for k, s, d, size in zip(kernel, strides, dilations, sizes, strict=True):
        total = max(0, (-(-size // s) - 1) * s + (k - 1) * d + 1 - size)
        made.append((total // 2, total - total // 2) if how == "SAME_UPPER" else (total - total // 2, total // 2))
    return made


def _flat(pads):
    return [n for begin, end in reversed(pads) for n in (begin, end)]


def _window(c, x, kernel):
    n = len(kernel)
    strides, dilations = c.attribute("strides") or [1] * n, c.attribute("dilations") or [1] * n
    return strides, dilations, paddings(c, kernel, strides, dilations, list(x.shape[2:]))


def convolved(c, x, weight, bias):
    n = x.dim() - 2
    strides, dilations, pads = _window(c, x, list(weight.shape[2:]))
    if all(b == e for b, e in pads):
        padding = [b for b, _ in pads]
    else:
        x, padding = F.pad(x, _flat(pads)), [0] * n
    if n > 3:
        raise NotImplementedError(f"a convolution over {n} dimensions is not served")
    function = (F.conv1d, F.conv2d, F.conv3d)[n - 1]
    return function(x, weight, bias, strides, padding, dilations, c.attribute("group", 1))


@op("Conv")
def _conv(c):
    return convolved(c, c[0], c[1], c[2])


@op("ConvTranspose")
def _conv_transpose(c):
    x, weight = c[0], c[1]
    n = x.dim() - 2
    kernel = list(weight.shape[2:])
    strides, dilations = c.attribute("strides") or [1] * n, c.attribute("dilations") or [1] * n
    more, how = c.attribute("output_padding") or [0] * n, c.attribute("auto_pad", "NOTSET")
    whole = [
        (s - 1) * t + (k - 1) * d + 1 + o
        for s, t, k, d, o in zip(x.shape[2:], strides, kernel, dilations, more, strict=True)
    ]
    wanted = c.attribute("output_shape")
    if wanted is None and how.startswith("SAME"):
        wanted = [s * t for s, t in zip(x.shape[2:], strides, strict=True)]
    if wanted is not None:
        total = [w - n for w, n in zip(whole, wanted, strict=True)]
        pads = [(t - t // 2, t // 2) if how != "SAME_UPPER" else (t // 2, t - t // 2) for t in total]
    else:
        pads = paddings(c, kernel, strides, dilations, list(x.shape[2:]))
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[n - 1]
    least = [min(o, max(s, d) - 1) for o, s, d in zip(more, strides, dilations, strict=True)]
    made = function(x, weight, c[2], strides, 0, least, c.attribute("group", 1), dilations)
    cut = [(-b, size - have - e) for (b, e), size, have in zip(pads, whole, made.shape[2:], strict=True)]
    return F.pad(made, _flat(cut)) if any(n for pair in cut for n in pair) else made


def _ceiled(pads, sizes, kernel, strides, dilations):
    """More padding at the end, so that the last, partial window counts."""
    made = []
    for (b, e), size, k, s, d in zip(pads, sizes, kernel, strides, dilations, strict=True):
        span = (k - 1) * d + 1
        n = -(-(size + b + e - span) // s) + 1
        if (n - 1) * s >= size + b:
            n -= 1
        made.append((b, max(e, (n - 1) * s + span - size - b)))
    return made


@op("MaxPool")
def _max_pool(c):
    x, kernel = c[0], c.attribute("kernel_shape")
    n, dtype = len(kernel), x.dtype
    strides, dilations, pads = _window(c, x, kernel)
    if c.attribute("ceil_mode", 0):
        pads = _ceiled(pads, list(x.shape[2:]), kernel, strides, dilations)
    x = x if dtype.is_floating_point else x.float()
    sizes = list(x.shape[2:])
    padded = F.pad(x, _flat(pads), value=-math.inf) if any(p for pair in pads for p in pair) else x
    function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[n - 1]
    if len(c.node.output) == 1:
        return function(padded, kernel, strides, 0, dilations).to(dtype)
    made, at = function(padded, kernel, strides, 0, dilations, return_indices=True)
    places, rest = [], at
    for size in reversed(padded.shape[2:]):
        places.insert(0, rest % size)
        rest = adjoin.div(rest, size, rounding_mode="floor")
    places = [p - b for p, (b, _) in zip(places, pads, strict=True)]
    flat, order = 0, range(n) if not c.attribute("storage_order", 0) else range(n - 1, -1, -1)
    for i in order:
        flat = flat * sizes[i] + places[i]
    plane = math.prod(sizes)
    first = adjoin.arange(x.shape[0] * x.shape[1]).reshape([x.shape[0], x.shape[1]] + [1] * n) * plane
    return made.to(dtype), flat + first


@op("AveragePool")
def _average_pool(c):
    x, kernel = c[0], c.attribute("kernel_shape")
    strides, dilations, pads = _window(c, x, kernel)
    wide = _ceiled(pads, list(x.shape[2:]), kernel, strides, dilations) if c.attribute("ceil_mode", 0) else pads
    counted = adjoin.ones([1, 1, *x.shape[2:]], dtype=x.dtype)
    if c.attribute("count_include_pad", 0):
        counted = F.pad(counted, _flat(pads), value=1.0)
        counted = F.pad(counted, _flat([(0, w[1] - p[1]) for w, p in zip(wide, pads, strict=True)]))
    else:
        counted = F.pad(counted, _flat(wide))
    return _summed(F.pad(x, _flat(wide)), kernel, strides, dilations) / _summed(counted, kernel, strides, dilations)


def _summed(x, kernel, strides, dilations):
    """Sums over windows: a convolution of each channel with ones."""
    n, lead = len(kernel), x.shape[0] * x.shape[1]
    function = (F.conv1d, F.conv2d, F.conv3d)[n - 1]
    made = function(
        x.reshape([lead, 1, *x.shape[2:]]), adjoin.ones([1, 1, *kernel], dtype=x.dtype), None, strides, 0, dilations
    )
    return made.reshape([*x.shape[:2], *made.shape[2:]])


@op("LpPool")
def _lp_pool(c):
    x, kernel, p = c[0], c.attribute("kernel_shape"), c.attribute("p", 2)
    strides, dilations, pads = _window(c, x, kernel)
    if c.attribute("ceil_mode", 0):
        pads = _ceiled(pads, list(x.shape[2:]), kernel, strides, dilations)
    return _summed(F.pad(adjoin.abs(x) ** p, _flat(pads)), kernel, strides, dilations) ** (1.0 / p)


@op("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def _global_pool(c):
    x, dims = c[0], list(range(2, c[0].dim()))
    if c.node.op_type == "GlobalMaxPool":
        return adjoin.amax(x, dims, True)
    if c.node.op_type == "GlobalAveragePool":
        return adjoin.mean(x, dims, True)
    p = c.attribute("p", 2)
    return adjoin.sum(adjoin.abs(x) ** p, dims, True) ** (1.0 / p)


@op("MaxUnpool")
def _max_unpool(c):
    x, at, kernel = c[0], c[1], c.attribute("kernel_shape")
    n = len(kernel)
    strides, pads = c.attribute("strides") or [1] * n, c.attribute("pads") or [0] * (2 * n)
    sizes = [
        (s - 1) * t - pads[i] - pads[i + n] + k
        for i, (s, t, k) in enumerate(zip(x.shape[2:], strides, kernel, strict=True))
    ]
    wanted = [int(v) for v in c.list(2)] if c.has(2) else [*x.shape[:2], *sizes]
    inner = [*x.shape[:2], *sizes]
    made = adjoin.zeros(math.prod(inner), dtype=x.dtype).scatter(0, at.reshape(-1), x.reshape(-1)).reshape(inner)
    more = [(0, w - n) for w, n in zip(wanted[2:], sizes, strict=True)]
    return F.pad(made, _flat(more)) if any(n for pair in more for n in pair) else made


@op("Pad")
def _pad(c):
    x, how = c[0], c.attribute("mode", "constant")
    pads = [int(p) for p in (c.list(1) if c.opset >= 11 else c.attribute("pads"))]
    value = c.number(2) if c.has(2) else c.attribute("value", 0)
    axes = [int(a) % x.dim() for a in c.list(3)] if c.has(3) else list(range(x.dim()))
    pairs = [(0, 0)] * x.dim()
    for i, a in enumerate(axes):
        pairs[a] = (pads[i], pads[i + len(axes)])
    if how == "constant":
        return F.pad(x, _flat(pairs), value=0 if value is None else value)
    for d, (b, e) in enumerate(pairs):
        if b == 0 and e == 0:
            continue
        n = x.shape[d]
        at = adjoin.arange(-b, n + e)
        if how == "edge":
            at = at.clamp(0, n - 1)
        elif how == "wrap":
            at = adjoin.remainder(at, n)
        else:
            period = max(1, 2 * (n - 1))
            at = adjoin.remainder(at, period)
            at = adjoin.where(at >= n, period - at, at)
        x = x.index_select(d, at)
    return x


@op("DepthToSpace", "SpaceToDepth")
def _depth(c):
    x, r = c[0], c.attribute("blocksize")
    b, d, h, w = x.shape
    if c.node.op_type == "SpaceToDepth":
        if c.attribute("mode", "DCR") == "CRD":
            return x.reshape(b, d, h // r, r, w // r, r).permute(0, 1, 3, 5, 2, 4).reshape(b, d * r * r, h // r, w // r)
        return x.reshape(b, d, h // r, r, w // r, r).permute(0, 3, 5, 1, 2, 4).reshape(b, d * r * r, h // r, w // r)
    if c.attribute("mode", "DCR") == "CRD":
        return x.reshape(b, d // (r * r), r, r, h, w).permute(0, 1, 4, 2, 5, 3).reshape(b, d // (r * r), h * r, w * r)
    return x.reshape(b, r, r, d // (r * r), h, w).permute(0, 3, 4, 1, 5, 2).reshape(b, d // (r * r), h * r, w * r)


# Norms
@op("BatchNormalization")
def _batch_norm(c):
    x, scale, bias, mean, variance = (c[i] for i in range(5))
    eps = c.attribute("epsilon", 1e-5)
    wide = [1, -1] + [1] * (x.dim() - 2)
    if not c.attribute("training_mode", 0):
        if x.dtype == scale.dtype == mean.dtype:
            return F.batch_norm(x, mean, variance, scale, bias, False, 0.0, eps)
        made = (x - mean.reshape(wide)) / adjoin.sqrt(variance.reshape(wide) + eps) * scale.reshape(
            wide
        ) + bias.reshape(wide)
        return made.to(x.dtype)
    dims, momentum = [d for d in range(x.dim()) if d != 1], c.attribute("momentum", 0.9)
    now = x.mean(dims)
    spread = ((x - now.reshape(wide)) ** 2).mean(dims)
    made = (x - now.reshape(wide)) / adjoin.sqrt(spread.reshape(wide) + eps) * scale.reshape(wide) + bias.reshape(wide)
    return made, mean * momentum + now * (1 - momentum), variance * momentum + spread * (1 - momentum)


@op("LayerNormalization")
def _layer_norm(c):
    x, scale, bias, eps = c[0], c[1], c[2], c.attribute("epsilon", 1e-5)
    axis = c.attribute("axis", -1) % x.dim()
    dims = list(range(axis, x.dim()))
    if len(c.node.output) == 1 and list(scale.shape) == list(x.shape[axis:]) and x.dtype == scale.dtype:
        return F.layer_norm(x, list(x.shape[axis:]), scale, bias, eps)
    mean = x.mean(dims, True)
    inverse = 1 / adjoin.sqrt(((x - mean) ** 2).mean(dims, True) + eps)
    made = (x - mean) * inverse * scale
    return (made if bias is None else made + bias), mean, inverse


@op("RMSNormalization")
def _rms_norm(c):
    x, axis = c[0], c.attribute("axis", -1) % c[0].dim()
    dims = list(range(axis, x.dim()))
    return (x / adjoin.sqrt((x * x).mean(dims, True) + c.attribute("epsilon", 1e-5)) * c[1]).to(x.dtype)


@op("InstanceNormalization")
def _instance_norm(c):
    return F.instance_norm(c[0], None, None, c[1], c[2], True, 0.0, c.attribute("epsilon", 1e-5))


@op("GroupNormalization")
def _group_norm(c):
    x, groups = c[0], c.attribute("num_groups")
    scale, bias = c[1], c[2]
    if c.opset < 21:  # one number for each group
        per = x.shape[1] // groups
        scale, bias = scale.repeat_interleave(per), bias.repeat_interleave(per)
    return F.group_norm(x, groups, scale, bias, c.attribute("epsilon", 1e-5))


@op("LpNormalization")
def _lp_norm(c):
    x, axis, p = c[0], c.attribute("axis", -1), c.attribute("p", 2)
    length = adjoin.sum(adjoin.abs(x), [axis], True) if p == 1 else adjoin.sqrt(adjoin.sum(x * x, [axis], True))
    return adjoin.where(length == 0, adjoin.zeros_like(x), x / length)


@op("MeanVarianceNormalization")
def _mvn(c):
    x, axes = c[0], c.attribute("axes") or [0, 2, 3]
    mean = x.mean(axes, True)
    return (x - mean) / (adjoin.sqrt(((x - mean) ** 2).mean(axes, True)) + 1e-9)


@op("LRN")
def _lrn(c):
    x, size = c[0], c.attribute("size")
    half = (size - 1) // 2
    square = F.pad((x * x).transpose(1, -1), (half, size - 1 - half)).unfold(-1, size, 1).sum(-1).transpose(1, -1)
    return x / (c.attribute("bias", 1.0) + c.attribute("alpha", 0.0001) / size * square) ** c.attribute("beta", 0.75)


@op("Dropout")
def _dropout(c):
    x = c[0]
    ratio = c.number(1, 0.5) if c.opset >= 12 else c.attribute("ratio", 0.5)
    on = bool(c.number(2, 0)) and ratio
    if not on:
        return x, adjoin.ones(x.shape, dtype=adjoin.bool)
    kept = adjoin.rand(x.shape) >= ratio
    return x * kept / (1 - ratio), kept


# Losses
@op("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def _nll(c):
    x, target, weight = c[0], c[1].long(), c[2]
    how, ignored = c.attribute("reduction", "mean"), c.attribute("ignore_index")
    logs = F.log_softmax(x, 1) if c.node.op_type == "SoftmaxCrossEntropyLoss" else x
    at = target if ignored is None else adjoin.where(target == ignored, 0, target)
    at = adjoin.where(at < 0, at + x.shape[1], at)
    loss = -logs.gather(1, at.unsqueeze(1)).squeeze(1)
    each = adjoin.ones_like(loss) if weight is None else weight[at]
    if ignored is not None:
        each = adjoin.where(target == ignored, adjoin.zeros_like(each), each)
    loss = loss * each
    if how == "sum":
        loss = loss.sum()
    elif how == "mean":
        loss = loss.sum() / each.sum()
    return loss, logs
