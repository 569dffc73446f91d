"""adjoin._shared: memory that other processes see: where it comes from, and which tensors lie in it.

A process cuts the blocks it shares out of few large segments without a name (memfd), so that the
number of descriptors does not grow with the number of tensors, nothing has to be removed after a
crash, and /dev/shm may be full. Who holds a block is written down beside it: native code, segment.hpp.
"""

import os
import threading
import warnings
import weakref

from . import _C
from ._arena import HEADER, Arena

_lock = threading.RLock()
_segments = {}  # name -> segment, of this process and of others
_blocks = weakref.WeakValueDictionary()  # address -> block, as long as this process uses it
_fork_slots = []


_arena = Arena(_segments)


def new_block(size):
    """A block of shared memory for this process and those it sends it to."""
    with _lock:
        block = _arena.block(size)
        block.users = weakref.WeakSet()
        _blocks[block.address] = block
    return block


def trim():
    """Gives the memory of shared blocks that nobody uses back to the system, and leaves dead processes' segments."""
    with _lock:
        _arena.trim()
        _detach_dead()


def tensor_on(block, dtype, size, stride, offset=0):
    """A tensor on a block; all tensors of one block have one storage as long as one of them is known."""
    for other in block.users:
        flat = other.detach().as_strided((block.bytes // other.itemsize,), (1,), 0)
        made = _C.find_op("empty")(0, dtype=dtype)
        _C.tensor_set(made, flat if flat.dtype is dtype else flat.view(dtype), offset, size, stride)
        break
    else:
        made = block.tensor(dtype, size, stride, offset)
    block.users.add(made)
    return made


def empty(size, dtype):
    """A tensor in C order with unset elements in shared memory."""
    size, stride, step = tuple(size), [], 1
    for n in reversed(size):
        stride.append(step)
        step *= max(n, 1)
    count = 0 if 0 in size else step
    return tensor_on(new_block(count * dtype.itemsize), dtype, size, tuple(reversed(stride)))


def block_of(tensor):
    """The block under a tensor, or None."""
    return _blocks.get(tensor._storage_info()[0])


def share(tensor, warn=True):
    """Moves a tensor's storage to shared memory; the tensor, and the one it is a view of, look at it there."""
    if block_of(tensor) is not None or not tensor.is_cpu:
        return tensor
    if warn and not _may_move(tensor):
        warnings.warn(
            "share_memory_: other tensors look at this memory and keep the old one; share before making views",
            RuntimeWarning,
            stacklevel=3,
        )
    with _C.no_grad():
        _share(tensor)
    return tensor


def _may_move(tensor):
    """Whether no views stay behind. What refers to a parameter is nearly always a graph, and that follows it."""
    return _C.is_alone(tensor) or (tensor.requires_grad and tensor.is_leaf and tensor._base is None)


class _Copied:
    """A copy of memory that a message is being made of: the pickler holds this until it is done, and writes a 0."""

    def __init__(self, block, offset):
        self.block = block
        self.offset = offset  # of the tensor's storage there, in bytes

    def __reduce__(self):
        return int, ()


_copies = weakref.WeakValueDictionary()  # (storage, its version) -> what is copied of it for a message


def place_of(tensor):
    """(block, offset in elements, holder) to send for a tensor, whose storage moves; a copy if views of it stay here."""
    block = block_of(tensor)
    if block is None and _may_move(tensor):
        with _C.no_grad():
            _share(tensor)
        block = block_of(tensor)
    if block is not None:
        return block, tensor.storage_offset(), None
    _, size, at, storage = tensor._storage_info()
    key = storage, tensor._version
    held = _copies.get(key)
    if held is None:
        whole = 2 * tensor.nbytes >= size
        held = _copies[key] = _Copied(*_copy(tensor, 0 if whole else at, size if whole else _span(tensor)))
        if not whole:
            del _copies[key]
    return held.block, (at - held.offset) // tensor.itemsize, held


def _span(tensor):
    """Bytes from the first to the last element."""
    if tensor.numel() == 0:
        return 0
    return (1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))) * tensor.itemsize


def _copy(tensor, begin, size):
    begin -= begin % tensor.itemsize
    block, count = new_block(size), size // tensor.itemsize
    if count:
        flat = tensor.detach().as_strided((count,), (1,), begin // tensor.itemsize)
        block.tensor(tensor.dtype, (count,), (1,), 0).copy_(flat)
    return block, begin


def _share(tensor):
    root = tensor._base
    if root is None:
        _move(tensor)
        return
    if block_of(root) is None:
        _move(root)
    block = block_of(root)
    flat = root.detach().as_strided((block.bytes // root.itemsize,), (1,), 0)
    flat = flat if flat.dtype is tensor.dtype else flat.view(tensor.dtype)
    _C.tensor_set(tensor, flat, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
    block.users.add(tensor)


def _move(tensor):
    stride = tensor.stride()  # settles the order
    _, size, offset, _ = tensor._storage_info()
    block = new_block(size)
    count = size // tensor.itemsize
    if count:
        block.tensor(tensor.dtype, (count,), (1,), 0).copy_(tensor.detach().as_strided((count,), (1,), 0))
    whole = block.tensor(tensor.dtype, (count,), (1,), 0)
    for _ in range(tensor._version):  # a graph may have saved the tensor: it is still what it was
        _C.bump_version(whole)
    _C.tensor_set(tensor, whole, offset // tensor.itemsize, tuple(tensor.shape), stride)
    block.users.add(tensor)


# Messages


class SenderEndedError(RuntimeError):
    """A tensor's sender was gone before the tensor was received."""


def ticket(block):
    """What a message says of a block; the block lives until the message has arrived."""
    segment = block.segment
    block.send()
    return segment.name, os.getpid(), segment.descriptor, block.offset, block.generation


def redeem(name, pid, descriptor, offset, generation):
    """The block that a message speaks of."""
    with _lock:
        segment = _segments.get(name) or _attach(name, pid, descriptor)
        block = _blocks.get(segment.address + offset + HEADER)
        if block is not None and block.arrive(generation):
            return block
        block = segment.take(offset, generation)
        if block is None:
            raise RuntimeError(
                "shared memory: a tensor has been received before, or its sender's memory is gone: a pickled tensor "
                "can be loaded once; send it again for each receiver"
            )
        block.users = weakref.WeakSet()
        _blocks[block.address] = block
        return block


def _attach(name, pid, descriptor):
    _detach_dead()
    path = f"/proc/{pid}/fd/{descriptor}"
    try:
        if not os.readlink(path).startswith("/memfd:adjoin"):
            raise FileNotFoundError
        segment = _C.SharedSegment(descriptor=os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except (FileNotFoundError, ProcessLookupError):
        segment = None
    except OSError as error:
        raise RuntimeError(
            f"shared memory: the memory of process {pid} cannot be opened ({error.strerror}): {path} must be open to this "
            "process; let both run as one user with /proc mounted, below the limit of open files and 256 processes a segment"
        ) from None
    if segment is None or segment.name != name:
        raise SenderEndedError(
            f"shared memory: the process (pid {pid}) that sent a tensor ended before the tensor was received; keep the "
            "sender alive until then, for example by joining it after queue.get()"
        )
    _segments[name] = segment
    return segment


def _detach_dead():
    """Forgets segments of processes that are no more; their memory goes with the last block used here."""
    for name, segment in list(_segments.items()):
        if segment not in _arena.segments and not segment.owner_alive:
            del _segments[name]


_patience = 5.0  # seconds


def wait_at_end():
    """Lets a child that ends wait a little for its last messages to arrive: its memory cannot be reached after."""
    import multiprocessing
    from multiprocessing import util

    if multiprocessing.parent_process() is not None:
        util.Finalize(None, _wait, exitpriority=-100)  # after what flushes the queues


def _wait():
    import time

    end = time.monotonic() + _patience
    left = list(_arena.used)
    while left and time.monotonic() < end:
        left = [entry for entry in left if entry[0].is_travelling(entry[1])]
        if left:
            time.sleep(0.001)


def leave_at_once():
    """This process's end waits for no message."""
    global _patience
    _patience = 0.0


# Forks: what lies in shared memory is held by the child too, and only the parent cuts more of it.


def _before_fork():
    _lock.acquire()
    blocks = [block for block in _blocks.values() if not hasattr(block, "where")]  # a child lends no device's memory
    _fork_slots[:] = [(segment, segment.before_fork(blocks)) for segment in _known(blocks)]


def _known(blocks):
    return {id(segment): segment for segment in [*_segments.values(), *(block.segment for block in blocks)]}.values()


def _after_fork_in_parent():
    _fork_slots.clear()
    _lock.release()


def _after_fork_in_child():
    global _arena, _lock
    for segment, slot in _fork_slots:
        segment.after_fork(slot)
    _fork_slots.clear()
    _segments.clear()  # of the others the child is no user, and their memory should go with those who are
    _segments.update({block.segment.name: block.segment for block in _blocks.values()})
    _arena, _lock = Arena(_segments), threading.RLock()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
