"""tests/python/toplevel/calls_of_programs_test.py: small manners that programs rely on: who is returned, which order is kept, where results go."""

import math

import adjoin
import pytest


def test_lists_that_are_written_come_back_themselves():
    tensors, ends = [adjoin.ones(2), adjoin.ones(4, 2)[:, 0]], [adjoin.zeros(2), adjoin.zeros(4)]
    for made in (
        adjoin._foreach_add_(tensors, 1),
        adjoin._foreach_mul_(tensors, adjoin.tensor(2.0)),
        adjoin._foreach_add_(tensors, ends, alpha=2),
        adjoin._foreach_sqrt_(tensors),
        adjoin._foreach_addcmul_(tensors, ends, ends),
    ):
        assert made is tensors
    assert tensors[1].tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((2, 3, 4, 5), adjoin.channels_last),
        ((2, 3, 4, 5, 2), adjoin.channels_last_3d),
        ((2, 3), adjoin.contiguous_format),
    ],
)
def test_resizing_takes_the_order_that_is_asked_for(shape, order):
    flat = adjoin.arange(float(math.prod(shape)))
    assert flat.resize_(shape, memory_format=order) is flat
    assert flat.is_contiguous(memory_format=order) and flat.shape == shape
    assert sorted(flat.flatten().tolist()) == list(range(math.prod(shape)))
    other = adjoin.empty(1).resize_as_(flat, memory_format=adjoin.preserve_format)
    assert other.stride() == flat.stride()
    with pytest.raises(RuntimeError, match="preserve_format"):
        flat.resize_(shape, memory_format=adjoin.preserve_format)


@pytest.mark.filterwarnings("ignore:range")
@pytest.mark.parametrize(
    "fill",
    [
        lambda out: adjoin.arange(4, out=out),
        lambda out: adjoin.range(0, 3, out=out),
        lambda out: adjoin.linspace(0, 3, 4, out=out),
    ],
    ids=["arange", "range", "linspace"],
)
def test_rows_of_numbers_keep_the_shape_that_has_room_for_them(fill):
    x = adjoin.full((2, 3), 9.0)
    out = x.narrow(1, 1, 2)
    assert fill(out) is out
    assert x.tolist() == [[9, 0, 1], [9, 2, 3]]


def test_range_warns_that_its_end_belongs_to_it():
    with pytest.warns(UserWarning, match="arange"):
        assert adjoin.range(1, 3).tolist() == [1, 2, 3]


def test_products_of_bytes_are_32_bits_wide():
    a = adjoin.full((2, 300), 127, dtype=adjoin.int8)
    made = adjoin._int_mm(a, a.t())
    assert made.dtype is adjoin.int32 and made.tolist() == [[127 * 127 * 300] * 2] * 2
    out = adjoin.empty(2, 2, dtype=adjoin.int32)
    assert adjoin._int_mm(a, a.t(), out=out) is out and out.tolist() == made.tolist()
    with pytest.raises(RuntimeError, match="int8"):
        adjoin._int_mm(a.int(), a.t())


SEGMENTS = adjoin.tensor([1, 2, 0, 3])
NAN = math.nan


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize(
    ("reduce", "initial", "made", "slopes"),
    [
        ("max", None, [1, NAN, -math.inf, 5], [1, 1, 0, 0, 0.5, 0.5]),
        ("min", 1, [1, NAN, 1, 1], [1, 1, 0, 0, 0, 0]),
        ("sum", None, [1, NAN, 0, 14], [1, 1, 1, 1, 1, 1]),
        ("prod", 2, [2, NAN, 2, 200], [2, 6, NAN, 50, 40, 40]),
    ],
)
def test_segments_with_nan(reduce, initial, made, slopes, axis):
    data = adjoin.tensor([1, NAN, 3, 4, 5, 5.0], requires_grad=True)
    found = adjoin.segment_reduce(data, reduce, lengths=SEGMENTS, axis=axis, initial=initial)
    found.sum().backward()
    adjoin.testing.assert_close(found, adjoin.tensor(made), equal_nan=True)
    adjoin.testing.assert_close(data.grad, adjoin.tensor(slopes, dtype=adjoin.float32), equal_nan=True)


def test_products_of_segments_of_each_sample():
    """Whether one is NaN differs between the samples of vmap."""
    data, lengths = adjoin.randn(3, 5, dtype=adjoin.float64), adjoin.tensor([2, 0, 3])
    data[1, 3] = math.nan
    one = lambda x: adjoin.segment_reduce(x, "prod", lengths=lengths)  # noqa: E731
    wanted = adjoin.stack([one(x) for x in data])
    adjoin.testing.assert_close(adjoin.func.vmap(one)(data), wanted, equal_nan=True)
    slopes = adjoin.func.vmap(adjoin.func.grad(lambda x: one(x)[0]))(data)
    adjoin.testing.assert_close(slopes[:, :2], data[:, :2].flip(1))


def test_two_nans_of_one_segment_leave_no_slope():
    data = adjoin.tensor([NAN, 2.0, NAN], requires_grad=True)
    adjoin.segment_reduce(data, "prod", lengths=adjoin.tensor([3])).sum().backward()
    assert data.grad.isnan().all()


@pytest.mark.parametrize("reduce", ["max", "min", "prod"])
def test_slopes_of_segments_by_differences(reduce):
    data = adjoin.rand(7, 2, dtype=adjoin.float64, requires_grad=True)
    lengths = adjoin.tensor([3, 0, 4])

    def reduced(x):
        return adjoin.segment_reduce(x, reduce, lengths=lengths, initial=0.25 if reduce == "prod" else None)[::2]

    assert adjoin.autograd.gradcheck(reduced, (data,))
    assert adjoin.autograd.gradgradcheck(reduced, (data,))


class Power(adjoin.autograd.Function):
    @staticmethod
    def forward(x, y=3):
        return x**y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.x, ctx.y = inputs

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.y * ctx.x ** (ctx.y - 1), None


class OfClass(Power):
    @classmethod
    def forward(cls, x, y=3):
        return x**y

    @classmethod
    def setup_context(cls, ctx, inputs, output):
        ctx.x, ctx.y = inputs


@pytest.mark.parametrize("function", [Power, OfClass])
def test_setup_context_sees_what_a_call_leaves_out(function):
    x = adjoin.tensor(2.0, requires_grad=True)
    assert adjoin.autograd.grad(function.apply(x), x)[0].item() == 12
    assert adjoin.autograd.grad(function.apply(x, 2), x)[0].item() == 4
    assert adjoin.func.grad(function.apply)(adjoin.tensor(2.0)).item() == 12


def test_vjp_is_another_name_of_backward():
    class Twice(adjoin.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, grad):
            return grad * 2

    class Both(Twice):
        @staticmethod
        def backward(ctx, grad):
            return grad

        vjp = Twice.vjp

    class Neither(adjoin.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    x = adjoin.ones(2, requires_grad=True)
    Twice.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="both 'backward' and 'vjp'"):
        Both.apply(x).sum().backward()
    with pytest.raises(RuntimeError, match="either the backward or the vjp"):
        Neither.apply(x).sum().backward()


def test_maps_by_their_earlier_name():
    from adjoin._vmap_internals import _vmap, vmap

    x = adjoin.arange(6.0).reshape(3, 2)
    assert vmap(adjoin.sum)(x).tolist() == [1, 5, 9]
    total, none = _vmap(lambda row: (row.sum(), None), 0, 0, allow_none_pass_through=True)(x)
    assert total.tolist() == [1, 5, 9] and none is None
    assert _vmap(lambda row: row.sum(), allow_none_pass_through=True)(x).tolist() == [1, 5, 9]


def test_a_library_for_the_time_of_a_block():
    from adjoin.library import _scoped_library

    with _scoped_library("calls_of_programs", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CPU")
        assert adjoin.ops.calls_of_programs.twice(adjoin.ones(2)).tolist() == [2, 2]
    with pytest.raises(NotImplementedError, match="no kernel"):
        adjoin.ops.calls_of_programs.twice(adjoin.ones(2))


def test_the_overload_of_an_op_made_in_python():
    @adjoin.library.custom_op("calls_of_programs::thrice", mutates_args=())
    def thrice(x: adjoin.Tensor) -> adjoin.Tensor:
        return x * 3

    assert thrice._opoverload(adjoin.ones(1)).tolist() == [3]


def test_what_can_be_overridden_is_called_with_tensors():
    from adjoin import overrides

    found = overrides.get_testing_overrides()
    assert adjoin.Tensor.add in found and not any(isinstance(f, (staticmethod, classmethod)) for f in found)


def test_a_parameter_of_a_class_of_its_own_says_so():
    class Own(adjoin.Tensor):
        pass

    made = adjoin.nn.Parameter(adjoin.ones(2).as_subclass(Own))
    assert repr(made) == "Parameter(Own([1., 1.], requires_grad=True))"
    assert repr(adjoin.nn.Parameter(adjoin.ones(1))).startswith("Parameter containing:\ntensor(")


def test_overloads_that_write_their_result():
    a, b = adjoin.tensor(2), adjoin.tensor(0)
    assert adjoin.ops.aten.add.out(a, a, out=b) is b and b.item() == 4
    assert "out" in adjoin.ops.aten.add.overloads()


def test_where_classes_of_ops_are_found():
    from adjoin._ops import OpOverload, OpOverloadPacket

    assert isinstance(adjoin.ops.aten.add.Tensor, OpOverload) and isinstance(adjoin.ops.aten.add, OpOverloadPacket)


def test_modes_and_classes_are_passed_by():
    from adjoin.utils._python_dispatch import TorchDispatchMode, is_in_torch_dispatch_mode

    seen = []

    class Mode(adjoin.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    class Below(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            assert not is_in_torch_dispatch_mode()
            return func(*args, **(kwargs or {}))

    with Mode():
        with adjoin._C.DisableTorchFunction():
            adjoin.ones(1) + 1
        assert not seen
        adjoin.ones(1) + 1
        assert seen
    with Below():
        assert is_in_torch_dispatch_mode() and (adjoin.ones(1) + 1).item() == 2
    assert not is_in_torch_dispatch_mode()


def test_autocast_by_the_older_name():
    from adjoin.cpu.amp import GradScaler, autocast

    x = adjoin.ones(2, 2)
    with pytest.warns(FutureWarning, match=r"amp\.autocast\('cpu'"), autocast():
        assert (x @ x).dtype is adjoin.bfloat16
    with pytest.warns(FutureWarning, match=r"amp\.GradScaler\('cpu'"):
        assert not GradScaler(enabled=False).is_enabled()


def test_a_wrapper_has_a_storage_without_bytes():
    class Wrapper(adjoin.Tensor):
        @staticmethod
        def __new__(cls, held):
            return adjoin.Tensor._make_wrapper_subclass(cls, held.size(), dtype=held.dtype)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise NotImplementedError(func)

    storage = Wrapper(adjoin.ones(3)).untyped_storage()
    assert storage.size() == storage.nbytes() == 12
    with pytest.raises(RuntimeError):
        storage.data_ptr()


def test_a_library_decorates_what_it_registers():
    library = adjoin.library.Library("calls_of_programs", "FRAGMENT")

    @adjoin.library.define(library, "by_all(Tensor x) -> Tensor")
    def by_all(x):
        return x + 1

    library.define("by_host(Tensor x) -> Tensor")

    @adjoin.library.impl(library, "by_host", "CPU")
    def by_host(x):
        return x + 2

    x = adjoin.ones(1)
    assert by_all(x).item() == adjoin.ops.calls_of_programs.by_all(x).item() == 2
    assert by_host(x).item() == adjoin.ops.calls_of_programs.by_host(x).item() == 3
