"""pointwise.py: cases of functions of one, two or three operands, element by element."""

from ..case import Call
from ..draw import Draw

UNARY = """abs neg sign sgn square sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh
asinh acosh atanh sigmoid logit erf erfc erfinv lgamma digamma floor ceil round trunc frac positive isnan isinf isfinite isposinf
isneginf isreal signbit logical_not bitwise_not relu sinc i0 deg2rad rad2deg angle conj real imag nan_to_num conj_physical
resolve_conj frexp""".split()
FUNCTIONAL = """relu6 elu selu celu gelu silu mish softplus softsign hardtanh hardsigmoid hardswish leaky_relu logsigmoid tanhshrink
hardshrink softshrink threshold""".split()
SPECIAL = """entr i0e i1 i1e ndtr ndtri log_ndtr erfcx bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma expit xlog1py zeta
modified_bessel_i0 modified_bessel_k0 spherical_bessel_j0""".split()
BINARY = """add sub mul div true_divide floor_divide remainder fmod pow float_power maximum minimum fmax fmin atan2 hypot copysign
nextafter logaddexp logaddexp2 xlogy eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor
bitwise_left_shift bitwise_right_shift gcd lcm heaviside ldexp isclose""".split()
WORDS = {"round": lambda d: {"decimals": str(d.int(-2, 2))}, "logit": lambda d: {"eps": "0.1"},
         "nan_to_num": lambda d: {"nan": "1.0", "posinf": "9.0"}, "add": lambda d: {"alpha": d.scalar()}, "sub": lambda d: {"alpha": d.scalar()},
         "div": lambda d: {"rounding_mode": d.pick(["'floor'", "'trunc'", "None", "'x'"])},
         "gelu": lambda d: {"approximate": "'tanh'"}, "isclose": lambda d: {"equal_nan": "True"}}  # fmt: skip
NEEDED = {"threshold": lambda d: ["0.5", "2.0"]}


def words(d, name, p=0.2):
    return WORDS[name](d) if name in WORDS and d.chance(p) else {}


def unary(d):
    x, name = d.tensor(layout=0.3), d.pick(UNARY)
    call = d.form(name, [x], words(d, name))
    if d.chance(0.15):
        call = Call(name + "_", [x], call.words, "x")
    return d.case(call)


def functional(d):
    x, name = (
        d.tensor(layout=0.3, among=["float32", "float64", "float32", "float16", "bfloat16", "int64", "bool"]),
        d.pick(FUNCTIONAL),
    )
    return d.case(Call(name, [x, *NEEDED.get(name, lambda d: [])(d)], words(d, name, 0.4), "F"))


def special(d):
    x, name = d.tensor(layout=0.2, among=["float32", "float64", "float32", "int64"]), d.pick(SPECIAL)
    more = [d.tensor(x.dtype, d.near(x.shape))] if name in ("xlog1py", "zeta") else []
    return d.case(Call(name, [x, *more], form="S"))


def operand(d, x):
    if d.chance(0.25):
        return d.scalar()
    return d.tensor(x.dtype if d.chance(0.7) else None, d.near(x.shape), layout=0.2)


def binary(d):
    x, name = d.tensor(layout=0.3), d.pick(BINARY)
    call = d.form(name, [x, operand(d, x)], words(d, name))
    if d.chance(0.15):
        call = Call(name + "_", call.args, call.words, "x")
    return d.case(call)


def ternary(d):
    x = d.tensor(layout=0.25)
    name = d.pick(["lerp", "addcmul", "addcdiv", "clamp", "clamp", "clamp_min", "clamp_max", "where", "clip"])
    y = d.tensor(x.dtype if d.chance(0.8) else None, d.near(x.shape))
    z = d.tensor(x.dtype if d.chance(0.8) else None, d.near(x.shape))
    if name == "lerp":
        return d.case(d.form(name, [x, y, d.scalar(["int64", "float64"]) if d.chance(0.5) else z]))
    if name in ("addcmul", "addcdiv"):
        return d.case(d.form(name, [x, y, z], {"value": d.scalar()} if d.chance(0.4) else {}))
    if name in ("clamp_min", "clamp_max"):
        return d.case(d.form(name, [x, d.scalar(["int64", "float64"]) if d.chance(0.5) else y]))
    if name == "where":
        return d.case(Call(name, [d.tensor("bool", d.near(x.shape)), x, operand(d, x)]))
    if d.chance(0.5):
        return d.case(d.form(name, [x, *[d.pick([d.scalar(["int64", "float64"]), "None"]) for _ in "ab"]]))
    return d.case(d.form(name, [x, y, z] if d.chance(0.7) else [x, "None", z]))


def orders(d):
    x = d.tensor(among=["float32", "float64", "int64"])
    name = d.pick(["polygamma", "mvlgamma"])
    return d.case(Call(name, [str(d.int(0, 3)), x]) if name == "polygamma" else Call(name, [x, str(d.int(1, 3))]))


MAKERS = [unary, unary, unary, binary, binary, binary, binary, ternary, ternary, functional, special, orders]


def make(seed, index):
    d = Draw("pointwise", seed, index)
    return d.pick(MAKERS)(d)
