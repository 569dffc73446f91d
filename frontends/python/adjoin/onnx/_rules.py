"""adjoin.onnx._rules: element-wise ops, reductions and what moves elements, as nodes of ONNX."""

import math

import adjoin

from . import _ir
from ._builder import plain, rule

_UNARY = {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "abs": "Abs", "neg": "Neg",
    "erf": "Erf", "ceil": "Ceil", "floor": "Floor", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos",
    "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "sign": "Sign",
    "reciprocal": "Reciprocal", "logical_not": "Not", "isnan": "IsNaN", "isinf": "IsInf", "contiguous": "Identity",
    "clone": "Identity", "alias": "Identity", "det": "Det", "linalg::det": "Det", "nn::softsign": "Softsign", "positive": "Identity",
}  # fmt: skip


def rank(value):
    return len(value.shape)


def axis(dim, value):
    return dim % max(1, rank(value))


def is_real(value):
    return plain(value.dtype).is_floating_point


def _unary(g, a, call):
    x = a.input
    if _UNARY[call.op] in ("Relu", "Identity", "Abs", "Neg", "Sign") or is_real(x):
        if _UNARY[call.op] == "Not" and x.dtype != "bool":
            x = g.cast(x, x.dtype, adjoin.bool)
        return g.node(_UNARY[call.op], x)
    if _UNARY[call.op] in ("Ceil", "Floor", "Round"):
        return g.node("Identity", x)
    if _UNARY[call.op] == "Not":
        return g.node("Not", g.cast(x, x.dtype, adjoin.bool))
    return g.node(_UNARY[call.op], g.cast(x, x.dtype, adjoin.float32))


rule(*_UNARY)(_unary)


def operand(g, x, dtype):
    """A tensor or number as a tensor of a dtype."""
    if isinstance(x, _ir.Value):
        return g.cast(x, x.dtype, dtype)
    return g.scalar(x, dtype)


def common(*operands):
    """The dtype in which an element-wise op computes."""
    made = None
    for x in operands:
        if isinstance(x, _ir.Value) and x.shape:
            made = plain(x.dtype) if made is None else adjoin.promote_types(made, plain(x.dtype))
    for x in operands:
        if isinstance(x, _ir.Value) and not x.shape:
            made = plain(x.dtype) if made is None or _rank_of(plain(x.dtype)) > _rank_of(made) else made
    for x in operands:
        if not isinstance(x, _ir.Value) and x is not None:
            kind = 2 if isinstance(x, float) else 0 if isinstance(x, bool) else 1
            if made is None or kind > _rank_of(made):
                made = (adjoin.bool, adjoin.int64, adjoin.float32)[kind]
    return made


def _rank_of(dtype):
    return 0 if dtype == adjoin.bool else 2 if dtype.is_floating_point else 1


def result_dtype(call):
    first = call.results[0] if call.results else call.into[0]
    return plain((first[0] if isinstance(first, list) else first).dtype)


def _both(g, op, a, dtype):
    return g.node(op, operand(g, a.input, dtype), operand(g, a.other, dtype))


@rule("add", "sub")
def _add(g, a, call):
    dtype = common(a.input, a.other)
    other = operand(g, a.other, dtype)
    alpha = getattr(a, "alpha", 1)
    if alpha not in (1, None):
        other = g.node("Mul", other, g.scalar(alpha, dtype))
    return g.node("Add" if call.op == "add" else "Sub", operand(g, a.input, dtype), other)


@rule("mul")
def _mul(g, a, call):
    dtype = common(a.input, a.other)
    return _both(g, "And" if dtype == adjoin.bool else "Mul", a, dtype)


@rule("div", "true_divide", "div.mode", "floor_divide")
def _div(g, a, call):
    mode = "floor" if call.op == "floor_divide" else getattr(a, "rounding_mode", None)
    dtype = common(a.input, a.other)
    if mode is None:
        return _both(g, "Div", a, dtype if dtype.is_floating_point else adjoin.float32)
    made = _both(g, "Div", a, dtype)
    if dtype.is_floating_point:
        if mode == "floor":
            return g.node("Floor", made)
        return g.node("Mul", g.node("Sign", made), g.node("Floor", g.node("Abs", made)))
    if mode == "trunc":
        return made
    rest = g.node("Mod", operand(g, a.input, dtype), operand(g, a.other, dtype))
    return g.node("Div", g.node("Sub", operand(g, a.input, dtype), rest), operand(g, a.other, dtype))


@rule("remainder", "fmod")
def _mod(g, a, call):
    dtype = common(a.input, a.other)
    if call.op == "fmod":
        return g.node("Mod", operand(g, a.input, dtype), operand(g, a.other, dtype), fmod=1)
    if not dtype.is_floating_point:
        return _both(g, "Mod", a, dtype)
    x, y = operand(g, a.input, dtype), operand(g, a.other, dtype)
    return g.node("Sub", x, g.node("Mul", g.node("Floor", g.node("Div", x, y)), y))


@rule("pow")
def _pow(g, a, call):
    base, exponent = (a.input, a.exponent) if hasattr(a, "exponent") else (a.input, a.other)
    dtype = common(base, exponent)
    return g.node("Pow", operand(g, base, dtype), operand(g, exponent, dtype))


_PAIRS = {"maximum": "Max", "minimum": "Min", "max.other": "Max", "min.other": "Min"}


@rule(*_PAIRS)
def _pair(g, a, call):
    return _both(g, _PAIRS[call.op], a, common(a.input, a.other))


_COMPARE = {"eq": "Equal", "lt": "Less", "gt": "Greater", "le": "LessOrEqual", "ge": "GreaterOrEqual", "ne": "Equal"}


@rule(*_COMPARE)
def _compare(g, a, call):
    dtype = common(a.input, a.other)
    if dtype == adjoin.bool and call.op not in ("eq", "ne"):
        dtype = adjoin.int32
    made = _both(g, _COMPARE[call.op], a, dtype)
    return g.node("Not", made) if call.op == "ne" else made


_LOGIC = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
_BITS = {"bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor"}


@rule(*_LOGIC, *_BITS, "bitwise_not")
def _logic(g, a, call):
    if call.op in _LOGIC:
        return _both(g, _LOGIC[call.op], a, adjoin.bool)
    dtype = common(a.input, getattr(a, "other", None))
    if call.op == "bitwise_not":
        return g.node("Not" if dtype == adjoin.bool else "BitwiseNot", a.input)
    return _both(g, ("" if dtype == adjoin.bool else "Bitwise") + _BITS[call.op], a, dtype)


def _real(g, x):
    return g.cast(x, x.dtype, x.dtype if is_real(x) else adjoin.float32)


def _times(g, x, number, dtype):
    return g.node("Mul", x, g.scalar(float(number), dtype))


@rule("rsqrt", "square", "log1p", "expm1", "log2", "log10", "exp2", "round", "trunc", "rad2deg", "deg2rad", "erfc")
def _made(g, a, call):
    op = call.op
    if op == "square":
        return g.node("Mul", a.input, a.input)
    dtype = plain(a.input.dtype) if is_real(a.input) else adjoin.float32
    x, one = _real(g, a.input), g.scalar(1.0, dtype)
    if op == "round":
        scale = 10.0 ** (getattr(a, "decimals", 0) or 0)
        return (
            g.node("Round", x)
            if scale == 1
            else _times(g, g.node("Round", _times(g, x, scale, dtype)), 1 / scale, dtype)
        )
    if op == "rsqrt":
        return g.node("Reciprocal", g.node("Sqrt", x))
    if op == "log1p":
        return g.node("Log", g.node("Add", x, one))
    if op == "expm1":
        return g.node("Sub", g.node("Exp", x), one)
    if op == "exp2":
        return g.node("Exp", _times(g, x, math.log(2), dtype))
    if op == "trunc":
        return g.node("Mul", g.node("Sign", x), g.node("Floor", g.node("Abs", x)))
    if op == "erfc":
        return g.node("Sub", one, g.node("Erf", x))
    if op in ("rad2deg", "deg2rad"):
        return _times(g, x, 180 / math.pi if op == "rad2deg" else math.pi / 180, dtype)
    return _times(g, g.node("Log", x), 1 / math.log(2 if op == "log2" else 10), dtype)


@rule("where", "where.method")
def _where(g, a, call):
    if call.op == "where.method":
        condition, x, y = a.condition, a.input, a.other
    else:
        condition, x, y = a.condition, a.input, a.other
    dtype = common(x, y)
    return g.node("Where", condition, operand(g, x, dtype), operand(g, y, dtype))


@rule("masked_fill")
def _masked_fill(g, a, call):
    return g.node("Where", a.mask, operand(g, a.value, a.input.dtype), a.input)


@rule("clamp", "clamp_min", "clamp_max", "clip")
def _clamp(g, a, call):
    low, high = getattr(a, "min", None), getattr(a, "max", None)
    dtype = common(a.input, low, high)
    x = operand(g, a.input, dtype)
    if low is not None:
        x = g.node("Max", x, operand(g, low, dtype))
    return x if high is None else g.node("Min", x, operand(g, high, dtype))


# Reductions
def _axes(g, op, x, dims, keep):
    """A reduction: axes are an input since opset 18, of ReduceSum since 13."""
    if g.opset >= 18 or op == "ReduceSum":
        return g.node(op, x, g.ints(dims) if dims else None, keepdims=int(keep))
    return g.node(op, x, axes=dims or None, keepdims=int(keep))


def _dims(a, x):
    dims = a.dim
    if dims is None or dims == []:
        return []
    return [axis(d, x) for d in (dims if isinstance(dims, list) else [dims])]


_REDUCE = {"sum": "ReduceSum", "mean": "ReduceMean", "amax": "ReduceMax", "amin": "ReduceMin", "prod": "ReduceProd", "prod.dim": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin", "logsumexp": "ReduceLogSumExp", "sum.dim": "ReduceSum", "mean.dim": "ReduceMean"}  # fmt: skip


@rule(*_REDUCE)
def _reduce(g, a, call):
    x = g.cast(a.input, a.input.dtype, result_dtype(call))
    if not rank(a.input):
        return g.node("Identity", x)
    dims = _dims(a, a.input) if hasattr(a, "dim") else []
    return _axes(g, _REDUCE[call.op], x, dims, getattr(a, "keepdim", False))


@rule("any", "all", "any.dim", "all.dim")
def _any(g, a, call):
    x = g.cast(g.cast(a.input, a.input.dtype, adjoin.bool), adjoin.bool, adjoin.int32)
    dims = _dims(a, a.input) if hasattr(a, "dim") else []
    made = _axes(g, "ReduceMax" if call.op.startswith("any") else "ReduceMin", x, dims, getattr(a, "keepdim", False))
    return g.cast(made, adjoin.int32, adjoin.bool)


@rule("max.dim", "min.dim")
def _max_dim(g, a, call):
    d = axis(a.dim, a.input)
    kind = "Max" if call.op == "max.dim" else "Min"
    value = _axes(g, f"Reduce{kind}", a.input, [d], a.keepdim)
    return value, g.node(f"Arg{kind}", a.input, axis=d, keepdims=int(a.keepdim))


@rule("argmax", "argmin")
def _arg(g, a, call):
    op = "ArgMax" if call.op == "argmax" else "ArgMin"
    if a.dim is None:
        return g.node(op, g.node("Reshape", a.input, g.ints([-1])), axis=0, keepdims=0)
    return g.node(op, a.input, axis=axis(a.dim, a.input), keepdims=int(a.keepdim))


@rule("var", "std", "var.unbiased", "std.unbiased", "var.unbiased_dim", "std.unbiased_dim")
def _var(g, a, call):
    x, dims = a.input, _dims(a, a.input) if hasattr(a, "dim") else []
    correction = int(a.unbiased) if hasattr(a, "unbiased") else 1 if a.correction is None else a.correction
    made = variance(g, x, dims or list(range(rank(x))), getattr(a, "keepdim", False), correction)
    return g.node("Sqrt", made) if call.op.startswith("std") else made


def variance(g, x, dims, keep, correction):
    centre = g.node("Sub", x, _axes(g, "ReduceMean", x, dims, True))
    made = _axes(g, "ReduceMean", g.node("Mul", centre, centre), dims, keep)
    if not correction:
        return made
    if any(isinstance(x.shape[d], _ir.Size) for d in dims):
        n = None
        for d in dims:
            n = g.size(x.shape[d]) if n is None else g.node("Mul", n, g.size(x.shape[d]))
        n = g.node("Squeeze", g.cast(n, adjoin.int64, x.dtype))
        return g.node("Mul", made, g.node("Div", n, g.node("Sub", n, g.scalar(float(correction), x.dtype))))
    n = math.prod(x.shape[d] for d in dims)
    return _times(g, made, n / (n - correction) if n != correction else math.nan, x.dtype)


@rule("norm", "linalg::vector_norm")
def _norm(g, a, call):
    p = getattr(a, "p", getattr(a, "ord", 2))
    dims = _dims(a, a.input)
    if p in (1, 2):
        return _axes(g, f"ReduceL{int(p)}", a.input, dims, a.keepdim)
    if p == math.inf:
        return _axes(g, "ReduceMax", g.node("Abs", a.input), dims, a.keepdim)
    raise NotImplementedError(f"onnx.export: a norm of order {p} has no rule")


@rule("cumsum")
def _cumsum(g, a, call):
    return g.node(
        "CumSum", g.cast(a.input, a.input.dtype, result_dtype(call)), g.scalar(axis(a.dim, a.input), adjoin.int64)
    )


@rule("topk")
def _topk(g, a, call):
    return g.node(
        "TopK", a.input, g.ints([a.k]), outputs=2, axis=axis(a.dim, a.input), largest=int(a.largest), sorted=1
    )


@rule("sort", "sort.stable", "argsort")
def _sort(g, a, call):
    d = axis(a.dim, a.input)
    made = g.node("TopK", a.input, g.ints([a.input.shape[d]]), outputs=2, axis=d, largest=int(a.descending), sorted=1)
    return made[1] if call.op == "argsort" else made
