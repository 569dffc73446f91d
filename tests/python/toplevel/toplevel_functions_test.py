"""tests/python/toplevel/toplevel_functions_test.py: functions of the top level that layers stand on, windows, futures, small tools."""

import math
import pickle
import threading
import time

import adjoin
import numpy as np
import pytest
from adjoin import futures
from adjoin.nn import functional as F
from adjoin.signal import windows

X = adjoin.arange(24.0).reshape(2, 4, 3) / 10 - 1
W, B = adjoin.full((4,), 2.0), adjoin.ones(4)
close = adjoin.testing.assert_close


def test_norms_tell_their_moments():
    out, mean, scale = adjoin.native_layer_norm(X, (3,), None, None, 1e-5)
    close(out, F.layer_norm(X, (3,)))
    close(out, (X - mean) * scale)
    out, mean, scale = adjoin.native_group_norm(X, W, B, 2, 4, 3, 2, 1e-5)
    close(out, F.group_norm(X, 2, W, B))
    assert mean.shape == scale.shape == (2, 2)
    close(mean, X.reshape(2, 2, 6).mean(-1))
    running = adjoin.zeros(4)
    out, mean, scale = adjoin.native_batch_norm(X, W, B, running, adjoin.ones(4), True, 0.1, 1e-5)
    close(out, (X - mean[:, None]) * scale[:, None] * W[:, None] + B[:, None])
    close(running, 0.1 * mean)
    assert [t.numel() for t in adjoin.native_batch_norm(X, W, B, running, adjoin.ones(4), False, 0.1, 1e-5)[1:]] == [
        0,
        0,
    ]
    close(adjoin.batch_norm(X, W, B, None, None, True, 0.1, 1e-5, False), F.batch_norm(X, None, None, W, B, True))
    close(adjoin.instance_norm(X, W, B, None, None, True, 0.1, 1e-5, False), F.instance_norm(X, weight=W, bias=B))


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize(("number", "word"), list(enumerate(("none", "mean", "sum"))))
def test_losses_take_numbers(number, word):
    x, y = X[0], X[1]
    sign = (x > 0) * 2.0 - 1
    one = sign[:, 0]
    pairs = {
        "kl_div": (x, y.exp()),
        "hinge_embedding_loss": (x, sign),
        "margin_ranking_loss": (x, y, sign, 0.5),
        "cosine_embedding_loss": (x, y, one, 0.1),
        "triplet_margin_loss": (x, y, x * 2),
        "binary_cross_entropy_with_logits": (x, x.sigmoid()),
    }
    for name, args in pairs.items():
        close(getattr(adjoin, name)(*args, reduction=number), getattr(F, name)(*args, reduction=word))
    close(adjoin.poisson_nll_loss(x, y, True, True, 1e-8, number), F.poisson_nll_loss(x, y, full=True, reduction=word))
    with pytest.raises(ValueError, match="7 is none of 0"):
        adjoin.kl_div(x, y, 7)


def test_in_place():
    for name, more in {"selu_": (), "celu_": (0.5,), "threshold_": (0.1, 7.0), "rrelu_": (), "dropout_": (0.5, False),
                       "alpha_dropout_": (0.5, False), "feature_alpha_dropout_": (0.5, False), "feature_dropout_": (0.5, False)}.items():  # fmt: skip
        x = X.clone()
        assert getattr(adjoin, name)(x, *more) is x
        plain = getattr(F, name[:-1], None)
        close(x, plain(X, *more) if plain else X)


def test_dropout_of_channels_and_its_mask():
    adjoin.manual_seed(3)
    kept = adjoin.feature_dropout(adjoin.ones(50, 20, 3), 0.25, True)
    assert (kept == kept[..., :1]).all()
    close(kept.unique(), adjoin.tensor([0.0, 4 / 3]))
    out, mask = adjoin.native_dropout(adjoin.ones(1000), 0.25, True)
    assert mask.dtype is adjoin.bool and 650 < mask.sum() < 850
    close(out, mask * (4 / 3))
    assert adjoin.native_dropout(X, 1.0, True)[0].abs().sum() == 0 and adjoin.native_dropout(X, 0.5, False)[1].all()


def test_tables_pools_and_pictures():
    close(adjoin.embedding(X[0], adjoin.tensor([3, 0])), X[0][[3, 0]])
    close(F.embedding(adjoin.tensor([1, 1]), X[0], sparse=True), X[0][[1, 1]])
    best, where = adjoin.max_pool1d_with_indices(X, 2)
    assert where.tolist() == [[[1]] * 4] * 2 and best.shape == (2, 4, 1)
    assert adjoin.adaptive_max_pool1d(X, 2)[1].shape == (2, 4, 2)
    picture = adjoin.arange(16.0).reshape(1, 1, 4, 4)
    places = adjoin.affine_grid_generator(adjoin.eye(3)[None, :2], (1, 1, 4, 4), False)
    close(adjoin.grid_sampler(picture, places, 0, 0, False), picture)


def test_range_has_its_end():
    assert adjoin.range(1, 4).tolist() == [1, 2, 3, 4] and adjoin.range(5, 1, -2).tolist() == [5, 3, 1]
    for wrong in ((5, 1), (0, 1, 0)):
        with pytest.raises(RuntimeError, match="range|step"):
            adjoin.range(*wrong)


@pytest.mark.parametrize("name", windows.__all__)
def test_a_window(name):
    make = getattr(windows, name)
    more = {"a": [0.5, 0.5]} if name == "general_cosine" else {}
    for size in (1, 2, 7, 8):
        w = make(size, dtype=adjoin.float64, **more)
        assert w.shape == (size,) and w.max() <= 1 + 1e-12
        close(w, w.flip(0))  # symmetric
        if name != "cosine" and size > 1:  # which has no place at either end
            close(
                make(size, sym=False, dtype=adjoin.float64, **more), make(size + 1, dtype=adjoin.float64, **more)[:-1]
            )
    assert make(0, **more).shape == (0,) and make(3, **more).dtype is adjoin.float32
    for wrong, told in (({"M": -1}, "M is -1"), ({"M": 2, "dtype": adjoin.int64}, "floating")):
        with pytest.raises(ValueError, match=told):
            make(**wrong, **more)


def test_windows_by_their_formulas():
    close(windows.gaussian(5, std=2.0), adjoin.tensor([math.exp(-(k**2) / 8) for k in (-2, -1, 0, 1, 2)]))
    close(windows.exponential(3, tau=2.0), adjoin.tensor([math.exp(-0.5), 1.0, math.exp(-0.5)]))
    close(windows.exponential(3, center=0, sym=False), adjoin.tensor([math.exp(-k) for k in range(3)]))
    close(windows.hann(5), adjoin.tensor([0, 0.5, 1, 0.5, 0]))
    close(windows.cosine(2), adjoin.full((2,), math.sin(math.pi / 4)))
    close(adjoin.kaiser_window(6), windows.kaiser(6, sym=False))
    halves = adjoin.kaiser_window(6, dtype=adjoin.float16)
    assert halves.dtype == adjoin.float16 and np.allclose(halves.tolist(), windows.kaiser(6, sym=False), atol=1e-3)
    close(windows.kaiser(3, beta=2.0)[0], 1 / adjoin.i0(adjoin.tensor(2.0)))
    for wrong in ({"tau": 0}, {"center": 1.0}):
        with pytest.raises(ValueError, match="exponential"):
            windows.exponential(3, **wrong)


def test_futures():
    first, second = futures.Future(), futures.Future()
    after = first.then(lambda f: f.wait() + 1)
    threading.Timer(0.01, first.set_result, (1,)).start()
    assert after.wait() == 2 and first.done() and not second.done()
    with pytest.raises(RuntimeError, match="not there yet"):
        second.value()
    with pytest.raises(RuntimeError, match="once"):
        first.set_result(2)
    second.set_exception(KeyError("lost"))
    with pytest.raises(KeyError, match="lost"):
        futures.wait_all([first, second])
    assert futures.wait_all([first, after]) == [1, 2] and futures.collect_all([]).wait() == []
    with pytest.raises(RuntimeError, match="error when running the callback: ZeroDivisionError") as caught:
        first.then(lambda f: 1 / 0).wait()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    seen = []
    third = futures.Future()
    third.add_done_callback(lambda f: 1 / 0)  # whoever sets the result does not suffer from it
    third.add_done_callback(seen.append)
    third.set_result(3)
    assert seen == [third] and third.wait() == 3
    with pytest.raises(Exception, match=r"Can not pickle torch.futures.Future"):
        pickle.dumps(third)


def test_tensors_change_places():
    a, b = adjoin.nn.Parameter(adjoin.ones(2, 3)), adjoin.zeros(4, dtype=adjoin.int64)
    a.grad, a.note = adjoin.ones(2, 3), "mine"
    adjoin.utils.swap_tensors(a, b)
    assert type(b) is adjoin.nn.Parameter and b.note == "mine" and b.grad.shape == (2, 3) and b.requires_grad
    assert type(a) is adjoin.Tensor and a.tolist() == [0] * 4 and not a.requires_grad and a.grad is None
    with pytest.raises(RuntimeError, match="history"):
        adjoin.utils.swap_tensors(a, b * 2)


def test_words_for_who_asks():
    assert adjoin.set_flush_denormal(True) is False
    adjoin.set_warn_always(True)
    assert adjoin.is_warn_always_enabled()
    adjoin.set_warn_always(False)
    adjoin.set_deterministic_debug_mode("error")
    assert adjoin.are_deterministic_algorithms_enabled() and adjoin.get_deterministic_debug_mode() == 2
    adjoin.set_deterministic_debug_mode(0)
    assert not adjoin.are_deterministic_algorithms_enabled()
    assert all(
        isinstance(getattr(adjoin, name), bool)
        for name in ("has_mkl", "has_lapack", "has_openmp", "has_cuda", "has_mps")
    )
    assert X.name is None and X.is_xpu is False and adjoin.nn.Linear(2, 2).compile() is None
    assert adjoin.nn.factory_kwargs({"dtype": 1, "factory_kwargs": {"device": 2}}) == {"dtype": 1, "device": 2}
    for wrong in ({"a": 1}, {"dtype": 1, "factory_kwargs": {"dtype": 2}}):
        with pytest.raises(TypeError, match="factory_kwargs"):
            adjoin.nn.factory_kwargs(wrong)


def test_wrong_use_is_told():
    with pytest.raises(ValueError, match="FloatTensor"):
        X.type("foo")
    with pytest.raises(ValueError, match="positive"):
        adjoin.utils.data.RandomSampler([])
    with pytest.raises(RuntimeError, match="list of tensors"):
        adjoin.nn.utils.rnn.pad_sequence(1)
    if not adjoin.cuda.is_available():
        with pytest.raises(RuntimeError, match="cuda"):
            adjoin.cuda.FloatTensor(2)
    assert not isinstance(X, adjoin.cuda.FloatTensor) and not hasattr(adjoin.cuda, "NoTensor")


# Histograms of points, hashes


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("density", [False, True])
def test_histograms_of_points(dtype, weighed, density):
    rng = np.random.default_rng(3)
    points = rng.random((60, 3)).astype(dtype)
    weight = rng.random(60).astype(dtype) if weighed else None
    x, w = adjoin.from_numpy(points), None if weight is None else adjoin.from_numpy(weight)
    edges = [np.array(e, dtype) for e in ([0.1, 0.5, 0.9], [0.0, 0.25, 0.5, 1.0], [0.3, 0.7])]
    for bins, theirs, extent in (
        ([2, 3, 4], [2, 3, 4], None), (3, 3, None), (2, 2, [0.1, 0.8, 0.0, 1.0, 0.2, 0.6]),
        ([adjoin.from_numpy(e) for e in edges], edges, None),
    ):  # fmt: skip
        found = adjoin.histogramdd(x, bins, range=extent, weight=w, density=density)
        pairs = None if extent is None else np.array(extent).reshape(3, 2)
        wanted, at = np.histogramdd(points.astype("float64"), theirs, range=pairs, weights=weight, density=density)
        np.testing.assert_allclose(found.hist.numpy(), wanted, rtol=1e-4)
        for ours, one in zip(found.bin_edges, at, strict=True):
            np.testing.assert_allclose(ours.numpy(), one, rtol=1e-5)
    assert type(found) is adjoin.return_types.histogramdd and found.hist.dtype is x.dtype
    stacked = adjoin.histogramdd(x.reshape(6, 10, 3), 2, weight=None if w is None else w.reshape(6, 10))
    assert adjoin.allclose(stacked.hist, adjoin.histogramdd(x, 2, weight=w).hist)


def test_mistakes_of_histograms():
    x = adjoin.zeros(3, 2)
    assert adjoin.histogramdd(x, 2).hist.tolist() == [[0, 0], [0, 3]]  # one value: half a unit to each side
    assert adjoin.histogramdd(x[:0], 2).hist.sum().item() == 0
    for wrong, error, message in (
        ((x[0], 2), RuntimeError, "at least 2 dimensions, it has 1"), ((x, [2]), RuntimeError, "2 coordinates and bins has 1 items"),
        ((x.long(), 2), NotImplementedError, "input is .*int64.*input.float"), ((x, 0), RuntimeError, "bins must be positive"),
        ((x.double(), [x[:, 0]] * 2), RuntimeError, "the edges of dimension 0 must be a tensor of .*float64"),
        ((x / 0, 2), RuntimeError, "dimension 0's range .nan, nan. is not finite"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            adjoin.histogramdd(*wrong)
    for extent, message in (([0.0, 1.0], "range has 2 elements; 4"), ([1.0, 0, 0, 1], "min should not exceed max")):
        with pytest.raises(RuntimeError, match=message):
            adjoin.histogramdd(x, 2, range=extent)
    with pytest.raises(RuntimeError, match="weight must be .*float32 of shape"):
        adjoin.histogramdd(x, 2, weight=adjoin.ones(2))


@pytest.mark.parametrize("name", ["bool", "uint8", "int8", "int64", "uint64", "bfloat16", "float32", "float64"])
def test_hashes(name):
    x = (adjoin.arange(12).reshape(2, 3, 2) * 7 % 5).to(getattr(adjoin, name))
    wide = x.double().numpy() if x.is_floating_point() else x.numpy().astype("uint64")
    bits = wide.view("uint64")
    reduce = np.bitwise_xor.reduce
    assert adjoin.hash_tensor(x).item() == x.hash_tensor().item() == reduce(bits, None)
    assert adjoin.hash_tensor(x).dtype is adjoin.uint64
    for dim in (0, 1, -1, (0, 2), ()):
        wanted = reduce(bits, dim if dim != () else None)
        assert adjoin.hash_tensor(x, dim).tolist() == wanted.tolist()
        kept = adjoin.hash_tensor(x, dim, keepdim=True)
        assert kept.shape == reduce(bits, dim if dim != () else None, keepdims=True).shape
    assert adjoin.hash_tensor(x[0, 0, 0]).item() == bits[0, 0, 0]


def test_mistakes_of_hashes():
    assert adjoin.hash_tensor(adjoin.tensor([-1])).item() == 2**64 - 1
    with pytest.raises(RuntimeError, match="Unknown hash_tensor mode: 1"):
        adjoin.hash_tensor(adjoin.ones(1), mode=1)
    with pytest.raises(RuntimeError, match="non-zero size"):
        adjoin.hash_tensor(adjoin.ones(2, 0), 1)
    with pytest.raises(NotImplementedError, match="view_as_real"):
        adjoin.hash_tensor(adjoin.ones(1, dtype=adjoin.complex64))


# Other names of what there is


def test_samplers_of_images_and_volumes():
    image, grid = adjoin.randn(1, 2, 3, 4), adjoin.rand(1, 5, 6, 2) * 2 - 1
    wanted = adjoin.nn.functional.grid_sample(image, grid, "nearest", "border", True)
    assert adjoin.grid_sampler_2d(image, grid, 1, 1, True).equal(wanted)
    volume, places = adjoin.randn(1, 2, 3, 4, 2), adjoin.rand(1, 2, 5, 6, 3) * 2 - 1
    wanted = adjoin.nn.functional.grid_sample(volume, places, "bilinear", "zeros", False)
    assert adjoin.grid_sampler_3d(volume, places, 0, 0, False).equal(wanted)
    with pytest.raises(RuntimeError, match="grid_sampler_2d: input and grid must have 4 dimensions, they have 5 and 5"):
        adjoin.grid_sampler_2d(volume, places, 0, 0, False)
    with pytest.raises(RuntimeError, match="grid_sampler_3d: .* they have 4 and 4"):
        adjoin.grid_sampler_3d(image, grid, 0, 0, False)


def test_methods_of_functions():
    x = adjoin.tensor([-2.0, 4.0])
    assert x.prelu(adjoin.tensor([0.5])).tolist() == [-1, 4] and x.__rdiv__(8).tolist() == [-4, 2]


def test_only_warning():
    try:
        for mode, warn_only in ((True, True), (True, False), (False, True)):
            adjoin.use_deterministic_algorithms(mode, warn_only=warn_only)
            assert adjoin.are_deterministic_algorithms_enabled() is mode
            assert adjoin.is_deterministic_algorithms_warn_only_enabled() is warn_only
            assert adjoin.get_deterministic_debug_mode() == (0 if not mode else 1 if warn_only else 2)
        for number, word in enumerate(("default", "warn", "error")):
            for told in (number, word):
                adjoin.set_deterministic_debug_mode(told)
                assert adjoin.get_deterministic_debug_mode() == number
                assert adjoin.is_deterministic_algorithms_warn_only_enabled() is (number == 1)
    finally:
        adjoin.use_deterministic_algorithms(False)


# Tools around programs


def test_throughput():
    calls, threads = [], set()

    class Net(adjoin.nn.Module):
        def forward(self, x, by=1):
            calls.append((x.item(), by))
            threads.add(threading.get_ident())
            time.sleep(0.002)
            return x * by

    bench = adjoin.utils.ThroughputBenchmark(Net())
    with pytest.raises(RuntimeError, match="there are no inputs; add_input"):
        bench.benchmark()
    bench.add_input(adjoin.tensor(1.0))
    bench.add_input(adjoin.tensor(2.0), by=3)
    assert bench.run_once(adjoin.tensor(4.0), by=2).item() == 8
    calls.clear()
    stats = bench.benchmark(num_calling_threads=2, num_warmup_iters=3, num_iters=10)
    assert len(calls) == 2 * 3 + 10 and set(calls) == {(1.0, 1), (2.0, 3)} and len(threads) >= 2
    assert stats.num_iters == 10 and stats.latency_avg_ms >= 2 and stats.total_time_seconds >= 10 * 0.002 / 2
    assert stats.iters_per_second == pytest.approx(10 / stats.total_time_seconds) and "latency" in str(stats)
    with pytest.raises(NotImplementedError, match="adjoin.profiler.profile"):
        bench.benchmark(profiler_output_path="trace")
    failing = adjoin.utils.ThroughputBenchmark(lambda x: 1 / 0)
    failing.add_input(1)
    for warmup in (0, 1):
        with pytest.raises(ZeroDivisionError):
            failing.benchmark(num_warmup_iters=warmup)


def test_names_of_modules_and_frames():
    def function():
        pass

    adjoin.utils.set_module(function, "elsewhere")
    assert function.__module__ == "elsewhere"
    with pytest.raises(TypeError, match="should be a string"):
        adjoin.utils.set_module(function, 3)
    whole = adjoin.utils.get_cpp_backtrace()
    assert whole.startswith("frame #0: ") and len(whole.splitlines()) > 3
    assert len(adjoin.utils.get_cpp_backtrace(1, 2).splitlines()) == 2


def test_kinds_of_devices_of_dlpack():
    from adjoin.utils.dlpack import DLDeviceType

    assert DLDeviceType(adjoin.ones(1).__dlpack_device__()[0]) is DLDeviceType.kDLCPU == 1
    assert DLDeviceType.kDLCUDA == 2 and DLDeviceType.kDLROCM == 10


def test_compilers(tmp_path, monkeypatch):
    from adjoin.utils import cpp_extension

    def tool(name, told):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\necho '{told}' >&2\n")
        path.chmod(0o755)
        return str(path)

    monkeypatch.setenv("CXX", "my-c++")
    assert cpp_extension.get_cxx_compiler() == "my-c++"
    monkeypatch.delenv("CXX")
    assert cpp_extension.get_cxx_compiler() == "c++"
    gcc = tool("wrapped", "COLLECT_GCC=/usr/bin/g++\ngcc version 12.2.0")
    assert cpp_extension.check_compiler_is_gcc(gcc) and cpp_extension.check_compiler_ok_for_platform(gcc)
    clang, other = tool("front", "clang version 14"), tool("tcc", "tcc version 0.9")
    assert not cpp_extension.check_compiler_is_gcc(clang) and cpp_extension.check_compiler_ok_for_platform(clang)
    assert not cpp_extension.check_compiler_ok_for_platform(other)
    assert not cpp_extension.check_compiler_ok_for_platform("no-such-compiler")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not cpp_extension.is_ninja_available()
    with pytest.raises(RuntimeError, match="ninja cannot be called"):
        cpp_extension.verify_ninja_availability()
    (tmp_path / "ninja").write_text("#!/bin/sh\n")
    (tmp_path / "ninja").chmod(0o755)
    assert cpp_extension.is_ninja_available() and cpp_extension.verify_ninja_availability() is None


def test_tensors_of_one_element_are_numbers_among_data():
    one, row = adjoin.ones(1), adjoin.ones(1, 1) * 2
    assert adjoin.tensor([one, row, 3]).tolist() == [1, 2, 3]
    assert adjoin.tensor([[one], [row]]).shape == (2, 1) and adjoin.tensor((one,)).dtype == adjoin.float32
    assert adjoin.as_tensor([adjoin.ones(1, dtype=adjoin.float64)]).dtype == adjoin.float64
    assert adjoin.ones(2).new_tensor([one, row]).shape == (2,)
