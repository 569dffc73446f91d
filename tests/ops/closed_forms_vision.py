"""tests/ops/closed_forms_vision.py: torchvision's ops, pixel by pixel as their papers define them."""

import itertools
import math

import numpy as np
from closed_forms import FORMS


def away(x):
    """The nearest whole number, halves away from zero."""
    return math.floor(abs(x) + 0.5) * (1 if x >= 0 else -1)


def sample(at, size):
    """{pixel: weight} of reading one axis bilinearly; none where it lies outside by more than a pixel."""
    if at < -1 or at > size:
        return {}
    at = min(max(at, 0), size - 1)
    low = math.floor(at)
    read = {low: 1 - (at - low)}
    if at > low:
        read[low + 1] = at - low
    return read


def sampled(start, length, bin_, bins, samples, size):
    """{pixel: weight} of a bin along an axis."""
    step = length / bins
    count = samples if samples > 0 else math.ceil(step)
    read = {}
    for s in range(count):
        for pixel, weight in sample(start + bin_ * step + (s + 0.5) * step / count, size).items():
            read[pixel] = read.get(pixel, 0) + weight / max(count, 1)
    return read


def covered(start, length, bin_, bins, size):
    """{pixel: weight} of a bin whose pixels count alike."""
    step = length / bins
    first, last = (min(max(x + start, 0), size - 1) for x in (math.floor(bin_ * step), math.ceil((bin_ + 1) * step)))
    return {pixel: 1 / (last - first) for pixel in range(first, last)}


def axis(rule, low, high, scale, bin_, bins, samples, size):
    low, high = low * scale, high * scale
    if rule == "pool":
        low, high = away(low), away(high)
        return covered(low, max(high - low, 1), bin_, bins, size)
    if rule != "align":
        low, high = low - 0.5, high - 0.5
    return sampled(low, max(high - low, 1) if rule == "align" else high - low, bin_, bins, samples, size)


def bins_of(rule, rois, scale, height, width, samples, size):
    """(region, image, bin's row and column, {row: weight}, {column: weight}) of every bin."""
    for k, (image, x1, y1, x2, y2) in enumerate(rois.tolist()):
        for p, q in itertools.product(range(height), range(width)):
            y = axis(rule, y1, y2, scale, p, height, samples, size[0])
            x = axis(rule, x1, x2, scale, q, width, samples, size[1])
            yield k, int(image), p, q, y, x


def averages(rule, split, input, rois, scale, height, width, samples=0):
    each = height * width if split else 1
    out = np.zeros((len(rois), input.shape[1] // each, height, width))
    for k, n, p, q, ys, xs in bins_of(rule, rois, scale, height, width, samples, input.shape[2:]):
        planes = input[n, p * width + q :: each] if split else input[n]
        out[k, :, p, q] = sum((planes[:, y, x] * a * b for y, a in ys.items() for x, b in xs.items()), 0.0)
    return out


def spread(rule, split, grad, rois, scale, height, width, size, samples=0):
    each = height * width if split else 1
    out = np.zeros(size)
    for k, n, p, q, ys, xs in bins_of(rule, rois, scale, height, width, samples, size[2:]):
        planes = out[n, p * width + q :: each] if split else out[n]
        for (y, a), (x, b) in itertools.product(ys.items(), xs.items()):
            planes[:, y, x] += grad[k, :, p, q] * a * b
    return out


def channels(rois, out):
    count = out[0].size
    return np.broadcast_to(np.arange(count).reshape(out.shape[1:]), out.shape).astype("int32")


def ps_roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    out = averages("aligned", True, input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio)
    return out, channels(rois, out)


def ps_roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    out = averages("pool", True, input, rois, spatial_scale, pooled_height, pooled_width)
    return out, channels(rois, out)


def roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    bins = pooled_height, pooled_width
    shape = (len(rois), input.shape[1], *bins)
    out, where = np.zeros(shape), np.full(shape, -1, "int32")
    for k, (image, *corners) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (away(c * spatial_scale) for c in corners)
        steps = max(y2 - y1 + 1, 1) / bins[0], max(x2 - x1 + 1, 1) / bins[1]
        for c, p, q in itertools.product(range(shape[1]), *map(range, bins)):
            (y, ye), (x, xe) = (
                [min(max(v + start, 0), size) for v in (math.floor(b * step), math.ceil((b + 1) * step))]
                for b, step, start, size in zip((p, q), steps, (y1, x1), input.shape[2:], strict=True)
            )
            window = input[int(image), c, y:ye, x:xe]
            if window.size:
                i, j = np.unravel_index(window.argmax(), window.shape)
                out[k, c, p, q], where[k, c, p, q] = window[i, j], (y + i) * input.shape[3] + x + j
    return out, where


def roi_pool_backward(grad, rois, argmax, spatial_scale, pooled_height, pooled_width, *size):
    out = np.zeros(size)
    planes = out.reshape(size[0], size[1], -1)
    for k, c, p, q in itertools.product(*map(range, grad.shape)):
        if argmax[k, c, p, q] >= 0:
            planes[int(rois[k, 0]), c, argmax[k, c, p, q]] += grad[k, c, p, q]
    return out


def tap(plane, y, x):
    """The plane read bilinearly, zero around it."""
    height, width = plane.shape
    if not (-1 < y < height and -1 < x < width):
        return 0.0
    low, left = math.floor(y), math.floor(x)
    return sum(
        plane[i, j] * (1 - abs(y - i)) * (1 - abs(x - j))
        for i, j in itertools.product((low, low + 1), (left, left + 1))
        if 0 <= i < height and 0 <= j < width
    )


def deform_conv2d(
    input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups,
    use_mask,
):  # fmt: skip
    (count, kh, kw), shape = weight.shape[1:], (len(input), len(weight), *offset.shape[2:])
    out = np.zeros(shape)
    for n, o, y, x in itertools.product(*map(range, shape)):
        total = bias[o]
        for c, i, j in itertools.product(range(count), range(kh), range(kw)):
            channel = o // (len(weight) // groups) * count + c
            at = channel // (input.shape[1] // offset_groups) * kh * kw + i * kw + j
            dy, dx = offset[n, 2 * at : 2 * at + 2, y, x]
            value = tap(
                input[n, channel],
                y * stride_h - pad_h + i * dilation_h + dy,
                x * stride_w - pad_w + j * dilation_w + dx,
            )
            total += weight[o, c, i, j] * value * (mask[n, at, y, x] if use_mask else 1)
        out[n, o, y, x] = total
    return out


def deform_conv2d_backward(grad, input, weight, offset, mask, bias, *numbers):
    """By differences: what the forward form gives is linear between its kinks, but for offsets a product of two such."""
    given, step, found = [input, weight, offset, mask, bias], 1e-6, []
    for which, values in enumerate(given):
        slopes = np.zeros(values.shape)
        for at in np.ndindex(values.shape):
            sides = []
            for sign in (1, -1):
                moved = [v.astype("f8") for v in given]
                moved[which][at] += sign * step
                sides.append((deform_conv2d(*moved, *numbers) * grad).sum())
            slopes[at] = (sides[0] - sides[1]) / (2 * step)
        found.append(slopes)
    return tuple(found)


def by_place(form):
    """Takes a row's arguments by their names, in the order of its schema."""
    return lambda **given: form(*given.values())


def rule_of(aligned):
    return "aligned" if aligned else "align"


def roi_align(input, rois, scale, height, width, samples, aligned):
    return averages(rule_of(aligned), False, input, rois, scale, height, width, samples)


def roi_align_backward(grad, rois, scale, height, width, *more):
    *size, samples, aligned = more
    return spread(rule_of(aligned), False, grad, rois, scale, height, width, size, samples)


def ps_roi_align_backward(grad, rois, _, scale, height, width, samples, *size):
    return spread("aligned", True, grad, rois, scale, height, width, size, samples)


def ps_roi_pool_backward(grad, rois, _, scale, height, width, *size):
    return spread("pool", True, grad, rois, scale, height, width, size)


FORMS |= {
    f"torchvision::{name}": by_place(form)
    for name, form in {
        "roi_align": roi_align,
        "_roi_align_backward": roi_align_backward,
        "roi_pool": roi_pool,
        "_roi_pool_backward": roi_pool_backward,
        "ps_roi_align": ps_roi_align,
        "_ps_roi_align_backward": ps_roi_align_backward,
        "ps_roi_pool": ps_roi_pool,
        "_ps_roi_pool_backward": ps_roi_pool_backward,
        "deform_conv2d": deform_conv2d,
        "_deform_conv2d_backward": deform_conv2d_backward,
    }.items()
}
