"""tests/python/toplevel/accelerator_test.py: the modules of devices: the same names for every device, on the host too."""

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
    assert adjoin.memory.memory_stats("cpu")["cached"] >= 16 << 20
    adjoin.accelerator.empty_host_cache()
    assert adjoin.memory.memory_stats("cpu")["cached"] < 16 << 20


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
