"""adjoin.cuda._absent: names that PyTorch has for what is not offered here; who calls one is told what to use."""

_STORAGE = (
    "storages have no dtype: tensor.untyped_storage() is the memory, tensor.view(dtype) reads it as another dtype"
)
_PINNED = "pinned memory is not counted; memory_stats counts the device's"
_ALLOCATOR = "memory comes from the device's plugin; another allocator is a plugin with a mem_alloc of its own (adjoin new-backend)"
_POOLS = "memory apart is there for graphs: graph_pool_handle(), capture_begin(pool=)"
_HANDLE = (
    "there is none to give: products are cuBLASLt's, which has no handle of a stream; a library's handle of your own works on "
    "current_stream().cuda_stream"
)
_GRAPHS = "graphs are not written to files; NVIDIA's Nsight Systems shows their kernels"
WHY = {
    "CUDAPluggableAllocator": _ALLOCATOR,
    "GreenContext": "processors are not divided among streams; Stream(priority=) says which goes first",
    "MemPool": _POOLS,
    "caching_allocator_disabled": "the cache of memory is turned off before a program begins: ADJOIN_MEMORY_CACHE=off",
    "change_current_allocator": _ALLOCATOR,
    "current_blas_handle": _HANDLE,
    "current_solver_handle": _HANDLE,
    "export_dot": _GRAPHS,
    "export_graph_data": _GRAPHS,
    "host_memory_stats": _PINNED,
    "host_memory_stats_as_nested_dict": _PINNED,
    "reset_accumulated_host_memory_stats": _PINNED,
    "reset_peak_host_memory_stats": _PINNED,
    "use_mem_pool": _POOLS,
}
WHY |= {
    f"{dtype}Storage": _STORAGE
    for dtype in "BFloat16 Bool Byte Char ComplexDouble ComplexFloat Double Float Half Int Long Short".split()  # noqa: SIM905
}


def absent(name, why, where="cuda"):
    """A class of that name that cannot be made, or a function of that name that cannot be called."""

    def refuse(*_args, **_kwargs):
        raise NotImplementedError(f"{where}.{name}: {why}")

    if name[0].isupper():
        return type(name, (), {"__new__": refuse, "__doc__": f"Not offered: {why}."})
    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Not offered: {why}."
    return refuse


def find(name):
    """What stands for a name, or None."""
    why = WHY.get(name)
    return why and absent(name, why)
