"""adjoin._hints: what somebody may have meant by a name that is not there."""

import importlib
import inspect
import sys
import types

from ._names import PLACES


def hint(name, names):
    """ "; did you mean 'x'?", or nothing if no name is like it."""
    if name.startswith("_"):
        return ""
    import difflib

    close = difflib.get_close_matches(name, [n for n in names if not n.startswith("_")], n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def keyword_hint(name, names):
    """What is like a keyword that a function does not take, else what it takes."""
    return hint(name, names) or f"; it takes {', '.join(names) or 'none'}"


# Functions that PyTorch took out, and what does their work.
GONE = {
    "btrifact": "linalg.lu_factor(A)", "btrisolve": "linalg.lu_solve(LU, pivots, B)", "gels": "linalg.lstsq(A, B)",
    "gesv": "linalg.solve(A, B)", "potrf": "linalg.cholesky(A)", "potri": "cholesky_inverse(L)", "potrs": "cholesky_solve(B, L)",
    "symeig": "linalg.eigh(A)", "eig": "linalg.eig(A)", "pstrf": "linalg.cholesky_ex(A)", "trtrs": "linalg.solve_triangular(A, B, upper=)",
}  # fmt: skip


def absent(module, name):
    """The AttributeError of a module, for its __getattr__."""
    if name in GONE and sys.modules[module] is sys.modules[__package__]:
        return AttributeError(f"module {module!r} has no attribute {name!r} any more; use {module}.{GONE[name]}")
    if "quantize" in name and not name.startswith("_"):
        return AttributeError(
            f"module {module!r} has no attribute {name!r}: there are no quantized tensors; keep numbers in float32 or bfloat16, "
            "and fake_quantize_per_tensor_affine() rounds as integers would"
        )
    home = sys.modules[module]
    names = [n for n in dir(home) if not isinstance(vars(home).get(n), types.ModuleType)]
    top, _, rest = home.__name__.partition(".")
    if sys.modules.get("torch") is sys.modules[__package__]:
        top = "torch"  # as the program calls it
    said = f"{top}.{rest}" if rest else top
    return AttributeError(f"module {said!r} has no attribute {name!r}{hint(name, names)}")


def getattr_of(module):
    """__getattr__ for a module that finds nothing late but what PyTorch has as files of it (torch.optim.adamw)."""

    def __getattr__(name):
        place = PLACES.get(f"{module.partition('.')[2]}.{name}")
        if place is None:
            raise absent(module, name)
        return importlib.import_module(f"{__package__}.{place}")

    return __getattr__


def check_keywords(cls, kwargs):
    """Raises the TypeError that __init__ would raise, with the name that is like the keyword."""
    code = getattr(cls.__init__, "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARKEYWORDS:
        return
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    for keyword in kwargs:
        if keyword not in names:
            raise TypeError(
                f"{cls.__name__}.__init__() got an unexpected keyword argument {keyword!r}{keyword_hint(keyword, names)}"
            )


class Hinting:
    """A class that is told which of its keywords was meant, as modules are."""

    def __new__(cls, *args, **kwargs):
        if kwargs:
            check_keywords(cls, kwargs)
        return super().__new__(cls)


def dtype_meant(name):
    """ "; dtypes are given as adjoin.float32" where the name of a device looks like a dtype's, or nothing."""
    from . import _C

    dtypes = [n for n, value in vars(_C).items() if isinstance(value, _C.dtype)]
    import difflib

    close = difflib.get_close_matches(name, dtypes, n=1, cutoff=0.75)
    return f"; was the dtype adjoin.{close[0]} meant?" if close else ""
