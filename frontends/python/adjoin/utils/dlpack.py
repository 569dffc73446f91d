"""adjoin.utils.dlpack: tensors to other libraries and back over the same memory."""

from .. import _C
from .._C import from_dlpack  # noqa: F401


def to_dlpack(tensor):
    """A capsule that any library takes once."""
    return _C.Tensor.__dlpack__(tensor)
