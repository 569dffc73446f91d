"""shapes.py: cases of shapes with sizes of 0 and 1, of shapes too large for memory, and of ops that join and repeat."""

from ..case import Call
from ..draw import Draw

HUGE = [2**31, 2**40, 2**61, 2**62, 2**63 - 1, 2**63, 2**64]


def size(d):
    return d.pick([0, 0, 1, 1, 1, 2, 3])


def sizes(d, low=0, high=4):
    return tuple(size(d) for _ in range(d.int(low, high)))


def huge(d):
    """Sizes of which one or two are huge; of nothing or of shared memory all may be well."""
    out = [size(d) for _ in range(d.int(0, 3))]
    out.insert(d.int(0, len(out)), d.pick(HUGE))
    return tuple(out)


def made_huge(d):
    name = d.pick(["zeros", "ones", "empty", "full", "rand", "eye", "arange", "new_zeros", "empty_strided"])
    shape = huge(d)
    kind = {"dtype": f"t.{d.dtype()}"} if d.chance(0.5) else {}
    if name == "full":
        return d.case(Call(name, [str(shape), "1"], kind), values=False)
    if name == "eye":
        return d.case(Call(name, [str(d.pick(HUGE)), str(d.pick([0, 1]))], kind), values=False)
    if name == "arange":
        ends = [str(d.pick(HUGE)), str(d.pick(HUGE))]
        return d.case(Call(name, [*ends, str(d.pick([2**61, -(2**61), 2**62, 1, -1]))], kind))
    if name == "new_zeros":
        return d.case(Call(name, [d.tensor(shape=(1,)), str(shape)], form="x"), values=False)
    if name == "empty_strided":
        return d.case(Call(name, [str(shape), str(tuple(d.pick([0, 1, 2**61, 2**62]) for _ in shape))]), values=False)
    return d.case(Call(name, [str(shape)], kind), values=False)


def seen_huge(d):
    x = d.tensor(shape=sizes(d, 0, 3), layout=0.1)
    name = d.pick(
        [
            "expand",
            "broadcast_to",
            "view",
            "reshape",
            "repeat",
            "tile",
            "as_strided",
            "expand_sum",
            "resize_",
            "narrow",
            "unfold",
            "repeat_interleave",
            "roll",
            "pad",
            "select",
            "key",
        ]
    )
    shape = huge(d)
    big = str(d.pick(HUGE))
    if name in ("expand", "broadcast_to"):
        shape = (d.pick(HUGE), *x.shape) if d.chance(0.6) else tuple(d.pick(HUGE) if s == 1 else s for s in x.shape)
    if name == "as_strided":
        return d.case(Call(name, [x, str(shape), str(tuple(d.pick([0, 0, 1, 2**61]) for _ in shape))], form="x"))
    if name == "expand_sum":
        return d.lines(
            name,
            f"r = {x}.expand({(d.pick([2**20, 2**62]), *x.shape)}).{d.pick(['shape', 'stride()', 'numel()', 'size(0)', 'nbytes'])}",
        )
    if name == "narrow":
        return d.case(Call(name, [x, "0", d.pick(["0", big]), big], form="x"))
    if name == "unfold":
        return d.case(Call(name, [x, "0", d.pick(["0", "1", big]), big], form="x"))
    if name == "repeat_interleave":
        return d.case(Call(name, [x, big, *([str(d.dim(x.rank))] if d.chance(0.5) else [])], form="x"))
    if name == "roll":
        return d.case(Call(name, [x, big, *([str(d.dim(x.rank))] if d.chance(0.5) else [])], form="x"))
    if name == "pad":
        return d.case(Call(name, [x, str((d.pick([0, 1, -1]), d.pick(HUGE)))], form="F"))
    if name == "select":
        return d.case(Call(name, [x, "0", big], form="x"))
    if name == "key":
        return d.lines(
            name,
            f"r = {x}[{d.pick([f'{big}:', f':{big}', f'::{big}', big, f'-{big}:', f'[{big}]', f'0:{big}:{big}'])}]",
        )
    return d.case(Call(name, [x, str(shape)], form="t" if name in ("broadcast_to", "tile") else "x"))


def joined(d):
    shape = sizes(d, 0, 3)
    kind = d.dtype()
    dim = d.dim(len(shape))
    made = []
    for _ in range(d.int(0, 3)):
        own = list(shape)
        if own and d.chance(0.6):
            own[dim % len(own)] = size(d)
        if d.chance(0.05):
            own = [0]
        made.append(d.tensor(kind if d.chance(0.9) else None, own, layout=0.1))
    name = d.pick(
        [
            "cat",
            "stack",
            "hstack",
            "vstack",
            "dstack",
            "column_stack",
            "block_diag",
            "cartesian_prod",
            "broadcast_tensors",
            "meshgrid",
        ]
    )
    if name in ("cat", "stack"):
        return d.case(Call(name, [f"[{', '.join(made)}]", str(dim)]))
    if name.endswith("stack"):
        return d.case(Call(name, [f"[{', '.join(made)}]"]))
    return d.case(Call(name, made))


def broadcast(d):
    x = d.tensor(shape=sizes(d), layout=0.2)
    y = d.tensor(x.dtype, d.near(x.shape) if d.chance(0.7) else sizes(d), layout=0.2)
    name = d.pick(
        [
            "add",
            "mul",
            "maximum",
            "eq",
            "where",
            "pow",
            "atan2",
            "broadcast_shapes",
            "expand_as",
            "dist",
            "isclose",
            "allclose",
            "equal",
            "kron",
            "sum_to_size",
        ]
    )
    if name == "where":
        return d.case(Call(name, [d.tensor("bool", sizes(d)), x, y]))
    if name == "broadcast_shapes":
        return d.case(Call(name, [str(sizes(d) if d.chance(0.95) else (-1, 2)) for _ in range(d.int(0, 3))]))
    if name in ("expand_as",):
        return d.case(Call(name, [x, y], form="x"))
    if name == "sum_to_size":
        return d.case(Call(name, [x, str(y.shape)], form="x"))
    return d.case(Call(name, [x, y]))


def products(d):
    kind = d.pick(["float32", "float64", "float32", "int64", "float16", "complex64", "bool"])
    name = d.pick(
        [
            "matmul",
            "matmul",
            "mm",
            "bmm",
            "mv",
            "dot",
            "inner",
            "outer",
            "tensordot",
            "einsum",
            "addmm",
            "addmv",
            "addr",
            "baddbmm",
            "addbmm",
            "vdot",
            "ger",
            "cdist",
            "linear",
            "bilinear",
        ]
    )
    a, b, c, e = (size(d) for _ in "abce")
    odd = d.chance(0.07)
    other = kind if d.chance(0.95) else d.dtype()

    def t(*shape, dtype=kind):
        return d.tensor(dtype, [s + (odd and d.chance(0.3)) for s in shape], layout=0.25)

    if name == "matmul":
        left = d.pick([(b,), (a, b), (e, a, b), (1, a, b), (2, 1, a, b)])
        right = d.pick([(b,), (b, c), (e, b, c), (2, b, c)])
        return d.case(d.form(name, [t(*left), t(*right, dtype=other)]))
    shapes = {"mm": [(a, b), (b, c)], "bmm": [(e, a, b), (e, b, c)], "mv": [(a, b), (b,)], "dot": [(a,), (a,)], "vdot": [(a,), (a,)],
              "inner": [(a, b), (c, b)], "outer": [(a,), (b,)], "ger": [(a,), (b,)], "addmm": [d.pick([(a, c), (c,), (1, c)]), (a, b), (b, c)],
              "addmv": [(a,), (a, b), (b,)], "addr": [(a, b), (a,), (b,)], "baddbmm": [(e, a, c), (e, a, b), (e, b, c)],
              "addbmm": [(a, c), (e, a, b), (e, b, c)], "cdist": [(a, b), (c, b)], "linear": [(a, b), (c, b), (c,)],
              "bilinear": [(a, b), (a, c), (e, b, c)]}  # fmt: skip
    if name == "tensordot":
        x, y = t(a, b, c), t(c, b, e)
        return d.case(Call(name, [x, y], {"dims": d.pick(["1", "0", "([1], [1])", "([1, 2], [1, 0])", "([-1], [0])"])}))
    if name == "einsum":
        text, made = d.pick(
            [
                ("ij,jk->ik", [(a, b), (b, c)]),
                ("ij->ji", [(a, b)]),
                ("ii->i", [(a, a)]),
                ("ij,ij->", [(a, b), (a, b)]),
                ("bij,bjk->bik", [(e, a, b), (e, b, c)]),
                ("i,j->ij", [(a,), (b,)]),
                ("...i->...", [(a, b)]),
            ]
        )
        return d.case(Call(name, [repr(text), *[t(*s) for s in made]]))
    made = [t(*s, dtype=kind if k == 0 else other) for k, s in enumerate(shapes[name])]
    words = (
        {"alpha": d.scalar(), "beta": d.scalar(["int64", "float64"])}
        if name in ("addmm", "addmv", "addr", "baddbmm", "addbmm") and d.chance(0.4)
        else {}
    )
    return d.case(Call(name, made, words, "F" if name in ("linear", "bilinear") else "t"))


def repeated(d):
    x = d.tensor(shape=sizes(d, 0, 3), layout=0.2)
    name = d.pick(
        [
            "repeat",
            "tile",
            "reshape",
            "view",
            "flatten",
            "unflatten",
            "expand",
            "squeeze",
            "unsqueeze",
            "repeat_interleave",
            "resize_",
            "movedim",
            "squeeze_dims",
            "ravel",
            "nonzero",
        ]
    )
    wanted = d.pick([sizes(d), (-1,), (-1, 0), (0, -1), (1, -1), x.shape, (-1, -1), (-2,)])
    if name in ("repeat", "tile"):
        return d.case(
            Call(
                name,
                [x, str(tuple(d.int(0, 2) for _ in range(x.rank + d.int(-1, 2))) if d.chance(0.95) else (-1,))],
                form="x",
            )
        )
    if name in ("reshape", "view", "resize_"):
        return d.case(Call(name, [x, str(wanted)], form="x"), values=name != "resize_")
    if name == "expand":
        return d.case(
            Call(name, [x, str(tuple(d.pick([-1, 0, 1, 2, s]) for s in (*sizes(d, 0, 1), *x.shape)))], form="x")
        )
    if name == "unflatten":
        return d.case(Call(name, [x, str(d.dim(x.rank)), str(wanted)], form="x"))
    if name == "flatten":
        return d.case(Call(name, [x, str(d.dim(x.rank)), str(d.dim(x.rank))], form="x"))
    if name == "repeat_interleave":
        counts = d.tensor("int64", (x.shape[0] if x.rank and d.chance(0.9) else 2,), values=lambda: d.int(0, 2))
        return d.case(Call(name, [x, counts, *(["0"] if d.chance(0.8) else [])], form="x"))
    if name == "movedim":
        return d.case(Call(name, [x, str(d.dim(x.rank)), str(d.dim(x.rank))], form="x"))
    if name == "squeeze_dims":
        return d.case(Call("squeeze", [x, str(tuple(d.dim(x.rank) for _ in range(d.int(0, 2))))], form="x"))
    if name in ("squeeze", "unsqueeze"):
        return d.case(Call(name, [x, str(d.dim(x.rank + (name == "unsqueeze")))], form="x"))
    return d.case(Call(name, [x], form="x"))


def of_nothing(d):
    """Layers, pools and paddings of shapes without elements."""
    name = d.pick(
        [
            "conv1d",
            "conv2d",
            "max_pool1d",
            "max_pool2d",
            "avg_pool1d",
            "avg_pool2d",
            "adaptive_avg_pool1d",
            "adaptive_avg_pool2d",
            "pad",
            "layer_norm",
            "batch_norm",
            "softmax",
            "embedding",
            "interpolate",
            "cross_entropy",
            "mse_loss",
            "l1_loss",
            "nll_loss",
            "unfold",
            "one_hot",
            "normalize",
            "cosine_similarity",
            "pixel_shuffle",
            "group_norm",
        ]
    )
    f = d.pick(["float32", "float64"])
    n, c = size(d), size(d)
    length = d.pick([0, 1, 3, 4, 5])
    wide = (
        (n, c, length, d.pick([0, 1, 3, 4])) if "2d" in name or name in ("unfold", "pixel_shuffle") else (n, c, length)
    )
    x = d.tensor(f, wide)
    if name in ("conv1d", "conv2d"):
        out = size(d)
        w = d.tensor(f, (out, c, *(d.pick([1, 2]) for _ in wide[2:])))
        return d.case(Call(name, [x, w], {"padding": str(d.int(0, 1)), "stride": str(d.int(1, 2))}, "F"))
    if name.startswith(("max_pool", "avg_pool")):
        return d.case(Call(name, [x, str(d.int(1, 3))], {"stride": str(d.int(1, 2)), "padding": str(d.int(0, 1))}, "F"))
    if name.startswith("adaptive"):
        return d.case(Call(name, [x, str(d.int(0, 3))], form="F"))
    if name == "pad":
        mode = d.pick(["constant", "reflect", "replicate", "circular"])
        return d.case(Call(name, [x, str((d.int(-1, 2), d.int(-1, 2)))], {"mode": repr(mode)}, "F"))
    if name == "layer_norm":
        return d.case(Call(name, [x, str((length,))], form="F"))
    if name == "group_norm":
        return d.case(Call(name, [x, str(d.int(1, 2))], form="F"))
    if name == "batch_norm":
        return d.case(Call(name, [x, "None", "None"], {"training": "True"}, "F"))
    if name in ("softmax", "normalize"):
        return d.case(Call(name, [x], {"dim": str(d.dim(3))}, "F"))
    if name == "embedding":
        w = d.tensor(f, (c, length))
        return d.case(Call(name, [d.index(c, (n,)), w], form="F"))
    if name == "interpolate":
        return d.case(Call(name, [x], {"size": str(d.int(0, 4)), "mode": repr(d.pick(["nearest", "linear"]))}, "F"))
    if name in ("cross_entropy", "nll_loss"):
        rows = d.tensor(f, (n, c))
        return d.case(
            Call(name, [rows, d.index(c, (n,), "int64")], {"reduction": repr(d.pick(["mean", "sum", "none"]))}, "F")
        )
    if name in ("mse_loss", "l1_loss"):
        return d.case(Call(name, [x, d.tensor(f, wide)], {"reduction": repr(d.pick(["mean", "sum", "none"]))}, "F"))
    if name == "cosine_similarity":
        return d.case(Call(name, [x, d.tensor(f, wide)], {"dim": str(d.dim(3))}, "F"))
    if name == "unfold":
        return d.case(Call(name, [x, str(d.int(1, 2))], {"padding": str(d.int(0, 1))}, "F"))
    if name == "one_hot":
        return d.case(Call(name, [d.index(3, (n, c), "int64"), "3"], form="F"))
    return d.case(Call(name, [x, str(d.int(1, 2))], form="F"))


MAKERS = [
    made_huge,
    seen_huge,
    seen_huge,
    joined,
    joined,
    broadcast,
    broadcast,
    products,
    products,
    repeated,
    repeated,
    of_nothing,
    of_nothing,
]


def make(seed, index):
    d = Draw("shapes", seed, index)
    return d.pick(MAKERS)(d)
