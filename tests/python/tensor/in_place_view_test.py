"""tests/python/tensor/in_place_view_test.py: t_, squeeze_ and the like on tensors with a history, and set_ on memory of all kinds."""

import adjoin
import pytest

CHANGES = (("t", ()), ("transpose", (0, 1)), ("swapaxes", (0, 1)), ("swapdims", (0, 1)), ("unsqueeze", (1,)), ("squeeze", ()),
           ("as_strided", ((3, 2), (1, 3))))  # fmt: skip


@pytest.mark.parametrize("name, args", CHANGES)
def test_the_history_goes_on(name, args):
    def gradient(method):
        x = adjoin.arange(6.0).view(2, 3).requires_grad_()
        y = x * 2
        changed = getattr(y, method)(*args)
        assert (changed is y) is method.endswith("_")
        changed = changed * 1
        (changed * adjoin.arange(6.0).view(changed.shape)).sum().backward()
        return tuple(changed.shape), x.grad.tolist()

    assert gradient(name + "_") == gradient(name)


def test_who_saved_the_old_shape_is_told():
    x = adjoin.rand(3, 3, requires_grad=True)
    y = x * 2
    z = y * y
    y.t_()
    with pytest.raises(RuntimeError, match="modified|written|version"):
        z.sum().backward()
    a, b = adjoin.rand(3, 3, requires_grad=True), adjoin.rand(3, 3)
    z = a * b
    b.t_()
    with pytest.raises(RuntimeError, match="modified|written|version"):
        z.sum().backward()


def test_twice_and_written_afterwards():
    x = adjoin.ones(2, 3, requires_grad=True)
    y = x * 2
    assert y.t_().unsqueeze_(0).mul_(3).shape == (1, 3, 2)
    y.sum().backward()
    assert x.grad.tolist() == [[6.0] * 3] * 2


def test_leaves_and_views_keep_their_shape():
    x = adjoin.ones(2, 3, requires_grad=True)
    for t, what in ((x, "a leaf"), ((x * 2)[0:1], "a view")):
        with pytest.raises(RuntimeError, match=rf"t_: {what} that requires grad keeps its shape; use t\(\)"):
            t.t_()
    assert adjoin.ones(2, 3).t_().shape == (3, 2)


def test_set_takes_a_storage():
    t, memory = adjoin.zeros(3), adjoin.arange(5.0)
    assert t.set_(memory.untyped_storage(), 1, (2,), (2,)).tolist() == [1.0, 3.0]
    assert t.set_(memory.untyped_storage()).tolist() == memory.tolist()
    t[0] = 7
    assert memory[0] == 7


@pytest.mark.parametrize("source", [lambda: adjoin.zeros(5), lambda: adjoin.zeros(5).untyped_storage()])
@pytest.mark.parametrize("args, told", [
    ((0, (2,), (-1,)), "negative strides"), ((0, (2,), (2, 1)), "size of 1 dimensions and a stride of 2"), ((4, (2,), (2,)), "outside"),
    ((-1, (2,), (1,)), "outside"), ((0, (1,) * 65, (1,) * 65), "64 at most"), ((0, (2**62,), (2**62,)), "outside|overflow|large"),
])  # fmt: skip
def test_set_refuses_what_lies_elsewhere(source, args, told):
    with pytest.raises(RuntimeError, match=told):
        adjoin.zeros(3).set_(source(), *args)
    with pytest.raises(TypeError, match="a Tensor or an UntypedStorage"):
        adjoin.zeros(3).set_(3, 0, (1,), (1,))


def test_a_key_of_a_view_whose_base_was_written_since():
    """Its history is the written base's: the key was recorded as as_strided, which an expanded view refused."""
    x = adjoin.arange(4.0, requires_grad=True)
    view = adjoin.zeros(1, 4).expand(2, 1, 4)
    view[0] = x
    part = view[..., 1]
    (part * adjoin.tensor([[2.0], [3.0]])).sum().backward()
    assert x.grad.tolist() == [0.0, 5.0, 0.0, 0.0]
