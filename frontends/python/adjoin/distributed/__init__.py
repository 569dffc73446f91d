"""adjoin.distributed: a group of one process: what a program for several does when it runs alone.

``init_process_group`` with a world of 1, by its arguments or by WORLD_SIZE, and every collective of that group. A larger world
raises: there are no engines for several processes yet.
"""

import datetime
import enum
import os

import adjoin

default_pg_timeout = datetime.timedelta(minutes=30)


class ReduceOp(enum.Enum):
    """How the tensors of a group's processes are joined."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


class Backend(str):
    """The name of an engine."""

    UNDEFINED, GLOO, NCCL, MPI, UCC = "undefined", "gloo", "nccl", "mpi", "ucc"
    backend_list = ("undefined", "gloo", "nccl", "mpi", "ucc")

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, not {name!r}")
        return str.__new__(cls, name.lower())


class Work:
    """A collective that has been started; with one process it has ended."""

    def wait(self, timeout=None):
        """True."""
        return True

    def is_completed(self):
        """True."""
        return True

    is_success = is_completed

    def exception(self):
        """None."""

    def get_future(self):
        """A future that is done."""
        future = adjoin.futures.Future()
        future.set_result(None)
        return future


class ProcessGroup:
    """The processes that take part: this one."""

    def __init__(self, name="world", backend="gloo"):
        self.group_name, self._backend = name, Backend(backend)

    def rank(self):
        """0."""
        return 0

    def size(self):
        """1."""
        return 1

    def name(self):
        """The engine's name."""
        return self._backend

    def __repr__(self):
        return f"ProcessGroup({self.group_name!r}, one process)"


class _Group:
    """``group.WORLD``: the default group, or None."""

    WORLD = property(lambda self: _world)


class GroupMember:
    """``NON_GROUP_MEMBER``: what new_group gives a process that is not in it."""

    NON_GROUP_MEMBER = -100


group = _Group()
_world = None


def is_available():
    """False: there are no engines for several processes. A group of one can be made all the same."""
    return False


def is_initialized():
    """Whether init_process_group was called."""
    return _world is not None


def is_nccl_available():
    """False: there is no engine for several processes."""
    return False


is_gloo_available = is_mpi_available = is_ucc_available = is_nccl_available


def is_torchelastic_launched():
    """Whether a launcher with restarts has started the process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_backend_available(backend):
    """False: there is no engine for several processes."""
    return False


def init_process_group(
    backend=None,
    init_method=None,
    timeout=None,
    world_size=-1,
    rank=-1,
    store=None,
    group_name="",
    pg_options=None,
    device_id=None,
):
    """Makes the group of this process. NotImplementedError if the world has others."""
    global _world
    if _world is not None:
        raise ValueError("trying to initialize the default process group twice!")
    size = int(os.environ.get("WORLD_SIZE", 1)) if world_size == -1 else world_size
    place = int(os.environ.get("RANK", 0)) if rank == -1 else rank
    if size != 1:
        raise NotImplementedError(
            f"init_process_group: the world has {size} processes; only one is served yet. Run the program once, "
            "without WORLD_SIZE, and with a batch that is as many times larger"
        )
    if place != 0:
        raise ValueError(f"init_process_group: rank {place} in a world of 1; it must be 0")
    _world = ProcessGroup(backend=backend or "gloo")


def destroy_process_group(group=None):
    """Forgets the default group."""
    global _world
    if group is None or group is _world:
        _world = None


def _in(group):
    """The group that was given, or the default one."""
    if group is None:
        if _world is None:
            raise ValueError(
                "Default process group has not been initialized, please make sure to call init_process_group."
            )
        return _world
    return group


def get_rank(group=None):
    """0; -1 of a group without this process."""
    return -1 if group == GroupMember.NON_GROUP_MEMBER else _in(group).rank()


def get_world_size(group=None):
    """1; -1 of a group without this process."""
    return -1 if group == GroupMember.NON_GROUP_MEMBER else _in(group).size()


def get_backend(group=None):
    """The name that init_process_group was given."""
    return _in(group).name()


def get_process_group_ranks(group=None):
    """[0]."""
    _in(group)
    return [0]


def get_global_rank(group, group_rank):
    """0."""
    return _only(group_rank, "group_rank")


get_group_rank = get_global_rank


def get_node_local_rank(fallback_rank=None):
    """LOCAL_RANK, or the other number."""
    held = os.environ.get("LOCAL_RANK", fallback_rank)
    if held is None:
        raise RuntimeError("LOCAL_RANK is not in the environment; consider passing a fallback_rank")
    return int(held)


def new_group(ranks=None, timeout=None, backend=None, **options):
    """Another group of this process."""
    _in(None)
    for rank in ranks or []:
        _only(rank, "ranks")
    return ProcessGroup("group", backend or _world.name())


def _only(rank, what):
    if rank not in (0, None):
        raise ValueError(f"{what}: {rank} is not in the group, which has one process, rank 0")
    return 0


def _done(async_op):
    return Work() if async_op else None


def _same(a, b, who):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(
            f"{who}: the tensor is {a.dtype} of shape {list(a.shape)}, its place is {b.dtype} of {list(b.shape)}"
        )


def _one(items, who, what):
    if len(items) != 1:
        raise ValueError(f"{who}: {len(items)} tensors in {what}; the group has one process")
    return items[0]


def barrier(group=None, async_op=False, device_ids=None):
    """Nobody has to be waited for."""
    _in(group)
    return _done(async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """Nobody has to be waited for."""
    _in(group)


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """The tensor stays: it is the only one."""
    _in(group)
    return _done(async_op)


def reduce(tensor, dst=0, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """The tensor stays."""
    _in(group), _only(dst, "dst")
    return _done(async_op)


def broadcast(tensor, src=0, group=None, async_op=False, group_src=None):
    """The tensor stays."""
    _in(group), _only(src, "src")
    return _done(async_op)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """tensor_list[0] gets the tensor's elements."""
    _in(group)
    place = _one(tensor_list, "all_gather", "tensor_list")
    _same(tensor, place, "all_gather")
    with adjoin.no_grad():
        place.copy_(tensor)
    return _done(async_op)


def gather(tensor, gather_list=None, dst=0, group=None, async_op=False, group_dst=None):
    """gather_list[0] gets the tensor's elements."""
    _only(dst, "dst")
    return all_gather([] if gather_list is None else gather_list, tensor, group, async_op)


def scatter(tensor, scatter_list=None, src=0, group=None, async_op=False, group_src=None):
    """The tensor gets the elements of scatter_list[0]."""
    _in(group), _only(src, "src")
    given = _one([] if scatter_list is None else scatter_list, "scatter", "scatter_list")
    _same(given, tensor, "scatter")
    with adjoin.no_grad():
        tensor.copy_(given)
    return _done(async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """The output gets the input's elements."""
    _in(group)
    if output_tensor.numel() != input_tensor.numel():
        raise ValueError(
            f"all_gather_into_tensor: {output_tensor.numel()} elements for {input_tensor.numel()} of one process"
        )
    with adjoin.no_grad():
        output_tensor.copy_(input_tensor.reshape(output_tensor.shape))
    return _done(async_op)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """The output gets the input's elements."""
    return all_gather_into_tensor(output, input, group, async_op)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """The output gets the elements of input_list[0]."""
    return all_gather([output], _one(input_list, "reduce_scatter", "input_list"), group, async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """output_tensor_list[0] gets the elements of input_tensor_list[0]."""
    given = _one(input_tensor_list, "all_to_all", "input_tensor_list")
    return all_gather(output_tensor_list, given, group, async_op)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """The output gets the input's elements."""
    return all_gather_into_tensor(output, input, group, async_op)


def all_gather_object(object_list, obj, group=None):
    """object_list[0] gets the object."""
    _in(group), _one(object_list, "all_gather_object", "object_list")
    object_list[0] = obj


def gather_object(obj, object_gather_list=None, dst=0, group=None, group_dst=None):
    """object_gather_list[0] gets the object."""
    _only(dst, "dst")
    all_gather_object([None] if object_gather_list is None else object_gather_list, obj, group)


def broadcast_object_list(object_list, src=0, group=None, device=None, group_src=None):
    """The objects stay."""
    _in(group), _only(src, "src")


def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=0, group=None, group_src=None):
    """The output's first item gets the input's first."""
    _in(group), _only(src, "src")
    scatter_object_output_list[0] = _one(scatter_object_input_list or [], "scatter_object_list", "the input")


def _alone(name):
    def refuse(*args, **kwargs):
        """Raises: there is nobody to send to or to receive from."""
        raise ValueError(f"{name}: the group has one process, nobody is there to talk to")

    refuse.__name__ = name
    return refuse


send, recv, isend, irecv, batch_isend_irecv = map(_alone, ("send", "recv", "isend", "irecv", "batch_isend_irecv"))
from .device_mesh import DeviceMesh, init_device_mesh  # noqa: E402, F401
