"""tests/python/tensor/binder_test.py: how Python's arguments meet schemas, and what is said when they do not."""

import inspect
import pickle

import adjoin as aj
import pytest

a = aj.tensor([1.0, 2.0, 3.0])


def test_positional_keyword_and_default():
    assert aj.add(a, a, alpha=2).tolist() == [3.0, 6.0, 9.0]
    assert aj.add(input=a, other=1).tolist() == [2.0, 3.0, 4.0] == a.add(other=1).tolist()


def test_names_of_numpy():
    m = aj.arange(6.0).reshape(2, 3)
    assert aj.sum(m, axis=0, keepdims=True).tolist() == [[3.0, 5.0, 7.0]]
    assert aj.add(x1=a, x2=a).tolist() == [2.0, 4.0, 6.0]


def test_spread_sizes():
    assert aj.zeros(2, 3).shape == aj.zeros((2, 3)).shape == aj.zeros([2, 3]).shape == (2, 3)
    assert aj.zeros(size=(2, 3)).shape == (2, 3) and aj.zeros(()).shape == () and aj.zeros(4).shape == (4,)
    x = aj.zeros(2, 3, 4)
    assert x.view(6, 4).shape == (6, 4) and x.permute(2, 0, 1).shape == (4, 2, 3)
    assert x.reshape(-1).shape == (24,) and x.expand(5, 2, 3, 4).shape == (5, 2, 3, 4)
    assert aj.zeros(aj.Size([2]), dtype=aj.int64).dtype is aj.int64


def test_a_single_int_stands_for_a_list():
    m = aj.ones(2, 3)
    assert m.sum(0).shape == (3,) and m.sum((0, 1)).shape == () and m.sum(dim=[1]).shape == (2,)


def test_overloads():
    m = aj.tensor([[1.0, 5.0], [7.0, 2.0]])
    assert aj.max(m).item() == 7.0
    values, indices = aj.max(m, 1)
    assert values.tolist() == [5.0, 7.0] and indices.tolist() == [1, 0]
    assert aj.max(m, aj.full((2, 2), 3.0)).tolist() == [[3.0, 5.0], [7.0, 3.0]]
    assert aj.max(m, dim=0, keepdim=True).values.shape == (1, 2)


def test_named_results():
    r = aj.sort(aj.tensor([2.0, 1.0]))
    assert r.values.tolist() == [1.0, 2.0] and r.indices.tolist() == [1, 0]
    assert type(r).__name__ == "sort" and type(r).__module__ == "adjoin.return_types"
    assert repr(r).startswith("adjoin.return_types.sort(") and type(r) is aj.return_types.sort
    assert pickle.loads(pickle.dumps(r)).indices.tolist() == [1, 0]


def test_lists_come_back_as_tuples():
    parts = aj.arange(5).split(2)
    assert type(parts) is tuple and [p.tolist() for p in parts] == [[0, 1], [2, 3], [4]]


def test_plain_results():
    assert aj.equal(a, a) is True and aj.allclose(a, a + 1) is False


def test_out():
    o = aj.empty(3)
    assert aj.add(a, a, out=o) is o and o.tolist() == [2.0, 4.0, 6.0]
    assert aj.add(a, a, out=None).tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(TypeError, match="argument 'out' must be Tensor, not int"):
        aj.add(a, a, out=3)


def test_in_place_forms():
    x = aj.ones(3)
    assert x.add_(1) is x and x.mul_(a) is x and x.tolist() == [2.0, 4.0, 6.0]
    assert aj.relu_(aj.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]
    y = aj.tensor([-1.0, 2.0])
    assert aj.nn.functional.relu(y, inplace=True) is y and y.tolist() == [0.0, 2.0]


def test_numbers():
    np = pytest.importorskip("numpy")
    for two in (2, 2.0, np.float32(2), np.float64(2), np.int64(2), aj.tensor(2.0)):
        assert (a * two).tolist() == [2.0, 4.0, 6.0] == (two * a).tolist()
    assert (a * np.float64(2)).dtype is aj.float32 and (a * 1j).dtype is aj.complex64
    assert (aj.tensor([1, 2]) * 2.5).dtype is aj.float32 and (aj.tensor([1]) * True).dtype is aj.int64


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: aj.add(a, "x"), r"^add\(\): argument 'other' must be Tensor or number, not str$"),
        (lambda: aj.add(a), r"^add\(\) missing 1 required argument: 'other'$"),
        (
            lambda: aj.add(a, a, foo=1),
            r"^add\(\) got an unexpected keyword argument 'foo'; it takes input, other, alpha$",
        ),
        (lambda: aj.add(a, a, input=a), r"^add\(\) got multiple values for argument 'input'$"),
        (lambda: aj.add(a, a, a, a), r"^add\(\) takes 2 positional arguments but 4 were given$"),
        (lambda: aj.sum(a, dim="x"), r"^sum\(\): argument 'dim' must be tuple of ints, not str; use int\(\)$"),
        (
            lambda: aj.cat([a, 3]),
            r"^cat\(\): argument 'tensors' must be tuple of Tensors, not list of int; make each a tensor, as with adjoin.tensor\(\)$",
        ),
        (lambda: aj.exp(3), r"^exp\(\): argument 'input' must be Tensor, not int; adjoin.tensor\(\) makes one of it$"),
        (lambda: aj.zeros("a"), r"^zeros\(\): argument 'size' must be tuple of ints, not str; use int\(\)$"),
        (lambda: aj.zeros(2, dtype="float32"), r"must be adjoin.dtype, not str"),
        (lambda: a.view(2.5), r"must be tuple of ints, not float|must be adjoin.dtype, not float"),
        (lambda: aj.exp(__import__("numpy").ones(2)), r"not numpy.ndarray; adjoin.from_numpy\(\) makes one of it$"),
        (lambda: aj.cat(a, a), r"not Tensor; put the tensors into one list: \[a, b\]$"),
        (lambda: aj.zeros(2, require_grad=True), r"'require_grad'; did you mean 'requires_grad'\?$"),
        (lambda: aj.topk(a, k=1.5), r"argument 'k' must be int, not float"),
    ],
)
def test_wrong_arguments(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_none_where_there_is_no_optional_argument():
    aj.library.define("binder::queued", "(Tensor a, Stream s) -> Tensor")
    aj.library.define("binder::mapped", "(Tensor a, Function f) -> Tensor")
    aj.library.define("binder::held", "(Tensor a, Object o) -> Tensor")
    for call, words in (
        (aj.ops.binder.queued, "a stream"),
        (aj.ops.binder.mapped, "a function"),
        (aj.ops.binder.held, "an object of a plugin's type"),
    ):
        with pytest.raises(TypeError, match=rf"argument '.' must be {words}, not NoneType"):
            call(a, None)


def test_unsupported_operands_are_left_to_the_other_side():
    class Other:
        def __radd__(self, left):
            return "mine"

    assert a + Other() == "mine"
    with pytest.raises(TypeError, match="unsupported operand"):
        a + "x"
    with pytest.raises(TypeError):
        _ = a < "x"


def test_op_objects():
    assert aj.add.__name__ == "add" and aj.add.__module__ == "adjoin"
    assert str(inspect.signature(aj.add)) == "(input, other, *, alpha=1, out=None)"
    assert "add(Operand input" in aj.add.__doc__
    assert pickle.loads(pickle.dumps(aj.add)) is aj.add
    assert pickle.loads(pickle.dumps(aj.Tensor.add)) is aj.Tensor.add
    assert aj.add is aj.ops.add
    assert "of 'adjoin.Tensor' objects" in repr(aj.Tensor.add)


def test_a_function_in_a_class_is_not_bound():
    class Net:
        activation = aj.exp

    assert Net().activation(aj.zeros(1)).tolist() == [1.0]


def test_unknown_names():
    with pytest.raises(AttributeError, match="did you mean 'relu'"):
        _ = aj.rellu
    with pytest.raises(AttributeError, match="no op named"):
        _ = aj.ops.rellu
    assert not hasattr(aj, "select_backward") and "exp" in dir(aj)


def test_factories_take_requires_grad():
    assert aj.ones(2, requires_grad=True).requires_grad and not aj.ones(2, pin_memory=False).requires_grad
    assert aj.zeros(2, layout=aj.strided).shape == (2,)


def test_operators():
    x, y = aj.tensor([7, -7]), aj.tensor([2, 2])
    assert (x // y).tolist() == [3, -4] and (x % y).tolist() == [1, 1] and (x / y).tolist() == [3.5, -3.5]
    assert (2**y).tolist() == [4, 4] and (y**2).tolist() == [4, 4] and (1 - y).tolist() == [-1, -1]
    assert (x & y).tolist() == [2, 0] and (x | 1).tolist() == [7, -7] and (~y).tolist() == [-3, -3]
    assert (-x).tolist() == [-7, 7] and abs(x).tolist() == [7, 7] and (+x).tolist() == [7, -7]
    assert (y << 1).tolist() == [4, 4] and (x > 0).tolist() == [True, False] and (2 == y).tolist() == [True] * 2
    q, r = divmod(x, y)
    assert q.tolist() == [3, -4] and r.tolist() == [1, 1]
    x -= 1
    assert x.tolist() == [6, -8]


def test_writing_forms_where_memory_is_shared():
    a = aj.arange(6.0)
    assert aj.add(a, 1, out=a) is a and a.tolist() == [1, 2, 3, 4, 5, 6]
    assert aj.mul(a, a, out=a).tolist() == [1, 4, 9, 16, 25, 36]
    with pytest.raises(RuntimeError, match="shares part of its memory"):
        aj.add(a[:5], 1, out=a[1:])
    assert aj.add(a[:3], 1, out=a[3:]).tolist() == [2, 5, 10] and a.tolist() == [1, 4, 9, 2, 5, 10]
    b = aj.ones(2, 3)
    assert aj.add(b, b, out=aj.empty(3, 2).t()).tolist() == [[2.0] * 3] * 2
    wide = aj.empty(2, 3, dtype=aj.float64)
    assert aj.add(b, b, out=wide).dtype is aj.float64 and wide.sum().item() == 12
    assert aj.add(b, b, out=aj.empty(0)).shape == (2, 3)
    c = aj.zeros(2, 3)
    assert aj.exp(c, out=c).sum().item() == 6 and c.copy_(aj.ones(3, 2).t() * 2).sum().item() == 12


@pytest.mark.parametrize("name", ["add", "sub", "addcmul", "addcdiv"])
def test_numbers_among_tensors_as_older_programs_have_them(name):
    word = "alpha" if name in ("add", "sub") else "value"
    x, rest = aj.tensor([3.0, 1.0]), [aj.tensor([2.0, 5.0])] * (1 if word == "alpha" else 2)
    wanted = getattr(aj, name)(x, *rest, **{word: 0.5})
    with pytest.warns(UserWarning, match=f"This overload of {name} is deprecated: give {word} by name"):
        assert getattr(aj, name)(x, 0.5, *rest).equal(wanted)
    with pytest.warns(UserWarning, match="is deprecated"):
        assert getattr(x, name)(0.5, *rest).equal(wanted)
    written = x.clone()
    with pytest.warns(UserWarning, match=f"overload of {name}_ is deprecated"):
        assert getattr(written, name + "_")(0.5, *rest) is written and written.equal(wanted)
    with pytest.raises(TypeError, match="positional argument"):
        getattr(aj, name)(x, *rest, *rest, *rest)


@pytest.mark.filterwarnings("ignore")
def test_products_with_numbers_in_front():
    m, a, b = aj.full((2, 2), 3.0), aj.ones(2, 2), aj.full((2, 2), 2.0)
    wanted = aj.addmm(m, a, b, beta=0.5, alpha=2)
    assert aj.addmm(0.5, m, 2, a, b).equal(wanted) and m.addmm(0.5, 2, a, b).equal(wanted)
    assert m.clone().addmm_(0.5, 2, a, b).equal(wanted) and aj.addmm(0.5, m, a, b).equal(aj.addmm(m, a, b, beta=0.5))
    v = aj.ones(2)
    assert aj.addmv(0.5, v, 2, a, v).equal(aj.addmv(v, a, v, beta=0.5, alpha=2))
    with pytest.raises(TypeError, match="addmm.. takes 3 positional arguments but 6 were given"):
        aj.addmm(m, 1, 2, 3, a, b)


def test_forms_that_no_schema_says():
    x = aj.tensor([3.0, 1.0, 2.0])
    assert [t.tolist() for t in x.tensor_split(aj.tensor([1, 2]))] == [[3.0], [1.0], [2.0]]
    assert [t.tolist() for t in aj.tensor_split(x, aj.tensor(2), dim=0)] == [[3.0, 1.0], [2.0]]
    with pytest.raises(RuntimeError, match="tensor_split: expected indices or sections of dtype long"):
        x.tensor_split(aj.tensor([1.0]))
    assert aj.sort(x, stable=None)[0].tolist() == x.sort(stable=None)[0].tolist() == [1.0, 2.0, 3.0]
    assert x.argsort(stable=None).tolist() == [1, 2, 0]


def test_lists_that_may_be_empty_are_the_default():
    x = aj.arange(16.0).reshape(1, 1, 4, 4)
    F = aj.nn.functional
    assert F.avg_pool2d(x, 2, stride=()).equal(F.avg_pool2d(x, 2)) and F.max_pool2d(x, 2, ()).equal(F.max_pool2d(x, 2))
    with pytest.raises(RuntimeError, match="argument 'stride' has 3 values; 1 or 2 are wanted"):
        F.avg_pool2d(x, 2, stride=(1, 2, 3))
