"""reductions.py: cases that reduce, scan, sort and count."""

from ..case import Call
from ..draw import Draw

SUMS = ["sum", "mean", "nansum", "nanmean", "amax", "amin", "all", "any", "count_nonzero", "logsumexp"]
SCANS = ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"]
ONE = ["argmax", "argmin", "prod"]
PAIRS = ["max", "min", "median", "nanmedian", "mode"]


def keep(d, p=0.4):
    return {"keepdim": str(d.chance(0.6))} if d.chance(p) else {}


def as_dtype(d, p=0.2):
    return {"dtype": f"t.{d.dtype()}"} if d.chance(p) else {}


def sums(d):
    x, name = d.tensor(layout=0.35), d.pick(SUMS)
    args, words = [x], {}
    if d.chance(0.75) or name in ("logsumexp",):
        args.append(d.dims(x.rank).replace("None", "()" if name in ("amax", "amin", "logsumexp") else "None"))
        words = keep(d) if name != "count_nonzero" else {}
    if name in ("sum", "mean", "nansum", "nanmean"):
        words |= as_dtype(d)
    return d.case(d.form(name, args, words))


def one(d):
    x, name = d.tensor(layout=0.35), d.pick(ONE)
    args, words = [x], {}
    if d.chance(0.7):
        args.append(str(d.dim(x.rank)))
        words = keep(d)
    if name == "prod":
        words |= as_dtype(d)
    return d.case(d.form(name, args, words))


def pairs(d):
    x, name = d.tensor(layout=0.35), d.pick(PAIRS)
    args, words = [x], {}
    if d.chance(0.8):
        args.append(str(d.dim(x.rank)))
        words = keep(d)
    if len(args) == 1 and name == "mode":
        words = {}
    return d.case(d.form(name, args, words))


def scans(d):
    x = d.tensor(layout=0.35)
    name = d.pick(SCANS)
    words = as_dtype(d) if name in ("cumsum", "cumprod") else {}
    call = d.form(name, [x, str(d.dim(x.rank))], words)
    if name in ("cumsum", "cumprod") and d.chance(0.15):
        call = Call(name + "_", call.args, {}, "x")
    return d.case(call)


def spread(d):
    x = d.tensor(layout=0.3, among=["float32", "float64", "float16", "bfloat16", "complex64", "int64"])
    name = d.pick(["var", "std", "var_mean", "std_mean"])
    args, words = [x], keep(d)
    if d.chance(0.7):
        args.append(d.dims(x.rank))
    if len(args) == 1:
        words = {}
    kind = d.random()
    if kind < 0.3:
        words["correction"] = str(d.pick([0, 1, 2, 3, 0.5]))
        if len(args) == 1:
            args.append("None")
    elif kind < 0.5:
        words["unbiased"] = str(d.chance(0.5))
    return d.case(d.form(name, args, words))


def norms(d):
    x = d.tensor(layout=0.3, among=["float32", "float64", "float16", "complex64", "int64"])
    order = d.pick(["0", "1", "2", "3", "0.5", "-1", "inf", "-inf", "'fro'", "2.0"])
    kind = d.pick(["norm", "L", "dist", "L2"])
    if kind == "dist":
        y = d.tensor(x.dtype, d.near(x.shape))
        return d.case(d.form("dist", [x, y, order.replace("'fro'", "2")]))
    words = {"dim": d.dims(x.rank), **keep(d)} if d.chance(0.6) else {}
    if kind == "L":
        return d.case(Call("vector_norm", [x, order.replace("'fro'", "2")], words | as_dtype(d, 0.05), form="L"))
    if kind == "L2":
        return d.case(Call("norm", [x], words, form="L"))
    return d.case(d.form("norm", [x, order], words))


def ordered(d):
    x, name = d.tensor(layout=0.3), d.pick(["sort", "argsort", "topk", "kthvalue", "msort"])
    if name == "msort":
        return d.case(d.form(name, [x]))
    dim = d.dim(x.rank)
    size = x.shape[dim] if -x.rank <= dim < x.rank else 1
    if name in ("sort", "argsort"):
        words = {"descending": str(d.chance(0.5)), "stable": "True"}
        return d.case(d.form(name, [x], {"dim": str(dim), **words}))
    k = str(d.int(0, size + 1) if d.chance(0.3) else d.int(min(1, size), size))
    if name == "topk":
        return d.case(d.form(name, [x, k, str(dim)], {"largest": str(d.chance(0.5))} if d.chance(0.5) else {}))
    return d.case(d.form(name, [x, k, str(dim)], keep(d)))


def quantiles(d):
    x = d.tensor(layout=0.2, among=["float32", "float64", "float32", "float64", "float16", "int64"])
    q = d.pick(
        [
            "0.5",
            "0.0",
            "1.0",
            "0.3",
            "1.5",
            f"t.tensor([0.1, 0.75], dtype=t.{x.dtype})",
            f"t.tensor(0.4, dtype=t.{x.dtype})",
        ]
    )
    words = {"dim": str(d.dim(x.rank)), **keep(d)} if d.chance(0.7) else {}
    if d.chance(0.5):
        words["interpolation"] = repr(d.pick(["linear", "lower", "higher", "midpoint", "nearest"]))
    return d.case(d.form(d.pick(["quantile", "nanquantile"]), [x, q], words))


def counted(d):
    name = d.pick(["unique", "unique", "unique_consecutive", "bincount", "histc", "aminmax", "histogram"])
    if name == "bincount":
        x = d.tensor(d.pick(["int64", "int32", "uint8", "int8"]), (d.int(0, 6),), values=lambda: d.int(0, 5))
        words = {"minlength": str(d.int(0, 8))} if d.chance(0.4) else {}
        if d.chance(0.4):
            words["weights"] = d.tensor(None, x.shape)
        return d.case(d.form(name, [x], words))
    if name in ("histc", "histogram"):
        x = d.tensor(d.pick(["float32", "float64"]))
        if name == "histogram":
            return d.case(d.form(name, [x, str(d.int(1, 5))], {"range": "(-1.0, 2.0)"} if d.chance(0.6) else {}))
        return d.case(d.form(name, [x, str(d.int(1, 5)), *(["-2", "3"] if d.chance(0.6) else [])]))
    x = d.tensor(layout=0.25)
    if name == "aminmax":
        return d.case(d.form(name, [x], {"dim": str(d.dim(x.rank)), **keep(d)} if d.chance(0.7) else {}))
    words = {w: "True" for w in ("return_inverse", "return_counts") if d.chance(0.4)}
    if d.chance(0.5) and x.rank:
        words["dim"] = str(d.dim(x.rank))
    return d.case(d.form(name, [x], words))


def soft(d):
    x = d.tensor(layout=0.3, among=["float32", "float64", "float32", "float16", "bfloat16", "int64"])
    name = d.pick(["softmax", "log_softmax", "softmin"])
    words = as_dtype(d, 0.2)
    if name == "softmin":
        return d.case(Call(name, [x, str(d.dim(x.rank))], words, "F"))
    return d.case(d.form(name, [x, str(d.dim(x.rank))], words))


def differences(d):
    x = d.tensor(layout=0.25)
    name = d.pick(["diff", "trapezoid", "cumulative_trapezoid", "trace", "renorm", "cov", "corrcoef"])
    if name == "trace":
        return d.case(d.form(name, [d.tensor(shape=d.shape(2, 2)) if d.chance(0.9) else x]))
    if name == "diff":
        return d.case(d.form(name, [x, str(d.int(0, 3)), str(d.dim(x.rank))]))
    if name == "renorm":
        return d.case(d.form(name, [x, d.pick(["1", "2", "0.5"]), str(d.dim(x.rank)), d.pick(["1", "0.5", "0"])]))
    if name in ("cov", "corrcoef"):
        return d.case(d.form(name, [d.tensor(shape=d.shape(0, 2), among=["float32", "float64", "int64", "complex64"])]))
    if d.chance(0.4):
        return d.case(Call(name, [x, d.tensor(x.dtype, x.shape)], {"dim": str(d.dim(x.rank))}))
    return d.case(
        Call(
            name, [x], {"dim": str(d.dim(x.rank)), **({"dx": d.scalar(["int64", "float64"])} if d.chance(0.5) else {})}
        )
    )


MAKERS = [
    sums,
    sums,
    sums,
    one,
    one,
    pairs,
    pairs,
    scans,
    scans,
    spread,
    norms,
    ordered,
    ordered,
    quantiles,
    counted,
    counted,
    soft,
    differences,
]


def make(seed, index):
    d = Draw("reductions", seed, index)
    return d.pick(MAKERS)(d)
