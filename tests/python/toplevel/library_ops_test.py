"""tests/python/toplevel/library_ops_test.py: ops defined in Python: how their kernels and derivatives are called."""

import adjoin
import pytest
from adjoin import _custom_ops, library
from adjoin.utils._python_dispatch import TorchDispatchMode


def test_arguments_behind_the_star_come_by_word():
    mine = library.Library("bywords", "DEF")
    mine.define("scale(Tensor w, int x = 2, *, int y = 3, int z)->Tensor")  # no room around the arrow
    mine.impl("scale", lambda w, x=2, *, y=3, z: w * x * y * z, "CPU")
    seen = []

    def setup(ctx, inputs, keyword_only_inputs, output):
        seen.append((inputs[1:], keyword_only_inputs))
        ctx.c = inputs[1] * keyword_only_inputs["y"] * keyword_only_inputs["z"]

    library.register_autograd("bywords::scale", lambda ctx, g: (g * ctx.c, None), setup_context=setup)
    w = adjoin.ones(2, requires_grad=True)
    adjoin.ops.bywords.scale(w, z=7).sum().backward()
    assert w.grad.tolist() == [42, 42] and seen == [((2,), {"y": 3, "z": 7})]

    def batched(info, in_dims, w, x=2, *, y=3, z):
        assert in_dims == (0, None)
        return w * x * y * z, 0

    library.register_vmap("bywords::scale", batched)
    assert adjoin.vmap(lambda w: adjoin.ops.bywords.scale(w, z=1))(adjoin.ones(2, 3)).tolist() == [[6.0] * 3] * 2
    mine.define("shift(Tensor w, *, Tensor by) -> Tensor")
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor"):
        library.register_autograd("bywords::shift", lambda ctx, g: g)


def test_gradients_of_lists_come_in_lists():
    @library.custom_op("inlists::split", mutates_args=())
    def split(x: adjoin.Tensor, n: int) -> list[adjoin.Tensor]:
        return [t.clone() for t in x.split(n)]

    split.register_autograd(lambda ctx, grads: (adjoin.cat(list(grads)), None))
    x = adjoin.ones(5, requires_grad=True)
    a, b = split(x, 3)
    (a.sum() * 2 + b.sum()).backward()
    assert x.grad.tolist() == [2, 2, 2, 1, 1]
    mine = library.Library("inlists", "FRAGMENT")
    mine.define("both(Tensor x) -> (Tensor, Tensor[])")
    mine.impl("both", lambda x: (x + 1, [x + 2, x + 3]), "CPU")
    library.register_autograd("inlists::both", lambda ctx, g, many: g + 2 * many[0] + 3 * many[1])
    x.grad = None
    one, (two, three) = adjoin.ops.inlists.both(x)
    (one + two + three).sum().backward()
    assert x.grad.tolist() == [6] * 5


def test_a_kernel_of_the_key_autograd_records_by_itself():
    mine = library.Library("bykey", "DEF")
    mine.define("square(Tensor x) -> Tensor")
    mine.impl("square", lambda x: x * x, "CPU")

    class Square(adjoin.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            with adjoin._C._AutoDispatchBelowAutograd():
                return adjoin.ops.bykey.square(x)

        @staticmethod
        def backward(ctx, grad):
            return grad * 20 * ctx.saved_tensors[0]  # told from the true one

    mine.impl("square", Square.apply, "Autograd")
    x = adjoin.tensor([3.0], requires_grad=True)
    adjoin.ops.bykey.square(x).backward()
    assert x.grad == 60 and adjoin.ops.bykey.square(x.detach()) == 9


def test_results_are_no_views_of_arguments():
    for at, (made, writes) in enumerate(((lambda x: x.view(-1), ()), (lambda x: x, ()), (lambda x: x.add_(1), ("x",)))):

        def give(x: adjoin.Tensor) -> adjoin.Tensor:
            return made(x)  # noqa: B023

        op = library.custom_op(f"noviews::f{at}", give, mutates_args=writes)
        with pytest.raises(RuntimeError, match=r"may not alias.*clone"):
            op(adjoin.ones(2))


def test_a_kernel_may_be_out_of_the_way_for_a_block(caplog):
    @library.custom_op("outoftheway::f", mutates_args=())
    def f(x: adjoin.Tensor) -> adjoin.Tensor:
        return x + 1

    f.register_kernel("cpu", lambda x: x + 2)
    x = adjoin.zeros(1)
    with f.set_kernel_enabled("cpu", enabled=False):
        assert f(x) == 1
        with f.set_kernel_enabled("cpu", enabled=True):
            assert f(x) == 2
        assert f(x) == 1
    assert f(x) == 2
    for device, on, told in (("cuda", False, "no kernel was registered"), ("cpu", True, "already enabled")):
        with f.set_kernel_enabled(device, enabled=on):
            assert f(x) == 2
        assert told in caplog.records[-1].message


def test_a_mode_may_be_told_what_an_op_does_in_it():
    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    @library.custom_op("inamode::f", mutates_args=())
    def f(x: adjoin.Tensor) -> adjoin.Tensor:
        return x + 1

    library.register_torch_dispatch(
        "inamode::f", Seen, lambda mode, func, types, args, kwargs: func(*args, **kwargs) * 10
    )
    with Seen():
        assert f(adjoin.ones(1)) == 20 and adjoin.ones(1) + 1 == 2
    assert f(adjoin.ones(1)) == 2


def test_the_first_form():
    @_custom_ops.custom_op("firstform::f")
    def f(x: adjoin.Tensor, ys: list[adjoin.Tensor], n: float) -> adjoin.Tensor:
        raise NotImplementedError

    @_custom_ops.impl("firstform::f")
    def kernel(x, ys, n):
        return x * n + sum(ys)

    @_custom_ops.impl_save_for_backward("firstform::f")
    def save(inputs, output):
        return {"n": inputs.n, "x": inputs.x, "many": len(inputs.ys)}

    made = {"x": None, "ys": None}

    @_custom_ops.impl_backward("firstform::f")
    def backward(ctx, saved, grad):
        return made or {"x": grad * saved["n"] * saved["x"], "ys": [grad] * saved["many"]}

    x, y = adjoin.ones(2, requires_grad=True), adjoin.ones(2, requires_grad=True)
    adjoin.ops.firstform.f(x, [y, y], 3.0).sum().backward()
    assert x.grad is None and y.grad is None
    made.clear()
    adjoin.ops.firstform.f(x, [y, y], 3.0).sum().backward()
    assert x.grad.tolist() == [3, 3] and y.grad.tolist() == [2, 2]
    made["x"] = None
    with pytest.raises(RuntimeError, match="Expected keys are"):
        adjoin.ops.firstform.f(x, [y, y], 3.0).sum().backward()
    for name, schema, words in (
        ("firstform::g", "(Tensor(a!) x) -> Tensor", "functional"),
        ("firstform::g", "(int x) -> Tensor", "functional"),
        ("aten::g", "(Tensor x) -> Tensor", "reserved"),
    ):
        with pytest.raises(ValueError, match=words):
            _custom_ops.custom_op(name, schema)
    with pytest.raises(ValueError, match="must have name 'h'"):
        _custom_ops.custom_op("firstform::h")(f)


def test_what_a_context_is_told():
    @library.custom_op("contexts::two", mutates_args=())
    def two(x: adjoin.Tensor, n: int) -> tuple[adjoin.Tensor, adjoin.Tensor]:
        return x * n, x.flip(0)

    def setup(ctx, inputs, output):
        ctx.n = inputs[1]
        ctx.mark_non_differentiable(output[1])

    two.register_autograd(lambda ctx, g, _: g * ctx.n, setup_context=setup)  # no gradient for the number at the end
    x = adjoin.ones(2, requires_grad=True)
    made, turned = two(x, 3)
    made.sum().backward()
    assert x.grad.tolist() == [3, 3] and made.requires_grad and not turned.requires_grad
    library.impl_abstract("contexts::two", func=lambda x, n: (x.new_empty(x.shape), x.new_empty(x.shape)))
    assert two(adjoin.ones(2, device="meta"), 3)[0].shape == (2,)


def test_results_without_names_are_a_tuple():
    lib = library.Library("unnamed", "DEF")
    lib.define("two(Tensor x) -> (Tensor, Tensor)")
    lib.define("named(Tensor x) -> (Tensor low, Tensor high)")
    for name in ("two", "named"):
        lib.impl(name, lambda x: (x - 1, x + 1), "CPU")
    plain, named = (getattr(adjoin.ops.unnamed, name)(adjoin.ones(2)) for name in ("two", "named"))
    assert type(plain) is tuple and [t.tolist() for t in plain] == [[0, 0], [2, 2]]
    assert isinstance(named, tuple) and named.high.tolist() == [2, 2]


def test_a_dtype_and_a_device_may_be_defaults():
    seen, first = [], adjoin.device("cpu:0")

    @adjoin.library.custom_op("defaultkinds::f", mutates_args=())
    def f(
        x: adjoin.Tensor, kind: adjoin.dtype = adjoin.int32, place: adjoin.device = first, *,
        other: adjoin.device = "meta",
    ) -> adjoin.Tensor:  # fmt: skip
        seen.append((kind, place, other))
        return x.to(kind)

    assert f(adjoin.ones(1)).dtype is adjoin.int32 and f(adjoin.ones(1), adjoin.float64).dtype is adjoin.float64
    f(adjoin.ones(1), place=adjoin.device("meta"), other=adjoin.device("cpu"))
    cpu, meta = adjoin.device("cpu:0"), adjoin.device("meta")
    assert seen[0] == (adjoin.int32, cpu, meta) and seen[2][1:] == (meta, adjoin.device("cpu"))
    text = adjoin.library.infer_schema(f._init_fn, mutates_args=())
    assert "dtype kind=int32, device place='cpu:0', *, device other='meta'" in text


def test_a_list_of_numbers_that_may_be_missing_has_no_schema():
    def f(x: adjoin.Tensor, n: list[int | None]) -> adjoin.Tensor:
        return x

    with pytest.raises(ValueError, match="the annotation .* has no word in a schema"):
        adjoin.library.infer_schema(f, mutates_args=())
