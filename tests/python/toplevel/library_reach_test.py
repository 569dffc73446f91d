"""tests/python/toplevel/library_reach_test.py: names below the public ones that libraries of containers, graphs and flows call."""

import json

import adjoin
import adjoin as torch
import pytest
from adjoin import nn
from adjoin._functorch import vmap as steps
from adjoin.autograd import forward_ad, gradcheck
from adjoin.utils._python_dispatch import TorchDispatchMode
from adjoin.utils._pytree import tree_map

C = adjoin._C


class Slotted(torch.Tensor):
    """A class of wrappers that keeps what it holds in a slot."""

    elem: torch.Tensor
    __slots__ = ["elem"]

    @staticmethod
    def __new__(cls, elem, requires_grad=False):
        made = torch.Tensor._make_wrapper_subclass(cls, elem.size(), dtype=elem.dtype, requires_grad=requires_grad)
        made.elem = elem.detach() if made.requires_grad else elem
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner = tree_map(lambda e: e.elem if isinstance(e, cls) else e, (args, kwargs or {}))
        return tree_map(lambda e: cls(e) if isinstance(e, torch.Tensor) else e, func(*inner[0], **inner[1]))


def test_slots_of_wrappers_live_with_the_tensor():
    x = Slotted(torch.tensor([1.0, 2.0]), requires_grad=True)
    y = (x * x).sum()  # the tape alone holds what lies between
    assert type(y) is Slotted and y.elem.item() == 5
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    assert g.elem.tolist() == [3, 12]
    del y.elem
    with pytest.raises(AttributeError, match="'Slotted' object has no attribute 'elem'"):
        y.elem  # noqa: B018


def _naive(data, lengths, reduce, initial):
    start = {"sum": 0.0, "mean": float("nan"), "max": -torch.inf, "min": torch.inf, "prod": 1.0}[reduce]
    made, at = [], 0
    for n in lengths:
        part, at = data[at : at + n], at + n
        if initial is not None:
            part = torch.cat([torch.full((1, *data.shape[1:]), initial, dtype=data.dtype), part])
        if not len(part):
            made.append(torch.full(data.shape[1:], start, dtype=data.dtype))
        elif reduce in ("max", "min"):
            made.append(getattr(part, f"a{reduce}")(0))
        elif reduce == "mean" and initial is not None:  # what the start adds is not counted
            made.append(part.sum(0) / max(n, 1))
        else:
            made.append(getattr(part, reduce)(0))
    return torch.stack(made)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments(reduce):
    data = torch.linspace(-3, 4, 24, dtype=torch.float64).sin().view(6, 4)
    lengths, offsets = torch.tensor([2, 0, 3, 1]), torch.tensor([0, 2, 2, 5, 6])
    for initial in (None, 0.25):
        wanted = _naive(data, lengths.tolist(), reduce, initial)
        for given in ({"lengths": lengths}, {"offsets": offsets}, {"lengths": lengths.int()}):
            made = torch.segment_reduce(data, reduce, initial=initial, **given)
            torch.testing.assert_close(made, wanted, equal_nan=True)
    several = data.view(2, 3, 4)
    made = torch.segment_reduce(several, reduce, lengths=torch.tensor([[1, 2], [3, 0]]), axis=1)
    wanted = torch.stack([_naive(several[0], [1, 2], reduce, None), _naive(several[1], [3, 0], reduce, None)])
    torch.testing.assert_close(made, wanted, equal_nan=True)
    x = data.clone().requires_grad_()
    assert gradcheck(lambda x: torch.segment_reduce(x, reduce, lengths=lengths, initial=0.25), x)


def test_segments_that_leave_rows_out_and_wrong_ones():
    data = torch.arange(6.0)
    made = torch.segment_reduce(data, "sum", offsets=torch.tensor([1, 3, 5]), unsafe=True)
    assert made.tolist() == [3, 7]
    assert torch.segment_reduce(data[:0], "max", lengths=torch.tensor([0, 0])).tolist() == [-torch.inf] * 2
    for words, given in {
        "either lengths or offsets": {},
        "negative": {"lengths": torch.tensor([7, -1])},
        "sum to data.size": {"lengths": torch.tensor([2, 3])},
        "int32 or int64": {"lengths": torch.tensor([6.0])},
        "of shape": {"lengths": torch.tensor([[6]])},
        "axis 1 of data of 1": {"lengths": torch.tensor([6]), "axis": 1},
    }.items():
        with pytest.raises(RuntimeError, match=words):
            torch.segment_reduce(data, "sum", **given)
    with pytest.raises(RuntimeError, match="unsupported reduction 'median'"):
        torch.segment_reduce(data, "median", lengths=torch.tensor([6]))


def test_borders_of_indices():
    rows, columns = torch.tensor([0, 0, 1, 3]), torch.tensor([1, 2, 0, 3])
    begins = torch._convert_indices_from_coo_to_csr(rows, 5)
    assert begins.tolist() == [0, 2, 3, 3, 4, 4] and begins.dtype == torch.int64
    back = torch._convert_indices_from_csr_to_coo(begins, columns, out_int32=True)
    assert back.tolist() == [rows.tolist(), columns.tolist()] and back.dtype == torch.int32
    several = torch._convert_indices_from_csr_to_coo(
        torch.stack([begins, torch.tensor([0, 0, 0, 0, 1, 4])]), torch.stack([columns, columns]), transpose=True
    )
    assert several.tolist() == [[0] * 4 + [1] * 4, columns.tolist() * 2, [0, 0, 1, 3, 3, 4, 4, 4]]


class Bag:
    """A container that adds and removes the dimension of samples itself."""

    def __init__(self, **tensors):
        self.tensors = tensors

    def map(self, function):
        return Bag(**{name: function(t) for name, t in self.tensors.items()})


def test_a_library_puts_its_own_steps_into_vmap(monkeypatch):
    def process(in_dims, args, func):
        return 3, [in_dims] * len(args), list(args), None

    def inside(dims, args, level, spec):
        return [a.map(lambda t: steps._add_batch_dim(t, 0, level)) if isinstance(a, Bag) else a for a in args]

    def outside(made, out_dims, level, size, func):
        return made.map(lambda t: steps._maybe_remove_batch_dim("f", t, level, size, 0))

    monkeypatch.setattr(steps, "_process_batched_inputs", process)
    monkeypatch.setattr(steps, "_create_batched_inputs", inside)
    monkeypatch.setattr(steps, "_unwrap_batched", outside)
    seen = []

    def function(bag, factor):
        seen.append((tuple(bag.tensors["a"].shape), C._are_functorch_transforms_active()))
        return bag.map(lambda t: t * factor)

    bag = Bag(a=torch.arange(6.0).view(3, 2), b=torch.ones(3))
    made = torch.vmap(function)(bag, 2.0)
    assert made.tensors["a"].tolist() == [[0, 2], [4, 6], [8, 10]] and made.tensors["b"].tolist() == [2, 2, 2]
    assert seen == [((2,), True)] and not C._are_functorch_transforms_active()
    with pytest.raises(NotImplementedError, match="chunk_size"):
        torch.vmap(function, chunk_size=1)(bag, 2.0)


def test_the_steps_of_vmap_by_hand():
    x = {"a": torch.arange(6.0).view(2, 3)}
    size, dims, leaves, spec = steps._process_batched_inputs((-1,), (x,), len)
    assert (size, dims) == (3, [1])
    made = steps._flat_vmap(lambda x: (x["a"] * 2, x["a"].sum()), size, dims, leaves, spec, (1, 0), "error")
    assert torch.equal(made[0], x["a"] * 2) and made[1].tolist() == [3, 5, 7]
    assert steps._get_name(test_borders_of_indices) == "test_borders_of_indices"
    with pytest.raises(ValueError, match="in_dims"):
        steps._process_batched_inputs((0, 0), (x,), len)


class Watching(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append((func, len(args), kwargs))
        return func(*args, **(kwargs or {}))


def test_ops_by_the_names_that_libraries_register_for():
    aten, x = torch.ops.aten, torch.tensor([3.0, 1.0, 2.0])
    with Watching() as mode:
        kept, plain, down = x.sort(stable=True), x.sort(), x.sort(0, True)
    assert [func for func, _, _ in mode.seen] == [aten.sort.stable, aten.sort.default, aten.sort.default]
    assert mode.seen[0][1:] == (1, {"stable": True, "dim": 0}) and mode.seen[1][2] == {} and mode.seen[2][1] == 3
    assert kept.indices.tolist() == plain.indices.tolist() == [1, 2, 0] and down.values.tolist() == [3, 2, 1]
    values, places = aten.sort.stable(x, stable=True, dim=0, descending=True)
    assert values.tolist() == [3, 2, 1] and places.tolist() == [0, 2, 1]
    a = torch.eye(2).to_sparse()
    assert torch.equal(
        aten._sparse_addmm.default(torch.ones(2, 2), a, torch.ones(2, 2), beta=2), torch.full((2, 2), 3.0)
    )
    assert callable(aten._pin_memory.default) and aten.squeeze.dims(torch.ones(1, 2, 1), (0, 2)).shape == (2,)


def test_parameters_of_a_mapping_in_a_module():
    layer, given = nn.Linear(2, 1), {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    before = layer.weight
    with nn.utils.stateless._reparametrize_module(layer, given):
        assert layer(torch.ones(2)).item() == 2
        layer._parameters["bias"] = torch.ones(1)
    assert layer.weight is before and given["bias"].item() == 1
    with (
        pytest.raises(RuntimeError, match="Missing key"),
        nn.utils.stateless._reparametrize_module(layer, {"bias": torch.ones(1)}, strict=True),
    ):
        pass


def test_what_is_asked_of_c():
    x, keys = torch.ones(3, 3), C.DispatchKey
    assert C._is_alias_of(x, x[1:]) and not C._is_alias_of(x, x.clone()) and C._get_default_device() == "cpu"
    assert C._infer_size((2, 1, 3), (4, 1)) == (2, 4, 3) and isinstance(C._infer_size((), ()), torch.Size)
    with pytest.raises(RuntimeError, match="do not fit"):
        C._infer_size((2,), (3,))
    with torch.overrides.BaseTorchFunctionMode():
        assert C._is_torch_function_mode_enabled() and C._len_torch_function_stack() == 1
    assert not C._is_torch_function_mode_enabled() and forward_ad._current_level < 0
    with forward_ad.dual_level() as level:
        assert forward_ad._current_level == level >= 0
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with C._ExcludeDispatchKeyGuard(C.DispatchKeySet(keys.AutocastCPU) | C.DispatchKeySet(keys.AutocastCUDA)):
            assert (x @ x).dtype == torch.float32
        assert (x @ x).dtype == torch.bfloat16
    with pytest.raises(NotImplementedError, match="AutogradCPU"):
        C._ExcludeDispatchKeyGuard(C.DispatchKeySet(keys.AutogradCPU))


def test_tensors_of_a_file(tmp_path):
    file = str(tmp_path / "x")
    made = torch.from_file(file, shared=True, size=4, dtype=torch.int32)
    made.copy_(torch.arange(4))
    private = torch.from_file(file, size=2, dtype=torch.int32)
    private += 7
    assert private.tolist() == [7, 8] and torch.from_file(file, size=4, dtype=torch.int32).tolist() == [0, 1, 2, 3]
    assert isinstance(made.untyped_storage(), torch.StorageBase) and torch.from_file(file).shape == (0,)
    with pytest.raises(RuntimeError, match="has 16 bytes, 40 are asked for"):
        torch.from_file(file, size=10)
    with pytest.raises(ValueError, match="negative"):
        torch.from_file(file, size=-1)


def test_pieces_of_print():
    from adjoin import _tensor_str

    class Named(torch.Tensor):
        def __repr__(self):
            return super().__repr__(tensor_contents="held")

    assert repr(torch.ones(2, requires_grad=True).as_subclass(Named)).startswith("Named(held, ")
    assert _tensor_str._tensor_str(torch.ones(2, 2), 3) == "[[1., 1.],\n    [1., 1.]]"
    said = _tensor_str._add_suffixes("T([" + "1, " * 23 + "1]", ["size=23", "nnz=4"], 2)
    assert said.endswith("1],\n  size=23, nnz=4)")
    with torch.printoptions(precision=2):
        assert _tensor_str.PRINT_OPTS.precision == 2
    with pytest.raises(AttributeError, match="no option 'width'"):
        _tensor_str.PRINT_OPTS.width = 3


def test_gammas_by_a_generator():
    a = torch.full((4000,), 3.0)
    made = [torch._standard_gamma(a, torch.Generator().manual_seed(1)) for _ in range(2)]
    assert torch.equal(*made) and abs(made[0].mean().item() - 3) < 0.2
    shares = torch._sample_dirichlet(torch.ones(5, 3))
    assert torch.allclose(shares.sum(-1), torch.ones(5)) and torch._standard_gamma(a.requires_grad_()).requires_grad
    with pytest.raises(NotImplementedError, match="without derivatives"):
        torch._standard_gamma(a, torch.Generator())


def test_an_error_of_a_launched_process_is_left_in_its_file(tmp_path, monkeypatch):
    from adjoin.distributed.elastic.multiprocessing.errors import record

    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    assert record(lambda x: x + 1)(1) == 2 and not list(tmp_path.iterdir())
    with pytest.raises(KeyError):
        record(lambda: {}["none"])()
    told = json.loads((tmp_path / "error.json").read_text())["message"]
    assert told["message"] == "KeyError: 'none'" and "library_reach_test" in told["extraInfo"]["py_callstack"]


def test_what_is_not_there_says_so():
    from adjoin.distributed import autograd, rpc

    assert not rpc.is_available() and not autograd.is_available()
    with pytest.raises(AttributeError, match="send_object_list"):
        rpc.rpc_sync  # noqa: B018
    with pytest.raises(RuntimeError, match="DistributedDataParallel"), autograd.context():
        pass
    with pytest.raises(NotImplementedError, match="no quantized kernels"):
        torch.quantization.FakeQuantizeBase()
    with pytest.raises(NotImplementedError, match="FlopCounterMode"):
        torch.jit._get_trace_graph(nn.Linear(1, 1), torch.ones(1))
    assert torch._guards.active_fake_mode() is None and torch.backends.quantized.engine == "none"
    assert not torch.xpu.is_available() and torch.xpu.device_count() == 0


def test_sums_as_modules():
    from adjoin.nn.quantized import FloatFunctional

    f = FloatFunctional()
    f.activation_post_process = nn.Hardtanh(-3, 3)
    x = torch.tensor([-2.0, 2.0])
    assert f.add(x, x).tolist() == [-3, 3] and f.mul(x, x).tolist() == [3, 3] and f.add_relu(x, x).tolist() == [0, 3]
    assert f.cat([x, x]).shape == (4,) and f.matmul(x, x).item() == 3 and f.add_scalar(x, 0.5).tolist() == [-1.5, 2.5]
    with pytest.raises(RuntimeError, match="not intended to use the forward"):
        f(x)


def test_what_a_transposed_convolution_adds_for_other_settings_than_its_own():
    layer = nn.ConvTranspose1d(1, 1, 2)
    assert nn.modules.conv._ConvTransposeNd._output_padding(
        layer, torch.ones(1, 1, 4), [10], (2,), (0,), (3,), 1, (1,)
    ) == (1,)
    assert nn.ConvTranspose1d(1, 1, 3, stride=2)(torch.ones(1, 1, 4), output_size=[10]).shape == (1, 1, 10)
