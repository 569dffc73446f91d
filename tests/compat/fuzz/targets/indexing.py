"""indexing.py: cases that read and write at places: x[...], gather, scatter, index_put_, masks, take and their kin."""

from ..case import Call
from ..draw import Draw, Name


def bound(d, size):
    return d.pick(["", "", str(d.int(-size - 2, size + 2))])


def entry(d, size, lead):
    kind = d.random()
    if kind < 0.3:
        step = d.pick(["", "", ":1", ":2", ":3"]) if d.chance(0.98) else d.pick([":0", ":-1"])
        return f"{bound(d, size)}:{bound(d, size)}{step}"
    if kind < 0.5:
        return str(d.int(-size, size - 1)) if size and d.chance(0.97) else str(d.pick([size, -size - 1]))
    if kind < 0.58:
        return "None"
    if kind < 0.66:
        return d.tensor("bool", (size if d.chance(0.95) else size + 1,), layout=0.1)
    if kind < 0.7:
        return d.pick(["True", "False"])
    if kind < 0.8:
        return str([d.int(-size, size - 1) for _ in range(lead)]) if size else "[]"
    if kind < 0.86:
        return d.index(size, ())
    return d.index(size, d.pick([(lead,), (lead,), (1,), (2, lead)]))


def key(d, x, most=99):
    """The text between the brackets."""
    lead, out, left, dots = d.pick([1, 2, 2, 3]), [], x.rank, False
    k = 0
    while k < left and len(out) < 6:
        kind = d.random()
        if kind < 0.1 and not dots:
            out.append("...")
            dots = True
            k += d.int(0, left - k)
            continue
        if kind < 0.15 and k + 1 < left:
            out.append(d.tensor("bool", x.shape[k : k + 2], layout=0.1))
            k += 2
            continue
        made = entry(d, x.shape[k], lead)
        out.append(made)
        k += made not in ("None", "True", "False")
        if d.chance(0.25):
            break
    if d.chance(0.02):
        out.append("0")
    if not out:
        out = [d.pick(["...", "None", "()", "True", "False", ":"])]
    return ", ".join(out)


def read(d):
    x = d.tensor(layout=0.35)
    k = key(d, x)
    return d.case(At("get", x, k))


class At(Call):
    """r = x[key], or x[key] = value"""

    def __init__(self, kind, x, key, value=None, op="="):
        super().__init__(
            "x[...]" if kind == "get" else f"x[...] {op}",
            [x, key, *([value] if value else [])],
            result="r" if kind == "get" else x,
        )
        self.kind, self.op = kind, op

    def text(self):
        x, k = self.args[:2]
        return f"r = {x}[{k}]" if self.kind == "get" else f"{x}[{k}] {self.op} {self.args[2]}"

    def but(self, args=None, **words):
        args = self.args if args is None else args
        return At(self.kind, *args, op=self.op) if self.kind == "set" else At("get", *args)


def write(d):
    x = d.tensor(layout=0.35)
    k = key(d, x)
    value = (
        d.scalar()
        if d.chance(0.4)
        else d.tensor(x.dtype if d.chance(0.8) else None, d.shape(0, 2) if d.chance(0.6) else ())
    )
    return d.case(At("set", x, k, value, d.pick(["=", "=", "=", "+=", "*="])))


def along(d):
    """gather, take_along_dim, index_select and what reads with one index."""
    x = d.tensor(layout=0.3)
    dim = d.dim(x.rank)
    size = x.shape[dim] if -x.rank <= dim < x.rank else 1
    name = d.pick(["gather", "take_along_dim", "index_select", "take", "select", "narrow"])
    if name == "take":
        count = 1
        for s in x.shape:
            count *= s
        return d.case(d.form("take", [x, d.index(count, d.shape())]))
    if name == "select":
        return d.case(d.form("select", [x, str(dim), str(d.int(-size - 1, size))]))
    if name == "narrow":
        return d.case(d.form("narrow", [x, str(dim), str(d.int(-size, size)), str(d.int(0, size + 1))]))
    if name == "index_select":
        return d.case(d.form(name, [x, str(dim), d.index(size, d.pick([(2,), (3,), (0,), (), (1, 2)]))]))
    shape = [d.int(0, s) if s else 0 for s in x.shape]
    if shape and d.chance(0.5):
        shape = list(x.shape)
    if shape and -x.rank <= dim < x.rank:
        shape[dim] = d.int(0, 3)
    i = d.index(size, shape)
    if name == "gather":
        return d.case(d.form("gather", [x, str(dim), i]))
    return d.case(d.form(name, [x, i, *([str(dim)] if d.chance(0.9) else [])]))


def scattered(d):
    x = d.tensor(layout=0.2)
    dim = d.dim(x.rank)
    size = x.shape[dim] if -x.rank <= dim < x.rank else 1
    shape = [d.int(0, s) if s else 0 for s in x.shape]
    if shape and -x.rank <= dim < x.rank:
        shape[dim] = d.int(0, 3)
    name = d.pick(["scatter", "scatter_add", "scatter_reduce", "scatter"])
    unique = name == "scatter"  # of several writes to one place any may be the last
    i = d.index(size, shape)
    src_shape = [s + d.pick([0, 0, 0, 1]) for s in shape]
    src = d.tensor(x.dtype if d.chance(0.93) else None, src_shape)
    words = {}
    if unique:
        src = d.scalar() if d.chance(0.8) else src
        if isinstance(src, Name):
            d.setup.append(f"{i} = {i}.sort({dim})[0] * 0 + t.arange({i}.shape[{dim}] if {i}.dim() else 1, dtype={i}.dtype).reshape([-1 if k == {dim} % max({i}.dim(), 1) else 1 for k in range({i}.dim())])")  # fmt: skip
    if name == "scatter_reduce":
        words = {"reduce": repr(d.pick(["sum", "prod", "mean", "amax", "amin"])), "include_self": str(d.chance(0.6))}
    call = d.form(name + d.pick(["", "_"]), [x, str(dim), i, src], words)
    call.form = "x" if call.name.endswith("_") else call.form
    return d.case(call)


def indexed(d):
    """index_add, index_copy, index_fill, index_reduce"""
    x = d.tensor(layout=0.25)
    dim = d.dim(x.rank)
    inside = -x.rank <= dim < x.rank
    size = x.shape[dim] if inside else 1
    count = d.int(0, 3)
    name = d.pick(["index_add", "index_copy", "index_fill", "index_reduce"])
    places = d.index(size, (count,))
    shape = list(x.shape)
    if shape and inside:
        shape[dim] = count if d.chance(0.96) else count + 1
    if name == "index_copy" and size and count <= size:
        d.setup.append(f"{places} = t.tensor({d.rng.sample(range(size), count)}, dtype={places}.dtype)")
    src = d.tensor(x.dtype if d.chance(0.93) else None, shape if x.rank else (count,) if d.chance(0.5) else ())
    words, args = {}, [x, str(dim), places]
    if name == "index_fill":
        args.append(d.scalar() if d.chance(0.7) else d.tensor(x.dtype, ()))
    else:
        args.append(src)
    if name == "index_add" and d.chance(0.3):
        words["alpha"] = d.scalar()
    if name == "index_reduce":
        args.append(repr(d.pick(["prod", "mean", "amax", "amin"])))
        words["include_self"] = str(d.chance(0.6))
    form = d.pick(["t", "x", "_"])
    return d.case(Call(name + ("_" if form == "_" else ""), args, words, "t" if form == "t" else "x"))


def masks(d):
    x = d.tensor(layout=0.25)
    mask = d.tensor(d.pick(["bool"] * 9 + ["uint8", "int64"]), d.near(x.shape), layout=0.15)
    name = d.pick(
        [
            "masked_select",
            "masked_fill",
            "masked_fill_",
            "masked_scatter",
            "masked_scatter_",
            "where",
            "nonzero",
            "argwhere",
            "count_nonzero",
        ]
    )
    if name in ("nonzero", "argwhere"):
        return d.case(d.form(name, [x], {"as_tuple": "True"} if name == "nonzero" and d.chance(0.3) else {}))
    if name == "count_nonzero":
        return d.case(d.form(name, [x, *([str(d.dim(x.rank))] if d.chance(0.5) else [])]))
    if name == "masked_select":
        return d.case(d.form(name, [x, mask]))
    if name.startswith("masked_fill"):
        value = (
            d.scalar()
            if d.chance(0.7)
            else d.tensor(x.dtype if d.chance(0.7) else None, () if d.chance(0.95) else (1,))
        )
        return d.case(Call(name, [x, mask, value], form="x"))
    if name.startswith("masked_scatter"):
        return d.case(Call(name, [x, mask, d.tensor(x.dtype if d.chance(0.95) else None, d.shape())], form="x"))
    pair = [
        d.scalar() if d.chance(0.25) else n for n in (x, d.tensor(x.dtype if d.chance(0.6) else None, d.near(x.shape)))
    ]
    return d.case(Call("where", [mask, *pair]) if d.chance(0.95) else Call("where", [mask]))


def put(d):
    x = d.tensor(layout=0.25)
    if d.chance(0.3):
        count = 1
        for s in x.shape:
            count *= s
        shape = d.shape(0, 2)
        i = d.index(count, shape)
        add = d.chance(0.6)
        if not add:
            d.setup.append(f"{i} = t.arange({i}.numel(), dtype={i}.dtype).reshape({i}.shape)")
        src = d.tensor(x.dtype if d.chance(0.93) else None, shape if d.chance(0.9) else d.shape())
        return d.case(Call(d.pick(["put_", "put"]), [x, i, src], {"accumulate": str(add)}, "x"))
    lead = d.int(0, 3)
    used = d.int(1, max(x.rank, 1))
    places = []
    for k in range(used):
        size = x.shape[k] if k < x.rank else 1
        places.append(
            d.index(size, d.pick([(lead,), (lead,), (1,), ()])) if d.chance(0.85) else d.tensor("bool", (size,))
        )
    accumulate = d.chance(0.7)
    value = d.tensor(x.dtype if d.chance(0.9) else None, () if not accumulate else d.pick([(), (lead,), (1,)]))
    return d.case(
        Call(
            d.pick(["index_put_", "index_put"]),
            [x, f"({', '.join(places)},)", value],
            {"accumulate": str(accumulate)},
            "x",
        )
    )


def pieces(d):
    """select_scatter, slice_scatter, diagonal_scatter: a copy with a part written."""
    x = d.tensor(shape=d.shape(1, 3), layout=0)
    dim = d.dim(x.rank)
    inside = -x.rank <= dim < x.rank
    size = x.shape[dim] if inside else 1
    name = d.pick(["select_scatter", "slice_scatter", "diagonal_scatter"])
    shape = list(x.shape)
    same = x.dtype if d.chance(0.93) else None
    if name == "select_scatter":
        if inside:
            del shape[dim % x.rank]
        return d.case(d.form(name, [x, d.tensor(same, shape), str(dim), str(d.int(-size, size))]))
    if name == "slice_scatter":
        start, stop, step = d.int(-size, size), d.int(-size, size + 1), d.int(1, 2)
        if inside:
            shape[dim] = len(range(*slice(start, stop, step).indices(size)))
        return d.case(d.form(name, [x, d.tensor(same, shape), str(dim), str(start), str(stop), str(step)]))
    offset = d.int(-2, 2)
    if x.rank > 1:
        rows, columns = x.shape[:2]
        shape = [*x.shape[2:], max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)]
    return d.case(d.form(name, [x, d.tensor(same, shape), str(offset)]))


def sought(d):
    edges = d.tensor(shape=(d.int(0, 5),), among=["float32", "float64", "int64", "int32", "float16"], values=None)
    d.setup.append(f"{edges} = {edges}.sort()[0]")
    words = {"right": str(d.chance(0.5))} if d.chance(0.6) else {}
    if d.chance(0.3):
        words["out_int32"] = str(d.chance(0.5))
    sought = (
        d.scalar(["int64", "float64"])
        if d.chance(0.15)
        else d.tensor(edges.dtype if d.chance(0.9) else None, d.shape())
    )
    if d.chance(0.5):
        return d.case(Call("searchsorted", [edges, sought], words))
    return d.case(Call("bucketize", [sought, edges], words))


def moved(d):
    x = d.tensor(layout=0.3)
    name = d.pick(
        ["roll", "flip", "rot90", "fliplr", "flipud", "tril", "triu", "repeat_interleave", "isin", "fill_diagonal_"]
    )
    if name == "roll":
        return d.case(d.form(name, [x, str(d.int(-4, 4)), *([str(d.dim(x.rank))] if d.chance(0.6) else [])]))
    if name == "flip":
        return d.case(d.form(name, [x, d.dims(x.rank).replace("None", "()")]))
    if name == "rot90":
        return d.case(d.form(name, [x, str(d.int(-5, 5)), str([d.dim(x.rank), d.dim(x.rank)])]))
    if name in ("tril", "triu"):
        return d.case(d.form(name, [x, str(d.int(-3, 3))]))
    if name == "repeat_interleave":
        return d.case(d.form(name, [x, str(d.int(0, 3)), *([str(d.dim(x.rank))] if d.chance(0.6) else [])]))
    if name == "isin":
        return d.case(Call(name, [x, d.tensor(x.dtype if d.chance(0.8) else None)], {"invert": str(d.chance(0.3))}))
    if name == "fill_diagonal_":
        return d.case(Call(name, [x, d.scalar()], {"wrap": str(d.chance(0.4))}, "x"))
    return d.case(d.form(name, [x]))


MAKERS = [
    read,
    read,
    read,
    read,
    write,
    write,
    write,
    along,
    along,
    scattered,
    scattered,
    indexed,
    indexed,
    masks,
    masks,
    put,
    put,
    pieces,
    sought,
    moved,
]


def make(seed, index):
    d = Draw("indexing", seed, index)
    return d.pick(MAKERS)(d)
