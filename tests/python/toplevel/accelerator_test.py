"""tests/python/toplevel/accelerator_test.py: the modules of devices: the same names for every device, on the host too, and what
adjoin.cuda says where there is no card."""

import platform

import adjoin
import pytest

NAMES = """is_available device_count current_device set_device synchronize Stream Event current_stream default_stream stream
set_stream memory_allocated max_memory_allocated memory_reserved reset_peak_memory_stats empty_cache manual_seed
manual_seed_all get_device_name get_device_properties get_rng_state set_rng_state graph device mem_get_info
memory_stats""".split()  # noqa: SIM905


@pytest.mark.parametrize("name", ["cpu", "cuda", "hip", "accelerator"])
def test_every_module_has_the_names(name):
    module = getattr(adjoin, name)
    assert [n for n in NAMES if not hasattr(module, n)] == []
    for n in NAMES:
        assert getattr(module, n).__doc__


def test_the_host_is_a_device_like_any_other():
    cpu = adjoin.cpu
    assert cpu.is_available() and cpu.device_count() >= 1 and cpu.current_device() == 0
    before = cpu.memory_allocated()
    x = adjoin.ones(1 << 20)
    assert cpu.memory_allocated() >= before + 4 * x.numel()
    cpu.reset_peak_memory_stats()
    assert cpu.max_memory_allocated() >= cpu.memory_allocated()
    cpu.synchronize()
    cpu.empty_cache()
    assert adjoin.get_device_module("cpu") is cpu


def test_streams_of_the_host_are_its_one_order_of_work():
    cpu = adjoin.cpu
    with cpu.stream(cpu.Stream()) as s:
        x = adjoin.arange(5).sum()
        assert s.query()
    s.synchronize()
    cpu.current_stream().wait_stream(s)
    assert x.item() == 10 and cpu.current_stream() == cpu.default_stream()


def test_events_take_times():
    cpu = adjoin.cpu
    start, stop = cpu.Event(enable_timing=True), cpu.Event(enable_timing=True)
    start.record()
    adjoin.randn(200, 200) @ adjoin.randn(200, 200)
    stop.record()
    stop.synchronize()
    assert stop.query() and start.elapsed_time(stop) > 0
    with pytest.raises(ValueError, match="enable_timing=True"):
        cpu.Event().elapsed_time(stop)


def test_seeds_and_states():
    cpu = adjoin.cpu
    cpu.manual_seed(7)
    assert cpu.initial_seed() == 7
    state = cpu.get_rng_state()
    first = adjoin.randn(3)
    cpu.set_rng_state(state)
    assert adjoin.equal(first, adjoin.randn(3))


def test_what_a_device_lacks_is_said():
    with pytest.raises(NotImplementedError, match="device cpu captures no graphs"):
        with adjoin.cpu.graph(adjoin.cpu.Graph()):
            pass
    with pytest.raises(ValueError, match="wanted a cpu device"):
        adjoin.cpu.synchronize("meta")


def test_another_device_gets_a_module_of_its_own():
    module = adjoin.get_device_module("reference")
    assert module is adjoin.get_device_module("reference:0") and module.device_count() == 1
    with adjoin.device("reference"):
        x = adjoin.ones(1 << 16)
    assert x.device.type == "reference" and module.memory_allocated() > 0


def test_the_current_device_is_the_one_without_an_index():
    assert adjoin.cpu.current_device() == 0
    with adjoin.cpu.device(0):
        assert adjoin.cpu.current_device() == 0
    with pytest.raises(IndexError, match="there is 1 cpu device"):
        adjoin.cpu.set_device(3)


def test_dtypes_of_a_device():
    found = adjoin.accelerator.get_device_capability("reference")["supported_dtypes"]
    assert {adjoin.float32, adjoin.bfloat16, adjoin.complex64, adjoin.bool, adjoin.uint64} <= found
    assert all(isinstance(dtype, adjoin.dtype) for dtype in found)


def test_older_names(monkeypatch):
    set_to = []
    monkeypatch.setattr(adjoin.accelerator, "set_device_index", set_to.append)
    monkeypatch.setattr(adjoin.accelerator, "current_device_index", lambda: 7)
    adjoin.accelerator.set_device_idx(3)
    assert set_to == [3] and adjoin.accelerator.current_device_idx() == 7
    assert adjoin.accelerator.get_memory_info is adjoin.accelerator.mem_get_info


def test_memory_of_the_host_is_given_back():
    kept = adjoin.ones(1 << 22)
    del kept
    before = adjoin.memory.memory_stats("cpu")["cached"]
    assert before >= 16 << 20
    adjoin.accelerator.empty_host_cache()
    assert before - adjoin.memory.memory_stats("cpu")["cached"] >= 16 << 20  # what lies beside tensors in use stays


def test_what_the_processor_can_do():
    can = adjoin.cpu.get_capabilities()
    assert can["architecture"] == platform.machine()
    with open("/proc/cpuinfo") as file:
        told = file.read().split()
    for word, name in (("avx2", "avx2"), ("fma", "fma3"), ("avx512f", "avx512_f"), ("asimd", "neon"), ("pni", "sse3")):
        assert can.get(name, False) is (word in told)
    with pytest.raises(TypeError):
        can["avx2"] = False


def test_streams_of_the_host_in_a_with_statement():
    class Told:
        def __enter__(self):
            told.append("in")

        def __exit__(self, *error):
            told.append("out")

    told = []
    with adjoin.cpu.StreamContext(Told()):
        told.append("within")
    with adjoin.cpu.StreamContext(None):
        told.append("without")
    assert told == ["in", "within", "out", "without"]
    with adjoin.cpu.StreamContext(adjoin.cpu.current_stream()):
        assert adjoin.ones(2).sum().item() == 2


# The public names of PyTorch's torch.cuda (2.15), but for `sparse`, whose old tensors are gone, and `graph_annotations`.
CUDA_NAMES = """
BFloat16Storage BFloat16Tensor BoolStorage BoolTensor ByteStorage ByteTensor CharStorage CharTensor ComplexDoubleStorage
ComplexFloatStorage DoubleStorage DoubleTensor FloatStorage FloatTensor HalfStorage HalfTensor IntStorage IntTensor
LongStorage LongTensor ShortStorage ShortTensor CUDAGraph CudaError DeferredCudaCallError Event ExternalStream Stream
StreamContext GreenContext amp caching_allocator_alloc caching_allocator_delete caching_allocator_disabled
caching_allocator_enable can_device_access_peer check_error cudaStatus cudart current_blas_handle current_solver_handle
current_device current_stream default_generators default_stream device device_count device_memory_used device_of
empty_cache export_dot export_graph_data get_allocator_backend CUDAPluggableAllocator change_current_allocator
get_arch_list get_device_capability get_device_name get_device_properties get_gencode_flags get_per_process_memory_fraction
get_rng_state get_rng_state_all get_stream_from_external get_sync_debug_mode graph graph_pool_handle graphs has_half
has_magma host_memory_stats host_memory_stats_as_nested_dict init initial_seed ipc_collect is_available is_bf16_supported
is_current_stream_capturing is_initialized is_tf32_supported jiterator list_gpu_processes make_graphed_callables
manual_seed manual_seed_all max_memory_allocated max_memory_cached max_memory_reserved mem_get_info memory memory_allocated
memory_cached memory_reserved memory_snapshot memory_stats memory_stats_as_nested_dict memory_summary memory_usage MemPool
use_mem_pool temperature power_draw clock_rate nccl nvtx profiler random reset_accumulated_host_memory_stats
reset_accumulated_memory_stats reset_max_memory_allocated reset_max_memory_cached reset_peak_host_memory_stats
reset_peak_memory_stats seed seed_all set_device set_per_process_memory_fraction set_rng_state set_rng_state_all set_stream
set_sync_debug_mode stream streams synchronize tunable utilization
""".split()  # noqa: SIM905
CUDA_MODULES = "comm graphs jiterator memory nccl nvtx profiler random streams tunable".split()  # noqa: SIM905
without_card = pytest.mark.skipif(adjoin.cuda.is_available(), reason="NOT TESTED: there is a card")


def test_the_names_of_cuda_are_there():
    cuda = adjoin.cuda
    assert [name for name in CUDA_NAMES if not hasattr(cuda, name)] == []
    assert [name for name in CUDA_NAMES if name not in dir(cuda)] == []
    for module in CUDA_MODULES:
        for name in getattr(getattr(cuda, module), "__all__", ()):
            assert callable(getattr(getattr(cuda, module), name)), (module, name)
    assert issubclass(cuda.OutOfMemoryError, RuntimeError) and cuda.has_half and not cuda.has_magma
    with pytest.raises(AttributeError, match="did you mean 'memory_allocated'"):
        cuda.memory_alocated  # noqa: B018


@without_card
def test_without_a_card_cuda_says_so():
    cuda = adjoin.cuda
    assert cuda.memory_stats() == {} and cuda.memory_snapshot() == [] and cuda.default_generators == ()
    assert cuda.memory_allocated() == cuda.max_memory_allocated() == cuda.max_memory_reserved() == 0
    assert cuda.get_rng_state_all() == [] and cuda.device_count() == 0 and cuda.amp.amp_definitely_not_available()
    assert not (cuda.is_bf16_supported() or cuda.is_tf32_supported() or cuda.is_current_stream_capturing())
    cuda.seed_all(), cuda.manual_seed(3), cuda.empty_cache(), cuda.ipc_collect()
    cuda.reset_peak_memory_stats(), cuda.reset_accumulated_memory_stats()
    for name in (
        "memory_summary", "get_device_properties", "get_device_capability", "get_device_name", "mem_get_info", "current_device", "default_stream",
        "synchronize", "Stream", "current_stream", "cudart", "utilization", "temperature", "power_draw", "clock_rate",
        "memory_usage", "device_memory_used", "list_gpu_processes", "get_per_process_memory_fraction",
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="cuda"):
            getattr(cuda, name)()
    with pytest.raises(RuntimeError, match="cuda"):
        cuda.caching_allocator_alloc(8)
    with pytest.raises(RuntimeError, match="cuda"):
        cuda.can_device_access_peer(0, 1)


def test_what_cuda_does_not_offer_says_what_to_use():
    cuda = adjoin.cuda
    for name, told in {
        "MemPool": "graph_pool_handle", "use_mem_pool": "graph_pool_handle", "CUDAPluggableAllocator": "adjoin new-backend",
        "change_current_allocator": "adjoin new-backend", "GreenContext": "priority", "current_blas_handle": "cuda_stream",
        "current_solver_handle": "cuda_stream", "export_dot": "Nsight", "export_graph_data": "Nsight", "host_memory_stats": "memory_stats",
        "caching_allocator_disabled": "ADJOIN_MEMORY_CACHE=off", "FloatStorage": "untyped_storage",
    }.items():  # fmt: skip
        with pytest.raises(NotImplementedError, match=rf"cuda\.{name}: .*{told}"):
            getattr(cuda, name)()
    for module, name, told in (
        ("nccl", "all_reduce", "cuda.comm"),
        ("jiterator", "_create_jit_fn", "custom_op"),
        ("tunable", "set_filename", "benchmark"),
        ("tunable", "enable", "benchmark"),
    ):
        with pytest.raises(NotImplementedError, match=rf"cuda\.{module}\.{name}: .*{told}"):
            getattr(getattr(cuda, module), name)()
    assert not cuda.tunable.is_enabled() and cuda.tunable.enable(False) is None and not cuda.nccl.is_available([])
    for mode in (1, "warn", "error"):
        with pytest.raises(NotImplementedError, match="adjoin.profiler"):
            cuda.set_sync_debug_mode(mode)
    assert cuda.set_sync_debug_mode("default") is None and cuda.get_sync_debug_mode() == 0
    with pytest.raises(NotImplementedError, match="ADJOIN_MEMORY_CACHE=off"):
        cuda.caching_allocator_enable(False)
    with pytest.warns(FutureWarning, match="memory_reserved"):
        assert cuda.memory_cached() == cuda.memory_reserved()


def test_nvtx_without_its_library_is_an_error(monkeypatch):
    monkeypatch.setenv("ADJOIN_NVTX", "/nowhere/libnvtx.so")
    nvtx = adjoin.cuda.nvtx
    nvtx._library.cache_clear()
    for call in (lambda: nvtx.range_push("a"), nvtx.range_pop, lambda: nvtx.mark("a")):
        with pytest.raises(RuntimeError, match="nvidia-nvtx-cu12"):
            call()
    nvtx._library.cache_clear()


def test_memory_of_the_host_says_what_is_counted():
    x = adjoin.ones(1 << 20)
    stats = adjoin.cpu.memory_stats()
    assert stats["allocated_bytes.all.current"] >= 4 * x.numel() and "num_ooms" not in stats
    assert adjoin.cpu.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["current"] >= 4 * x.numel()
    assert "Allocated memory" in adjoin.cpu.memory_summary()
    with pytest.raises(NotImplementedError, match="max_memory_allocated"):
        adjoin.cpu.max_memory_reserved()
    with pytest.raises(NotImplementedError, match="memory_stats has its sums"):
        adjoin.cpu.memory_snapshot()
