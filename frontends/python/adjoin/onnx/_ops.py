"""adjoin.onnx._ops: what each node of ONNX computes: element by element, and reductions."""

import math

import adjoin
from adjoin.nn import functional as F

from . import _model as m

FUNCTIONS = {}


def op(*names):
    """Keeps a function of a call under the names of nodes."""

    def keep(function):
        for name in names:
            FUNCTIONS[name] = function
        return function

    return keep


def _element(name, function):
    FUNCTIONS[name] = lambda c: function(c[0])


for _name, _function in {
    "Abs": adjoin.abs, "Acos": adjoin.acos, "Acosh": adjoin.acosh, "Asin": adjoin.asin, "Asinh": adjoin.asinh,
    "Atan": adjoin.atan, "Atanh": adjoin.atanh, "Ceil": adjoin.ceil, "Cos": adjoin.cos, "Cosh": adjoin.cosh, "Erf": adjoin.erf,
    "Exp": adjoin.exp, "Floor": adjoin.floor, "Identity": lambda x: x, "IsNaN": adjoin.isnan, "Log": adjoin.log,
    "Neg": adjoin.neg, "Not": adjoin.logical_not, "Reciprocal": adjoin.reciprocal, "Relu": adjoin.relu, "Round": adjoin.round,
    "Sigmoid": adjoin.sigmoid, "Sign": adjoin.sign, "Sin": adjoin.sin, "Sinh": adjoin.sinh, "Sqrt": adjoin.sqrt,
    "Tan": adjoin.tan, "Tanh": adjoin.tanh, "BitwiseNot": adjoin.bitwise_not, "Det": adjoin.linalg.det, "Softsign": F.softsign,
    "Softplus": F.softplus, "Mish": F.mish, "HardSwish": F.hardswish,
}.items():  # fmt: skip
    _element(_name, _function)


def _pair(name, function):
    FUNCTIONS[name] = lambda c: function(c[0], c[1])


for _name, _function in {
    "Add": adjoin.add, "Sub": adjoin.sub, "Mul": adjoin.mul, "Equal": adjoin.eq, "Greater": adjoin.gt,
    "GreaterOrEqual": adjoin.ge, "Less": adjoin.lt, "LessOrEqual": adjoin.le, "And": adjoin.logical_and,
    "Or": adjoin.logical_or, "Xor": adjoin.logical_xor, "BitwiseAnd": adjoin.bitwise_and, "BitwiseOr": adjoin.bitwise_or,
    "BitwiseXor": adjoin.bitwise_xor, "MatMul": adjoin.matmul,
}.items():  # fmt: skip
    _pair(_name, _function)


@op("Div")
def _div(c):
    if c[0].dtype.is_floating_point:
        return c[0] / c[1]
    return adjoin.div(c[0], c[1], rounding_mode="trunc")


@op("Mod")
def _mod(c):
    return adjoin.fmod(c[0], c[1]) if c.attribute("fmod", 0) else adjoin.remainder(c[0], c[1])


@op("Pow")
def _pow(c):
    x, y = c[0], c[1]
    return adjoin.pow(x.to(adjoin.promote_types(x.dtype, y.dtype)), y).to(x.dtype)


@op("BitShift")
def _shift(c):
    x, y = c[0], c[1]
    wide = x.to(adjoin.int64)
    bits = x.dtype.itemsize * 8
    if c.attribute("direction") == "LEFT":
        return adjoin.bitwise_left_shift(wide, y.to(adjoin.int64)).to(x.dtype)
    made = adjoin.bitwise_right_shift(wide, y.to(adjoin.int64))
    if bits == 64:  # the sign is a bit as the others
        mask = adjoin.bitwise_not(adjoin.bitwise_left_shift(adjoin.full_like(wide, -1), 64 - y.to(adjoin.int64)))
        made = adjoin.where(y.to(adjoin.int64) > 0, adjoin.bitwise_and(made, mask), made)
    return made.to(x.dtype)


def _fold(name, function, last=None):
    def run(c):
        made = c[0]
        for x in c.every()[1:]:
            made = function(made, x)
        return made if last is None else last(made, len(c))

    FUNCTIONS[name] = run


_fold("Max", adjoin.maximum)
_fold("Min", adjoin.minimum)
_fold("Sum", adjoin.add)
_fold("Mean", adjoin.add, lambda made, n: made / n)


@op("Where")
def _where(c):
    return adjoin.where(c[0], c[1], c[2])


@op("Clip")
def _clip(c):
    low, high = (c[1], c[2]) if c.opset >= 11 else (c.attribute("min"), c.attribute("max"))
    x = c[0]
    if low is not None:
        x = adjoin.maximum(x, low if isinstance(low, adjoin.Tensor) else adjoin.tensor(low, dtype=x.dtype))
    if high is not None:
        x = adjoin.minimum(x, high if isinstance(high, adjoin.Tensor) else adjoin.tensor(high, dtype=x.dtype))
    return x


@op("Cast", "CastLike")
def _cast(c):
    x = c[0]
    want = m.dtype_of(c.attribute("to", 0)) if c.node.op_type == "Cast" else c[1].dtype
    if "float8" in str(want):
        return _to_small(x, want, c.attribute("saturate", 1))
    if want == adjoin.bool:
        return x != 0
    if x.dtype.is_floating_point and not want.is_floating_point and want.itemsize < 8:
        return x.to(adjoin.int64).to(want)
    return x.to(want)


def _to_small(x, want, saturate):
    x = x.float()
    most = adjoin.finfo(want).max
    if saturate:
        return adjoin.where(adjoin.isnan(x), x, x.clamp(-most, most)).to(want)
    return x.to(want)


@op("IsInf")
def _isinf(c):
    x = c[0]
    made = adjoin.isinf(x)
    if not c.attribute("detect_positive", 1):
        made = adjoin.logical_and(made, x < 0)
    if not c.attribute("detect_negative", 1):
        made = adjoin.logical_and(made, x > 0)
    return made


# Activations
@op("LeakyRelu")
def _leaky(c):
    return F.leaky_relu(c[0], c.attribute("alpha", 0.01))


@op("Elu")
def _elu(c):
    return F.elu(c[0], c.attribute("alpha", 1.0))


@op("Celu")
def _celu(c):
    return F.celu(c[0], c.attribute("alpha", 1.0))


@op("Selu")
def _selu(c):
    x, alpha, gamma = (
        c[0],
        c.attribute("alpha", 1.67326319217681884765625),
        c.attribute("gamma", 1.05070102214813232421875),
    )
    return gamma * adjoin.where(x > 0, x, alpha * (adjoin.exp(x) - 1))


@op("Gelu")
def _gelu(c):
    return F.gelu(c[0], approximate=c.attribute("approximate", "none"))


@op("HardSigmoid")
def _hard(c):
    return (c[0] * c.attribute("alpha", 0.2) + c.attribute("beta", 0.5)).clamp(0, 1)


@op("ThresholdedRelu")
def _thresholded(c):
    return adjoin.where(c[0] > c.attribute("alpha", 1.0), c[0], 0.0)


@op("Shrink")
def _shrink(c):
    x, bias, edge = c[0], c.attribute("bias", 0.0), c.attribute("lambd", 0.5)
    made = adjoin.where(x < -edge, x + bias, adjoin.where(x > edge, x - bias, adjoin.zeros_like(x)))
    return made.to(x.dtype)


@op("Swish")
def _swish(c):
    return c[0] * adjoin.sigmoid(c.attribute("alpha", 1.0) * c[0])


@op("PRelu")
def _prelu(c):
    return adjoin.where(c[0] < 0, c[0] * c[1], c[0])


def _soft(function):
    def run(c):
        x = c[0]
        if c.opset < 13:  # the dimensions from axis on are one
            axis = c.attribute("axis", 1) % max(1, x.dim())
            return function(x.flatten(axis), -1).reshape(x.shape)
        return function(x, c.attribute("axis", -1))

    return run


FUNCTIONS["Softmax"], FUNCTIONS["LogSoftmax"] = _soft(adjoin.softmax), _soft(adjoin.log_softmax)


@op("Hardmax")
def _hardmax(c):
    axis = c.attribute("axis", -1 if c.opset >= 13 else 1)
    x = c[0]
    made = x.argmax(axis, keepdim=True)
    return adjoin.zeros_like(x).scatter(axis, made, 1)


# Reductions
def _reduced(name, function):
    def run(c):
        x = c[0]
        axes = c.list(1) if c.has(1) else c.attribute("axes")
        keep = bool(c.attribute("keepdims", 1))
        if not axes:
            if c.attribute("noop_with_empty_axes", 0):
                return function(x.unsqueeze(0), [0], False)
            axes = list(range(x.dim()))
        if not x.dim():
            return function(x.unsqueeze(0), [0], False)
        return function(x, [int(a) % x.dim() for a in axes], keep)

    FUNCTIONS[name] = run


def _whole(function):
    """In the dtype of what is given."""
    return lambda x, dims, keep: function(x if x.dtype.is_floating_point else x.double(), dims, keep).to(x.dtype)


def _extreme(function, number):
    def run(x, dims, keep):
        if all(x.shape[d] for d in dims):
            if x.dtype == adjoin.bool:
                return function(x.to(adjoin.int32), dims, keep).to(adjoin.bool)
            return function(x, dims, keep)
        shape = [1 if i in dims else n for i, n in enumerate(x.shape)]
        made = adjoin.full(shape, number(x.dtype), dtype=x.dtype)
        return made if keep else made.reshape([n for i, n in enumerate(shape) if i not in dims])

    return run


def _lowest(dtype):
    return False if dtype == adjoin.bool else -math.inf if dtype.is_floating_point else adjoin.iinfo(dtype).min


def _highest(dtype):
    return True if dtype == adjoin.bool else math.inf if dtype.is_floating_point else adjoin.iinfo(dtype).max


def _product(x, dims, keep):
    for d in sorted(dims, reverse=True):
        x = adjoin.prod(x, d, keepdim=keep).to(x.dtype)
    return x


_reduced("ReduceSum", lambda x, dims, keep: adjoin.sum(x, dims, keep).to(x.dtype))
_reduced("ReduceMean", _whole(lambda x, dims, keep: adjoin.mean(x, dims, keep)))
_reduced("ReduceMax", _extreme(adjoin.amax, _lowest))
_reduced("ReduceMin", _extreme(adjoin.amin, _highest))
_reduced("ReduceProd", _product)
_reduced("ReduceL1", lambda x, dims, keep: adjoin.sum(adjoin.abs(x), dims, keep).to(x.dtype))
_reduced("ReduceL2", _whole(lambda x, dims, keep: adjoin.sqrt(adjoin.sum(x * x, dims, keep))))
_reduced("ReduceSumSquare", lambda x, dims, keep: adjoin.sum(x * x, dims, keep).to(x.dtype))
_reduced("ReduceLogSum", _whole(lambda x, dims, keep: adjoin.log(adjoin.sum(x, dims, keep))))
_reduced("ReduceLogSumExp", _whole(lambda x, dims, keep: adjoin.logsumexp(x, dims, keep)))


@op("ArgMax", "ArgMin")
def _arg(c):
    x, axis, keep = c[0], c.attribute("axis", 0), bool(c.attribute("keepdims", 1))
    function = adjoin.argmax if c.node.op_type == "ArgMax" else adjoin.argmin
    if c.attribute("select_last_index", 0):
        return x.shape[axis] - 1 - function(x.flip(axis), axis, keep)
    return function(x, axis, keep)


@op("CumSum")
def _cumsum(c):
    x, axis = c[0], c.number(1)
    x = x.flip(axis) if c.attribute("reverse", 0) else x
    made = adjoin.cumsum(x, axis).to(x.dtype)
    if c.attribute("exclusive", 0):
        made = made - x
    return made.flip(axis) if c.attribute("reverse", 0) else made


@op("CumProd")
def _cumprod(c):
    x, axis = c[0], c.number(1)
    x = x.flip(axis) if c.attribute("reverse", 0) else x
    if c.attribute("exclusive", 0):
        one = adjoin.ones([1 if d == axis % x.dim() else n for d, n in enumerate(x.shape)], dtype=x.dtype)
        x = adjoin.cat([one, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    made = adjoin.cumprod(x, axis).to(x.dtype)
    return made.flip(axis) if c.attribute("reverse", 0) else made


@op("BitCast")
def _bits(c):
    return c[0].view(m.dtype_of(c.attribute("to")))


@op("TopK")
def _topk(c):
    x, axis, largest = c[0], c.attribute("axis", -1), bool(c.attribute("largest", 1))
    k = c.number(1)
    values, indices = adjoin.sort(x, dim=axis, descending=largest, stable=True)
    return values.narrow(axis, 0, k), indices.narrow(axis, 0, k)
