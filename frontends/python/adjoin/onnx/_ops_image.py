"""adjoin.onnx._ops_image: pictures, signals, windows and boxes, as nodes of ONNX say them."""

import math

import adjoin
from adjoin.nn import functional as F

from . import _model as m
from ._ops import op

_LARGEST = 1 << 26  # elements of a table of weights


# Resize: along each axis a product with a table of weights.
def _source(how, y, scale, size, out, roi):
    """Where in the input the place y of the output lies."""
    width = scale * size
    if how == "align_corners":
        return 0.0 if width == 1 else y * (size - 1) / (width - 1)
    if how == "asymmetric":
        return y / scale
    if how == "tf_crop_and_resize":
        if width == 1:
            return (roi[1] - roi[0]) * (size - 1) / 2 + roi[0] * (size - 1)
        return y * (roi[1] - roi[0]) * (size - 1) / (width - 1) + roi[0] * (size - 1)
    if how == "pytorch_half_pixel" and width == 1:
        return -0.5
    if how in ("half_pixel", "pytorch_half_pixel"):
        return (y + 0.5) / scale - 0.5
    if how == "half_pixel_symmetric":
        return size / 2 * (1 - out / width) + (y + 0.5) / scale - 0.5
    raise NotImplementedError(f"coordinate_transformation_mode={how!r} is not served")


def _cubic(x, a):
    x = abs(x)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


def _taps(mode, nearest, x, scale, antialias, a):
    """[(place, weight)] around x."""
    first = math.ceil(x) - 1
    ratio = x - first
    if mode == "nearest":
        if x == math.floor(x):
            return [(int(x), 1.0)]
        up = {"round_prefer_floor": ratio > 0.5, "round_prefer_ceil": ratio >= 0.5, "floor": False, "ceil": True}[
            nearest
        ]
        return [(first + up, 1.0)]
    less = min(scale, 1.0) if antialias else 1.0
    wide = 1 if mode == "linear" else 2
    start = math.floor(-wide / less) + 1
    places = range(start, 2 - start)
    if mode == "linear":
        weights = [max(0.0, 1 - abs((i - ratio) * less)) for i in places]
    else:
        weights = [_cubic((i - ratio) * less, a) for i in places]
    total = sum(weights) if antialias else 1.0
    return [(first + i, w / total) for i, w in zip(places, weights, strict=True)]


@op("Resize", "Upsample")
def _resize(c):
    x, mode = c[0], c.attribute("mode", "nearest")
    if mode == "bilinear":
        mode = "linear"
    old = c.opset < 11 or c.node.op_type == "Upsample"
    roi, scales, sizes = (None, c.list(1), None) if old else (c.list(1), c.list(2), c.list(3))
    scales = scales or None
    axes = [a % x.dim() for a in c.attribute("axes") or range(x.dim())]
    if old and scales is None:
        scales = c.attribute("scales")
    how = "asymmetric" if old else c.attribute("coordinate_transformation_mode", "half_pixel")
    nearest = "floor" if old else c.attribute("nearest_mode", "round_prefer_floor")
    if scales is None:
        sizes = [int(n) for n in sizes]
        scales = [n / x.shape[a] for n, a in zip(sizes, axes, strict=True)]
        policy = c.attribute("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            one = (min if policy == "not_larger" else max)(scales)
            scales = [one] * len(axes)
            sizes = [math.floor(one * x.shape[a] + 0.5) for a in axes]
    else:
        sizes = [math.floor(x.shape[a] * s) for s, a in zip(scales, axes, strict=True)]
    dtype, filled = x.dtype, None
    made = x if x.dtype.is_floating_point and x.dtype.itemsize > 2 else x.float()
    if how == "tf_crop_and_resize":
        filled = c.attribute("extrapolation_value", 0.0)
    outside = None
    for i, a in enumerate(axes):
        part = (roi[i], roi[i + len(axes)]) if roi else (0.0, 1.0)
        if scales[i] == 1 and sizes[i] == x.shape[a] and (filled is None or part == (0.0, 1.0)):
            continue
        made, beyond = _along(c, made, a, scales[i], sizes[i], mode, nearest, how, part)
        if filled is not None and any(beyond):
            shape = [1] * x.dim()
            shape[a] = sizes[i]
            beyond = adjoin.tensor(beyond).reshape(shape)
            outside = beyond if outside is None else adjoin.logical_or(outside, beyond)
    if outside is not None:
        made = adjoin.where(outside, filled, made)
    if not dtype.is_floating_point:
        made = made.round()
    return made.to(dtype)


def _along(c, x, axis, scale, out, mode, nearest, how, roi):
    size, a = x.shape[axis], c.attribute("cubic_coeff_a", -0.75)
    antialias, strict = c.attribute("antialias", 0), c.attribute("exclude_outside", 0)
    places = [_source(how, y, scale, size, out, roi) for y in range(out)]
    beyond = [p < 0 or p > size - 1 for p in places]
    taps = [_taps(mode, nearest, p, scale, antialias, a) for p in places]
    if mode == "nearest":
        chosen = [min(max(t[0][0], 0), size - 1) for t in taps]
        return x.index_select(axis, adjoin.tensor(chosen, dtype=adjoin.int64)), beyond
    if size * out > _LARGEST:
        raise NotImplementedError(f"a size of {size} becomes {out}, which is too large")
    table = [[0.0] * size for _ in range(out)]
    for row, tap in zip(table, taps, strict=True):
        if strict:
            tap = [(p, w) for p, w in tap if 0 <= p < size]
            total = sum(w for _, w in tap) or 1.0
            tap = [(p, w / total) for p, w in tap]
        for p, w in tap:
            row[min(max(p, 0), size - 1)] += w
    made = x.transpose(axis, -1) @ adjoin.tensor(table, dtype=x.dtype).t()
    return made.transpose(axis, -1), beyond


@op("GridSample")
def _grid_sample(c):
    mode = {
        "bilinear": "bilinear",
        "linear": "bilinear",
        "bicubic": "bicubic",
        "cubic": "bicubic",
        "nearest": "nearest",
    }[c.attribute("mode", "bilinear")]
    return F.grid_sample(
        c[0],
        c[1],
        mode=mode,
        padding_mode=c.attribute("padding_mode", "zeros"),
        align_corners=bool(c.attribute("align_corners", 0)),
    )


@op("AffineGrid")
def _affine_grid(c):
    return F.affine_grid(c[0], [int(n) for n in c.list(1)], align_corners=bool(c.attribute("align_corners", 0)))


@op("CenterCropPad")
def _centre(c):
    x, wanted = c[0], [int(n) for n in c.list(1)]
    axes = c.attribute("axes") or range(x.dim())
    for a, want in zip(axes, wanted, strict=True):
        a, have = a % x.dim(), x.shape[a]
        if have > want:
            x = x.narrow(a, (have - want) // 2, want)
        elif have < want:
            before = (want - have) // 2
            pads = [0] * (2 * x.dim())
            pads[2 * (x.dim() - 1 - a)], pads[2 * (x.dim() - 1 - a) + 1] = before, want - have - before
            x = F.pad(x, pads)
    return x


@op("Col2Im")
def _col2im(c):
    x, image, block = c[0], [int(n) for n in c.list(1)], [int(n) for n in c.list(2)]
    n = len(image)
    pads, strides = c.attribute("pads") or [0] * (2 * n), c.attribute("strides") or [1] * n
    dilations = c.attribute("dilations") or [1] * n
    wide = [s + pads[i] + pads[i + n] for i, s in enumerate(image)]
    counts = [(w - (k - 1) * d - 1) // s + 1 for w, k, d, s in zip(wide, block, dilations, strides, strict=True)]
    at = adjoin.zeros([math.prod(block), math.prod(counts)], dtype=adjoin.int64)
    blocks, windows = _grid(block), _grid(counts)
    for i in range(n):
        at = at * wide[i] + (blocks[i] * dilations[i]).unsqueeze(1) + (windows[i] * strides[i]).unsqueeze(0)
    channels = x.shape[1] // math.prod(block)
    flat = x.reshape(x.shape[0], channels, -1)
    where = at.reshape(1, 1, -1).expand(flat.shape)
    made = adjoin.zeros([x.shape[0], channels, math.prod(wide)], dtype=x.dtype).scatter_add(2, where, flat)
    made = made.reshape([x.shape[0], channels, *wide])
    for i, size in enumerate(image):
        made = made.narrow(2 + i, pads[i], size)
    return made


def _grid(sizes):
    """The coordinates of all places of a block, in order."""
    return [g.reshape(-1) for g in adjoin.meshgrid(*(adjoin.arange(n) for n in sizes), indexing="ij")]


# Signals
@op("HannWindow", "HammingWindow", "BlackmanWindow")
def _window(c):
    n, dtype = int(c.number(0)), m.dtype_of(c.attribute("output_datatype", 1))
    across = n if c.attribute("periodic", 1) else n - 1
    angle = adjoin.arange(n, dtype=adjoin.float64) * (2 * math.pi / across)
    a, b, d = {
        "HannWindow": (0.5, 0.5, 0.0),
        "HammingWindow": (25 / 46, 21 / 46, 0.0),
        "BlackmanWindow": (0.42, 0.5, 0.08),
    }[c.node.op_type]
    return (a - b * adjoin.cos(angle) + d * adjoin.cos(2 * angle)).to(dtype)


def _complex(x):
    return adjoin.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x.squeeze(-1)


@op("DFT")
def _dft(c):
    x = c[0]
    axis = c.attribute("axis", 1) if c.opset < 20 else int(c.number(2, -2))
    axis = axis % x.dim()
    n = int(c.number(1)) if c.has(1) else None
    back, one = c.attribute("inverse", 0), c.attribute("onesided", 0)
    if back and one:  # the half of a spectrum becomes real numbers
        return adjoin.fft.irfft(_complex(x), n, axis).unsqueeze(-1)
    z = _complex(x.double())  # so that what is 0 is 0 in single precision
    z = z if z.is_complex() else adjoin.complex(z, adjoin.zeros_like(z))
    made = (adjoin.fft.ifft if back else adjoin.fft.fft)(z, n, axis)
    if one:
        made = made.narrow(axis, 0, made.shape[axis] // 2 + 1)
    return adjoin.view_as_real(made).to(x.dtype)


@op("STFT")
def _stft(c):
    x, step, window = c[0], int(c.number(1)), c[2]
    length = int(c.number(3)) if c.has(3) else window.shape[0]
    z = _complex(x)
    frames = z.unfold(1, length, step)
    if window is not None:
        frames = frames * window
    if c.attribute("onesided", 1) and not z.is_complex():
        return adjoin.view_as_real(adjoin.fft.rfft(frames, None, -1))
    frames = frames if frames.is_complex() else adjoin.complex(frames, adjoin.zeros_like(frames))
    return adjoin.view_as_real(adjoin.fft.fft(frames, None, -1))


@op("MelWeightMatrix")
def _mel(c):
    bins, length, rate, low, high = (c.number(i) for i in range(5))
    bins, spectrum = int(bins), int(length) // 2 + 1
    mel_low, mel_high = (2595 * math.log10(1 + f / 700) for f in (low, high))
    points = [700 * (10 ** ((mel_low + i * (mel_high - mel_low) / (bins + 2)) / 2595) - 1) for i in range(bins + 2)]
    points = [int(((int(length) + 1) * p) // rate) for p in points]
    table = [[0.0] * bins for _ in range(spectrum)]
    for i in range(bins):
        left, centre, right = points[i : i + 3]
        if centre == left:
            table[centre][i] = 1.0
        for j in range(left, centre + 1 if centre != left else left):
            table[j][i] = (j - left) / (centre - left)
        if right > centre:
            for j in range(centre, right):
                table[j][i] = (right - j) / (right - centre)
    return adjoin.tensor(table, dtype=m.dtype_of(c.attribute("output_datatype", 1)))


# Sizes that depend on values
@op("NonZero")
def _non_zero(c):
    return adjoin.nonzero(c[0]).t()


@op("Compress")
def _compress(c):
    x, kept, axis = c[0], [i for i, k in enumerate(c.list(1)) if k], c.attribute("axis")
    at = adjoin.tensor(kept, dtype=adjoin.int64)
    return x.reshape(-1).index_select(0, at) if axis is None else x.index_select(axis, at)


@op("Unique")
def _unique(c):
    x, axis = c[0], c.attribute("axis")
    values, inverse, counts = adjoin.unique(x, sorted=True, return_inverse=True, return_counts=True, dim=axis)
    inverse = inverse.reshape(-1)
    n = counts.numel()
    where = adjoin.arange(inverse.numel())
    first = adjoin.full((n,), inverse.numel(), dtype=adjoin.int64).scatter_reduce(0, inverse, where, reduce="amin")
    if not c.attribute("sorted", 1):
        order = adjoin.argsort(first)
        back = adjoin.argsort(order)
        values = values.index_select(0 if axis is None else axis, order)
        first, counts, inverse = first[order], counts[order], back[inverse]
    return values, first, inverse, counts


@op("ReverseSequence")
def _reverse_sequence(c):
    x, lengths = c[0], c.list(1)
    batch, time = c.attribute("batch_axis", 1), c.attribute("time_axis", 0)
    rows = []
    for i, n in enumerate(lengths):
        row, t = x.select(batch, i), time - (time > batch)
        rows.append(adjoin.cat([row.narrow(t, 0, n).flip(t), row.narrow(t, n, row.shape[t] - n)], t))
    return adjoin.stack(rows, batch)


@op("NonMaxSuppression")
def _suppression(c):
    boxes, scores = c[0].tolist(), c[1].tolist()
    most, overlap, least = c.number(2, 0), c.number(3, 0.0), c.number(4)
    made = []
    for b, (own, classes) in enumerate(zip(boxes, scores, strict=True)):
        corners = [_corners(box, c.attribute("center_point_box", 0)) for box in own]
        for k, score in enumerate(classes):
            order = sorted((i for i, s in enumerate(score) if least is None or s > least), key=lambda i: -score[i])
            kept = []
            for i in order:
                if len(kept) >= int(most):
                    break
                if all(_overlap(corners[i], corners[j]) <= overlap for j in kept):
                    kept.append(i)
            made += [[b, k, i] for i in kept]
    return adjoin.tensor(made, dtype=adjoin.int64).reshape(-1, 3)


def _corners(box, centred):
    if centred:
        x, y, w, h = box
        return x - w / 2, y - h / 2, x + w / 2, y + h / 2
    y1, x1, y2, x2 = box
    return min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)


def _overlap(a, b):
    inner = max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inner
    return inner / both if both > 0 else 0.0


@op("RoiAlign")
def _roi_align(c):
    x, rois, images = c[0], c[1], c[2]
    out = c.attribute("output_height", 1), c.attribute("output_width", 1)
    scale, ratio, largest = (
        c.attribute("spatial_scale", 1.0),
        c.attribute("sampling_ratio", 0),
        c.attribute("mode", "avg") == "max",
    )
    shift = (
        0.5 if c.opset >= 16 and c.attribute("coordinate_transformation_mode", "half_pixel") == "half_pixel" else 0.0
    )
    made = []
    for roi, image in zip(rois.tolist(), images.tolist(), strict=True):
        x1, y1, x2, y2 = (v * scale - shift for v in roi)
        tall, wide = y2 - y1, x2 - x1
        if not shift:
            tall, wide = max(tall, 1.0), max(wide, 1.0)
        sides = []
        for start, length, n, size in ((y1, tall, out[0], x.shape[2]), (x1, wide, out[1], x.shape[3])):
            grid = ratio if ratio > 0 else max(1, math.ceil(length / n))
            places = [start + (i + (k + 0.5) / grid) * length / n for i in range(n) for k in range(grid)]
            sides.append((grid, _bilinear(places, size)))
        made.append(_aligned(x[int(image)], sides, out, largest))
    return adjoin.stack(made)


def _bilinear(places, size):
    """(places below, above, their weights) of a line of samples."""
    low, high, below, above = [], [], [], []
    for p in places:
        gone = p < -1 or p > size
        p = max(p, 0.0)
        at = min(int(p), size - 1)
        part = 0.0 if at == size - 1 else p - at
        low.append(at)
        high.append(min(at + 1, size - 1))
        below.append(0.0 if gone else 1 - part)
        above.append(0.0 if gone else part)
    return adjoin.tensor(low), adjoin.tensor(high), adjoin.tensor(below), adjoin.tensor(above)


def _aligned(image, sides, out, largest):
    (gy, (y0, y1, wy0, wy1)), (gx, (x0, x1, wx0, wx1)) = sides
    rows = [(y0, wy0), (y1, wy1)]
    columns = [(x0, wx0), (x1, wx1)]
    parts = [
        image.index_select(1, y).index_select(2, x) * (wy.unsqueeze(1) * wx.unsqueeze(0)).to(image.dtype)
        for y, wy in rows
        for x, wx in columns
    ]
    if largest:
        made = adjoin.stack(parts).amax(0)
    else:
        made = parts[0] + parts[1] + parts[2] + parts[3]
    made = made.reshape(image.shape[0], out[0], gy, out[1], gx)
    return made.amax([2, 4]) if largest else made.mean([2, 4])
