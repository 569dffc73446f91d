"""adjoin.multiprocessing.reductions: tensors, parameters and storages in messages between processes.

A message holds where the memory is, not what is in it: the receiver looks at the sender's bytes.
"""

from multiprocessing import reduction

import adjoin

from .. import _C, _lent, _shared
from ..nn.parameter import Parameter
from ..storage import UntypedStorage


_SPARSE = (adjoin.sparse_coo, adjoin.sparse_csr, adjoin.sparse_csc, adjoin.sparse_bsr, adjoin.sparse_bsc)


def _rebuild(ticket, dtype, size, stride, offset, _, requires_grad, attributes):
    tensor = _shared.tensor_on(_shared.redeem(*ticket), dtype, size, stride, offset)
    return _finish(tensor, requires_grad, attributes)


def _rebuild_on_device(ticket, where, dtype, size, stride, offset, requires_grad, attributes):
    return _finish(_lent.tensor_on(ticket, where, dtype, size, stride, offset), requires_grad, attributes)


def _rebuild_elsewhere(host, device, requires_grad, attributes):
    return _finish(host.to(device), requires_grad, attributes)


def _rebuild_without_bytes(size, stride, dtype, requires_grad, attributes):
    tensor = adjoin.empty_strided(size, stride, dtype=dtype, device="meta")
    return _finish(tensor, requires_grad, attributes)


def _rebuild_sparse(layout, parts, size, coalesced, requires_grad, attributes):
    if layout == "sparse_coo":
        tensor = adjoin.sparse_coo_tensor(*parts, size, is_coalesced=coalesced)
    else:
        tensor = adjoin.sparse_compressed_tensor(*parts, size, layout=getattr(adjoin, layout))
    return _finish(tensor, requires_grad, attributes)


def _reduce_sparse(tensor, requires_grad, attributes):
    """The parts travel as tensors, each in its own memory."""
    with adjoin.no_grad():
        held = tensor.detach()
        if tensor.layout is adjoin.sparse_coo:
            parts, coalesced = (held._indices(), held._values()), held.is_coalesced()
        else:
            by_row = tensor.layout in (adjoin.sparse_csr, adjoin.sparse_bsr)
            begins, places = ("crow_indices", "col_indices") if by_row else ("ccol_indices", "row_indices")
            parts, coalesced = (getattr(held, begins)(), getattr(held, places)(), held.values()), None
    layout = str(tensor.layout).rpartition(".")[2]
    return _rebuild_sparse, (layout, parts, tuple(tensor.shape), coalesced, requires_grad, attributes)


def _finish(tensor, requires_grad, attributes):
    if requires_grad:
        tensor.requires_grad_()
    if attributes:
        tensor.__dict__.update(attributes)
    return tensor


def reduce_tensor(tensor):
    """How a tensor travels: its storage moves to shared memory, or a copy does if views of it stay here. A device's memory
    is lent, or copied where the device shows none to other processes."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "multiprocessing: a tensor that was computed by recorded operations cannot be sent, for its history stays "
            "here; send tensor.detach()"
        )
    rest = (tensor.requires_grad, dict(tensor.__dict__))
    if tensor.layout in _SPARSE:
        return _reduce_sparse(tensor, *rest)
    if tensor.device.type == "meta":
        return _rebuild_without_bytes, (tuple(tensor.shape), tensor.stride(), tensor.dtype, *rest)
    if tensor.device.type != "cpu":
        place = _lent.place_of(tensor)
        if place is not None:
            form = tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
            return _rebuild_on_device, (*place, *form, *rest)
        return _rebuild_elsewhere, (tensor.detach().cpu(), str(tensor.device), *rest)
    return _rebuild, (*_place(tensor), *rest)


def _place(tensor):
    size, stride = tuple(tensor.shape), tensor.stride()
    block, offset, holder = _shared.place_of(tensor)
    return _shared.ticket(block), tensor.dtype, size, stride, offset, holder


def _rebuild_parameter(cls, data, requires_grad, attributes):
    parameter = cls(data, requires_grad)
    parameter.__dict__.update(attributes)
    return parameter


def reduce_parameter(parameter):
    """A parameter of the receiver's on the memory of the sender's."""
    attributes = dict(parameter.__dict__)
    if parameter.device.type != "cpu":
        return _rebuild_parameter, (type(parameter), parameter.detach(), parameter.requires_grad, attributes)
    return _rebuild_shared_parameter, (type(parameter), _place(parameter), parameter.requires_grad, attributes)


def _rebuild_shared_parameter(cls, place, requires_grad, attributes):
    ticket, *form, _ = place
    return _rebuild_parameter(cls, _shared.tensor_on(_shared.redeem(*ticket), *form), requires_grad, attributes)


def reduce_storage(storage):
    """The same bytes for the receiver."""
    return UntypedStorage, (storage._all(),)


def register():
    """Makes Python's own queues, pipes and process arguments send tensors so."""
    reduction.register(_C.Tensor, reduce_tensor)
    reduction.register(Parameter, reduce_parameter)
    reduction.register(UntypedStorage, reduce_storage)
