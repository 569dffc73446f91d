"""adjoin.onnx._ops_small: quantized numbers and products of whole numbers, as nodes of ONNX say them."""

import adjoin

from . import _model as m
from ._ops import op
from ._ops_nn import convolved


def _wide(c, x, t, axis, block=0):
    """A scale or a zero point, so that it meets x."""
    if t is None or t.dim() == 0 or (t.numel() == 1 and not block):
        return t if t is None else t.reshape([])
    if block:
        return t.repeat_interleave(block, axis).narrow(axis, 0, x.shape[axis])
    shape = [1] * x.dim()
    shape[axis] = -1
    return t.reshape(shape)


def _limits(dtype):
    info = adjoin.iinfo(dtype)
    return info.min, info.max


@op("QuantizeLinear")
def _quantize(c):
    x, axis, block = c[0], c.attribute("axis", 1), c.attribute("block_size", 0)
    given = c.attribute("output_dtype", 0)
    want = c[2].dtype if c.has(2) else m.dtype_of(given) if given else adjoin.uint8
    scale, zero = _wide(c, x, c[1], axis, block), _wide(c, x, c[2], axis, block)
    made = x / scale
    if want.is_floating_point:
        most = adjoin.finfo(want).max
        return made.float().clamp(-most, most).to(want)
    made = adjoin.round(made)
    made = made if zero is None else made + zero.to(made.dtype)
    low, high = _limits(want)
    return made.clamp(low, high).to(adjoin.int64).to(want)


@op("DequantizeLinear")
def _dequantize(c):
    x, axis, block = c[0], c.attribute("axis", 1), c.attribute("block_size", 0)
    scale, zero = _wide(c, x, c[1], axis, block), _wide(c, x, c[2], axis, block)
    wide = x.float() if x.dtype.is_floating_point else x.to(adjoin.int64)
    if zero is not None:
        wide = wide - zero.to(wide.dtype)
    return wide.to(scale.dtype) * scale


@op("DynamicQuantizeLinear")
def _dynamic(c):
    x = c[0]
    low, high = x.amin().clamp(max=0.0), x.amax().clamp(min=0.0)
    scale = (high - low) / 255
    zero = adjoin.round((0 - low) / scale).clamp(0, 255)
    made = (adjoin.round(x / scale) + zero).clamp(0, 255)
    return made.to(adjoin.int64).to(adjoin.uint8), scale, zero.to(adjoin.int64).to(adjoin.uint8)


def _rows(zero):
    return zero.unsqueeze(-1) if zero.dim() == 1 and zero.numel() > 1 else zero


@op("MatMulInteger")
def _matmul(c):
    a, b = c[0].to(adjoin.int64), c[1].to(adjoin.int64)
    a = a - (_rows(c[2]).to(adjoin.int64) if c.has(2) else 0)
    b = b - (c[3].to(adjoin.int64) if c.has(3) else 0)
    return adjoin.matmul(a.double(), b.double()).to(adjoin.int32)


def _requantized(x, scale, zero):
    low, high = _limits(zero.dtype)
    return (adjoin.round(x / scale) + zero.double()).clamp(low, high).to(adjoin.int64).to(zero.dtype)


@op("QLinearMatMul")
def _qmatmul(c):
    a = (c[0].double() - c[2].double()) * c[1].double()
    b = (c[3].double() - c[5].double()) * c[4].double()
    return _requantized(adjoin.matmul(a, b), c[6].double(), c[7])


@op("ConvInteger")
def _conv(c):
    x, w = c[0].double(), c[1].double()
    x = x - (c[2].double() if c.has(2) else 0)
    if c.has(3):
        w = w - (c[3].double().reshape([-1] + [1] * (w.dim() - 1)) if c[3].numel() > 1 else c[3].double())
    return convolved(c, x, w, None).to(adjoin.int32)


@op("QLinearConv")
def _qconv(c):
    w = c[3].double()
    wide = [-1] + [1] * (w.dim() - 1)
    scale, zero = c[4].double(), c[5].double()
    if scale.numel() > 1:
        scale = scale.reshape(wide)
    if zero.numel() > 1:
        zero = zero.reshape(wide)
    x = (c[0].double() - c[2].double()) * c[1].double()
    bias = None
    if c.has(8):
        bias = c[8].double() * c[1].double() * c[4].double()
    return _requantized(convolved(c, x, (w - zero) * scale, bias), c[6].double(), c[7])
