"""adjoin.distributed: groups of processes: how they meet, what they exchange.

``adjoin launch --nproc-per-node 2 train.py`` starts a program in two processes; in it ``init_process_group()`` makes the group
of both. Engines are plugins (``gloo``). A group of one process needs none: its collectives are copies.
"""

from ._collectives import (  # noqa: F401
    P2POp,
    _make_nccl_premul_sum,
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    gather,
    irecv,
    isend,
    monitored_barrier,
    recv,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
    send,
)
from ._group import (  # noqa: F401
    GroupMember,
    ProcessGroup,
    _get_default_group,
    destroy_process_group,
    get_backend,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from ._names import (  # noqa: F401
    Backend,
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    ReduceOp,
    default_pg_timeout,
)
from ._objects import (  # noqa: F401
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from ._group import get_global_rank as _get_global_rank  # noqa: F401
from ._work import Work  # noqa: F401
from .device_mesh import DeviceMesh, init_device_mesh  # noqa: F401
from .store import FileStore, HashStore, PrefixStore, Store, TCPStore  # noqa: F401
