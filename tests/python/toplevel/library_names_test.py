"""tests/python/toplevel/library_names_test.py: names that packages ask for on their way in, each by what it does."""

import adjoin
import pytest


def test_an_assertion_as_a_call():
    adjoin._assert(True, "fine")
    adjoin._assert(adjoin.tensor([1]) == 1, "fine")
    with pytest.raises(AssertionError, match="no square"):
        adjoin._assert(adjoin.tensor(2) == 3, "no square")


def test_a_library_that_is_no_plugin_is_an_oserror(tmp_path):
    with pytest.raises(OSError, match="there is no file"):
        adjoin.ops.load_library(str(tmp_path / "missing.so"))
    other = tmp_path / "_C.so"
    other.write_bytes(b"\x7fELF of somebody else's")
    with pytest.raises(OSError, match=r"no plugin of Adjoin.*adjoin new-op"):
        adjoin.ops.load_library(other)


def test_what_an_op_gives_may_be_said_before_it_is_defined():
    @adjoin.library.register_fake("waits::squash")
    def fake(x):
        return x.new_empty(x.shape[0])

    library = adjoin.library.Library("waits", "DEF")
    library.define("squash(Tensor x) -> Tensor")
    library.impl("squash", lambda x: x.sum(1), "CPU")
    assert adjoin.ops.waits.squash(adjoin.ones(2, 3)).tolist() == [3, 3]
    assert adjoin.ops.waits.squash(adjoin.ones(2, 3, device="meta")).shape == (2,)


def test_kernels_of_a_library_may_give_back_an_argument():
    library = adjoin.library.Library("giveback", "DEF")
    library.define("increase_(Tensor(a!) x, int by=1) -> Tensor(a!)")
    library.impl("increase_", lambda x, by: x.add_(by), "CPU")
    library.define("same(Tensor x) -> Tensor")
    library.impl("same", lambda x: x, "CPU")
    library.define("both(Tensor x) -> (Tensor, Tensor)")
    library.impl("both", lambda x: (x, x + 1), "CompositeExplicitAutograd")
    x = adjoin.ones(3)
    ops = adjoin.ops.giveback
    assert ops.increase_(x, 2) is x and x.tolist() == [3, 3, 3] and x._version > 0
    same, (first, second) = ops.same(x), ops.both(x)
    assert same.data_ptr() == first.data_ptr() == x.data_ptr() and second.tolist() == [4, 4, 4]

    @adjoin.library.custom_op("giveback::strict", mutates_args=())
    def strict(x: adjoin.Tensor) -> adjoin.Tensor:
        return x

    with pytest.raises(RuntimeError, match="return a copy"):
        strict(x)


def test_a_library_refuses_what_has_no_place():
    Library = adjoin.library.Library
    library = Library("refuses", "DEF")
    library.define("f(Tensor x) -> Tensor", tags=(adjoin.Tag.pt2_compliant_tag,))
    assert adjoin.ops.refuses.f.default.tags == [adjoin.Tag.pt2_compliant_tag]
    library.impl("f", adjoin.neg, "CPU")
    for error, words, call in (
        (TypeError, "callable", lambda: library.impl("f", 3, "CPU")),
        (RuntimeError, "already a kernel.*allow_override", lambda: library.impl("f", adjoin.abs, "CPU")),
        (RuntimeError, "does not match namespace", lambda: library.impl("other::f", adjoin.abs)),
        (RuntimeError, "inconsistent", lambda: Library("refuses", "IMPL", "CPU").impl("f", adjoin.abs, "CUDA")),
        (ValueError, "reserved namespace", lambda: Library("prim", "DEF")),
        (ValueError, "Unsupported kind", lambda: Library("refuses", "DEFINE")),
    ):
        with pytest.raises(error, match=words):
            call()
    library.impl("f", adjoin.abs, "CPU", allow_override=True)
    assert adjoin.ops.refuses.f(-adjoin.ones(1)) == 1


def test_keys_by_their_names():
    keys = adjoin._C.DispatchKeySet(adjoin._C.DispatchKey.AutogradCPU) | adjoin._C.DispatchKeySet(
        adjoin._C.DispatchKey.CPU
    )
    assert keys.has(adjoin._C.DispatchKey.CPU) and not keys.has(adjoin._C.DispatchKey.CUDA)
    assert keys - adjoin._C.DispatchKeySet(adjoin._C.DispatchKey.CPU) == adjoin._C.DispatchKeySet(
        adjoin._C.DispatchKey.AutogradCPU
    )
    assert adjoin._C.DispatchKey["Meta"] is adjoin._C.DispatchKey.Meta and adjoin._C._get_tracing_state() is None
    assert isinstance(adjoin.Tensor, adjoin._C._TensorMeta)
    with pytest.raises(AttributeError, match="_no_such_name"):
        getattr(adjoin._C, "_no_such_" + "name")


def test_decorators_of_scripted_functions_keep_them():
    from adjoin.jit.annotations import BroadcastingList2, List

    @adjoin.jit._script_if_tracing
    def double(x: BroadcastingList2[int]):
        return [2 * v for v in x]

    assert double([1, 2]) == [2, 4] and BroadcastingList2[int] == List[int]  # noqa: UP006
    assert adjoin.jit._overload_method(double) is double


def test_what_a_tracer_would_be_told_is_kept_and_changes_nothing():
    dynamo = adjoin._dynamo
    x = adjoin.ones(2)
    dynamo.mark_static_address(x)
    dynamo.mark_dynamic(x, 0)
    assert x._dynamo_dynamic_indices == {0} and dynamo.allow_in_graph(len) is len and not dynamo.is_compiling()
    assert (
        dynamo.disable(len) is len
        and dynamo.disable()(len) is len
        and dynamo.utils.is_compile_supported("cpu")
        and not dynamo.utils.is_compile_supported("cuda")
    )
    assert not isinstance(adjoin.nn.Linear(1, 1), dynamo.OptimizedModule) and dynamo.list_backends() == [
        "adjoin",
        "inductor",
    ]
    with dynamo.config.patch(capture_scalar_outputs=True):
        assert dynamo.config.capture_scalar_outputs
    assert not dynamo.config.capture_scalar_outputs
    with pytest.raises(NotImplementedError, match="export.export"):
        dynamo.export(len)


def test_quantizers_pass_values_on_and_converting_raises():
    from adjoin.ao.quantization import DeQuantStub, QuantStub, QuantWrapper, convert

    x = adjoin.randn(2, 3)
    layer = adjoin.nn.Linear(3, 1)
    assert QuantStub()(x) is x and DeQuantStub()(x) is x and QuantWrapper(layer)(x).equal(layer(x))
    with pytest.raises(NotImplementedError, match="no quantized kernels"):
        convert(layer)


def test_what_packages_tell_the_exporter_is_kept():
    onnx = adjoin.onnx

    @onnx.symbolic_helper.parse_args("v", "i")
    def node(g, x, n):
        return (g, x, n)

    onnx.register_custom_op_symbolic("mine::op", node, 11)
    assert (
        onnx.registered["mine::op"][11] is node
        and node("g", 1, 2) == ("g", 1, 2)
        and node._arg_descriptors == ["v", "i"]
    )
    onnx.unregister_custom_op_symbolic("mine::op", 11)
    assert 11 not in onnx.registered["mine::op"]
    with pytest.raises(TypeError, match="export: a module or a function is expected"):
        onnx.export(None, None, "f")
    for call in (lambda: onnx.symbolic_opset11.add,):
        with pytest.raises((NotImplementedError, AttributeError), match="export"):
            call()


def test_downloads_of_others_ask_for_folder_and_progress(monkeypatch, tmp_path):
    monkeypatch.setenv("ADJOIN_HOME", str(tmp_path))
    assert adjoin.hub._get_torch_home() == str(tmp_path) and adjoin.hub.get_dir() == str(tmp_path / "hub")
    assert adjoin.hub.urlparse("https://a.b/c.pt").path == "/c.pt"
    with adjoin.hub._Progress(total=3, disable=True) as bar:
        bar.update(2)
    assert bar.n == 2 and list(adjoin.hub._Progress([1, 2], disable=True)) == [1, 2]
    assert list(adjoin.hub.tqdm([1, 2], disable=True)) == [1, 2]


def test_bytes_of_a_file(tmp_path):
    path = str(tmp_path / "bytes")
    shared = adjoin.UntypedStorage.from_file(path, True, 8)
    adjoin.empty(0, dtype=adjoin.int32).set_(shared, 0, (2,)).copy_(adjoin.tensor([5, 6]))
    assert open(path, "rb").read() == b"\5\0\0\0\6\0\0\0" and shared.untyped() is shared and shared.filename == path
    own = adjoin.UntypedStorage.from_file(path)
    view = adjoin.empty(0, dtype=adjoin.int32).set_(own, 0, (2,))
    view += 1
    assert view.tolist() == [6, 7] and open(path, "rb").read() == b"\5\0\0\0\6\0\0\0"  # private
    with pytest.raises(RuntimeError, match="has 8 bytes, 9 are asked for"):
        adjoin.UntypedStorage.from_file(path, False, 9)


@pytest.fixture
def alone(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delenv("RANK", raising=False)
    adjoin.distributed.init_process_group("gloo")
    yield adjoin.distributed
    adjoin.distributed.destroy_process_group()


def test_a_group_of_one_process(alone):
    dist = alone
    assert dist.is_initialized() and (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
    x, places = adjoin.tensor([1.0, 2.0]), [adjoin.zeros(2)]
    assert (
        dist.all_reduce(x) is None
        and dist.all_reduce(x, op=dist.ReduceOp.MAX, async_op=True).wait()
        and x.tolist() == [1, 2]
    )
    dist.all_gather(places, x)
    assert places[0].tolist() == [1, 2] and places[0] is not x
    out = adjoin.zeros(2)
    dist.reduce_scatter_tensor(out, x)
    assert out.tolist() == [1, 2]
    scattered = adjoin.zeros(2)
    dist.scatter(scattered, [x])
    assert scattered.tolist() == [1, 2]
    objects = [None]
    dist.all_gather_object(objects, {"a": 1})
    assert objects == [{"a": 1}] and dist.get_process_group_ranks() == [0] and dist.new_group([0]).size() == 1
    dist.broadcast(x, src=0), dist.barrier(), dist.broadcast_object_list(objects)
    net = adjoin.nn.parallel.DistributedDataParallel(adjoin.nn.Linear(2, 1))
    net(x[None]).sum().backward()
    assert net.module.weight.grad.tolist() == [[1, 2]] and list(net.state_dict()) == ["module.weight", "module.bias"]
    with pytest.raises(RuntimeError, match="a grid of"):
        dist.init_device_mesh("cpu", (2,))
    mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
    assert mesh["data"].size() == 1 and mesh.shape == (1, 1) and mesh.get_coordinate() == [0, 0]


def test_wrong_uses_of_a_group_are_told(alone, monkeypatch):
    dist = alone
    for call, words in (
        (lambda: dist.init_process_group("gloo"), "twice"),
        (lambda: dist.broadcast(adjoin.ones(1), src=1), "rank 0"),
        (lambda: dist.all_gather([], adjoin.ones(1)), "0 tensors"),
        (lambda: dist.all_gather([adjoin.ones(2)], adjoin.ones(1)), "shape"),
        (lambda: dist.send(adjoin.ones(1), 1), "one process"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    dist.destroy_process_group()
    with pytest.raises(ValueError, match="has not been initialized"):
        dist.barrier()
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(ValueError, match="4 processes.*which one"):
        dist.init_process_group("gloo")
    with pytest.raises(RuntimeError, match="device_mesh is wanted"):
        __import__("adjoin.distributed.tensor", fromlist=["x"]).distribute_tensor(adjoin.ones(1))
    monkeypatch.delenv("WORLD_SIZE")
    dist.init_process_group()


def test_a_short_name_stays_libadjoins():
    """A plugin that has an op of the same short name once took ``ops.linear`` away."""
    for space in ("somebodys", "anybodys"):
        kept = adjoin.library.Library(space, "DEF")
        kept.define("linear(Tensor x) -> Tensor")
        kept.define("odd_name_of_two(Tensor x) -> Tensor")
    assert adjoin.ops.linear is adjoin.ops.nn.linear and "linear" in dir(adjoin.ops)
    assert not hasattr(adjoin.ops, "odd_name_of_two") and hasattr(adjoin.ops.somebodys, "odd_name_of_two")


def test_names_of_devices_that_no_plugin_has():
    assert adjoin.mps.device_count() == 0 and not adjoin.mps.is_available() and adjoin.backends.cudnn.version() is None
    with pytest.warns(FutureWarning, match="sdpa_kernel"), adjoin.backends.cuda.sdp_kernel(enable_math=False):
        q = adjoin.randn(1, 1, 3, 4)
        assert adjoin.nn.functional.scaled_dot_product_attention(q, q, q).shape == q.shape


def test_kernels_wait_for_whoever_defines_their_op():
    library = adjoin.library

    @library.impl("waits::late", "CPU")
    def on_cpu(x):
        return x + 2

    @library.impl("waits::late", "default")
    def elsewhere(x):
        return x + 3

    @library.register_fake("waits::late")
    def shapes(x):
        return adjoin.empty_like(x)

    with pytest.raises((AttributeError, RuntimeError), match="late"):
        adjoin.ops.waits.late(adjoin.ones(2))
    library.define("waits::late", "(Tensor x) -> Tensor")
    assert adjoin.ops.waits.late(adjoin.ones(2)).tolist() == [3, 3]
    assert adjoin.ops.waits.late(adjoin.ones(2, 3, device="meta")).shape == (2, 3)
