"""adjoin.return_types: the types of what ops with several results return."""

from . import _C
from ._histograms import histogramdd_result as histogramdd  # noqa: F401


def __getattr__(name):
    found = None if name.startswith("__") else _C.return_type(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__():
    return sorted(
        {*globals(), *(name for name in _C.op_names() if "." not in name and "::" not in name and _C.return_type(name))}
    )
