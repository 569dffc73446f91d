"""adjoin._utils: several tensors as one vector and back, as programs that talk to others do it."""

from . import _C
from ._pt_plain import (  # noqa: F401
    _rebuild_device_tensor_from_numpy,
    _rebuild_meta_tensor_no_storage,
    _rebuild_parameter,
    _rebuild_parameter_with_state,
    _rebuild_qtensor,
    _rebuild_tensor,
    _rebuild_tensor_v2,
    _rebuild_tensor_v3,
)


def _flatten_dense_tensors(tensors):
    """All elements, one tensor after another."""
    return _C.find_op("cat")([t.contiguous().reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat, tensors):
    """The parts of flat, shaped like the tensors."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.reshape(t.shape) for part, t in zip(parts, tensors, strict=True))


def _get_available_device_type():
    """The kind of the accelerator that is there, or None."""
    from . import accelerator

    return accelerator.current_accelerator().type if accelerator.is_available() else None


def _get_device_module(device_type):
    """The module of a kind of devices: ``torch.cuda`` of "cuda"."""
    import adjoin

    return adjoin.get_device_module(device_type)


def _element_size(dtype):
    """The bytes of one element of a dtype."""
    return dtype.itemsize


def _rebuild_sparse_tensor(layout, data):
    """The sparse tensor of a layout whose parts a file holds; they are checked."""
    from . import _pt_policy

    return _pt_policy._sparse_tensor(layout, data)
