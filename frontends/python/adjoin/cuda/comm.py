"""adjoin.cuda.comm: tensors to and from several devices of one process, by copies between them."""

from .. import _C
from .._accelerator import _device

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def _devices(devices):
    if devices is None:
        devices = range(_C.device_count("cuda"))
    found = [_device("cuda", each) for each in devices]
    if not found:
        raise RuntimeError("comm: no device was named, and there is none")
    return found


def broadcast(tensor, devices=None, *, out=None):
    """A copy of the tensor on each device; where it is already, it is the tensor itself."""
    if (devices is None) == (out is None):
        raise RuntimeError("comm.broadcast: either devices or out says where to")
    if out is not None:
        return tuple(to.copy_(tensor, non_blocking=True) for to in out)
    return tuple(tensor.to(device, non_blocking=True) for device in _devices(devices))


def broadcast_coalesced(tensors, devices, buffer_size=10485760):
    """Copies of several tensors on each device: a tuple a device."""
    return [tuple(tensor.to(device, non_blocking=True) for tensor in tensors) for device in _devices(devices)]


def reduce_add(inputs, destination=None):
    """The sum of tensors of one shape, on a device: the first's if none is named."""
    inputs = list(inputs)
    wrong = [tuple(x.shape) for x in inputs if x.shape != inputs[0].shape or x.device.type != "cuda"]
    if wrong:
        raise ValueError(f"comm.reduce_add: wanted CUDA tensors of shape {tuple(inputs[0].shape)}, found {wrong}")
    there = inputs[0].device if destination is None else _device("cuda", destination)
    total = inputs[0].to(there, non_blocking=True)
    for index, x in enumerate(inputs[1:]):
        x = x.to(there, non_blocking=True)
        total = total + x if index == 0 else total.add_(x)
    return total


def reduce_add_coalesced(inputs, destination=None, buffer_size=10485760):
    """The sums of several tensors, which `inputs` has once a device."""
    return tuple(reduce_add(of_one, destination) for of_one in zip(*inputs, strict=True))


def scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None):
    """Parts of a tensor along a dimension, one a device; streams: those that the copies are queued on, None for the
    current; who reads a part waits for its stream."""
    if out is not None:
        if devices is not None or chunk_sizes is not None:
            raise RuntimeError("comm.scatter: out says devices and sizes already")
        places = [to.device for to in out]
        parts = tensor.split([to.shape[dim] for to in out], dim)
    else:
        places = _devices(devices)
        parts = tensor.split(list(chunk_sizes), dim) if chunk_sizes else tensor.chunk(len(places), dim)
        places = places[: len(parts)]
    made = []
    for index, (part, place) in enumerate(zip(parts, places, strict=True)):
        stream = streams[index] if streams else None
        if stream is not None:
            stream.__enter__()
        try:
            made.append(part.to(place, non_blocking=True) if out is None else out[index].copy_(part, non_blocking=True))
        finally:
            if stream is not None:
                stream.__exit__()
    return tuple(made)


def gather(tensors, dim=0, destination=None, *, out=None):
    """Tensors of several devices behind each other, on one device, or on the host with destination -1 or "cpu"."""
    tensors = list(tensors)
    if out is not None:
        if destination is not None:
            raise RuntimeError("comm.gather: out says the destination already")
        there = out.device
    elif destination in (-1, "cpu") or getattr(destination, "type", None) == "cpu":
        there = _C.device("cpu")
    else:
        there = _device("cuda", destination)
    moved = [x.to(there, non_blocking=there.type != "cpu") for x in tensors]
    return _C.find_op("cat")(moved, dim) if out is None else out.copy_(_C.find_op("cat")(moved, dim))
