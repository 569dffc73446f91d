"""creation.py: cases that make tensors: from numbers, ranges, shapes, other tensors, NumPy and buffers."""

from ..case import Call
from ..draw import ANY, COMMON, HIGH, LOW, Draw, text

WIDE = [*COMMON, "uint16", "uint32", "uint64"]


def nested(d, depth, kind):
    """Nested lists of numbers of a kind; rarely ragged."""
    if depth == 0:
        return text(d.number(d.pick(["bool", "int64", "float64", "complex128"]) if kind == "mixed" else kind))
    count = d.pick([0, 1, 2, 2, 3])
    bracket = d.pick(["[]", "[]", "()"])
    rows = [nested(d, depth - 1, kind) for _ in range(count)]
    if rows and depth > 1:
        rows = rows if d.chance(0.04) else [rows[0]] * count
    inner = ", ".join(rows)
    return f"[{inner}]" if bracket == "[]" else f"({inner}{',' if count == 1 else ''})"


def words(d, dtype=0.5, grad=0.05, among=WIDE):
    out = {}
    if d.chance(dtype):
        out["dtype"] = f"t.{d.dtype(among)}"
    if d.chance(grad):
        out["requires_grad"] = "True"
    return out


def shape(d):
    sizes = d.shape()
    if d.chance(0.03):
        sizes = (*sizes, -1)
    return sizes


def sized(d, name):
    """zeros(2, 3), zeros((2, 3)), zeros([2, 3], dtype=...)"""
    sizes = shape(d)
    args = [str(s) for s in sizes] if sizes and d.chance(0.4) else [str(d.pick([tuple, list])(sizes))]
    return d.case(Call(name, args, words(d)), values=name not in ("empty", "rand", "randn"))


def tensor(d):
    kind = d.pick(["bool", "int64", "float64", "complex128", "mixed"])
    name = d.pick(["tensor", "tensor", "as_tensor", "asarray", "scalar_tensor"])
    depth = 0 if name == "scalar_tensor" else d.int(0, 3)
    more = words(d, grad=0.05 if name in ("tensor", "asarray") else 0)
    return d.case(Call(name, [nested(d, depth, kind)], more))


def of_tensors(d):
    x = d.tensor(shape=d.pick([(), (), (1,), (2,)]))
    y = d.tensor(x.dtype if d.chance(0.6) else None, x.shape)
    inside = d.pick([f"[{x}, {y}]", f"[{x}, 2]", f"[[{x}, {y}]]", x, f"[{x}]", f"({y}, True)"])
    return d.case(Call(d.pick(["tensor", "as_tensor"]), [inside], words(d)))


def from_numpy(d):
    kind = d.pick(["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
                   "complex64", "complex128", "bool"])  # fmt: skip
    sizes = d.shape()
    count = 1
    for s in sizes:
        count *= s
    values = [d.number(kind) for _ in range(count)]
    array = (
        f"np.array([{', '.join(map(text, values))}], dtype=np.{kind}{'_' if kind == 'bool' else ''}).reshape({sizes})"
    )
    if len(sizes) > 1 and d.chance(0.3):
        array += d.pick([".T", "[..., ::2]", "[::1]"])
    if d.chance(0.15):
        array = f"np.{kind}{'_' if kind == 'bool' else ''}({text(d.number(kind))})"
        return d.case(Call(d.pick(["tensor", "as_tensor"]), [d.pick([array, f"[{array}, {array}]"])], words(d)))
    d.setup.append(f"array = {array}")
    case = d.case(Call(d.pick(["from_numpy", "tensor", "as_tensor", "asarray"]), ["array"]))
    if case.call.name != "from_numpy":
        case.call.words = words(d, grad=0)
    return case


def frombuffer(d):
    kind, count = d.dtype(ANY), d.int(-1, 5)
    data = [d.int(0, 1 if kind == "bool" else 60) for _ in range(d.pick([0, 8, 16, 32, 33]))]
    return d.case(
        Call(
            "frombuffer",
            [f"bytearray({data})"],
            {"dtype": f"t.{kind}", "count": str(count), "offset": str(d.pick([0, 0, 0, 1, 8, 40]))},
        )
    )


def bytes_and_ranges(d):
    made = d.pick(
        [
            "range(5)",
            "range(0)",
            "bytearray(b'abc')",
            "'abc'",
            "None",
            "{1: 2}",
            "np.arange(3)",
            "[np.arange(2), np.arange(2)]",
            "object()",
            "[None]",
            "[[1], 2]",
        ]
    )
    return d.case(Call(d.pick(["tensor", "as_tensor"]), [made], words(d)))


def arange(d):
    def one():
        return d.scalar(["int64"] * 3 + ["float64"] * 2) if d.chance(0.95) else d.scalar()

    args = [one() for _ in range(d.int(1, 3))]
    return d.case(Call(d.pick(["arange", "arange", "range"] if len(args) > 1 else ["arange"]), args, words(d, 0.4)))


def spaced(d):
    name = d.pick(["linspace", "logspace"])
    ends = [d.scalar(["int64", "float64", "float64"]) if d.chance(0.96) else d.scalar() for _ in "ab"]
    if name == "logspace":
        ends = [str(d.int(-3, 3)) for _ in "ab"]
    return d.case(Call(name, [*ends, str(d.pick([0, 1, 2, 3, 5, 11, -1]))], words(d)))


def full(d):
    if d.chance(0.4):
        x = d.tensor(layout=0.3)
        return d.case(Call("full_like", [x, d.scalar()], words(d, 0.4)))
    return d.case(Call("full", [str(shape(d)), d.scalar()], words(d, 0.6)))


def eye(d):
    return d.case(Call("eye", [str(d.pick([0, 1, 2, 3, 5, -1])) for _ in range(d.int(1, 2))], words(d)))


def like(d):
    x = d.tensor(layout=0.4)
    name = d.pick(["zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"])
    return d.case(Call(name, [x], words(d, 0.4)), values=name in ("zeros_like", "ones_like"))


def new(d):
    x = d.tensor()
    name = d.pick(["new_zeros", "new_ones", "new_full", "new_tensor", "new_empty"])
    args = [str(shape(d))]
    if name == "new_full":
        args.append(d.scalar())
    if name == "new_tensor":
        args = [nested(d, d.int(0, 2), d.pick(["bool", "int64", "float64"]))]
    return d.case(Call(name, [x, *args], words(d, 0.4), "x"), values=name != "new_empty")


def triangle_places(d):
    more = {"offset": str(d.int(-3, 3))} if d.chance(0.5) else {}
    return d.case(
        Call(
            d.pick(["tril_indices", "triu_indices"]),
            [str(d.pick([0, 1, 2, 4, -1])), str(d.int(0, 4))],
            {**more, **words(d, 0.2, 0)},
        )
    )


def complexes(d):
    name = d.pick(["complex", "polar"])
    x = d.tensor(d.pick(["float32", "float64", "float32", "float16", "int64"]))
    y = d.tensor(x.dtype if d.chance(0.9) else None, d.near(x.shape))
    return d.case(Call(name, [x, y]))


def diagonals(d):
    name = d.pick(["diag", "diagflat", "diag_embed"])
    x = d.tensor(shape=d.shape(1, 2) if name == "diag" and d.chance(0.95) else d.shape(0, 3))
    args = [str(d.int(-2, 2))] if d.chance(0.5) else []
    more = (
        {"dim1": str(d.dim(x.rank + 1)), "dim2": str(d.dim(x.rank + 1))}
        if name == "diag_embed" and d.chance(0.4)
        else {}
    )
    return d.case(d.form(name, [x, *args], more))


def several(d):
    name = d.pick(["meshgrid", "cartesian_prod", "block_diag"])
    first = d.dtype()
    count, most = d.int(1, 3), 2 if name == "block_diag" else 1
    made = [
        d.tensor(first if d.chance(0.7) else None, d.shape(0 if name != "cartesian_prod" else 1, most))
        for _ in range(count)
    ]
    more = {"indexing": d.pick(["'ij'", "'xy'"])} if name == "meshgrid" else {}
    return d.case(Call(name, made, more))


def one_row(d):
    x = d.tensor(shape=(d.size(),))
    name = d.pick(["vander", "combinations"])
    if name == "vander":
        more = {"N": str(d.int(0, 4))} if d.chance(0.5) else {}
        return d.case(Call(name, [x], {**more, "increasing": str(d.chance(0.5))}))
    return d.case(Call(name, [x], {"r": str(d.int(0, 3)), "with_replacement": str(d.chance(0.5))}))


def one_hot(d):
    x = d.index(4, shape=d.shape())
    return d.case(Call("one_hot", [x, *([str(d.int(-1, 5))] if d.chance(0.7) else [])], form="F"))


def windows(d):
    name = d.pick(["hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"])
    return d.case(Call(name, [str(d.pick([0, 1, 2, 5, 8, -1]))], {"periodic": str(d.chance(0.5)), **words(d, 0.3, 0)}))


def randoms(d):
    name = d.pick(["randint", "randperm", "randn", "rand"])
    if name == "randperm":
        return d.case(Call(name, [str(d.pick([0, 1, 5, -1]))], words(d, 0.3, 0)), values=False)
    if name == "randint":
        low, high = d.int(-3, 3), d.int(-2, 9)
        return d.case(Call(name, [str(low), str(high), str(shape(d))], words(d, 0.4, 0)), values=False)
    return sized(d, name)


def strided(d):
    sizes = d.shape()
    steps = [d.int(0, 5) for _ in sizes] if d.chance(0.97) else [-1] * len(sizes)
    return d.case(Call("empty_strided", [str(sizes), str(tuple(steps))], words(d, 0.3, 0)), values=False)


def conversions(d):
    x = d.tensor()
    kind = d.pick(["to", "type", "cast", "item", "tolist", "numpy", "clone", "view_as"])
    if kind == "to":
        more = {"copy": str(d.chance(0.5))} if d.chance(0.5) else {}
        return d.case(Call("to", [x, f"t.{d.dtype(ANY)}"], more, "x"))
    if kind == "cast":
        return d.case(
            Call(
                d.pick(
                    ["bool", "int", "long", "half", "bfloat16", "float", "double", "char", "short", "byte", "cfloat"]
                ),
                [x],
                form="x",
            )
        )
    if kind in ("item", "tolist", "clone"):
        return d.case(Call(kind, [x], form="x"))
    if kind == "numpy":
        return d.lines("numpy", f"r = {x}.numpy().tolist()")
    if kind == "type":
        return d.case(Call("type", [x, f"t.{d.dtype(ANY)}"], form="x"))
    return d.case(
        Call(d.pick(["type_as", "view_as", "expand_as", "reshape_as"]), [x, d.tensor(shape=d.near(x.shape))], form="x")
    )


def limits(d):
    """Numbers at the ends of whole dtypes."""
    kind = d.pick(list(HIGH))
    value = d.pick([HIGH[kind], HIGH[kind] + 1, LOW.get(kind, 0), LOW.get(kind, 0) - 1])
    call = d.pick(
        [
            Call("tensor", [d.pick([str(value), f"[{value}]"])], {"dtype": f"t.{kind}"}),
            Call("full", ["(2,)", str(value)], {"dtype": f"t.{kind}"}),
        ]
    )
    return d.case(call)


MAKERS = [tensor, tensor, of_tensors, from_numpy, frombuffer, bytes_and_ranges, arange, arange, spaced, full, full, eye, like, new,
          triangle_places, complexes, diagonals, several, one_row, one_hot, windows, randoms, strided, conversions, conversions, limits,
          lambda d: sized(d, d.pick(["zeros", "ones", "empty"]))]  # fmt: skip


def make(seed, index):
    d = Draw("creation", seed, index)
    return d.pick(MAKERS)(d)
