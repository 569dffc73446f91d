"""tests/extensions/library_test.py: ops defined in Python: schemas from annotations, kernels, shapes, derivatives, other threads."""

import threading
from collections.abc import Sequence

import pytest

import adjoin as T
from adjoin import library
from adjoin.autograd import gradcheck, gradgradcheck
from adjoin.library import Library, custom_op, infer_schema, register_autograd, register_fake, register_kernel


def numpy_sin():
    numpy = pytest.importorskip("numpy")

    @custom_op("py::sin", mutates_args=())
    def sin(x: T.Tensor, scale: float = 1.0) -> T.Tensor:
        """Sine by NumPy."""
        return T.from_numpy(numpy.asarray(numpy.sin(x.numpy() * scale)))

    return sin


def test_schemas_from_annotations():
    def f(x: T.Tensor, y: T.Tensor | None, many: Sequence[T.Tensor], n: int, sizes: list[int] = [1, 2], *, eps: float = 1e-3,  # noqa: B006
          name: str = "a", on: bool = False, by: int | float = 2) -> tuple[T.Tensor, T.Tensor]: ...  # fmt: skip

    text = infer_schema(f, mutates_args={"x"}, op_name="py::f")
    assert text == (
        "py::f(Tensor(a!) x, Tensor? y, Tensor[] many, int n, int[] sizes=[1, 2], *, float eps=0.001, str name='a', bool on=False, "
        "Scalar by=2) -> (Tensor r0, Tensor r1)"
    )
    with pytest.raises(ValueError, match="parameter 'x'.*has no word"):
        infer_schema(_odd, mutates_args=())
    with pytest.raises(ValueError, match="needs an annotation"):
        infer_schema(lambda x: x, mutates_args=())
    with pytest.raises(ValueError, match="no parameters"):
        infer_schema(_good, mutates_args=("z",))


def _odd(x: dict) -> None: ...
def _good(x: T.Tensor) -> None: ...


def test_an_op_with_everything():
    sin = numpy_sin()
    x = T.randn(2, 3, dtype=T.float64, requires_grad=True)
    assert T.allclose(sin(x.detach(), scale=2.0), (x.detach() * 2).sin()) and T.ops.py.sin(T.zeros(1)).item() == 0
    with pytest.raises(NotImplementedError, match="py::sin: no derivative is registered.*register_autograd"):
        sin(x).sum().backward()
    with pytest.raises(NotImplementedError, match="register_fake"):
        sin(x.detach().to("meta"))

    @sin.register_fake
    def _(x, scale=1.0):
        return T.empty_like(x)

    sin.register_autograd(_backward, setup_context=_setup)
    assert sin(x.detach().to("meta")).shape == (2, 3)
    assert gradcheck(sin, (x,)) and gradgradcheck(sin, (x,))
    assert library.opcheck(sin, (x.detach(),))["gradient"] == "SUCCESS"


def _setup(ctx, inputs, output):
    x, ctx.scale = inputs
    ctx.save_for_backward(x)


def _backward(ctx, grad):
    (x,) = ctx.saved_tensors
    assert ctx.needs_input_grad == (True, False)
    return grad * ctx.scale * (x * ctx.scale).cos(), None


def test_lists_several_results_and_numbers():
    @custom_op("py::split_sum", mutates_args=())
    def split_sum(many: Sequence[T.Tensor], by: float) -> tuple[T.Tensor, T.Tensor]:
        return many[0] * by + many[1], many[1].clone()

    def backward(ctx, a, b):
        return [a * ctx.by, a + b], None

    def setup(ctx, inputs, output):
        ctx.by = inputs[1]

    split_sum.register_autograd(backward, setup_context=setup)
    x, y = (T.randn(3, dtype=T.float64, requires_grad=True) for _ in range(2))
    assert gradcheck(lambda x, y: tuple(split_sum([x, y], 2.0)), (x, y))

    @custom_op("py::count", mutates_args=())
    def count(x: T.Tensor) -> int:
        return x.numel()

    assert count(x) == 3 and isinstance(count(x.detach()), int)


def test_written_arguments():
    @custom_op("py::fill", mutates_args={"out"})
    def fill(out: T.Tensor, value: float) -> None:
        out.numpy()[...] = value

    x = T.zeros(3)
    before = x._version
    assert fill(x, 4.0) is None and x.tolist() == [4, 4, 4] and x._version > before
    with pytest.raises(RuntimeError, match="writes to a tensor that requires grad"):
        fill(x.requires_grad_(), 1.0)
    with pytest.raises(RuntimeError, match="have no derivative"):
        fill.register_autograd(lambda ctx: None)

    @custom_op("py::same", mutates_args=())
    def same(x: T.Tensor) -> T.Tensor:
        return x

    with pytest.raises(
        RuntimeError, match="py::same: results may not alias arguments: it returned one of its arguments"
    ):
        same(T.ones(1))


def test_kernels_by_device_and_the_older_way():
    lib = Library("py", "DEF")
    lib.define("twice(Tensor x, SymInt n=2) -> Tensor")
    with pytest.raises(NotImplementedError, match="no kernel for the device 'cpu'"):
        T.ops.py.twice(T.ones(1))
    lib.impl("twice", lambda x, n: x.clone() * n, "CPU")
    assert T.ops.py.twice(T.ones(1)).item() == 2
    lib.define("thrice(Tensor x) -> Tensor")
    lib.impl("thrice", lambda x: x * 3, "CompositeImplicitAutograd")
    x = T.ones(2, requires_grad=True)
    T.ops.py.thrice(x).sum().backward()
    assert x.grad.tolist() == [3, 3]
    register_fake("py::twice", lambda x, n: T.empty_like(x))
    assert T.ops.py.twice(T.empty(3, device="meta")).shape == (3,)
    register_kernel("py::twice", "cpu")(lambda x, n: x.clone() * n + 1)
    assert T.ops.py.twice(T.ones(1)).item() == 3
    with pytest.raises(ValueError, match="was not defined in Python"):
        register_autograd("add", None)
    with pytest.raises(ValueError, match="SPACE::NAME"):
        custom_op("nospace", _good, mutates_args=())


def test_defined_again_it_takes_its_own_place():
    def make(by, schema=None):
        def f(x: T.Tensor) -> T.Tensor:
            return x * by

        return custom_op("py::again", f, mutates_args=(), schema=schema)

    make(2)
    held = T.ops.py.again
    make(5)
    assert held(T.ones(1)).item() == 5

    def g(x: T.Tensor, by: float) -> T.Tensor:
        return x * by

    custom_op("py::again", g, mutates_args=())
    assert held(T.ones(1), by=7.0).item() == 7


def test_errors_and_threads():
    @custom_op("py::picky", mutates_args=())
    def picky(x: T.Tensor) -> T.Tensor:
        if x.numel() == 0:
            raise LookupError("nothing there")
        return "no tensor" if x.numel() == 2 else x + 1

    with pytest.raises(LookupError, match="nothing there"):
        picky(T.ones(0))
    with pytest.raises(TypeError, match="returned a str, the schema says a tensor"):
        picky(T.ones(2))
    seen = []
    threads = [
        threading.Thread(target=lambda: seen.extend(picky(T.ones(1)).item() for _ in range(200))) for _ in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == [2] * 800
