"""adjoin._pieces: copies of the pieces of a tensor, which out= may take."""

from . import _C
from ._out import put


def _copies(name, made, out):
    """Pieces as a tuple, or each in its tensor of out."""
    return tuple(made) if out is None else put(name, tuple(made), tuple(out)) and None


def split_with_sizes_copy(input, split_sizes, dim=0, *, out=None):
    """Copies of pieces of the given sizes; with out they are written there and nothing is returned."""
    return _copies("split_with_sizes_copy", _C.find_op("split_with_sizes_copy")(input, split_sizes, dim), out)


def unbind_copy(input, dim=0, *, out=None):
    """Copies of each slice; with out they are written there and nothing is returned."""
    return _copies("unbind_copy", _C.find_op("unbind_copy")(input, dim), out)
