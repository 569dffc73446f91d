"""adjoin.onnx._ops: what each node of ONNX computes: element by element, reductions, shapes and parts."""

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
    if str(want).startswith("adjoin.float8") or "float8" in str(want):
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
        finite = adjoin.isfinite(x) if "e5m2" in str(want) or True else None
        return adjoin.where(adjoin.isnan(x), x, x.clamp(-most, most) if finite is not None else x).to(want)
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
    x, alpha, gamma = c[0], c.attribute("alpha", 1.67326319217681884765625), c.attribute("gamma", 1.05070102214813232421875)
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


@op("TopK")
def _topk(c):
    x, axis, largest = c[0], c.attribute("axis", -1), bool(c.attribute("largest", 1))
    k = c.number(1)
    values, indices = adjoin.sort(x, dim=axis, descending=largest, stable=True)
    return values.narrow(axis, 0, k), indices.narrow(axis, 0, k)


# Shapes
@op("Shape")
def _shape(c):
    shape = list(c[0].shape)
    start, end = c.attribute("start", 0), c.attribute("end")
    return numbers(c, shape[start : len(shape) if end is None else end])


@op("Size")
def _size(c):
    count = 1
    for n in c[0].shape:
        count = count * n
    return numbers(c, [count]).reshape([])


def numbers(c, items):
    """Sizes as a tensor. In a program each is a call, so that a size that differs is seen as one."""
    from .. import jit

    if not items or c.beside or not jit.is_tracing():
        return adjoin.tensor([int(n) for n in items], dtype=adjoin.int64)
    return adjoin.cat([adjoin.full((1,), n, dtype=adjoin.int64) for n in items])


@op("Reshape")
def _reshape(c):
    x, shape = c[0], [int(n) for n in c.list(1)]
    if not c.attribute("allowzero", 0):
        shape = [x.shape[i] if n == 0 else n for i, n in enumerate(shape)]
    return x.reshape(shape)


@op("Flatten")
def _flatten(c):
    x, axis = c[0], c.attribute("axis", 1)
    axis = axis + x.dim() if axis < 0 else axis
    first = math.prod(x.shape[:axis])
    return x.reshape(first, math.prod(x.shape[axis:]))


def _axes(c):
    return [int(a) for a in c.list(1)] if c.has(1) else c.attribute("axes")


@op("Squeeze")
def _squeeze(c):
    x, axes = c[0], _axes(c)
    if axes is None:
        return x.squeeze()
    return x.reshape([n for i, n in enumerate(x.shape) if i not in {a % x.dim() for a in axes}])


@op("Unsqueeze")
def _unsqueeze(c):
    x, axes = c[0], _axes(c)
    rank = x.dim() + len(axes)
    for a in sorted(a % rank for a in axes):
        x = x.unsqueeze(a)
    return x


@op("Transpose")
def _transpose(c):
    x = c[0]
    return x.permute(c.attribute("perm") or list(range(x.dim()))[::-1])


@op("Expand")
def _expand(c):
    x, shape = c[0], [int(n) for n in c.list(1)]
    return x.expand(adjoin.broadcast_shapes(tuple(x.shape), tuple(shape)))


@op("Tile")
def _tile(c):
    return c[0].repeat([int(n) for n in c.list(1)])


@op("Concat")
def _concat(c):
    return adjoin.cat(c.every(), c.attribute("axis", 0))


@op("Split")
def _split(c):
    x, axis = c[0], c.attribute("axis", 0)
    sizes = c.list(1) if c.has(1) else c.attribute("split")
    if sizes is None:
        n = c.attribute("num_outputs") or len(c.node.output)
        step = -(-x.shape[axis] // n)
        sizes = [max(0, min(step, x.shape[axis] - i * step)) for i in range(n)]
    return tuple(adjoin.split(x, [int(n) for n in sizes], axis))


@op("Slice")
def _slice(c):
    x = c[0]
    if c.opset < 10:
        starts, ends, axes, steps = c.attribute("starts"), c.attribute("ends"), c.attribute("axes"), None
    else:
        starts, ends, axes, steps = (c.list(i) for i in (1, 2, 3, 4))
    axes = range(len(starts)) if axes is None else axes
    for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(starts), strict=True):
        axis, n = int(axis) % x.dim(), x.shape[int(axis)]
        if step > 0:
            x = x[(slice(None),) * axis + (slice(int(start), int(end), int(step)),)]
            continue
        start = min(int(start) + n if start < 0 else int(start), n - 1)
        end = max(int(end) + n, -1) if end < 0 else int(end)
        chosen = list(range(start, end, int(step)))
        x = x.index_select(axis, adjoin.tensor(chosen, dtype=adjoin.int64, device=x.device))
    return x


@op("Gather")
def _gather(c):
    x, index, axis = c[0], c[1].long(), c.attribute("axis", 0)
    axis %= max(1, x.dim())
    n = x.shape[axis]
    index = adjoin.where(index < 0, index + n, index)
    made = x.index_select(axis, index.reshape(-1))
    return made.reshape([*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]])


@op("GatherElements")
def _gather_elements(c):
    x, index, axis = c[0], c[1].long(), c.attribute("axis", 0)
    return x.gather(axis, adjoin.where(index < 0, index + x.shape[axis], index))


def _places(x, index, batch):
    """The index of ND forms as tensors of one dimension each."""
    parts = []
    for i in range(index.shape[-1]):
        part = index[..., i]
        parts.append(adjoin.where(part < 0, part + x.shape[batch + i], part))
    return parts


@op("GatherND")
def _gather_nd(c):
    x, index, batch = c[0], c[1].long(), c.attribute("batch_dims", 0)
    if not batch:
        return x[tuple(_places(x, index, 0))]
    lead = list(x.shape[:batch])
    many = math.prod(lead)
    flat, at = x.reshape([many, *x.shape[batch:]]), index.reshape([many, *index.shape[batch:]])
    parts = _places(flat, at, 1)
    rows = adjoin.arange(many).reshape([many] + [1] * (parts[0].dim() - 1)).expand(parts[0].shape)
    made = flat[(rows, *parts)]
    return made.reshape([*lead, *made.shape[1:]])


_HOW = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@op("ScatterElements", "Scatter")
def _scatter(c):
    x, index, source, axis = c[0], c[1].long(), c[2], c.attribute("axis", 0)
    index = adjoin.where(index < 0, index + x.shape[axis], index)
    how = c.attribute("reduction", "none")
    return x.scatter(axis, index, source) if how == "none" else x.scatter_reduce(axis, index, source, reduce=_HOW[how])


@op("ScatterND")
def _scatter_nd(c):
    x, index, source = c[0], c[1].long(), c[2]
    how, n = c.attribute("reduction", "none"), index.shape[-1]
    lead, rest = list(x.shape[:n]), list(x.shape[n:])
    place = adjoin.zeros(index.shape[:-1], dtype=adjoin.int64)
    for part, size in zip(_places(x, index, 0), lead, strict=True):
        place = place * size + part
    width = math.prod(rest)
    flat = x.reshape(math.prod(lead), width)
    at = place.reshape(-1, 1).expand(place.numel(), width)
    source = source.reshape(place.numel(), width)
    made = flat.scatter(0, at, source) if how == "none" else flat.scatter_reduce(0, at, source, reduce=_HOW[how])
    return made.reshape(x.shape)


@op("Trilu")
def _trilu(c):
    x, k = c[0], int(c.number(1, 0))
    return adjoin.triu(x, k) if c.attribute("upper", 1) else adjoin.tril(x, k)


# New tensors
@op("Constant")
def _constant(c):
    for name in ("value", "value_float", "value_int", "value_floats", "value_ints"):
        value = c.attribute(name)
        if value is not None:
            return value if isinstance(value, adjoin.Tensor) else adjoin.tensor(value, dtype=adjoin.int64 if "int" in name else adjoin.float32)
    raise NotImplementedError("a constant of strings, or a sparse one, is not served")


@op("ConstantOfShape")
def _constant_of_shape(c):
    shape, value = [int(n) for n in c.list(0)], c.attribute("value")
    if value is None:
        return adjoin.zeros(shape)
    return adjoin.full(shape, value.reshape(-1).tolist()[0], dtype=value.dtype)


@op("Range")
def _range(c):
    dtype = c[0].dtype
    start, end, step = c.number(0), c.number(1), c.number(2)
    n = max(0, math.ceil((end - start) / step)) if dtype.is_floating_point else len(range(start, end, step))
    if dtype.is_floating_point:
        return adjoin.arange(n).to(dtype) * step + start
    return adjoin.arange(start, start + n * step, step, dtype=dtype) if n else adjoin.empty(0, dtype=dtype)


@op("EyeLike")
def _eye(c):
    rows, columns = c[0].shape
    dtype = m.dtype_of(c.attribute("dtype")) if c.attribute("dtype") else c[0].dtype
    i, j = adjoin.arange(rows).reshape(-1, 1), adjoin.arange(columns).reshape(1, -1)
    return (j - i == c.attribute("k", 0)).to(dtype)


@op("OneHot")
def _one_hot(c):
    index, depth, axis = c[0], int(c.number(1)), c.attribute("axis", -1)
    values = c[2]
    index = index.long()
    index = adjoin.where(index < 0, index + depth, index)
    axis %= index.dim() + 1
    shape = [1] * (index.dim() + 1)
    shape[axis] = depth
    hot = index.unsqueeze(axis) == adjoin.arange(depth).reshape(shape)
    return adjoin.where(hot, values[1], values[0])
