"""tests/python/tensor/tensor_test.py: the Tensor object: identity, attributes, making from data, copies, text."""

import copy
import gc
import math
import pickle
import threading
import weakref

import adjoin as aj
import pytest


def test_shape_and_strides():
    t = aj.zeros(2, 3, 4)
    assert t.shape == (2, 3, 4) and type(t.shape) is aj.Size and t.shape.numel() == 24
    assert t.size(-1) == 4 and t.size() == (2, 3, 4) and t.size(dim=1) == 3
    assert t.stride() == (12, 4, 1) and t.stride(0) == 12
    assert (t.dim(), t.ndim, t.numel(), len(t)) == (3, 3, 24, 2)
    assert (t.itemsize, t.element_size(), t.nbytes) == (4, 4, 96)
    with pytest.raises(IndexError, match=r"range of \[-3, 2\], but got 3"):
        t.size(3)


def test_size_is_a_tuple_that_stays_a_size():
    s = aj.Size([2, 3])
    assert type(s + (4,)) is aj.Size and type(s[:1]) is aj.Size and type(s * 2) is aj.Size
    assert repr(s) == "adjoin.Size([2, 3])" and pickle.loads(pickle.dumps(s)) == s
    with pytest.raises(TypeError, match=r"Size\(\): item 0 must be int, not str"):
        aj.Size(["a"])


def test_dtypes():
    assert repr(aj.float32) == "adjoin.float32" and aj.float is aj.float32 and aj.long is aj.int64
    assert aj.float16.is_floating_point and aj.complex64.is_complex and not aj.uint8.is_signed
    assert aj.float64.itemsize == 8 and pickle.loads(pickle.dumps(aj.bfloat16)) is aj.bfloat16
    assert aj.promote_types(aj.int32, aj.float16) is aj.float16
    assert aj.finfo(aj.float32).eps == 2.0**-23 and aj.iinfo(aj.int8).min == -128
    assert aj.finfo(aj.float64).max == 1.7976931348623157e308


def test_devices():
    d = aj.device("cpu")
    assert d.type == "cpu" and d.index is None and str(d) == "cpu" and d == aj.zeros(1).device
    assert repr(aj.device("cpu", 0)) == "device(type='cpu', index=0)" and hash(d) == hash(aj.device("cpu"))
    assert pickle.loads(pickle.dumps(d)) == d
    with pytest.raises(RuntimeError, match="is not a device"):
        aj.device("cpu:x")
    with pytest.raises(RuntimeError, match="is not a device"):
        aj.device("No where")
    with pytest.raises(TypeError, match="must be str or device, not float"):
        aj.device(1.5)


def test_a_device_may_be_named_that_is_not_there():
    d = aj.device("nowhere:1")
    assert (
        d.type == "nowhere" and d.index == 1 and str(d) == "nowhere:1" and repr(d) == "device(type='nowhere', index=1)"
    )
    assert d == aj.device("nowhere", 1) == pickle.loads(pickle.dumps(d)) and hash(d) == hash(aj.device(d))
    assert d != aj.device("nowhere") and d != aj.device("elsewhere:1") and d != aj.zeros(1).device
    told = "device 'nowhere': no plugin provides 'nowhere'"
    for use in (
        lambda: aj.zeros(1, device=d),
        lambda: aj.tensor([1], device="nowhere"),
        lambda: aj.ones(2).to(d),
        lambda: aj.ones(2).to("nowhere"),
        lambda: aj.Generator(d),
        lambda: aj.set_default_device(d),
        lambda: d.__enter__(),
    ):
        with pytest.raises(RuntimeError, match=told):
            use()
    assert aj.zeros(1).is_cpu


@pytest.mark.parametrize("shape", [(3, 4), (7, 2), (2, 2, 2)], ids=str)
def test_fill_diagonal_of_a_part_leaves_the_rest(shape):
    whole = aj.zeros(40)
    part = whole[5:][: math.prod(shape)].view(shape)
    want = aj.zeros(shape)
    for i in range(min(shape)):
        want[(i,) * len(shape)] = 1
    assert aj.equal(part.fill_diagonal_(1), want) and whole.sum() == min(shape)


def test_default_device_is_a_context():
    with aj.device("meta"):
        assert aj.zeros(3).is_meta and aj.zeros(3, device="cpu").is_cpu
    assert aj.zeros(3).is_cpu


def test_default_device_is_a_threads_own():
    entered, looked, found = threading.Event(), threading.Event(), []

    def other():
        with aj.device("meta"):
            entered.set()
            looked.wait(60)
            found.append(aj.zeros(1).device.type)
        found.append(aj.zeros(1).device.type)

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(60)
    try:
        assert aj.zeros(3).is_cpu and aj.get_default_device().type == "cpu"
    finally:
        looked.set()
        thread.join()
    assert found == ["meta", "cpu"]


@pytest.mark.parametrize(
    "data, dtype, shape",
    [
        (3, "int64", ()), (3.5, "float32", ()), (True, "bool", ()), (1 + 2j, "complex64", ()),
        ([1, 2, 3], "int64", (3,)), ([1, 2.5], "float32", (2,)), ([True, 2], "int64", (2,)),
        ([[1.0, 2.0], [3.0, 4.0]], "float32", (2, 2)), ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)), (((1,), (2,)), "int64", (2, 1)),
    ],
)  # fmt: skip
def test_tensor_from_lists(data, dtype, shape):
    t = aj.tensor(data)
    assert t.dtype is getattr(aj, dtype) and t.shape == shape
    if shape != (0,):
        want = data if not isinstance(data, tuple) else [list(row) for row in data]
        assert t.tolist() == want


def test_tensor_with_a_dtype():
    assert aj.tensor([1.9, -1.9], dtype=aj.int32).tolist() == [1, -1]
    assert aj.tensor([0, 2], dtype=aj.bool).tolist() == [False, True]
    assert aj.tensor([65504.0, 1e-7, math.inf], dtype=aj.float16).tolist() == [65504.0, 2.0**-23, math.inf]
    assert aj.tensor([1.00390625, 3e38], dtype=aj.bfloat16).tolist()[0] == 1.0
    assert aj.tensor([1, 2.5], dtype=complex).tolist() == [1 + 0j, 2.5 + 0j]
    assert aj.tensor(2, requires_grad=False, dtype=float).dtype is aj.float64


def test_tensor_of_tensors_and_arrays():
    np = pytest.importorskip("numpy")
    assert aj.tensor([aj.tensor(1.5), aj.tensor(2.5)]).tolist() == [1.5, 2.5]
    assert aj.tensor([np.arange(2), np.arange(2)]).dtype is aj.int64
    assert aj.tensor([np.float64(1), np.float64(2)]).dtype is aj.float64
    assert aj.tensor(np.float32(2)).dtype is aj.float32
    assert aj.tensor(np.ones((2, 3))[:, ::2]).tolist() == [[1.0, 1.0]] * 2


@pytest.mark.parametrize(
    "data, error, words",
    [
        ([[1, 2], [3]], ValueError, "expected a sequence of length 2 at dimension 1, got 1"),
        ([[1], 2], ValueError, "sequence of length 1 at dimension 1"),
        ([1, [2]], ValueError, "nested unevenly"),
        (["a"], ValueError, "elements must be numbers, not str"),
        ([None], RuntimeError, "None has no dtype"),
        (2**70, RuntimeError, "does not fit into int64"),
    ],
)
def test_bad_data(data, error, words):
    with pytest.raises(error, match=words):
        aj.tensor(data)


@pytest.mark.parametrize("dtype", [aj.int64, aj.uint8, aj.bool])
def test_tensors_become_whole_numbers_only_where_nothing_is_lost(dtype):
    one, half, none = aj.tensor(1), aj.tensor([1.5]), aj.ones(0)
    for data in ((half, True), [[2], [half]], [aj.tensor(1j)], [half.half(), 7]):
        with pytest.raises(TypeError, match="only integer tensors become whole numbers"):
            aj.tensor(data, dtype=dtype)
    assert aj.tensor((one, True), dtype=dtype).tolist() == [1, 1] and aj.tensor([one, 1.5]).tolist() == [1, 1.5]
    assert aj.tensor([none, none], dtype=dtype).shape == (2, 0)
    assert aj.tensor(half, dtype=dtype).tolist() == [1]  # a cast of the whole
    with pytest.raises(TypeError, match="an element is a tensor of adjoin.float32"):
        aj.LongTensor([half, 1])


def test_overflow_names_the_value():
    with pytest.raises(RuntimeError, match="300 does not fit into uint8"):
        aj.tensor([300], dtype=aj.uint8)


def test_identity_of_python_objects():
    t = aj.zeros(3)
    assert t.add_(1) is t and t.to(aj.float32) is t and t.contiguous() is t and t.cpu() is t
    t += 1
    assert t.tolist() == [2.0] * 3


def test_attributes_and_weak_references():
    t = aj.zeros(2)
    t.note = "kept"
    seen = weakref.ref(t)
    assert t.__dict__ == {"note": "kept"} and seen() is t
    del t
    gc.collect()
    assert seen() is None


def test_a_cycle_through_the_dictionary_is_collected():
    t = aj.zeros(2)
    t.itself = t
    seen = weakref.ref(t)
    del t
    gc.collect()
    assert seen() is None


class Marked(aj.Tensor):
    pass


@pytest.mark.parametrize("kind", [aj.Tensor, Marked])
def test_a_weak_reference_outlives_the_tensor(kind):
    """It hands out an object of which the tensor knows nothing: that goes on with a copy. It once read freed memory."""
    x, holder = aj.tensor([1.5, 2.5]).as_subclass(kind), aj.ones(2)
    x.mark = 3
    seen = weakref.ref(x)
    holder.grad = x
    del x
    x = seen()
    holder.grad = None
    assert type(x) is kind and x.mark == 3 and (x * 2).tolist() == [3.0, 5.0]
    del x
    assert seen() is None


def test_plain_tensors_are_not_tracked():
    t = aj.zeros(2) + 1
    assert not gc.is_tracked(t)
    t.x = 1
    assert gc.is_tracked(t)


class Mine(aj.Tensor):
    pass


def test_subclasses():
    m = Mine([1.0, 2.0])
    assert type(m) is Mine and m.tolist() == [1.0, 2.0]
    assert type(m + 1) is Mine and type(m.sum()) is Mine and type(m[0]) is Mine
    assert type(m.max(0)[0]) is Mine
    assert type(aj.zeros(2).as_subclass(Mine)) is Mine
    assert type(copy.deepcopy(m)) is Mine and type(pickle.loads(pickle.dumps(m))) is Mine


class Logged(aj.Tensor):
    seen = []  # noqa: RUF012

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_torch_function_sees_calls():
    Logged.seen.clear()
    x = Logged([1.0, 2.0])
    assert type(x + x) is Logged and type(aj.exp(x)) is Logged
    aj.cat([x, aj.zeros(1)])
    x[0]
    assert Logged.seen == ["add", "exp", "cat", "__getitem__"]
    with aj.DisableTorchFunctionSubclass():
        assert type(x + x) is aj.Tensor


class Stranger:
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return ("stranger", func.__name__)


def test_torch_function_of_strangers():
    assert aj.add(aj.zeros(1), Stranger()) == ("stranger", "add")
    assert aj.zeros(1) + Stranger() == ("stranger", "add")


def test_pickle_and_deepcopy():
    t = aj.arange(6.0).reshape(2, 3).t()
    for made in (pickle.loads(pickle.dumps(t)), copy.deepcopy(t)):
        assert made.tolist() == t.tolist() and made.dtype is t.dtype and made.data_ptr() != t.data_ptr()
    leaf = aj.ones(2, requires_grad=True)
    assert pickle.loads(pickle.dumps(leaf)).requires_grad and copy.deepcopy(leaf).requires_grad
    for dtype in (aj.bool, aj.int8, aj.bfloat16, aj.complex64):
        t = aj.ones(3, dtype=dtype)
        assert pickle.loads(pickle.dumps(t)).tolist() == t.tolist()


def test_numbers_of_one_element():
    t = aj.tensor([2.5])
    assert (float(t), int(t), bool(t), complex(t), t.item()) == (2.5, 2, True, 2.5 + 0j, 2.5)
    assert [10, 20, 30][aj.tensor(1)] == 20 and f"{aj.tensor(2.5):.2f}" == "2.50"
    with pytest.raises(RuntimeError, match="3 elements is no single number"):
        aj.zeros(3).item()
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        bool(aj.zeros(3))
    with pytest.raises(TypeError, match="only integer tensors"):
        [1][aj.tensor(1.0)]


def test_conversions():
    t = aj.tensor([1.7, -1.7])
    assert t.to(aj.int32).dtype is aj.int32 and t.to("cpu", aj.float64).dtype is aj.float64
    assert t.to(aj.zeros(1, dtype=aj.float16)).dtype is aj.float16
    assert t.to(aj.float32, copy=True) is not t and t.to(device="cpu", dtype=aj.bool).dtype is aj.bool
    assert t.long().tolist() == [1, -1] and t.double().dtype is aj.float64
    assert t.type() == "adjoin.FloatTensor" and t.type(aj.int16).dtype is aj.int16
    with pytest.raises(TypeError, match=r"to\(\): argument must be"):
        t.to([1])


def test_storage():
    t = aj.arange(6.0)
    v = t[2:]
    assert v.storage_offset() == 2 and v.data_ptr() == t.data_ptr() + 8
    assert v.untyped_storage() == t.untyped_storage() and t.untyped_storage().nbytes() == 24
    assert t.untyped_storage().data_ptr() == t.data_ptr()


def test_a_storage_has_the_bytes_that_were_asked_for():
    """The cache of memory gives more; nobody reads or counts those."""
    t = aj.ones(1000)
    view = t[10:20]
    assert view.untyped_storage().nbytes() == t.detach().untyped_storage().nbytes() == 4000
    with pytest.raises(RuntimeError, match="outside the memory"):
        t.as_strided((1001,), (1,))
    with pytest.raises(RuntimeError, match="outside"):
        view.as_strided((1,), (1,), 1000)
    t.resize_(1004)
    assert view.untyped_storage().nbytes() in (4000, 4016)  # in its place, or in other memory
    assert t.untyped_storage().nbytes() == 4016 and t[:1000].eq(1).all()
    assert t.resize_(2).untyped_storage().nbytes() == 4016


def test_memory_formats():
    t = aj.zeros(2, 3, 4, 5)
    assert t.is_contiguous() and not t.is_contiguous(memory_format=aj.channels_last)
    c = t.to(memory_format=aj.channels_last)
    assert c.shape == t.shape and c.stride() == (60, 1, 15, 3)
    assert c.is_contiguous(memory_format=aj.channels_last)


def test_membership_and_iteration():
    t = aj.tensor([[1, 2], [3, 4]])
    assert 3 in t and 7 not in t and [r.tolist() for r in t] == [[1, 2], [3, 4]]
    assert [r.tolist() for r in reversed(t)] == [[3, 4], [1, 2]]
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(aj.tensor(1))
    with pytest.raises(TypeError, match="len"):
        len(aj.tensor(1))


def test_methods_can_be_added():
    aj.Tensor.doubled = lambda self: self * 2
    try:
        assert aj.ones(1).doubled().item() == 2.0
    finally:
        del aj.Tensor.doubled


def test_hash_is_identity():
    a, b = aj.zeros(1), aj.zeros(1)
    assert len({a, b, a}) == 2 and (a == None) is False  # noqa: E711


def test_sixty_four_dimensions_are_reduced():
    x = aj.full([1] * 63 + [3], 2.0)
    assert x.sum().item() == 6.0
    assert x.sum(-1).shape == (1,) * 63


def test_attributes_are_each_tensors_own():
    a, b = aj.ones(3), aj.ones(3)
    with pytest.raises(AttributeError):
        a.note  # noqa: B018
    with pytest.raises(AttributeError):
        del a.note
    a.grad = None  # a property makes no dictionary
    vars(b)["note"] = "b"
    a.note = "a"
    c = aj.ones(3)
    assert (vars(a), vars(b), vars(c)) == ({"note": "a"}, {"note": "b"}, {})
    assert a.sum().item() == b.sum().item() == 3 and not gc.is_tracked(aj.ones(3))
    a.exp = lambda: "mine"
    assert a.exp() == "mine" and b.exp().shape == (3,)
    a.__dict__ = {}
    assert vars(a) == {} and a.exp().shape == (3,)
    a.me = a  # a cycle
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is None


def test_the_dtype_is_read_only_and_follows_data():
    t = aj.ones(3)
    with pytest.raises(AttributeError):
        t.dtype = aj.float64
    t.data = aj.zeros(2, dtype=aj.float64)
    assert t.dtype is aj.float64 and t.shape == (2,) and (t + 1).dtype is aj.float64
    assert [aj.ones(1, dtype=d).dtype for d in (aj.bool, aj.int8, aj.bfloat16)] == [aj.bool, aj.int8, aj.bfloat16]
