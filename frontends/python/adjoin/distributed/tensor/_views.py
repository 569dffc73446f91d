"""adjoin.distributed.tensor._views: letters for ops that give the same elements in another shape."""

import math

from ._cut import Cut


def _dims(ndim, letters="d"):
    return [f"{letters}{i}" for i in range(ndim)]


def _at(dim, ndim):
    return dim % ndim if ndim else 0


def permute(c):
    """Dimensions in another order."""
    t = c.first()
    names = _dims(t.dim())
    return Cut([names], [[names[_at(d, t.dim())] for d in c["dims"]]], linear="all", loose=True)


def transpose(c):
    """Two dimensions exchanged."""
    t = c.first()
    names, n = _dims(t.dim()), t.dim()
    out = list(names)
    a, b = (0, 1) if c.name == "t" else (_at(c["dim0"], n), _at(c["dim1"], n))
    if n > 1:
        out[a], out[b] = out[b], out[a]
    return Cut([names], [out], linear="all", loose=True)


def unsqueeze(c):
    """A dimension of size 1 more."""
    names = _dims(c.first().dim())
    out = list(names)
    out.insert(_at(c["dim"], len(names) + 1), None)
    return Cut([names], [out], linear="all", loose=True)


def squeeze(c):
    """Without dimensions of size 1; a part may have others of that size."""
    t = c.first()
    given = c.get("dim")
    asked = (
        range(t.dim()) if given is None else [_at(d, t.dim()) for d in ((given,) if isinstance(given, int) else given)]
    )
    gone = [d for d in asked if t.shape[d] == 1]
    names = [None if d in gone else f"d{d}" for d in range(t.dim())]
    out = [n for d, n in enumerate(names) if d not in gone]
    return Cut([names], [out], linear="all", loose=True, call=lambda args, local: ("squeeze.dim", [args[0], gone]))


def expand(c):
    """Dimensions of size 1 repeated, and new ones."""
    t, size = c.first(), list(c["size"])
    ahead = len(size) - t.dim()
    whole = [t.shape[i - ahead] if n == -1 else n for i, n in enumerate(size)]
    names = [f"d{i}" if t.shape[i] == whole[i + ahead] else None for i in range(t.dim())]
    out = [None] * ahead + names
    return Cut(
        [names],
        [out],
        linear="all",
        loose=True,
        shapes=[whole],
        call=lambda args, local: ("expand", [args[0], local(whole, out)]),
    )


def _groups(old, new):
    """[(dimensions of the old shape, of the new one)] that have the same elements."""
    found, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        a, b, rows, columns = 1, 1, [], []
        if i < len(old):
            a *= old[i]
            rows.append(i)
            i += 1
        if j < len(new):
            b *= new[j]
            columns.append(j)
            j += 1
        while a != b:
            if (a < b or b == 0) and i < len(old):
                a *= old[i]
                rows.append(i)
                i += 1
            elif j < len(new):
                b *= new[j]
                columns.append(j)
                j += 1
            else:
                return [(range(len(old)), range(len(new)))]
        found.append((rows, columns))
    return found


def view(c):
    """Another shape: a dimension that is joined with those behind it, or that is divided, stays cut if its parts are equal."""
    t, size = c.first(), list(c["size"])
    if -1 in size:
        rest = math.prod(n for n in size if n != -1)
        size[size.index(-1)] = t.numel() // rest if rest else 0
    names, out, even = [None] * t.dim(), [None] * len(size), {}
    for rows, columns in _groups(tuple(t.shape), size) if t.numel() else ():
        rows, columns = [d for d in rows if t.shape[d] != 1], [d for d in columns if size[d] != 1]
        if rows and columns:
            letter = names[rows[0]] = out[columns[0]] = f"d{rows[0]}"
            if len(rows) > 1 or len(columns) > 1:
                even[letter] = math.gcd(t.shape[rows[0]], size[columns[0]])
    return Cut(
        [names],
        [out],
        linear="all",
        shapes=[size],
        even=even,
        call=lambda args, local: ("reshape", [args[0], local(size, out)]),
    )


def select(c):
    """One place of a dimension."""
    names = _dims(c.first().dim())
    names[_at(c["dim"], len(names))] = None
    return Cut([names], [[n for n in names if n]], linear="all", loose=True)


def slice_(c):
    """A range of a dimension."""
    t = c.first()
    names, d = _dims(t.dim()), _at(c["dim"], t.dim())
    start, end, step = c["start"] or 0, c["end"], c["step"]
    if start or step != 1 or end is not None and end < t.shape[d]:
        names[d] = None
    return Cut([names], [names], linear="all", loose=True)


def pieces(c):
    """A dimension in several parts."""
    names = _dims(c.first().dim())
    d = _at(c["dim"], len(names))
    names[d] = None
    return Cut([names], [[n for i, n in enumerate(names) if c.name != "unbind" or i != d]], linear="all", loose=True)


def unfold(c):
    """Windows of a dimension, in a new one."""
    names = _dims(c.first().dim())
    names[_at(c["dimension"], len(names))] = None
    return Cut([names], [[*names, None]], linear="all", loose=True)


def diagonal(c):
    """A diagonal of two dimensions."""
    names = _dims(c.first().dim())
    two = {_at(c["dim1"], len(names)), _at(c["dim2"], len(names))}
    names = [None if d in two else n for d, n in enumerate(names)]
    return Cut([names], [[n for n in names if n] + [None]], linear="all", loose=True)


def numbers(c):
    """Complex numbers as pairs, and back."""
    names = _dims(c.first().dim())
    if c.name == "view_as_complex":
        return Cut([[*names[:-1], None]], [names[:-1]], linear="all", loose=True)
    return Cut([names], [[*names, None]], linear="all", loose=True)


def same(c):
    """The same shape."""
    names = _dims(c.first().dim())
    return Cut([names], [names], linear="all", loose=True)


def bytes_(c):
    """The same bytes as another dtype: the last dimension may have another size."""
    t, names = c.first(), _dims(c.first().dim())
    if t.dtype.itemsize != c["dtype"].itemsize and names:
        names[-1] = None
    return Cut([names], [names], loose=True)


def backward(c):
    """The gradient of a view: zeros, but for the part that was taken."""
    shape = tuple(c["input_shape"])
    names = _dims(len(shape))
    d = _at(c.get("dim", c.get("dimension")), len(shape))
    names[d] = None
    inner = [n for n in names if n] if c.name.startswith(("select", "unbind")) else [*names, None] if c.name.startswith("unfold") else names  # fmt: skip
    at = c.row.words.index("input_shape")

    def call(args, local):
        return c.name, [*args[:at], local(shape, names), *args[at + 1 :]]

    return Cut([list(inner) for _ in c.tensors], [names], linear="all", shapes=[shape], call=call, loose=True)


RULES = {
    "permute": permute, "t": transpose, "transpose": transpose, "unsqueeze": unsqueeze, "squeeze": squeeze, "squeeze.dim": squeeze,
    "expand": expand, "view": view, "reshape": view, "select": select, "slice": slice_, "split": pieces, "split.sizes": pieces,
    "unbind": pieces, "unfold": unfold, "diagonal": diagonal, "view_as_real": numbers, "view_as_complex": numbers, "alias": same,
    "real": same, "imag": same, "view.dtype": bytes_, "select_backward": backward, "slice_backward": backward,
    "split_backward": backward, "split_sizes_backward": backward, "unbind_backward": backward, "unfold_backward": backward,
}  # fmt: skip
