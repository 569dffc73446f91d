"""adjoin.nested._files: nested tensors as `.pt` files name them, ours and PyTorch's."""

from .. import _C
from ._jagged import NestedTensor, wrap
from ._ragged import Ragged
from ._strided import PartsTensor, joined, rebuild


def makes(function):
    """Marks a function that a file may call."""
    function.makes_nested = True
    return function


@makes
def ragged(offsets, lengths=None):
    """Where sequences stand; what it is given is checked when values are there."""
    for t in (offsets, lengths):
        if t is not None and not isinstance(t, _C.Tensor):
            raise TypeError(
                f"load: the offsets and lengths of a nested tensor must be tensors, there is a {type(t).__name__}"
            )
    return Ragged(offsets, lengths)


@makes
def jagged(settings):
    """What PyTorch's file says of a jagged tensor."""
    values, at = settings["values"], settings.get("_ragged_idx", 1)
    made = wrap(values, _checked(ragged(settings["offsets"], settings.get("lengths")), values, at), at)
    return made.requires_grad_(bool(settings.get("requires_grad")))


@makes
def parts(row, sizes, strides, begins):
    """What PyTorch's file says of a nested tensor of the strided layout."""
    found = zip(sizes.tolist(), strides.tolist(), begins.tolist(), strict=True)
    return joined([row.as_strided(size, stride, begin) for size, stride, begin in found])


def _checked(where, values, at):
    if not isinstance(where, Ragged) or not isinstance(at, int) or not 1 <= at <= values.dim():
        raise ValueError(
            "load: the file has a nested tensor without offsets, or with a ragged dimension that its values lack"
        )
    return where.check(values, at)


def of_file(cls, values, state):
    """The nested tensor of values and what a file of ours says of them."""
    grad = values.requires_grad
    if cls is PartsTensor:
        return rebuild(values.detach(), state.get("_sizes", []), grad)
    where, at = state.get("_ragged"), state.get("_at")
    return wrap(values.detach(), _checked(where, values, at), at).requires_grad_(grad)


classes = (NestedTensor, PartsTensor)
names = {
    "adjoin.nested._jagged.NestedTensor": NestedTensor,
    "adjoin.nested._strided.PartsTensor": PartsTensor,
    "adjoin.nested._ragged.Ragged": ragged,
    "torch.nested._internal.nested_tensor.NestedTensor": NestedTensor,
    "torch.nested._internal.nested_tensor._rebuild_njt": jagged,
    "torch._utils._rebuild_nested_tensor": parts,
}
