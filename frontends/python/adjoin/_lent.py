"""adjoin._lent: a device's memory that other processes see: who lends it keeps it until they have let it go.

With the memory's name travels a block of shared memory, the guard: who holds that uses the memory.
"""

import os
import threading
import weakref

from . import _C, _shared

_lock = threading.RLock()
_lent = {}  # (device, address) -> guard, which keeps the memory
_borrowed = weakref.WeakValueDictionary()  # (device, address) -> guard, which the memory keeps


def place_of(tensor):
    """(ticket, where) for a message about a device's tensor; None where its device shows no memory to others."""
    device, (address, size, _, _) = str(tensor.device), tensor._storage_info()
    with _lock:
        collect()
        guard = _borrowed.get((device, address)) or _lent.get((device, address))
        if guard is None:
            handle = _C.ipc_export(tensor)
            if handle is None:
                return None
            guard = _lent[device, address] = _shared.new_block(0)
            guard.where = device, handle, size
            guard.kept = _whole(tensor, size)
            guard.users.add(guard.kept)
        _C.synchronize(device)  # the receiver's work is not ordered behind what is queued here
        return _shared.ticket(guard), guard.where


def tensor_on(ticket, where, dtype, size, stride, offset):
    """The tensor that a message speaks of, on the sender's memory."""
    guard = _shared.redeem(*ticket)
    device, handle, length = guard.where = where
    with _lock:
        whole = next(iter(guard.users), None)
        if whole is None:
            whole = _C.ipc_open(device, handle, length, guard)
            _borrowed[device, whole._storage_info()[0]] = guard
        whole = _whole(whole, length)
        made = _C.find_op("empty")(0, dtype=dtype, device=device)
        flat = whole[: length - length % dtype.itemsize]
        _C.tensor_set(made, flat if dtype is _C.uint8 else flat.view(dtype), offset, size, stride)
        guard.users.add(made)
        return made


def _whole(tensor, length):
    """The bytes under a tensor."""
    flat = tensor.detach().as_strided((length // tensor.itemsize,), (1,), 0)
    return flat if flat.dtype is _C.uint8 else flat.view(_C.uint8)


def collect(dead=False):
    """Forgets the memory that no other process uses any more; with dead=True, also what ended processes held."""
    with _lock:
        if dead:
            for segment in {id(guard.segment): guard.segment for guard in _lent.values()}.values():
                segment.reap()
        for key in [key for key, guard in _lent.items() if guard.alone]:
            del _lent[key]


os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
