"""tests/python/toplevel/names_tier_two_test.py: names that few programs use, each by what depends on its effect."""

import typing

import adjoin
import pytest
from adjoin import library
from adjoin.nn import functional as F


def matrices():
    s = adjoin.sparse_coo_tensor([[0, 0, 2, 2], [0, 2, 1, 1]], [1.0, 2.0, 3.0, 4.0], (4, 3))
    return s, adjoin.arange(6.0).view(3, 2)


def test_products_with_a_sparse_result():
    s, d = matrices()
    want = s.to_dense() @ d
    for made in (adjoin.smm(s, d), s.smm(d), adjoin.hspmm(s, d)):
        assert made.layout is adjoin.sparse_coo and adjoin.equal(made.to_dense(), want)
    assert adjoin.smm(s, d)._nnz() == 4 and adjoin.hspmm(s, d)._nnz() == 2 and adjoin.hspmm(s, d).dense_dim() == 1
    b = adjoin.sparse_coo_tensor([[0, 3], [0, 1]], [10.0, 20.0], (4, 2))
    made = adjoin.sspaddmm(b, s, d, beta=2, alpha=3)
    assert not made.is_coalesced() and adjoin.equal(made.to_dense(), 2 * b.to_dense() + 3 * want)
    assert adjoin.equal(b.sspaddmm(s, d).to_dense(), adjoin.saddmm(b, s, d).to_dense())
    assert adjoin.equal(adjoin.spmm(s, d), want) and adjoin.equal(adjoin.spmm(d, d.t()), d @ d.t())
    values = adjoin.tensor([1.0, 2.0], requires_grad=True)
    adjoin.smm(adjoin.sparse_coo_tensor([[0, 1], [1, 0]], values, (2, 3)), d).to_dense().sum().backward()
    assert values.grad.tolist() == [5.0, 1.0]


def test_wrong_sparse_products():
    s, d = matrices()
    for wrong in (
        lambda: adjoin.smm(d, d),
        lambda: adjoin.hspmm(s, s),
        lambda: adjoin.sspaddmm(d, s, d),
        lambda: adjoin.smm(s, d.t()),
    ):
        with pytest.raises(RuntimeError):
            wrong()
    with pytest.raises(NotImplementedError, match="sparse_coo_tensor"):
        s.sparse_resize_((5, 5), 2, 0)


def test_two_of_four():
    d = adjoin.tensor([[0, 5, 0, 7, 1, 0, 0, 0], [1, 2, 0, 0, 0, 0, 0, 3]], dtype=adjoin.float32)
    packed = adjoin.sparse.to_sparse_semi_structured(d)
    assert isinstance(packed, adjoin.sparse.SparseSemiStructuredTensor) and packed.shape == (2, 8)
    assert packed.values().shape == (2, 4) and sorted(packed.values()[0].tolist()) == [0, 1, 5, 7]
    assert packed.indices().dtype is adjoin.uint8 and packed.indices().shape == (2, 2)
    assert adjoin.equal(packed.to_dense(), d) and adjoin.equal(packed.t().to_dense(), d.t())
    x = adjoin.randn(3, 8)
    assert adjoin.equal(F.linear(x, packed), F.linear(x, d)) and adjoin.equal(x @ packed.t(), x @ d.t())
    assert adjoin.equal(packed @ x.t(), d @ x.t())
    with pytest.raises(RuntimeError, match="of each four"):
        adjoin.sparse.to_sparse_semi_structured(adjoin.ones(2, 8))
    with pytest.raises(NotImplementedError, match="to_dense"):
        packed + 1


def test_products_of_small_floats():
    kind = F.ScalingType
    a, b = (adjoin.randn(n, 256).to(adjoin.float8_e4m3fn) for n in (160, 140))
    wide = a.float(), b.float()
    sa, sb = adjoin.rand(160, 1) + 0.5, adjoin.rand(1, 140) + 0.5
    made = F.scaled_mm(a, b.t(), sa, kind.RowWise, sb, kind.RowWise, output_dtype=adjoin.float32)
    assert adjoin.allclose(made, (wide[0] * sa) @ (wide[1] * sb.t()).t(), atol=1e-3)
    bias = adjoin.randn(140)
    made = F.scaled_mm(a, b.t(), adjoin.tensor(2.0), kind.TensorWise, adjoin.tensor(0.5), kind.TensorWise, bias=bias)
    assert made.dtype is adjoin.bfloat16 and adjoin.allclose(
        made.float(), wide[0] @ wide[1].t() + bias, rtol=1e-2, atol=1e-1
    )
    blocks, columns = adjoin.rand(2, 2) + 0.5, adjoin.rand(160, 2) + 0.5
    made = F.scaled_mm(
        a, b.t(), columns, kind.BlockWise1x128, blocks, kind.BlockWise128x128, output_dtype=adjoin.float32
    )
    grid = blocks.repeat_interleave(128, 0)[:140].repeat_interleave(128, 1)
    assert adjoin.allclose(made, (wide[0] * columns.repeat_interleave(128, 1)) @ (wide[1] * grid).t(), atol=1e-3)
    powers = adjoin.full((160, 8), 2.0).to(adjoin.float8_e8m0fnu), adjoin.full((140, 8), 0.5).to(adjoin.float8_e8m0fnu)
    made = F.scaled_mm(
        a, b.t(), powers[0], kind.BlockWise1x32, powers[1], kind.BlockWise1x32, output_dtype=adjoin.float32
    )
    assert adjoin.allclose(made, wide[0] @ wide[1].t(), atol=1e-3)
    to = adjoin.ones(160, 140)
    args = (a, b.t(), adjoin.tensor(2.0), kind.TensorWise, adjoin.tensor(1.0), kind.TensorWise)
    want = 3 + (wide[0] @ wide[1].t()) * 2 * 0.5
    assert adjoin.allclose(F.scaled_addmm(to, *args, beta=3, alpha=0.5), want, atol=1e-3)
    assert F.scaled_addmm_(to, *args, beta=3, alpha=0.5) is to and adjoin.allclose(to, want, atol=1e-3)
    with pytest.raises(ValueError, match="wants 160 scales, there are 3"):
        F.scaled_mm(a, b.t(), adjoin.ones(3), kind.RowWise, sb, kind.RowWise)
    with pytest.raises(NotImplementedError, match="NO_SWIZZLE"):
        F.scaled_mm(a, b.t(), sa, kind.RowWise, sb, kind.RowWise, F.SwizzleType.SWIZZLE_32_4_4)


def test_grouped_products_of_small_floats():
    kind = F.ScalingType
    a, b = adjoin.randn(7, 16).to(adjoin.float8_e4m3fn), adjoin.randn(3, 16, 8).to(adjoin.float8_e4m3fn)
    sa, sb = adjoin.rand(7) + 0.5, adjoin.rand(3, 8) + 0.5
    offs = adjoin.tensor([2, 2, 7], dtype=adjoin.int32)
    made = F.scaled_grouped_mm(a, b, sa, kind.RowWise, sb, kind.RowWise, offs=offs, output_dtype=adjoin.float32)
    left = a.float() * sa.unsqueeze(1)
    want = adjoin.cat([left[:2] @ (b[0].float() * sb[0]), left[2:] @ (b[2].float() * sb[2])])
    assert adjoin.allclose(made, want, atol=1e-4)
    with pytest.raises(ValueError, match="offs must ascend"):
        F.scaled_grouped_mm(a, b, sa, kind.RowWise, sb, kind.RowWise, offs=adjoin.tensor([2, 1, 7]))


def test_sobol_points():
    engine = adjoin.quasirandom.SobolEngine(3)
    first = engine.draw(4)
    assert first.tolist() == [[0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]]
    assert engine.num_generated == 4
    rest = engine.draw(4)
    assert adjoin.equal(engine.reset().draw(8), adjoin.cat([first, rest]))
    assert adjoin.equal(engine.reset().fast_forward(4).draw(4), rest)
    assert engine.reset().draw_base2(3, dtype=adjoin.float64).dtype is adjoin.float64
    with pytest.raises(ValueError, match="power of 2"):
        engine.draw_base2(2)
    last = adjoin.quasirandom.SobolEngine(1111).draw(1 << 7)
    for column in (0, 5, 500, 1110):  # each coordinate has each of 128 cells once
        assert sorted((last[:, column] * 128).long().tolist()) == list(range(128))
    with pytest.raises(ValueError, match=r"\[1, 1111\]"):
        adjoin.quasirandom.SobolEngine(0)


def test_scrambled_sobol_points():
    made = [adjoin.quasirandom.SobolEngine(4, scramble=True, seed=s).draw(256) for s in (1, 1, 2)]
    assert adjoin.equal(made[0], made[1]) and not adjoin.equal(made[0], made[2])
    for column in range(4):
        assert sorted((made[0][:, column] * 256).long().tolist()) == list(range(256))
    assert adjoin.allclose((made[0] ** 2).mean(0), adjoin.full((4,), 1 / 3), atol=5e-3)


def test_typed_storages():
    made = adjoin.ByteStorage([1, 2, 255])
    assert (
        made.tolist() == [1, 2, 255]
        and made[2] == 255
        and len(made) == made.nbytes() == 3
        and made.dtype is adjoin.uint8
    )
    made[0] = 9
    x = adjoin.arange(4.0)
    same = adjoin.FloatStorage(x.untyped_storage())
    same.fill_(2.5)
    assert x.tolist() == [2.5] * 4 and same.data_ptr() == x.data_ptr() and same.element_size() == 4
    assert adjoin.LongStorage(5).size() == 5 and made.clone().tolist() == [9, 2, 255]
    assert adjoin.IntStorage([1]).copy_(adjoin.IntStorage([7]))[0] == 7 and "of size 3]" in repr(made)


def test_methods():
    assert adjoin.ones(2).chalf().dtype is adjoin.complex32
    stack = adjoin.zeros(1, 2, 3, 4, dtype=adjoin.complex32)
    assert stack.chalf() is stack and stack.chalf(memory_format=adjoin.channels_last).stride() == (24, 1, 8, 2)
    assert adjoin.eye(2).to_sparse_coo().layout is adjoin.sparse_coo
    for removed in (adjoin.lstsq, adjoin.ones(2, 2).lstsq, adjoin.ones(2, 2).symeig, adjoin.solve):
        with pytest.raises(RuntimeError, match="now removed.*linalg"):
            removed(adjoin.ones(2, 2))


def test_entry_points_of_a_folder(tmp_path):
    (tmp_path / "helper27.py").write_text("NUMBER = 4\n")
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['torch']\nfrom helper27 import NUMBER\nimport adjoin\n\n"
        "def net(width, bias=True):\n    'A layer.'\n    return adjoin.nn.Linear(NUMBER, width, bias=bias)\n\n_hidden = len\n"
    )
    assert adjoin.hub.list(tmp_path) == ["net"] and adjoin.hub.help(tmp_path, "net") == "A layer."
    made = adjoin.hub.load(tmp_path, "net", 3, bias=False, source="local")
    assert made.weight.shape == (3, 4) and made.bias is None
    with pytest.raises(RuntimeError, match="Cannot find callable other"):
        adjoin.hub.load(tmp_path, "other", source="local")
    with pytest.raises(RuntimeError, match="source='local'"):
        adjoin.hub.load("someone/models", "net")
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package_27']\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package_27"):
        adjoin.hub.list(tmp_path)
    with pytest.raises(FileNotFoundError, match="hubconf.py"):
        adjoin.hub.list(tmp_path / "nothing")


def test_a_rule_for_batches_of_a_custom_op():
    calls = []

    @library.custom_op("names27::scaled", mutates_args=())
    def scaled(x: adjoin.Tensor, by: float) -> adjoin.Tensor:
        return adjoin.tensor([v * by for v in x.tolist()])

    @scaled.register_vmap
    def batched(info, in_dims, x, by):
        calls.append((info.batch_size, in_dims))
        return x * by, in_dims[0]

    x = adjoin.arange(6.0).view(2, 3)
    assert adjoin.equal(adjoin.vmap(lambda v: scaled(v, 2.0))(x), x * 2)
    assert adjoin.equal(adjoin.vmap(lambda v: scaled(v, 3.0), in_dims=1, out_dims=1)(x), x * 3)
    assert calls == [(2, (0, None)), (3, (0, None))]
    assert scaled(x[0], 2.0).tolist() == [0, 2, 4]  # outside of a batch the kernel serves


def test_autocast_of_a_custom_op():
    seen = []

    @library.custom_op("names27::seen", mutates_args=())
    def op(x: adjoin.Tensor, k: adjoin.Tensor) -> adjoin.Tensor:
        seen.append((x.dtype, k.dtype, adjoin.is_autocast_enabled("cpu")))
        return x * 2

    op.register_autocast("cpu", adjoin.bfloat16)
    args = adjoin.ones(3), adjoin.arange(3)
    assert op(*args).dtype is adjoin.float32
    with adjoin.autocast("cpu", dtype=adjoin.bfloat16):
        assert op(*args).dtype is adjoin.bfloat16
    assert seen == [(adjoin.float32, adjoin.int64, False), (adjoin.bfloat16, adjoin.int64, False)]
    with pytest.raises(TypeError, match="floating-point dtype"):
        op.register_autocast("cpu", adjoin.int32)


def test_a_key_that_is_passed_over():
    lib = library.Library("names27", "FRAGMENT")
    lib.define("passed(Tensor x) -> Tensor")
    lib.impl("passed", lambda x: x + 1, "CompositeExplicitAutograd")
    lib.impl("passed", lambda x: x + 100, "CPU")
    assert adjoin.ops.names27.passed(adjoin.zeros(1)).item() == 100
    lib.impl("passed", library.fallthrough_kernel, "CPU")
    assert adjoin.ops.names27.passed(adjoin.zeros(1)).item() == 1
    with pytest.raises(NotImplementedError, match="never be called"):
        library.fallthrough_kernel()


def test_methods_for_the_device_of_a_plugin():
    code = (
        "import adjoin as torch\n"
        "torch.utils.rename_privateuse1_backend('reference')\n"
        "torch.utils.generate_methods_for_privateuse1_backend()\n"
        "x = torch.ones(2)\n"
        "y = x.reference()\n"
        "assert y.device.type == 'reference' and y.is_reference and not x.is_reference\n"
        "assert torch.nn.Linear(2, 1).reference().weight.is_reference\n"
        "try: torch.utils.rename_privateuse1_backend('cpu')\n"
        "except RuntimeError as e: assert 'already' in str(e)\n"
        "else: raise SystemExit('no error')\n"
    )
    import subprocess
    import sys

    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(RuntimeError, match="no plugin brings a device"):
        adjoin.utils.rename_privateuse1_backend("no_such_device_27")
    with pytest.raises(RuntimeError, match="call rename_privateuse1_backend"):
        adjoin.utils.generate_methods_for_privateuse1_backend()


def test_a_look_inside_of_a_transform():
    seen = []

    def f(v):
        seen.append(adjoin.func.debug_unwrap(v))
        return v * 2

    x = adjoin.arange(6.0).view(2, 3)
    adjoin.vmap(f, in_dims=1)(x)
    assert adjoin.equal(seen[0], x.t()) and adjoin.func.debug_unwrap(x) is x
    adjoin.func.jvp(f, (x,), (x,))
    assert adjoin.equal(seen[1], x) and seen[1].shape == x.shape
    adjoin.vmap(lambda v: adjoin.func.jvp(f, (v,), (v,))[1])(x)
    assert adjoin.equal(seen[2], x)


def test_classes_of_storages():
    from adjoin import serialization

    assert serialization.normalize_storage_type(adjoin.FloatStorage) is adjoin.FloatStorage
    assert serialization.storage_to_tensor_type(adjoin.LongStorage([1])) is adjoin.LongTensor
    with pytest.raises(TypeError, match="typed storages"):
        serialization.normalize_storage_type(int)
    with pytest.raises(RuntimeError, match="no plugin brings a device 'xpu'"):
        adjoin.ones(2).xpu()


def test_storage_of_a_tensor_holds_its_numbers():
    """It was its bytes: programs of before index it and ask for its size."""
    x = adjoin.tensor([[1, -2, 3], [4, 5, 6]], dtype=adjoin.int16)
    storage = x[1].storage()
    assert type(storage) is x.storage_type() is adjoin.ShortStorage and storage.tolist() == [1, -2, 3, 4, 5, 6]
    assert (len(storage), storage.nbytes(), storage[1], storage.data_ptr()) == (6, 12, -2, x.data_ptr())
    storage[0] = 9
    assert x[0, 0] == 9 and storage.cpu().tolist() == storage.tolist() and storage._untyped_storage.nbytes() == 12
    assert type(storage.float()) is adjoin.FloatStorage and storage.float().tolist() == [9, -2, 3, 4, 5, 6]
    assert adjoin.ShortTensor().set_(storage).tolist() == [9, -2, 3, 4, 5, 6]
    with pytest.raises(RuntimeError, match="Expected a Storage of type adjoin.float32 or an UntypedStorage"):
        adjoin.FloatTensor().set_(storage)


def test_storages_of_buffers_and_files(tmp_path):
    assert adjoin.ShortStorage.from_buffer(b"\x00\x01\x00\x02", "big").tolist() == [1, 2]
    assert adjoin.ShortStorage.from_buffer(b"\x01\x00\x02\x00", "little", offset=2).tolist() == [2]
    (tmp_path / "f").write_bytes(b"\x01\x00\x02\x00")
    assert adjoin.ShortStorage.from_file(str(tmp_path / "f"), size=2).tolist() == [1, 2]


def test_functions_by_element_and_the_order_of_dimensions():
    x = adjoin.ones(2, 3).map_(adjoin.arange(3.0), lambda a, b: a + 2 * b)
    assert x.tolist() == [[1, 3, 5]] * 2 and x.map2_(x, x, lambda a, b, c: a * b - c).tolist() == [[0, 6, 20]] * 2
    assert adjoin.ones(2, 3, 4, 5).to(memory_format=adjoin.channels_last).dim_order() == (0, 2, 3, 1)
    with pytest.raises(RuntimeError, match="does not have unique dim order"):
        adjoin.ones(2, 1).dim_order(ambiguity_check=True)


def test_states_of_early_pickles():
    x = adjoin.zeros(1)
    x.__setstate__((adjoin.arange(6.0).storage(), 1, (2, 2), (2, 1)))
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    x.__setstate__((adjoin.ones(3), None, True, False, {}))
    assert x.tolist() == [1.0] * 3 and not x.requires_grad
    x.__setstate__((True, None, {}))
    assert x.requires_grad
    with pytest.raises(RuntimeError, match="a leaf is wanted"):
        (x * 2).__setstate__((True, None, {}))


class Pairs(adjoin.autograd.NestedIOFunction):
    """((a, b), c) -> (a b, [b c])."""

    def forward_extended(self, pair, c):
        self.save_for_backward(pair, c)
        return pair[0] * pair[1], [pair[1] * c]

    def backward_extended(self, g, others):
        (a, b), c = self.saved_tensors
        return (g * b, g * a + others[0] * c), others[0] * b


def test_functions_of_trees():
    a, b, c = (adjoin.tensor([float(n), 2.0]).requires_grad_() for n in (1, 3, 5))
    first, others = Pairs()((a, b), c)
    assert isinstance(others, list) and first.tolist() == [3.0, 4.0] and others[0].tolist() == [15.0, 4.0]
    (first.sum() + 10 * others[0].sum()).backward()
    assert a.grad.tolist() == [3.0, 2.0] and b.grad.tolist() == [51.0, 22.0] and c.grad.tolist() == [30.0, 20.0]
    with pytest.raises(NotImplementedError, match="must define forward_extended"):
        adjoin.autograd.NestedIOFunction()(a)


def test_profiles_of_nvprof(tmp_path):
    import contextlib
    import sqlite3

    path = tmp_path / "profile.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.executescript("""
            CREATE TABLE StringTable (_id_ INTEGER, value TEXT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER (id INTEGER, name INTEGER, timestamp INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (_id_ INTEGER, cbid INTEGER, start INTEGER, end INTEGER, correlationId INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (correlationId INTEGER, start INTEGER, end INTEGER, name TEXT);
            INSERT INTO StringTable VALUES (1, 'mm'), (2, 'step');
            INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (7, 1, 4000), (7, 0, 9000), (6, 2, 1000), (6, 0, 20000);
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 211, 5000, 6000, 3), (2, 211, 12000, 13000, 4);
            INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (3, 100, 350, 'gemm'), (4, 400, 500, 'add');
        """)
    profiler = adjoin.autograd.profiler
    step, product = profiler.parse_nvprof_trace(path)
    assert (step.name, product.name) == ("step", "mm") and product.time_range.elapsed_us() == 5
    assert product.kernels == [("gemm", 0, 250)] and [k.name for k in step.kernels] == ["gemm", "add"]
    assert "mm" in profiler.load_nvprof(path).key_averages().table()
    (tmp_path / "other").write_text("no profile")
    with pytest.raises(RuntimeError, match="no profile of nvprof"):
        profiler.parse_nvprof_trace(tmp_path / "other")


def test_words_of_mkl(monkeypatch):
    mkl, said = adjoin.backends.mkl, []
    with mkl.verbose(mkl.VERBOSE_OFF):
        pass
    if "libmkl_rt" not in open("/proc/self/maps").read():
        with pytest.raises(RuntimeError, match="no MKL loaded"), mkl.verbose(mkl.VERBOSE_ON):
            pass
    library = type("Library", (), {"MKL_Verbose": staticmethod(said.append)})
    monkeypatch.setattr(mkl, "_library", lambda: library)
    with mkl.verbose(mkl.VERBOSE_ON):
        assert said == [1]
    assert said == [1, 0]


def test_what_is_lent_for_reading_alone():
    numpy = pytest.importorskip("numpy")
    x = adjoin.arange(4.0)
    lent = numpy.from_dlpack(adjoin.utils.dlpack.ReadOnlyTensorWrapper(x))
    x[1] = 9
    assert lent.tolist() == [0.0, 9.0, 2.0, 3.0] and not lent.flags.writeable
    assert numpy.from_dlpack(x).flags.writeable
    with pytest.raises(BufferError, match="before 1.0"):
        adjoin.utils.dlpack.ReadOnlyTensorWrapper(x).__dlpack__()


def test_small_names():
    from adjoin.utils import cpp_extension

    fits, version = cpp_extension.get_compiler_abi_compatibility_and_version("g++")
    assert fits and version >= "4.0"
    assert cpp_extension.get_compiler_abi_compatibility_and_version("no-such-compiler") == (False, "0.0.0")
    with pytest.raises(RuntimeError, match="validate_hpu_device: 'cpu' names no hpu device"):
        adjoin.serialization.validate_hpu_device("cpu")
    assert F.Tensor is adjoin.Tensor is adjoin.fft.Tensor and typing.get_origin(F.BroadcastingList2[int]) is list


def test_an_override_is_passed_once():
    from adjoin import overrides

    seen = []

    def scaled(a, b):
        if overrides.has_torch_function((a, b)):
            return overrides.handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    class Told(adjoin.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return overrides.redispatch_function(func, types, args, kwargs)

    class Mode(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            with self:
                return overrides.redispatch_function(func, types, args, kwargs)

    x, y = (adjoin.tensor([n]).as_subclass(Told) for n in (3.0, 4.0))
    made = scaled(x, y)
    assert seen == ["scaled", "mul"] and type(made) is adjoin.Tensor and made.tolist() == [13.0]
    seen.clear()
    with Mode():
        made = scaled(adjoin.tensor([3.0]), adjoin.tensor([4.0]))
        assert seen == ["scaled", "mul", "add"] and made.tolist() == [13.0]
        assert overrides.has_torch_function(()) or len(adjoin._C.modes()) == 1
    with pytest.raises(ZeroDivisionError):  # a function that asks nothing leaves nothing behind
        overrides.redispatch_function(lambda a: 1 / 0, (), (x,))
    assert overrides.has_torch_function((x,))


def test_compiled_headers_are_removed(tmp_path, monkeypatch):
    from adjoin.utils import cpp_extension

    monkeypatch.setattr(cpp_extension, "get_default_build_root", lambda: str(tmp_path))
    (tmp_path / "pch").mkdir()
    (tmp_path / "pch" / "header.gch").write_text("")
    (tmp_path / "mine").mkdir()
    for _ in range(2):
        cpp_extension.remove_extension_h_precompiler_headers()
        assert [p.name for p in tmp_path.iterdir()] == ["mine"]
    with pytest.raises(NotImplementedError, match="CppExtension.*new-backend"):
        cpp_extension.SyclExtension("mine", ["mine.cpp"])


def _doubled(x):
    return x * 2


def test_a_forked_function():
    made = adjoin.jit.fork(_doubled, adjoin.ones(2))
    assert isinstance(made, adjoin.jit.Future) and adjoin.jit.wait(made).tolist() == [2, 2]
    with pytest.raises(TypeError, match="not int"):
        adjoin.jit.wait(3)


def test_functions_of_a_text():
    unit = adjoin.jit.CompilationUnit(
        """
        def signed(x, y):
            if bool(x.sum() > 0):
                return _doubled(x) + y
            return x - y

        def twice(x):
            return signed(x, x)
        """
    )
    x = adjoin.ones(2)
    assert isinstance(unit.signed, adjoin.jit.ScriptFunction)
    assert unit.signed(x, x).tolist() == [3, 3] and unit.twice(-x).tolist() == [0, 0]
    unit.define("def more(x):\n    return x + 1\n")
    assert unit.more(x).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="has Assign"):
        adjoin.jit.CompilationUnit("x = 3")
