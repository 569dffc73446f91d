"""tests/python/toplevel/library_refusals_test.py: what an op defined in Python may be given twice, not at all, or before it stands."""

import adjoin
import pytest
from adjoin import _custom_ops, library


@pytest.mark.parametrize(
    ("schema", "key", "word"),
    [
        ("(Tensor(a) x) -> Tensor(a)", None, "returns views"),
        ("(Tensor(a!) x) -> Tensor", None, "non-functional"),
        ("(Tensor x) -> ()", None, "no returns"),
        ("(Tensor x) -> Tensor", "CompositeImplicitAutograd", "CompositeImplicitAutograd"),
        ("(Tensor x) -> Tensor", "Autograd", "Autograd"),
        ("(Tensor x) -> Tensor", "AutogradCUDA", "AutogradCUDA"),
    ],
)
def test_ops_that_take_no_derivative_of_their_own(schema, key, word):
    name = f"refusing::f{abs(hash((schema, key)))}"
    library.define(name, schema)
    if key:
        library.Library("refusing", "FRAGMENT").impl(name.partition("::")[2], lambda x: x.sin(), key)
    for half in (_custom_ops.impl_save_for_backward, _custom_ops.impl_backward):
        with pytest.raises(RuntimeError, match=word):
            half(name, func=lambda *args: None)


def test_halves_of_a_derivative_belong_to_one_definition():
    for first in (True, False):
        _custom_ops.custom_op("halves::f", "(Tensor x) -> Tensor")  # again: what the one before was given is gone
        _custom_ops.impl("halves::f", func=lambda x: x.sin())
        x = adjoin.ones(1, requires_grad=True)
        with pytest.raises(RuntimeError, match="no derivative"):
            adjoin.ops.halves.f(x).backward()
        if first:
            _custom_ops.impl_save_for_backward("halves::f", func=lambda inputs, output: inputs.x)
        else:
            _custom_ops.impl_backward("halves::f", func=lambda ctx, saved, g: {"x": g * saved.cos()})
        with pytest.raises(RuntimeError, match="unable to find a 'backward'" if first else "a 'save_for_backward'"):
            adjoin.ops.halves.f(x)
    _custom_ops.impl_save_for_backward("halves::f", func=lambda inputs, output: inputs.x)
    adjoin.ops.halves.f(x).backward()
    assert x.grad == adjoin.ones(1).cos()
    with pytest.raises(RuntimeError, match="has one already"):
        _custom_ops.impl_backward("halves::f", func=lambda ctx, saved, g: {"x": g})
    _custom_ops._destroy("halves::f")
    with pytest.raises(NotImplementedError, match="no kernel"):
        adjoin.ops.halves.f(adjoin.ones(1))


@pytest.mark.parametrize("key", ["CPU", "CUDA", "CompositeImplicitAutograd", "CompositeExplicitAutograd"])
def test_a_kernel_is_given_once(key):
    library.define(f"once::{key}", "(Tensor x) -> Tensor")
    mine = library.Library("once", "FRAGMENT")
    mine.impl(key, lambda x: x.sin(), key)
    with pytest.raises(RuntimeError, match="already has an implementation"):
        _custom_ops.impl(f"once::{key}", func=lambda x: x.cos())


def test_shapes_are_told_once():
    mine = library.Library("told", "DEF")
    mine.define("bymeta(Tensor x) -> Tensor")
    mine.impl("bymeta", lambda x: x.new_empty(7), "Meta")
    with pytest.raises(RuntimeError, match="already has a Meta implementation"):
        library.register_fake("told::bymeta", lambda x: x)
    assert adjoin.ops.told.bymeta(adjoin.ones(2, device="meta")).shape == (7,)
    mine.define("byops(Tensor x) -> Tensor")
    mine.impl("byops", lambda x: x.sum(0), "CompositeImplicitAutograd")
    with pytest.raises(RuntimeError, match="CompositeImplicitAutograd"):
        library.register_fake("told::byops", lambda x: x)
    for size in (3, 4):  # again, as a notebook does
        mine.define("byfake(Tensor x) -> Tensor")
        library.register_fake("told::byfake", lambda x, size=size: x.new_empty(size))
        library.register_fake("told::byfake", lambda x, size=size: x.new_empty(size + 1))
        assert adjoin.ops.told.byfake(adjoin.ones(2, device="meta")).shape == (size + 1,)


def test_a_device_chooses_the_kernel_where_no_tensor_does():
    @library.custom_op("chosen::make", mutates_args=(), device_types="cpu")
    def make(n: int, device: adjoin.device) -> adjoin.Tensor:
        return adjoin.ones(n)

    make.register_fake(lambda n, device: adjoin.empty(n, device="meta"))
    assert make(3, "cpu").tolist() == [1, 1, 1] and make(3, "meta").device.type == "meta"
    with pytest.raises(NotImplementedError, match="no kernel for the device 'reference'"):
        make(3, "reference")
    make.register_kernel("reference", lambda n, device: adjoin.full((n,), 2.0))
    assert make(3, device=adjoin.device("reference", 0)).tolist() == [2, 2, 2]

    def none(n: int) -> adjoin.Tensor:
        return adjoin.ones(n)

    with pytest.raises(ValueError, match="required to have a `device: torch.device` argument"):
        library.custom_op("chosen::none", none, mutates_args=(), device_types="cpu")
    plain = library.custom_op("chosen::plain", none, mutates_args=())
    with pytest.raises(ValueError, match="required to have a `device: torch.device` argument"):
        plain.register_kernel("cpu", none)
    assert plain(2).tolist() == [1, 1]


def test_names_of_what_is_written_come_in_a_list():
    def write(x: adjoin.Tensor) -> None:
        x.add_(1)

    with pytest.raises(ValueError, match="is the string 'x'"):
        library.custom_op("liststring::f", write, mutates_args="x")
    for which in ("unknown", ["x"]):
        x = adjoin.zeros(1)
        library.custom_op("liststring::f", write, mutates_args=which)(x)
        assert x == 1 and x._version > 0


def test_a_kernel_before_its_op():
    early = library.Library("early", "IMPL")
    early.impl("same", lambda x: x, "CPU")
    library.Library("early", "DEF").define("same(Tensor x) -> Tensor")
    x = adjoin.ones(2)
    assert adjoin.ops.early.same(x).tolist() == [1, 1]  # those of a Library may give back an argument
    with pytest.raises(ValueError, match="aten::mm"):
        library.Library("aten", "IMPL").impl("mm", lambda a, b: a, "CPU")
