"""adjoin.distributed._names: reductions, engines, errors, deadlines."""

import datetime
import enum
import os

from .. import _C

default_pg_timeout = datetime.timedelta(minutes=30)


class _Named:
    """What has PyTorch's name for the class of its members."""


class ReduceOp(_Named, enum.Enum):
    """How the tensors of a group's processes are joined. The numbers are those of AJ_RED_ in abi/comm.h."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


_Named.RedOpType = ReduceOp


class DebugLevel(enum.Enum):
    """How much PyTorch would check and say; here every collective is checked, whatever the level."""

    OFF, INFO, DETAIL = 0, 1, 2


_level = None


def get_debug_level():
    """The level of TORCH_DISTRIBUTED_DEBUG, or of ``set_debug_level``."""
    if _level is None:
        set_debug_level_from_env()
    return _level


def set_debug_level(level):
    """Sets it."""
    global _level
    _level = DebugLevel(level)


def set_debug_level_from_env():
    """Sets it to what TORCH_DISTRIBUTED_DEBUG says."""
    said = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if said not in DebugLevel.__members__:
        raise RuntimeError(f"TORCH_DISTRIBUTED_DEBUG is {said!r}; it may be {', '.join(DebugLevel.__members__)}")
    set_debug_level(DebugLevel[said])


def supports_complex(reduceOp):
    """Whether the reduction has a meaning for complex numbers."""
    return reduceOp not in (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


class _Premultiplied:
    """The sum of what each process has multiplied by a number first."""

    value = ReduceOp.PREMUL_SUM.value

    def __init__(self, factor):
        self.factor = float(factor)

    def __eq__(self, other):
        return isinstance(other, _Premultiplied) and self.factor == other.factor

    def __hash__(self):
        return hash(self.factor)


class Backend(str):
    """The name of an engine."""

    UNDEFINED, GLOO, NCCL, MPI, UCC = "undefined", "gloo", "nccl", "mpi", "ucc"
    backend_list = ["undefined", "gloo", "nccl", "mpi", "ucc"]
    default_device_backend_map = {"cpu": "gloo", "cuda": "nccl"}
    # Who has no service for a device takes its tensors through the processor's memory.
    backend_capability = {"gloo": ["cpu", "cuda"], "shm": ["cpu", "cuda"], "mpi": ["cpu", "cuda"], "nccl": ["cuda"]}

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, not {name!r}")
        return str.__new__(cls, name.lower())

    @classmethod
    def register_backend(cls, name, func, extended_api=False, devices=None):
        """Raises: an engine is a plugin."""
        raise NotImplementedError(
            f"Backend.register_backend: {name!r} is a class of PyTorch's; an engine is a plugin here, which offers the table of "
            "abi/comm.h as aj.comm/DEVICE; `adjoin conform --comm ENGINE` tries it"
        )


class DistError(RuntimeError):
    """What goes wrong between processes."""


class DistBackendError(DistError):
    """A collective failed: a process is lost, or does something else."""


_C.error_class(DistBackendError)


class DistNetworkError(DistError):
    """A process cannot be reached."""


class DistStoreError(DistError):
    """A store has no such key in time, or is gone."""


class QueueEmptyError(DistStoreError):
    """A queue of a store has nothing, and nobody waits."""


def milliseconds(timeout, otherwise=default_pg_timeout):
    """A timedelta, or seconds, as milliseconds."""
    timeout = otherwise if timeout is None else timeout
    seconds = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else float(timeout)
    return max(1, round(seconds * 1000))


def reduction(op):
    """(number, factor) of a ReduceOp, or of what makes a premultiplied sum."""
    if isinstance(op, _Premultiplied):
        return op.value, op.factor
    if op is ReduceOp.PREMUL_SUM:
        raise ValueError("ReduceOp.PREMUL_SUM wants a factor: pass _make_nccl_premul_sum(factor)")
    if not isinstance(op, ReduceOp):
        raise TypeError(f"op is {op!r}; wanted is a ReduceOp: {', '.join(o.name for o in ReduceOp)}")
    return op.value, 1.0
