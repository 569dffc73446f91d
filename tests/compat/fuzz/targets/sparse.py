"""sparse.py: ops of sparse tensors of every layout, beside PyTorch's and beside the same ops of the dense tensors that they stand for."""

import adjoin
import torch

from ..compare import TOLERANCE, brief, close, dtype, is_tensor, numbers
from ..draw import Draw
from ..judged import LACKING, NOTHING, Judged, refused

LAYOUTS = ["coo", "coo", "coo", "csr", "csr", "csc", "bsr", "bsc"]
DTYPES = (
    ["float32"] * 4 + ["float64"] * 4 + ["complex64", "complex128", "int64", "int32", "bool", "float16", "bfloat16"]
)
UNARY = """abs neg sign sgn sin tan asin atan sinh tanh asinh atanh sqrt square expm1 log1p floor ceil round trunc frac relu deg2rad
rad2deg erf erfinv isnan isinf isposinf isneginf signbit conj_physical positive angle exp cos""".split()
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)


class Sparse(Judged):
    """s and o are sparse where `sparse` is asked, and dense where `plain` is."""

    def told(self):
        ours, theirs, plain = self.ask(adjoin, "sparse"), self.ask(torch, "sparse"), self.ask(adjoin, "plain")
        if not refused(theirs) and refused(read(theirs)):  # PyTorch's own answer has indices that do not fit it
            theirs = read(theirs)
        if refused(ours):
            return self.refusal(ours, theirs)
        if not refused(theirs) and (why := self.beside(ours, theirs)):
            return [(f"{why}: adjoin: {shown(ours)}; torch: {shown(theirs)}", None)]
        if refused(theirs) and is_tensor(ours) and is_tensor(plain) and (why := unlike(full(ours), full(plain))):
            return [(f"{why} of the dense op: {shown(ours)}; {shown(plain)}", None)]
        return []

    def refusal(self, ours, theirs):
        if not isinstance(ours, REFUSALS):
            return [(f"an error of a strange class: {brief(ours)}", None)]
        if refused(theirs):
            return []
        if isinstance(ours, NotImplementedError) and any(w in str(ours) for w in ("to_dense", "call ", "use ")):
            return [(brief(ours), LACKING)]
        nothing = is_tensor(theirs) and layout(theirs) != "strided" and theirs._nnz() == 0
        if nothing or "sparse dimensions are given; they must be equal" in str(ours):  # PyTorch: if one has no elements
            return [(brief(ours), NOTHING)]
        return [(f"only Adjoin refuses: {brief(ours)}; torch: {shown(theirs)}", None)]

    def beside(self, ours, theirs):
        if not is_tensor(theirs):
            return None if ours == theirs else "value"
        if layout(ours) != layout(theirs):
            return "layout"
        if layout(ours) == "sparse_coo" and (ours.sparse_dim(), ours.dense_dim()) != (
            theirs.sparse_dim(),
            theirs.dense_dim(),
        ):
            return "dimensions"
        return unlike(full(ours), full(theirs))


def layout(t):
    return str(t.layout).rpartition(".")[2]


def full(t):
    return t if not is_tensor(t) or layout(t) == "strided" else t.to_dense()


def read(t):
    try:
        return full(t)
    except (RuntimeError, IndexError) as error:
        return error


def shown(t):
    return f"{layout(t)} {brief(full(t))}" if is_tensor(t) else brief(t)


def unlike(a, b):
    if dtype(a) != dtype(b):
        return "dtype"
    if tuple(a.shape) != tuple(b.shape):
        return "shape"
    x, y = numbers(a), numbers(b)
    return None if x == y or (dtype(b) in TOLERANCE and close(x, y, 4 * TOLERANCE[dtype(b)])) else "value"


def few(d, kind, p=0.45):
    """Elements of which most are 0."""
    return lambda: d.number(kind, special=False) if d.chance(p) else 0


def even(d):
    return d.pick([0, 2, 2, 4, 4, 6])


def operand(d, name, kind, lay, shape):
    """A sparse tensor's text, with a dense twin of that name; elements at one place are added up."""
    d.tensor(kind, shape, name, layout=0.1, values=few(d, kind))
    if lay in ("bsr", "bsc"):
        return f"{name}.to_sparse_{lay}((2, 2))"
    made = f"{name}.to_sparse_{lay}()"
    if lay == "coo" and d.chance(0.2) and len(shape) > 1:
        made = f"{name}.to_sparse({d.int(1, len(shape))})"
    elif (
        lay == "coo" and d.chance(0.3) and kind not in ("bool",)
    ):  # not coalesced: each element in two halves, the second first
        made = f"t.sparse_coo_tensor({made}.indices().repeat(1, 2), t.cat([{made}.values() * 3, {made}.values() * -2]), {shape})"
    return made


def pair(d, lay, kind, shape, op):
    """s op o, sparse and dense."""
    other = lay if d.chance(0.85) else d.pick(LAYOUTS)
    return operand(d, "o", kind if d.chance(0.9) else d.pick(DTYPES), other, shape)


def one(d, lay, kind, shape, s):
    name = d.pick(UNARY)
    return name, f"t.{name}({{s}})", {}


def scalar(d, lay, kind, shape, s):
    op = d.pick(["*", "/", "*", "//"])
    by = d.scalar(["int64", "float64", "bool"]) if op == "*" else d.pick(["2", "-0.5", "True", "3"])
    return f"{op} scalar", f"{{s}} {op} {by}", {}


def two(d, lay, kind, shape, s):
    op = d.pick(["+", "-", "*"])
    return f"sparse {op} sparse", f"{{s}} {op} {{o}}", {"o": pair(d, lay, kind, shape, op)}


def beside_dense(d, lay, kind, shape, s):
    d.tensor(kind if d.chance(0.9) else d.pick(DTYPES), shape, "y", values=lambda: d.number(kind, special=False))
    form = d.pick(
        ["y + {s}", "{s} * y", "y * {s}", "y - {s}", "t.add(y, {s}, alpha=2)", "{s}.add({s}, alpha=3)", "{s} + y"]
    )
    return form, form, {}


def product(d, lay, kind, shape, s):
    columns = d.pick([1, 2, 3, 5, 0])
    if lay == "csr" and len(shape) == 2 and kind in ("float32", "float64", "complex64") and d.chance(0.2):
        y, w = (
            d.tensor(kind, n, values=lambda: d.number(kind, special=False))
            for n in ((shape[0], columns), (columns, shape[1]))
        )
        words = f"alpha={d.scalar(['int64'])}, beta={d.scalar(['int64'])}"
        dense = f"t.where({{s}} != 0, t.addmm({{s}}, {y}, {w}, {words}), 0)"
        return "sampled_addmm", f"t.sparse.sampled_addmm({{s}}, {y}, {w}, {words})", {"plain": dense}
    if len(shape) != 2:
        y = d.tensor(kind, (*shape[:-2], shape[-1], columns), "y", values=lambda: d.number(kind, special=False))
        return "bmm", f"t.bmm({{s}}, {y})", {}
    d.tensor(kind, (shape[1], columns), "y", values=lambda: d.number(kind, special=False), layout=0.3)
    d.tensor(kind, (shape[0], columns), "w", values=lambda: d.number(kind, special=False))
    d.tensor(kind, (columns, shape[0]), "z", values=lambda: d.number(kind, special=False))
    d.tensor(kind, (shape[1],), "v", values=lambda: d.number(kind, special=False))
    alpha, beta = d.scalar(["int64"]), d.scalar(["int64"])
    form = d.pick(["t.mm({s}, y)", "{s} @ y", "z @ {s}", "t.mv({s}, v)", "{s} @ v", f"t.addmm(w, {{s}}, y, alpha={alpha}, beta={beta})",
                   "t.sparse.mm({s}, y)", "t.sparse.addmm(w, {s}, y)", "t.hspmm({s}, y)", "t.smm({s}, y)", "{s} @ {o}.t()", "t.mm({s}, {o}.t())"])  # fmt: skip
    more = {"o": operand(d, "o", kind, lay, shape)} if "{o}" in form else {}
    return form, form, more


def sums(d, lay, kind, shape, s):
    dim = d.pick(["", ", 0", ", 1", ", -1", ", (0, 1)"])
    form = d.pick([f"t.sum({{s}}{dim})", f"t.sparse.sum({{s}}{dim})", f"t.sum({{s}}, {d.dim(len(shape))}, keepdim=True)", "{s}.norm()",
                   "t.any({s})", "{s}.mean()", f"t.sparse.softmax({{s}}, {d.int(-1, 1)})", f"t.sparse.log_softmax({{s}}, {d.int(-1, 1)})"])  # fmt: skip
    return form.partition("(")[0], form, {}


def shapes(d, lay, kind, shape, s):
    rank = len(shape)
    a, b = d.dim(rank), d.dim(rank)
    start, length = d.int(-2, 3), d.int(0, 4)
    places = (
        [d.int(-1, 5) for _ in range(d.int(0, 4))]
        if d.chance(0.2)
        else [d.int(0, max(shape[a % rank], 1) - 1) for _ in range(d.int(0, 4))]
    )
    form = d.pick([f"{{s}}.transpose({a}, {b})", f"t.select({{s}}, {a}, {d.int(-3, 3)})", f"t.narrow({{s}}, {a}, {start}, {length})",
                   f"t.index_select({{s}}, {a}, t.tensor({places}, dtype=t.int64))", f"{{s}}.unsqueeze({a})", f"t.cat([{{s}}, {{o}}], {a})",
                   f"t.stack([{{s}}, {{o}}], {a})", "{s}.clone()", "{s}.detach()", f"{{s}}.permute({tuple(d.rng.sample(range(rank), rank))})",
                   f"{{s}}[{d.int(-3, 3)}]", f"{{s}}.squeeze({a})", "{s}.t()", "t.zeros_like({s})", f"{{s}}.to(t.{d.pick(DTYPES)})",
                   "{s}.coalesce()", "t.flatten({s})", f"{{s}}.reshape({(shape[1], shape[0])})", f"{{s}}[{d.int(0, 2)}:{d.int(0, 5)}]"])  # fmt: skip
    return (
        form,
        form,
        {"o": operand(d, "o", kind if d.chance(0.9) else d.pick(DTYPES), lay, shape)} if "{o}" in form else {},
    )


def converted(d, lay, kind, shape, s):
    to = d.pick(["csr", "csc", "bsr", "bsc", "coo"])
    call = {"bsr": "to_sparse_bsr((2, 2))", "bsc": "to_sparse_bsc((2, 1))", "coo": "to_sparse()"}.get(
        to, f"to_sparse_{to}()"
    )
    form = d.pick([f"{{s}}.{call}", "{s}.to_dense()", f"{{s}}.to_dense(dtype=t.{d.pick(DTYPES)})", "{s}.numel()", "{s}.is_sparse and 1",
                   "tuple({s}.shape)", "{s}.sum()"])  # fmt: skip
    return form, form, {}


def masks(d, lay, kind, shape, s):
    y = d.tensor(kind, shape, "y", values=lambda: d.number(kind, special=False))
    return "sparse_mask", f"{y}.sparse_mask({{s}})", {"plain": f"t.where({{s}} != 0, {y}, 0).to(t.{kind})"}


def slopes(d, lay, kind, shape, s):
    """The gradient of what is dense."""
    y = d.tensor("float64", shape, "y", values=lambda: d.number("float64", special=False))
    form = d.pick(["{s} * q", "q + {s}"] + (["{s} @ q.t()", "q.t() @ {s}"] if len(shape) == 2 else []))
    text = f"(lambda q: dense(t.autograd.grad(dense({form}).square().sum(), q)[0]))({y}.clone().requires_grad_())"
    d.setup.append("dense = lambda r: r if r.layout == t.strided else r.to_dense()")
    return f"gradient of {form}", text, {}


MAKERS = [
    one,
    one,
    scalar,
    two,
    two,
    beside_dense,
    product,
    product,
    product,
    sums,
    sums,
    shapes,
    shapes,
    converted,
    masks,
    slopes,
]


def make(seed, index):
    d = Draw("sparse", seed, index)
    lay, kind, maker = d.pick(LAYOUTS), d.pick(DTYPES), d.pick(MAKERS)
    shape = (even(d), even(d)) if lay in ("bsr", "bsc") else (d.int(0, 5), d.int(0, 4))
    if lay in ("coo", "csr") and d.chance(0.15):
        shape = (d.int(1, 3), *shape)
    if maker is slopes:
        kind = "float64"
    d.special = False
    s = operand(d, "s", kind, lay, shape)
    name, form, more = maker(d, lay, kind, shape, s)
    plain = more.pop("plain", form)
    return Sparse(f"{name} of {lay}", d.setup, sparse=form.format(s=s, **more), plain=plain.format(s="s", o="o"))
