"""adjoin.distributed.rpc: calls of functions in other processes: there are none here, and is_available() says so."""

_WANTED = "init_rpc rpc_sync rpc_async remote RRef shutdown get_worker_info WorkerInfo BackendType RpcBackendOptions TensorPipeRpcBackendOptions api"


def is_available():
    """False: processes exchange tensors and objects by collectives and by send and recv."""
    return False


def __getattr__(name):
    if name in _WANTED.split():
        raise AttributeError(
            f"torch.distributed.rpc has no {name!r}: calls in other processes are not served, as is_available() says; use "
            "torch.distributed's send, recv and send_object_list, or torch.multiprocessing"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
