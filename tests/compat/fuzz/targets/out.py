"""out.py: cases with out=: of another dtype, another shape, a view, a part of an argument, two results."""

from ..case import Call
from ..draw import Draw, Name
from . import indexing, pointwise, reductions, shapes

SOURCES = [pointwise.unary, pointwise.binary, pointwise.binary, pointwise.ternary, pointwise.special, reductions.sums, reductions.sums,
           reductions.one, reductions.pairs, reductions.scans, reductions.spread, reductions.norms, reductions.ordered, reductions.quantiles,
           reductions.soft, shapes.products, shapes.joined, indexing.along, indexing.masks, indexing.moved]  # fmt: skip
TWO = {
    "max",
    "min",
    "median",
    "nanmedian",
    "mode",
    "cummax",
    "cummin",
    "sort",
    "topk",
    "kthvalue",
    "var_mean",
    "std_mean",
    "aminmax",
    "frexp",
}


def target(d, known, shape):
    """The text of an out: fresh, a view of a fresh tensor, an argument, or a part of one."""
    kind = d.random()
    dtype = known if d.chance(0.75) else d.dtype()
    if kind < 0.6 or not d.setup:
        sizes = shape if d.chance(0.8) else d.pick([(0,), d.shape()])
        return d.tensor(dtype, sizes, layout=0.3)
    other = d.pick([line.split(" ")[0] for line in d.setup])
    if kind < 0.8:
        return other
    return other + d.pick(
        [
            ".T",
            "[:1]",
            "[1:]",
            "[::2]",
            "[...]",
            ".flip(0)",
            ".mT",
            "[:, :1]",
            ".view(-1)",
            ".detach()",
            ".expand(2, 2)",
        ]
    )


def make(seed, index):
    d = Draw("out", seed, index)
    case = d.pick(SOURCES)(d)
    call = case.call
    if call.name.endswith("_"):
        call.name = call.name[:-1]
    if call.form == "x":
        call.form = "t"
    names = [a for a in call.args if isinstance(a, Name)]
    first = names[0] if names else Name("x", "float32", ())
    shape = guess(d, call, first)
    dtype = first.dtype if call.name not in ("argmax", "argmin", "count_nonzero", "argsort", "nonzero") else "int64"
    a = target(d, dtype, shape)
    two = call.name in TWO and (len(call.args) > 1 or call.words or call.name in ("frexp", "sort"))
    if two if d.chance(0.97) else not two:
        b = target(d, "int64" if call.name not in ("var_mean", "std_mean", "aminmax", "frexp") else dtype, shape)
        call.words["out"] = f"({a}, {b})"
    else:
        call.words["out"] = a
    return d.case(Call(call.name, call.args, call.words, call.form))


def guess(d, call, first):
    """A shape that the result may have."""
    shape = list(first.shape)
    if len(call.args) > 1 and call.args[1].lstrip("-").isdigit() and shape and d.chance(0.8):
        k = int(call.args[1])
        if -len(shape) <= k < len(shape) and call.name not in (
            "cumsum",
            "cumprod",
            "cummax",
            "cummin",
            "logcumsumexp",
            "softmax",
            "log_softmax",
        ):
            if call.words.get("keepdim") == "True":
                shape[k] = 1
            else:
                del shape[k]
    return tuple(shape)
