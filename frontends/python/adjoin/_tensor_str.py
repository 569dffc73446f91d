"""adjoin._tensor_str: how tensors print: aligned columns, summarised when large."""

import contextlib
import math

from . import _C

_options = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """How tensors print; what is None stays as it is."""
    if profile is not None:
        _options.update(_PROFILES[profile])
    given = {
        "precision": precision, "threshold": threshold, "edgeitems": edgeitems,
        "linewidth": linewidth,
    }  # fmt: skip
    _options.update({k: v for k, v in given.items() if v is not None})
    _options["sci_mode"] = sci_mode


def get_printoptions():
    """The options as they are now."""
    return dict(_options)


@contextlib.contextmanager
def printoptions(**options):
    """set_printoptions for a while."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        _options.update(before)


class _Formatter:
    """One width and one notation for all numbers of a tensor."""

    def __init__(self, numbers, floating):
        self.floating = floating
        self.whole, self.scientific = False, False
        if not floating:
            self.width = max((len(str(x)) for x in numbers), default=1)
            return
        finite = [abs(x) for x in numbers if math.isfinite(x) and x != 0]
        self.whole = all(x == math.floor(x) for x in finite)
        if finite:
            low, high = min(finite), max(finite)
            self.scientific = high / low > 1000 or high > 1e8 or (not self.whole and low < 1e-4)
            if _options["sci_mode"] is not None:
                self.scientific = _options["sci_mode"]
        shown = [x for x in numbers if math.isfinite(x) and x != 0]
        self.width = max((len(self._text(x)) for x in shown), default=1)

    def _text(self, x):
        if not self.floating:
            return str(x)
        if self.scientific:
            return f"{x:.{_options['precision']}e}"
        if self.whole and math.isfinite(x):
            return f"{x:.0f}."
        return f"{x:.{_options['precision']}f}"

    def __call__(self, x):
        return self._text(x).rjust(self.width)


class _ComplexFormatter:
    """Real and imaginary parts, each with its own width and notation."""

    def __init__(self, numbers):
        self.real = _Formatter([x.real for x in numbers], True)
        self.imag = _Formatter([x.imag for x in numbers], True)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, x):
        imag = self.imag(x.imag).lstrip()
        return f"{self.real(x.real)}{'' if imag.startswith('-') else '+'}{imag}j"


def _edges(t, n):
    """t without the middle of every dimension longer than 2n."""
    for dim, size in enumerate(t.shape):
        if size > 2 * n:
            keep = _C.find_op("cat")((t.narrow(dim, 0, n), t.narrow(dim, size - n, n)), dim)
            t = keep
    return t


def _flat(data):
    if not isinstance(data, list):
        return [data]
    out = []
    for item in data:
        out.extend(_flat(item))
    return out


def _row(items, form, indent, skipped):
    texts = [form(x) for x in items]
    if skipped:
        half = len(texts) // 2
        texts = [*texts[:half], " ...", *texts[half:]]
    per_line = max(1, (_options["linewidth"] - indent) // (form.width + 2))
    lines = [texts[i : i + per_line] for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(", ".join(line) for line in lines) + "]"


def _nested(data, shape, form, indent, summarise):
    """data: nested lists, cut to the edges if summarise; shape: the tensor's own."""
    if not shape:
        return form(data)
    edge = _options["edgeitems"]
    skipped = summarise and shape[0] > 2 * edge
    if len(shape) == 1:
        return _row(data, form, indent, skipped)
    parts = [_nested(row, shape[1:], form, indent + 1, summarise) for row in data]
    if skipped:
        parts = [*parts[:edge], "...", *parts[edge:]]
    between = "," + "\n" * (len(shape) - 1) + " " * (indent + 1)
    return "[" + between.join(parts) + "]"


def _body(t, indent):
    summarise = t.numel() > _options["threshold"]
    shown = _edges(t, _options["edgeitems"]) if summarise else t
    data = shown.tolist()
    numbers = _flat(data)
    if t.is_complex():
        form = _ComplexFormatter(numbers)
    else:
        form = _Formatter(numbers, t.is_floating_point())
    return _nested(data, list(t.shape), form, indent, summarise)


def _suffixes(self):
    notes = []
    if not self.is_cpu:
        notes.append(f"device='{'meta' if self.is_meta else self.device}'")
    usual = (_C.get_default_dtype(), _C.int64, _C.bool)
    empty = 0 in self.shape
    if empty:
        if self.dim() != 1:
            notes.append(f"size={tuple(self.shape)}")
        usual = (_C.get_default_dtype(),)
    if self.dtype not in usual and not (
        not empty and self.is_complex() and self.dtype.to_real() == _C.get_default_dtype()
    ):
        notes.append(f"dtype={self.dtype}")
    if self.grad_fn is not None:
        name = type(self.grad_fn).__name__
        notes.append(f"grad_fn=<{name}>")
    elif self.requires_grad:
        notes.append("requires_grad=True")
    return notes


def _values(self):
    """The tensor, or what it settles to; None: it has no strides and does not settle."""
    try:
        return _C.wrapper_strided(self, "repr")
    except NotImplementedError:
        return None


def _add_suffixes(tensor_str, suffixes, indent, force_newline=False):
    """The numbers as text, then what else is told, in lines that are not too long; the bracket at the end."""
    last = len(tensor_str) - tensor_str.rfind("\n") + 1
    for note in suffixes:
        force_newline = force_newline or last + len(note) + 2 > _options["linewidth"]
        tensor_str += ",\n" + " " * indent + note if force_newline else ", " + note
        last = indent + len(note) if force_newline else last + len(note) + 2
        force_newline = False
    return tensor_str + ")"


def _tensor_str(self, indent):
    """The numbers as text; lines after the first begin with so many spaces."""
    with _C.DisableTorchFunctionSubclass(), _C.no_grad():
        if self.numel() == 0:
            return "[]"
        plain = self.detach().cpu()
        if plain.dtype == _C.complex32:
            plain = plain.cfloat()
        elif plain.is_floating_point() and plain.dtype.itemsize < 4:
            plain = plain.float()
        return _body(plain, indent)


class _Options:
    """``PRINT_OPTS``: the options as attributes."""

    def __getattr__(self, name):
        if name not in _options:
            raise AttributeError(f"no option {name!r} of printing; there are {', '.join(_options)}")
        return _options[name]

    def __setattr__(self, name, value):
        self.__getattr__(name)
        _options[name] = value


PRINT_OPTS = _Options()


def _str_intern(inp, *, tensor_contents=None):
    return tensor_repr(inp, tensor_contents=tensor_contents)


def tensor_repr(self, *, tensor_contents=None):
    """What repr(tensor) is; ``tensor_contents``: what stands in place of the numbers."""
    told = _told(self, tensor_contents)
    if type(self) is not _C.Tensor and getattr(self, "_is_param", False):  # a parameter of a class of its own
        return f"Parameter({told})"
    return told


def _told(self, tensor_contents):
    with _C.DisableTorchFunctionSubclass(), _C.no_grad():
        notes = _suffixes(self)
        name = "tensor(" if type(self) in (_C.Tensor,) else type(self).__name__ + "("
        if type(self).__name__ == "Parameter":
            name = "tensor("
        if tensor_contents is not None:
            return _add_suffixes(name + tensor_contents, notes, len(name))
        said = _C.wrapper_text(self)
        if said is not None and (parts := _C.wrapper_parts(self)) and parts[0].startswith("_::sparse_"):
            from ._sparse import text

            return text(self, name)
        if said is not None:
            text = said
        elif self.is_meta:
            text = "..."
            notes.insert(1, f"size={tuple(self.shape)}")
        elif (values := _values(self)) is None:
            text = f"..., size={tuple(self.shape)}, layout={self.layout}"
        else:
            text = _tensor_str(values, len(name))
    return _add_suffixes(name + text, notes, len(name))
