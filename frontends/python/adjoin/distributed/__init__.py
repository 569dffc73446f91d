"""adjoin.distributed: groups of processes: how they meet, what they exchange.

``adjoin launch --nproc-per-node 2 train.py`` starts a program in two processes; in it ``init_process_group()`` makes the group
of both. Engines are plugins (``gloo``). A group of one process needs none: its collectives are copies.
"""

from .._hints import getattr_of
from ._collectives import (  # noqa: F401
    P2POp,
    _make_nccl_premul_sum,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    gather,
    gather_into_tensor,
    gather_single,
    irecv,
    isend,
    monitored_barrier,
    recv,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
    send,
)
from ._group import (  # noqa: F401
    GroupMember,
    ProcessGroup,
    _get_default_group,
    _get_default_store,
    _rank_not_in_group,
    _resolve_process_group,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
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
    split_group,
)
from ._methods import (  # noqa: F401
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from ._names import (  # noqa: F401
    Backend,
    DebugLevel,
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    QueueEmptyError,
    ReduceOp,
    default_pg_timeout,
    get_debug_level,
    set_debug_level,
    set_debug_level_from_env,
    supports_complex,
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
from .rendezvous import register_rendezvous_handler, rendezvous  # noqa: F401
from .store import FileStore, HashStore, PrefixStore, Store, TCPStore  # noqa: F401

_late = getattr_of(__name__)


def __getattr__(name):
    if name != "GradBucket":
        return _late(name)
    from ..nn.parallel.distributed import GradBucket

    return GradBucket
