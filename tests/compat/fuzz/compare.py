"""compare.py: in what the outcomes of one case differ: refusals, classes of errors, dtypes, shapes, values, views, gradients.

Left out: texts of errors, the sign of a zero, the strides of what is no view.
"""

import math

import adjoin
import torch

TOLERANCE = {"float64": 1e-9, "complex128": 1e-9, "float32": 2e-5, "complex64": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}
MANY = 100_000
HIDDEN = {"t", "__warningregistry__", "inf", "nan", "np", "__builtins__"}


class Difference:
    """kind: less (only Adjoin refuses), more (only PyTorch does), class, type, dtype, shape, value, strides, shares, grad, gradient."""

    def __init__(self, case, kind, name, ours, theirs, all_ours, all_theirs):
        self.case, self.kind, self.name = case, kind, name
        self.ours, self.theirs = ours, theirs  # the two values, or the two errors
        self.all_ours, self.all_theirs = all_ours, all_theirs  # the two outcomes

    def __str__(self):
        return f"{self.kind} {self.name}: adjoin: {brief(self.ours)}; torch: {brief(self.theirs)}"


def brief(value):
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {str(value).splitlines()[0] if str(value) else ''}"[:300]
    try:
        if is_tensor(value):
            few = str(numbers(value)[:24]) if value.numel() <= MANY else "..."
            return f"{dtype(value)} {tuple(value.shape)} {few}"[:400]
    except Exception as error:
        return repr(error)
    return repr(value)[:300]


def is_tensor(value):
    return isinstance(value, (adjoin.Tensor, torch.Tensor))


def dtype(tensor):
    return str(tensor.dtype).rpartition(".")[2]


def numbers(tensor):
    """The elements, one after another."""
    if not tensor.numel():
        return []
    try:
        found = tensor.detach().tolist()
    except RuntimeError:  # PyTorch's zeros without memory
        found = (tensor.detach() + 0).tolist()
    for _ in range(tensor.dim() - 1):
        found = [x for row in found for x in row]
    return found if tensor.dim() else [found]


def flat(value, name, out):
    """Names each part of a value: r, r[0], ..."""
    if isinstance(value, (tuple, list)) and not hasattr(value, "numel") and any(map(nests, value)):
        out[name + ".len"] = len(value)
        for k, part in enumerate(value):
            flat(part, f"{name}[{k}]", out)
    elif isinstance(value, (tuple, list)) or type(value).__name__ == "Size":
        out[name] = tuple(value)
    else:
        out[name] = value


def nests(part):
    return is_tensor(part) or isinstance(part, (tuple, list))


def parts(outcome):
    out = {}
    for name, value in outcome.names.items():
        if name not in HIDDEN:
            flat(value, name, out)
    return out


def differences(case, ours, theirs):
    def found(kind, name, a, b):
        return Difference(case, kind, name, a, b, ours, theirs)

    if ours.error or theirs.error:
        if ours.line == theirs.line:
            same = agree(ours.error, theirs.error)
            return [] if same else [found("class", "error", ours.error, theirs.error)]
        first = theirs.error is None or (ours.error is not None and ours.line < theirs.line)
        return [found("less" if first else "more", "error", ours.error, theirs.error)]
    a, b = parts(ours), parts(theirs)
    loose = loosest(b) if case.many else None
    out = []
    if case.target == "gradients":
        loose = loosest(b)
        gradients = {k: (a.pop(k, None), b.pop(k, None)) for k in sorted(a.keys() | b.keys()) if k[0] in "ghkqws"}
        out += [
            found("gradient", k, *pair)
            for k, pair in gradients.items()
            if k[0] in "gk" and not same_gradient(*pair, loose)
        ]
    if a.keys() != b.keys():
        return [*out, found("type", "names", sorted(a.keys() - b.keys()), sorted(b.keys() - a.keys()))]
    for name in a:
        kind = differs(case, a[name], b[name], case.values, loose)
        if kind:
            out.append(found(kind, name, a[name], b[name]))
    out += [found(kind, name, x, y) for kind, name, x, y in memory(a, b)]
    return out


BUILT_IN = (IndexError, TypeError, ValueError, OverflowError, NotImplementedError, RuntimeError, AttributeError)


def agree(ours, theirs):
    """Would whoever catches PyTorch's class catch ours?"""
    for cls in BUILT_IN:
        if isinstance(theirs, cls):
            return isinstance(ours, cls)
    return type(ours) is type(theirs)


def loosest(named):
    """In a program digits of one dtype go on in another."""
    return max((TOLERANCE.get(dtype(v), 0) for v in named.values() if is_tensor(v)), default=0)


def same_gradient(a, b, loose=0):
    """No gradient is one of zeros, or of what is left of a difference of equal numbers."""
    if not is_tensor(a) or not is_tensor(b):
        return all(abs(v) <= max(loose, TOLERANCE.get(dtype(x), 0)) for x in (a, b) if is_tensor(x) for v in numbers(x))
    tolerance = 10 * max(loose, TOLERANCE.get(dtype(b), 0))
    return dtype(a) == dtype(b) and tuple(a.shape) == tuple(b.shape) and close(numbers(a), numbers(b), tolerance)


def differs(case, a, b, values, loose=None):
    """The kind of the first difference between two values, or None."""
    if is_tensor(a) != is_tensor(b):
        return "type"
    if not is_tensor(a):
        return None if plain(a, b) else "value"
    if dtype(a) != dtype(b):
        return "dtype"
    if tuple(a.shape) != tuple(b.shape):
        return "shape"
    if values and not same_values(a, b, loose):
        return "value"
    if a.requires_grad != b.requires_grad:
        return "grad"
    if a.requires_grad and b.is_leaf:
        return differs(case, a.grad, b.grad, values, loose) and "grad"
    return None


def plain(a, b):
    if isinstance(a, (bool, int, str, type(None))) or isinstance(b, (bool, int, str, type(None))):
        return type(a) is type(b) and a == b
    if isinstance(a, (float, complex)):
        return type(a) is type(b) and close([a], [b], TOLERANCE["float32"])
    if isinstance(a, (tuple, list)):
        return isinstance(b, (tuple, list)) and len(a) == len(b) and all(map(plain, a, b))
    return str(a).rpartition(".")[2] == str(b).rpartition(".")[2]


def same_values(a, b, loose=None):
    if a.numel() > MANY:
        return True
    x, y = numbers(a), numbers(b)
    return x == y or (dtype(b) in TOLERANCE and close(x, y, loose or TOLERANCE[dtype(b)]))


def close(x, y, tolerance):
    scale = max([1.0, *(abs(v) for v in y if math.isfinite(abs_parts(v)))])
    return len(x) == len(y) and all(near(p, q, tolerance, scale) for p, q in zip(x, y, strict=True))


def abs_parts(v):
    return abs(v.real) + abs(v.imag)


def near(p, q, tolerance, scale):
    if isinstance(q, complex) or isinstance(p, complex):
        return near(p.real, q.real, tolerance, scale) and near(p.imag, q.imag, tolerance, scale)
    if p == q:
        return True
    if not (math.isfinite(p) and math.isfinite(q)):
        return p != p and q != q
    return abs(p - q) <= tolerance * (abs(q) + scale * 0.5)


def address(tensor):
    return tensor.untyped_storage().data_ptr()


def held(named):
    """Tensors whose memory is compared: those with elements."""
    return {k: v for k, v in named.items() if is_tensor(v) and 0 < v.numel() <= MANY}


def memory(a, b):
    """Which tensors are one object, which share memory, and how a view lies in it."""
    mine, theirs = held(a), held(b)
    keys = [k for k in mine if k in theirs]
    where = {k: (address(mine[k]), address(theirs[k])) for k in keys}
    for i, k in enumerate(keys):
        for m in keys[:i]:
            one = (mine[k] is mine[m], theirs[k] is theirs[m])
            if one[0] != one[1]:
                yield "shares", f"{m} is {k}", *one
            shared = tuple(where[k][s] == where[m][s] for s in (0, 1))
            if shared[0] != shared[1]:
                yield "shares", f"{m} with {k}", *shared
            elif shared[0] and not one[0]:
                apart = mine[k].data_ptr() - mine[m].data_ptr(), theirs[k].data_ptr() - theirs[m].data_ptr()
                steps = strides(mine[k]), strides(theirs[k])
                if apart[0] != apart[1] or steps[0] != steps[1]:
                    yield "strides", f"{k} in {m}", (apart[0], *steps[0]), (apart[1], *steps[1])


def strides(tensor):
    return tuple(st for n, st in zip(tensor.shape, tensor.stride(), strict=True) if n != 1)
