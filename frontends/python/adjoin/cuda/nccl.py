"""adjoin.cuda.nccl: NVIDIA's library for several devices is not opened; who calls is told what to use."""

from ._absent import absent

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter"]

_WHY = "NCCL is not opened here; adjoin.cuda.comm adds, scatters and gathers on the devices of one process"


def is_available(tensors):
    """Whether NCCL serves the tensors: never."""
    return False


all_gather, all_reduce, broadcast, init_rank, reduce, reduce_scatter, unique_id, version = (
    absent(name, _WHY, "cuda.nccl")
    for name in (
        "all_gather",
        "all_reduce",
        "broadcast",
        "init_rank",
        "reduce",
        "reduce_scatter",
        "unique_id",
        "version",
    )
)
