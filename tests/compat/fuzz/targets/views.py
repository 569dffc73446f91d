"""views.py: cases of chains of views of one base and of writes through some of them; all names are compared at the end."""

from ..draw import ANY, Draw
from ..live import Live


def view(d, live, without=()):
    """A line that makes a view, or what is none where the layout does not allow one."""
    x = live.small()
    shape = tuple(live.names[x].shape)
    n, v = len(shape), live.new()
    dim = d.dim(n)
    size = shape[dim] if n and -n <= dim < n else 1
    kind = d.pick([k for k in VIEWS if k not in without])
    return VIEWS[kind](d, v, x, shape, n, dim, size, live)


def factored(d, shape):
    count = 1
    for s in shape:
        count *= s
    kind = d.random()
    if kind < 0.2:
        return (-1,)
    if kind < 0.5:
        return d.pick([(2, -1), (-1, 2), (1, -1), (3, -1), (-1, 1, 2)])
    if kind < 0.7:
        return (count,)
    return tuple(d.rng.sample(shape, len(shape)))


def strided(d, v, x, shape, n, live):
    base = live.names[x]
    room = base.numel()
    sizes = [d.int(0, 3) for _ in range(d.int(0, 3))]
    steps = [d.int(0, 3) for _ in sizes]
    offset = d.pick(["", "", f", {d.int(0, max(room, 1))}"])
    return f"{v} = {x}.as_strided({tuple(sizes)}, {tuple(steps)}{offset})"


def split(d, v, x, dim, size):
    name = d.pick(["split", "chunk", "unbind", "tensor_split", "hsplit", "vsplit", "dsplit", "split_with_sizes"])
    if name == "unbind":
        return f"{v}, *rest = {x}.unbind({dim})"
    if name in ("hsplit", "vsplit", "dsplit"):
        return f"{v}, *rest = {x}.{name}({d.pick(['2', '[1]', '1'])})"
    how = d.pick(["1", "2", "3"]) if d.chance(0.6) else str([d.int(0, size), d.int(0, size)])
    if name == "split_with_sizes":
        a = d.int(0, size)
        how = str([a, size - a])
    if name == "chunk":
        how = str(d.int(1, 4))
    return f"{v}, *rest = {x}.{name}({how}, {dim})"


VIEWS = {
    "view": lambda d, v, x, shape, n, dim, size, live: f"{v} = {x}.view({factored(d, shape)})",
    "reshape": lambda d, v, x, shape, n, dim, size, live: f"{v} = {x}.reshape({factored(d, shape)})",
    "transpose": lambda d, v, x, shape, n, dim, size, live: f"{v} = {x}.{d.pick(['transpose', 'swapaxes', 'movedim', 'moveaxis'])}({dim}, {d.dim(n)})",
    "permute": lambda d, v, x, shape, n, dim, size, live: f"{v} = {x}.permute({tuple(d.rng.sample(range(n), n))})",
    "select": lambda d, v, x, shape, n, dim, size, live: f"{v} = {x}.select({dim}, {d.int(-size, max(size - 1, 0))})",
    "narrow": lambda d, v, x, shape, n, dim, size, live: f"{v} = {x}.narrow({dim}, {d.int(0, size)}, {d.int(0, size)})",
    "slice": lambda d, v, x, shape, n, dim, size, live: f"{v} = {x}[{d.int(-3, 2)}:{d.pick(['', '3', '-1'])}{d.pick(['', ':2'])}]",
    "key": lambda d, v, x, shape, n, dim, size, live: f"{v} = {x}[{d.pick(['...', 'None', '..., 0', '0', '-1', ':, 1:', '..., None', '1, ..., ::2', '()'])}]",
    "unfold": lambda d, v, x, shape, n, dim, size, live: f"{v} = {x}.unfold({dim}, {d.int(0, size)}, {d.int(1, 3)})",
    "expand": lambda d, v, x, shape, n, dim, size, live: f"{v} = {x}.expand({d.pick([(2, *shape), tuple(3 if s == 1 else -1 for s in shape)])})",
    "squeeze": lambda d, v, x, shape, n, dim, size, live: f"{v} = {x}.squeeze({d.pick(['', str(dim), str((dim,))])})",
    "unsqueeze": lambda d, v, x, shape, n, dim, size, live: f"{v} = {x}.unsqueeze({d.dim(n + 1)})",
    "diagonal": lambda d, v, x, shape, n, dim, size, live: f"{v} = {x}.diagonal({d.int(-2, 2)}, {dim}, {d.dim(n)})",
    "as_strided": lambda d, v, x, shape, n, dim, size, live: strided(d, v, x, shape, n, live),
    "split": lambda d, v, x, shape, n, dim, size, live: split(d, v, x, dim, size),
    "flatten": lambda d, v, x, shape, n, dim, size, live: f"{v} = {x}.flatten({d.pick(['', str(dim), f'{dim}, {d.dim(n)}'])})",
    "unflatten": lambda d, v, x, shape, n, dim, size, live: f"{v} = {x}.unflatten({dim}, {d.pick([(-1, 1), (1, size), (2, -1), (size,), (-1,)])})",
    "turned": lambda d, v, x, shape, n, dim, size, live: f"{v} = {x}.{d.pick(['T', 'mT', 'H', 'mH', 't()', 'adjoint()', 'ravel()', 'contiguous()', 'view_as(' + x + ')', 'detach()'])}",
    "parts": lambda d, v, x, shape, n, dim, size, live: f"{v} = {d.pick([x + '.real', x + '.imag', f't.view_as_real({x})', f't.view_as_complex({x})', f'{x}.conj()', f'{x}.resolve_conj()'])}",
    "bytes": lambda d, v, x, shape, n, dim, size, live: f"{v} = {x}.view(t.{d.pick(ANY)})",
    "others": lambda d, v, x, shape, n, dim, size, live: d.pick([f"{v} = t.atleast_2d({x})", f"{v} = t.atleast_1d({x})", f"{v} = t.broadcast_to({x}, {(2, *shape)})", f"{v} = {x}.expand_as(t.zeros({(2, *shape)}))", f"{v} = t.atleast_3d({x})"]),
}  # fmt: skip


def value(d, live, x, shape):
    """Something to write: a number, a fresh tensor, or another name."""
    kind = d.random()
    if kind < 0.45:
        return d.scalar(["bool", "int64", "int64", "float64"])
    if kind < 0.85:
        fresh = tuple(d.near(shape))
        count = 1
        for s in fresh:
            count *= s
        numbers = [d.int(0, 1) if "bool" in str(live.names[x].dtype) else d.int(-3, 9) for _ in range(count)]
        return f"t.tensor({numbers}, dtype={x}.dtype).reshape({fresh})"
    return live.pick()


def write(d, live):
    x = live.small()
    shape = tuple(live.names[x].shape)
    kind = d.random()
    if kind < 0.25:
        name = d.pick(
            [
                "zero_",
                "neg_",
                "abs_",
                "square_",
                "relu_",
                "sign_",
                "logical_not_",
                "t_",
                "squeeze_",
                "detach_",
                "conj_physical_",
                "tril_",
                "triu_",
                "floor_",
                "nan_to_num_",
            ]
        )
        return f"{x}.{name}()"
    if kind < 0.3:
        return d.pick(
            [
                f"{x}.transpose_({d.dim(len(shape))}, {d.dim(len(shape))})",
                f"{x}.unsqueeze_({d.dim(len(shape) + 1)})",
                f"{x}.swapaxes_({d.dim(len(shape))}, {d.dim(len(shape))})",
                f"{x}.squeeze_({d.dim(len(shape))})",
            ]
        )
    given = value(d, live, x, shape)
    if kind < 0.6:
        name = d.pick(
            ["fill_", "copy_", "add_", "mul_", "sub_", "eq_", "clamp_", "masked_fill_", "fmod_", "div_", "pow_"]
        )
        if name == "masked_fill_":
            return f"{x}.masked_fill_({x} != 0, {given})"
        return f"{x}.{name}({given})"
    if kind < 0.8:
        return f"{x}[{d.pick(['...', '0', '-1', '::2', '1:', '[0]', '..., 0', 'None', ':, 0', x + ' != 0', '[-1, 0]', '()'])}] {d.pick(['=', '=', '=', '+=', '*='])} {given}"
    if kind < 0.9:
        return f"{x} {d.pick(['+=', '-=', '*=', '//=', '|='])} {given}"
    source = live.small()
    return d.pick([f"t.add({source}, {given}, out={x})", f"t.neg({source}, out={x})", f"t.sum({source}, {d.dims(len(live.names[source].shape))}, out={x})",
                   f"{x}.index_fill_({d.dim(len(shape))}, t.tensor([0]), {given})", f"{x}.index_add_(0, t.tensor([0]), {source}[:1])",
                   f"{x}.cumsum_({d.dim(len(shape))})", f"t.cat([{source}, {source}], out={x})"])  # fmt: skip


def make(seed, index):
    d = Draw("views", seed, index)
    d.tensor(shape=d.shape(1, 3), layout=0.1)
    live = Live(d)
    for _ in range(d.int(1, 4)):
        if not live.step(view(d, live)):
            return live.case("views")
    for _ in range(d.int(1, 2)):
        if not live.step(write(d, live)):
            break
    return live.case("views")
