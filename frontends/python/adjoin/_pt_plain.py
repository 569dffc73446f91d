"""adjoin._pt_plain: what a pickle names that PyTorch wrote by ``pickle`` itself: the functions that make its tensors, parameters
and storages again. ``pickle.load`` calls them by their homes ``torch._utils``, ``torch._tensor`` and ``torch.storage``."""

import io

import adjoin

from . import _C
from ._tensor import set_state


def _load_from_bytes(b):
    """The storage in the bytes of a ``.pt`` file."""
    from .serialization import load

    return load(io.BytesIO(b), weights_only=False)


def _row(storage, dtype=None):
    """The numbers of a storage; of another dtype where the file says so."""
    if isinstance(storage, adjoin.Tensor):
        row = storage
    else:
        row = storage._all() if isinstance(storage, adjoin.storage.UntypedStorage) else storage._row
    return row if dtype is None else row.view(_C.uint8).view(dtype)


def _placed(row, storage_offset, size, stride):
    return row.as_strided(tuple(size), tuple(stride), storage_offset).detach()


def _finished(made, requires_grad, backward_hooks, metadata):
    if metadata and metadata.get("conj"):
        made = made.conj()
    if metadata and metadata.get("neg"):
        made = -made
    made.requires_grad_(bool(requires_grad))
    for hook in (backward_hooks or {}).values():
        made.register_hook(hook)
    return made


def _rebuild_tensor(storage, storage_offset, size, stride):
    """A tensor over a storage."""
    return _placed(_row(storage), storage_offset, size, stride)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    """A tensor over a storage, with its hooks."""
    return _finished(_rebuild_tensor(storage, storage_offset, size, stride), requires_grad, backward_hooks, metadata)


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    """A tensor of a dtype over the bytes of a storage, with its hooks."""
    made = _placed(_row(storage, dtype), storage_offset, size, stride)
    return _finished(made, requires_grad, backward_hooks, metadata)


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """A parameter, with its hooks."""
    made = adjoin.nn.Parameter(data, requires_grad)
    return _finished(made, requires_grad, backward_hooks, None)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    """A parameter with its hooks and attributes."""
    made = _rebuild_parameter(data, requires_grad, backward_hooks)
    set_state(made, state)
    return made


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    """A tensor without values."""
    return _C.find_op("empty_strided")(size, stride, dtype=dtype, device="meta").requires_grad_(requires_grad)


def _rebuild_device_tensor_from_numpy(data, dtype, device, requires_grad):
    """A tensor of a device, of an array's values."""
    return adjoin.from_numpy(data).to(dtype=dtype, device=device).requires_grad_(requires_grad)


def _rebuild_qtensor(*args, **kwargs):
    raise NotImplementedError(
        "pickle: the file has a quantized tensor, and there are none here; save dequantize() of it with PyTorch"
    )


def _rebuild_from_type(func, type, args, dict):
    """A tensor of a class, with its attributes."""
    return _rebuild_from_type_v2(func, type, args, dict)


def _rebuild_from_type_v2(func, new_type, args, state):
    """A tensor of a class, with what its ``__setstate__`` takes, or its attributes."""
    made = func(*args)
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    set_state(made, state)
    return made
