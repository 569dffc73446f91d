"""adjoin.jit.annotations: types that annotations of scripted functions name."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union  # noqa: F401, UP035


class _Broadcasting:
    """``BroadcastingList2[int]``: a list of two, or one number for both. For a type checker it is the list."""

    def __getitem__(self, of):
        return List[of]  # noqa: UP006


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _Broadcasting()
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = _Broadcasting()


def __getattr__(name):
    if name in ("ann_to_type", "try_ann_to_type"):
        from . import _type_names

        return getattr(_type_names, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
