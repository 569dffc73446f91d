"""adjoin.array_api._elementwise: functions of each element, under the standard's promotion."""

import operator

import adjoin as _top

from .._C import Tensor
from ._dtypes import is_integral, promoted, side_of

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "copysign", "cos",
    "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal", "hypot", "imag",
    "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative", "nextafter", "not_equal",
    "positive", "pow", "real", "reciprocal", "remainder", "round", "sign", "signbit", "sin", "sinh", "sqrt", "square",
    "subtract", "tan", "tanh", "trunc",
]  # fmt: skip


def _one(name, of=None):
    """The standard's function of one array over the package's, which may have another name."""
    compute = of or getattr(_top, name)

    def function(x, /):
        return compute(x)

    return _named(function, name)


def _two(name, of=None):
    """The same of two arrays, one of which may be a Python number."""
    compute = of or getattr(_top, name)

    def function(x1, x2, /):
        return compute(*promoted(x1, x2))

    return _named(function, name)


def _compared(name, of=None):
    """The same of a comparison, which a whole number may take part in that the array's dtype has no place for."""
    compute, by_number = of or getattr(_top, name), getattr(operator, (of or getattr(_top, name)).__name__)

    def function(x1, x2, /):
        for array, number, swapped in ((x1, x2, False), (x2, x1, True)):
            side = type(number) is int and isinstance(array, Tensor) and side_of(number, array.dtype)
            if side:
                return _top.full_like(array, by_number(side, 0) if swapped else by_number(0, side), dtype=_top.bool)
        return compute(*promoted(x1, x2))

    return _named(function, name)


def _named(function, name):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The array API standard's `{name}`."
    return function


def _whole(compute):
    """Whole numbers and bools have nothing to round."""
    return lambda x: x.clone() if is_integral(x.dtype) else compute(x)


def _by_parts(compute):
    """A complex number's parts are rounded one by one."""
    return lambda x: _top.complex(compute(x.real), compute(x.imag)) if x.dtype.is_complex else compute(x)


def _nearest(x):
    return x.clone() if is_integral(x.dtype) else _by_parts(_top.round)(x)


def _expm1(x):
    """Where a complex result isn't finite, exp decides: it makes no NaN of zero times infinity."""
    made = _top.expm1(x)
    return _top.where(_top.isfinite(made), made, _top.exp(x) - 1) if x.dtype.is_complex else made


def _remainder(x1, x2):
    """A zero has the sign of the divisor, as every other remainder has."""
    made = _top.remainder(x1, x2)
    return _top.where(made == 0, _top.copysign(made, x2), made) if made.dtype.is_floating_point else made


def _sign(x):
    made = _top.sgn(x)
    return _top.where(_top.isnan(x), x, made) if x.dtype.is_floating_point else made


abs = _one("abs")
acos = _one("acos")
acosh = _one("acosh")
add = _two("add")
asin = _one("asin")
asinh = _one("asinh")
atan = _one("atan")
atan2 = _two("atan2")
atanh = _one("atanh")
bitwise_and = _two("bitwise_and")
bitwise_invert = _one("bitwise_invert", _top.bitwise_not)
bitwise_left_shift = _two("bitwise_left_shift")
bitwise_or = _two("bitwise_or")
bitwise_right_shift = _two("bitwise_right_shift")
bitwise_xor = _two("bitwise_xor")
ceil = _one("ceil", _whole(_top.ceil))
conj = _one("conj", lambda x: _top.conj(x).resolve_conj())
copysign = _two("copysign")
cos = _one("cos")
cosh = _one("cosh")
divide = _two("divide")
equal = _compared("equal", _top.eq)
exp = _one("exp")
expm1 = _one("expm1", _expm1)
floor = _one("floor", _whole(_top.floor))
floor_divide = _two("floor_divide")
greater = _compared("greater", _top.gt)
greater_equal = _compared("greater_equal", _top.ge)
hypot = _two("hypot")
imag = _one("imag")
isfinite = _one("isfinite")
isinf = _one("isinf")
isnan = _one("isnan")
less = _compared("less", _top.lt)
less_equal = _compared("less_equal", _top.le)
log = _one("log")
log10 = _one("log10")
log1p = _one("log1p")
log2 = _one("log2")
logaddexp = _two("logaddexp")
logical_and = _two("logical_and")
logical_not = _one("logical_not")
logical_or = _two("logical_or")
logical_xor = _two("logical_xor")
maximum = _two("maximum")
minimum = _two("minimum")
multiply = _two("multiply")
negative = _one("negative")
nextafter = _two("nextafter")
not_equal = _compared("not_equal", _top.ne)
positive = _one("positive")
pow = _two("pow")
real = _one("real")
reciprocal = _one("reciprocal")
remainder = _two("remainder", _remainder)
round = _one("round", _nearest)
sign = _one("sign", _sign)
signbit = _one("signbit")
sin = _one("sin")
sinh = _one("sinh")
sqrt = _one("sqrt")
square = _one("square")
subtract = _two("subtract")
tan = _one("tan")
tanh = _one("tanh")
trunc = _one("trunc", _whole(_top.trunc))


def clip(x, /, min=None, max=None):
    """Elements brought between limits, each a number, a tensor or None; the result has x's dtype."""
    limits = [y.to(x.dtype) if isinstance(y, Tensor) else y for y in (min, max)]
    for place, beyond in enumerate((-1, 1)):  # where no element can be
        if type(limits[place]) is int and side_of(limits[place], x.dtype) == beyond:
            limits[place] = None
    if limits == [None, None]:
        return x.clone()
    made = x
    for limit, choose in zip(limits, (maximum, minimum), strict=True):
        if limit is not None:
            made = choose(made, limit).to(x.dtype)
    return made
