"""adjoin.distributed.tensor._rules: how each op is computed in parts: by the kind that its row says, by a tag, or by its name.

`python -m adjoin.distributed.tensor.table` prints what holds for each row.
"""

import adjoin

from . import _loss, _norms, _views
from ._cut import Cut, own, row, whole

# By the kind


def pointwise(c):
    """Each element alone; sizes of 1 are repeated."""
    ndim = max(t.dim() for t in c.tensors)
    sizes = [
        max((t.shape[d - ndim + t.dim()] for t in c.tensors if d - ndim + t.dim() >= 0), default=1) for d in range(ndim)
    ]
    if any(0 in t.shape for t in c.tensors):
        return whole(c)
    ins = [[d if n == sizes[d] else None for d, n in enumerate(t.shape, ndim - t.dim())] for t in c.tensors]
    short = c.name.rstrip("_")
    return Cut(ins, [list(range(ndim))], linear=_LINEAR.get(short) if _is_linear(c, short) else None, loose=True)


# Functions of one tensor that are linear, of two that are so in both together, in each alone, in the first.
_LINEAR = {
    "neg": "all",
    "conj": "all",
    "add": "all",
    "sub": "all",
    "mul": "one",
    "div": "first",
    "clone": "all",
    "_::to_copy": "all",
}


def _is_linear(c, short):
    """Numbers, which all processes have, are no summands."""
    if short == "_::to_copy":
        return c["dtype"].is_floating_point and c.first().is_floating_point()
    if short == "div":
        return isinstance(c["input"], adjoin.Tensor)
    return short not in ("add", "sub") or len(c.tensors) == 2


_JOINED = {"sum": "sum", "mean": "avg", "amax": "max", "amin": "min", "prod": "product"}


def _asked(c, t, word="dim"):
    dims = c.get(word)
    if dims is None:
        return list(range(t.dim()))
    return [d % t.dim() if t.dim() else 0 for d in ((dims,) if isinstance(dims, int) else dims)]


def reduce(c):
    """Without some dimensions: each process has a summand, or, where parts cannot be joined, these dimensions are whole."""
    t, joined = c.first(), _JOINED.get(c.name)
    gone = _asked(c, t)
    names = list(range(t.dim()))
    if not gone and names:
        return whole(c)
    keep = c["keepdim"]
    out = [None if d in gone else d for d in names if keep or d not in gone]
    if joined is None:
        return Cut([[None if d in gone else d for d in names]], [out, out])
    linear = "all" if c.name in ("sum", "mean") else None
    return Cut([names], [out, out], {d: joined for d in gone}, linear=linear)


def along(c):
    """Along some dimensions, which are whole; the results have them, with what sizes ever, or lack them."""
    t = c.first()
    if any(other.shape != t.shape for other in c.tensors):
        return whole(c)
    gone = [d for word in c.row.dims for d in _asked(c, t, word)]
    names = [None if d in gone else d for d in range(t.dim())]
    out = [n for d, n in enumerate(names) if d not in gone] if c.get("keepdim", True) is False else names
    return Cut([names] * len(c.tensors), [out] * 3)


_KINDS = {
    **dict.fromkeys(("unary", "unary_float", "unary_bool", "binary", "binary_float", "compare", "pointwise"), pointwise),
    **dict.fromkeys(("reduce", "reduce_float", "reduce_bool", "reduce_index"), reduce),
    "scan": along,
}  # fmt: skip

# By notation: letters of each tensor, of each result, and after "+" those that are summed over.

_WRITTEN = {
    "mm": "ik,kj->ij+k", "bmm": "bik,bkj->bij+k", "addmm": "ij,ik,kj->ij+k", "baddbmm": "bij,bik,bkj->bij+k",
    "addbmm": "ij,bik,bkj->ij+bk", "mv": "ik,k->i+k", "addmv": "i,ik,k->i+k", "dot": "k,k->+k", "vdot": "k,k->+k",
    "outer": "i,j->ij", "ger": "i,j->ij", "addr": "ij,i,j->ij",
}  # fmt: skip


def written(c):
    """A product."""
    ins, _, outs = _WRITTEN[c.name].partition("->")
    out, _, sums = outs.partition("+")
    adds = (0,) if c.name.startswith("add") or c.name == "baddbmm" else ()
    length = {}
    for letters, t in zip(ins.split(",")[len(adds) :], c.tensors[len(adds) :], strict=True):
        length.update(zip(letters, t.shape, strict=True))
    places = []
    for letters, t in zip(ins.split(","), c.tensors, strict=True):
        letters = letters[len(letters) - t.dim() :]
        places.append([x if length.get(x, n) == n else None for x, n in zip(letters, t.shape, strict=True)])
    return Cut(places, [list(out)], dict.fromkeys(sums, "sum"), linear=None if adds else "one", adds=adds)


def linear(c):
    """input @ weight.T + bias."""
    t, weight = c.tensors[:2]
    if weight.dim() != 2:
        return whole(c)
    batch = [f"b{d}" for d in range(t.dim() - 1)]
    ins = [[*batch, "k"], ["o", "k"], ["o"]][: len(c.tensors)]
    return Cut(ins, [[*batch, "o"]], {"k": "sum"}, linear="one" if len(ins) == 2 else None, adds=(2,))


# By the name


def joined(c):
    """Tensors behind each other along a dimension, or in a new one."""
    first = c.first()
    new = c.name == "stack"
    d = (c["dim"] or 0) % (first.dim() + new)
    if any(
        t.dim() != first.dim()
        or any(a != b for i, (a, b) in enumerate(zip(t.shape, first.shape, strict=True)) if new or i != d)
        for t in c.tensors
    ):
        return whole(c)
    names = [None if i == d and not new else i for i in range(first.dim())]
    out = [*names[:d], None, *names[d:]] if new else names
    return Cut([names] * len(c.tensors), [out], linear="all", loose=True)


def layer_norm(c):
    """Over the last dimensions; the others are free."""
    backward = c.name == "layer_norm_backward"
    inner, t = len(c["normalized_shape"]), c["input"]
    free = list(range(t.dim() - inner))
    names, small = [*free, *[None] * inner], [None] * inner
    ins = [names if x.dim() == t.dim() else small for x in c.tensors]
    if backward:
        return Cut(ins, [names, small, small], dict.fromkeys(free, "sum"))
    return Cut(ins, [names, names, names])


def batch_norm(c):
    """Each channel alone; without training each sample, too."""
    t = c["input"]
    free = c["training"] is False and c.name == "batch_norm_stats"
    names = ["n" if free else None, "c", *[None] * (t.dim() - 2)]
    ins = [names if x.dim() == t.dim() else ["c"] for x in c.tensors]
    return Cut(ins, [names, ["c"], ["c"]], {"n": "same"} if free else {})


def group_norm(c):
    """Each sample alone."""
    t = c["input"]
    names = ["n", *[None] * (t.dim() - 1)]
    ins = [[None] if x.dim() == 1 else names[: x.dim()] for x in c.tensors]
    if c.name == "group_norm_backward":
        return Cut(ins, [names, [None], [None]], {"n": "sum"})
    return Cut(ins, [names, ["n", None], ["n", None]])


def convolution(c):
    """Samples are free, and channels of the result; those of the input are summed over."""
    t, weight = c["input"], c["weight"]
    if t.dim() != weight.dim():
        return whole(c)
    rest = [None] * (t.dim() - 2)
    plain = not c["transposed"] and c["groups"] == 1
    o, k = ("o", "k") if plain else (None, None)
    if c.name == "convolution":
        ins = [["n", k, *rest], [o, k, *rest], [o]][: len(c.tensors)]
        return Cut(ins, [["n", o, *rest]], {"k": "sum"} if plain else {}, adds=(2,))
    ins = [["n", o, *rest], ["n", k, *rest], [o, k, *rest]]
    return Cut(ins, [["n", k, *rest], [o, k, *rest], [o]], {"n": "sum", "k": "same", "o": "sum"})


def planes(c):
    """Each plane of the last two dimensions alone."""
    t = c.first()
    names = [*range(t.dim() - 2), None, None]
    if "input_shape" not in c.row.words:
        return Cut([names] * len(c.tensors), [names, names])
    shape, at = tuple(c["input_shape"]), c.row.words.index("input_shape")
    call = lambda args, local: (c.name, [*args[:at], local(shape, names), *args[at + 1 :]])  # noqa: E731
    return Cut([names] * len(c.tensors), [names], shapes=[shape], call=call)


def matrices(c):
    """Each matrix of a batch alone."""
    t = c.first()
    if any(x.dim() < 2 or x.shape[:-2] != t.shape[:-2] for x in c.tensors):
        return whole(c)
    return Cut([[*range(x.dim() - 2), None, None] for x in c.tensors], _results(c, t))


_MATRIX_RESULTS = {
    "linalg::inv_ex": "mb", "linalg::cholesky_ex": "mb", "linalg::det": "b", "linalg::slogdet": "bbmv", "linalg::qr": "mm",
    "linalg::lu_factor_ex": "mvb", "linalg::ldl_factor_ex": "mvb", "tril": "m", "triu": "m", "tril_": "m", "triu_": "m",
}  # fmt: skip


def _results(c, t):
    batch = list(range(t.dim() - 2))
    ends = {"m": [None, None], "v": [None], "b": []}
    return [[*batch, *ends[e]] for e in _MATRIX_RESULTS[c.name]]


def picked(c):
    """By an index along a dimension, which is whole."""
    t, index = c["input"], c["index"]
    d = c["dim"] % t.dim() if t.dim() else 0
    if c.name == "index_select":
        names = [None if i == d else i for i in range(t.dim())]
        return Cut([names, ["i"][: index.dim()]], [["i" if i == d else i for i in range(t.dim())]], linear=None)
    others = [x for x in c.tensors if x.dim() == t.dim()]
    if len(others) < len(c.tensors) and c.name != "index_add" or not t.dim():
        return whole(c)
    same = [all(x.shape[i] == t.shape[i] for x in others) and i != d for i in range(t.dim())]
    names = [i if same[i] else None for i in range(t.dim())]
    if c.name == "gather":
        return Cut(
            [names, ["i" if i == d else n for i, n in enumerate(names)]],
            [["i" if i == d else n for i, n in enumerate(names)]],
        )
    return Cut(
        [
            names if x.dim() == t.dim() and x is not index or c.name != "index_add" else [None] * x.dim()
            for x in c.tensors
        ],
        [names],
    )


def indexed(c):
    """By tensors in the first dimensions, which are whole."""
    indices = list(c["indices"])
    while indices and indices[-1] is None:
        indices.pop()
    t = c["input"]
    if not indices or any(i is None or i.dtype is adjoin.bool for i in indices):
        return whole(c)
    ndim = max(i.dim() for i in indices)
    sizes = [max(i.shape[d - ndim + i.dim()] for i in indices if d - ndim + i.dim() >= 0) for d in range(ndim)]
    places = [[f"i{d}" if n == sizes[d] else None for d, n in enumerate(i.shape, ndim - i.dim())] for i in indices]
    rest = list(range(len(indices), t.dim()))
    return Cut([[None] * len(indices) + rest, *places], [[*[f"i{d}" for d in range(ndim)], *rest]])


def embedding(c):
    """Rows of a table, which may be cut along its columns, or along its rows: then each process gives the rows that it has."""
    index, weight = c["input"], c["weight"]
    batch = [f"b{d}" for d in range(index.dim())]

    def compute(call, choice, mesh, args):
        if "v" not in choice.cuts:
            return row(c.name)(args)
        begin, size = own(mesh, choice, "v", weight.shape[0])
        inside = (args[0] >= begin) & (args[0] < begin + size)
        rows = row("nn::embedding")([adjoin.where(inside, args[0] - begin, 0), args[1]])
        return rows * inside.unsqueeze(-1).to(rows.dtype)

    rows = None if c["max_norm"] is not None or c["sparse"] else "v"
    return Cut([batch, [rows, "e"]], [[*batch, "e"]], {"v": "sum"}, compute=compute)


def embedding_backward(c):
    """Gradients of a table's rows, summed over where they were taken."""
    batch = [f"b{d}" for d in range(c["indices"].dim())]
    return Cut([[*batch, "e"], batch], [[None, "e"]], dict.fromkeys(batch, "sum"))


def attention(c):
    """Each sample and each head alone."""
    q = c["query"]
    batch = list(range(q.dim() - 2))
    ins = []
    for x in c.tensors:
        lead = list(x.shape[: len(batch)])
        if x.dim() < len(batch):
            return whole(c)
        ins.append(
            [d if n == q.shape[d] else None for d, n in zip(batch, lead, strict=False)]
            + [None] * (x.dim() - len(batch))
        )
    mask = c["mask"]
    if mask is not None and mask.dim() != q.dim():
        ins = [[None] * x.dim() if x is mask else names for x, names in zip(c.tensors, ins, strict=True)]
    if any(c[word].shape[: len(batch)] != q.shape[: len(batch)] for word in ("key", "value")):
        return whole(c)
    plain = [*batch, None, None]
    return Cut(ins, [plain] * 3 if "grad" in c.row.words else [plain, [*batch, None]])


def padded(c):
    """More, or less, at the ends of the last dimensions; the others are free."""
    t, pad = c.first(), list(c["pad"])
    names = [
        d if 2 * (t.dim() - d) > len(pad) or not any(pad[2 * (t.dim() - d - 1) :][:2]) else None for d in range(t.dim())
    ]
    return Cut([names], [names], loose=True)


def lockstep(c):
    """Lists of tensors of which the first, the second and so on belong together, and are written as they lie: all cut alike."""
    ins = [list(range(t.dim())) for t in c.tensors]
    return Cut(ins, [], dict.fromkeys({d for names in ins for d in names}, "same"), loose=True)


def like(c):
    """As large as a tensor, and made anew: nothing is moved for it."""
    return Cut([list(range(c.first().dim()))], [list(range(c.first().dim()))], loose=True)


_NAMED = {
    **_views.RULES, **dict.fromkeys(_WRITTEN, written), **dict.fromkeys(_MATRIX_RESULTS, matrices), "nn::linear": linear,
    **dict.fromkeys(("cat", "cat_same", "stack"), joined),
    **dict.fromkeys(("layer_norm_stats", "layer_norm_backward"), layer_norm),
    **dict.fromkeys(("batch_norm_stats", "batch_norm_backward"), batch_norm),
    **dict.fromkeys(("group_norm_stats", "group_norm_backward"), group_norm),
    **dict.fromkeys(("convolution", "convolution_backward"), convolution),
    **dict.fromkeys(("max_pool2d_with_indices", "max_pool2d_backward", "avg_pool2d_forward", "adaptive_avg_pool2d_forward"), planes),
    **dict.fromkeys(("index_select", "gather", "scatter", "scatter_add", "index_add"), picked),
    **dict.fromkeys(("constant_pad_nd", "constant_pad_nd_backward"), padded), **dict.fromkeys(("fused_adam_", "fused_sgd_"), lockstep), "index_at": indexed, "nn::embedding": embedding, "embedding_backward": embedding_backward,
    **dict.fromkeys(("_::attention", "_::attention_backward"), attention),
    **dict.fromkeys(("_::softmax_nll", "_::softmax_nll_backward"), _loss.softmax_nll),
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like", "full_like"), like),
    **dict.fromkeys(("clone", "_::to_copy", "masked_fill", "fill_", "zero_", "copy_"), pointwise),
    **dict.fromkeys(
        "softmax log_softmax softmax_backward log_softmax_backward sort topk argsort cummax cummin logcumsumexp kthvalue median.dim "
        "nanmedian.dim mode flip roll nn::glu _::fft_c2c".split(), along),
}  # fmt: skip


def cut(c):
    """The rule's letters for a call; None if there is no rule."""
    rule = _NAMED.get(c.name) or _KINDS.get(c.row.kind)
    if rule is None or not c.tensors:
        return None
    return rule(c)


WHOLE_CALLS = _norms.CALLS
