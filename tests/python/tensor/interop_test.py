"""tests/python/tensor/interop_test.py: memory shared with NumPy, buffers and DLPack."""

import array
import subprocess
import sys
import warnings

import adjoin as aj
import pytest

np = pytest.importorskip("numpy")
DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_both_ways(dtype):
    x = np.array([[0, 1], [2, 3]], dtype=dtype)
    t = aj.from_numpy(x)
    assert t.dtype is getattr(aj, dtype) and t.data_ptr() == x.ctypes.data and t.tolist() == x.tolist()
    back = t.numpy()
    assert back.dtype == x.dtype and back.ctypes.data == x.ctypes.data
    assert np.array_equal(np.asarray(t), x)


def test_writes_are_seen_on_both_sides():
    x = np.zeros(3, np.float32)
    t = aj.as_tensor(x)
    t.add_(1)
    x[0] = 5
    assert x.tolist() == [5.0, 1.0, 1.0] == t.tolist()


def test_copies_do_not_share():
    x = np.zeros(3)
    t = aj.tensor(x)
    x[:] = 1
    assert t.tolist() == [0.0] * 3 and aj.asarray(x, copy=True).data_ptr() != x.ctypes.data


def test_strides():
    x = np.arange(12.0).reshape(3, 4)
    assert aj.from_numpy(x.T).stride() == (1, 4) and aj.from_numpy(x[:, ::2]).tolist() == x[:, ::2].tolist()
    t = aj.arange(12.0).reshape(3, 4).t()
    assert t.numpy().strides == (4, 16) and np.array_equal(t.numpy(), np.array(t.tolist()))
    with pytest.raises(ValueError, match="negative strides"):
        aj.from_numpy(x[::-1])


def test_what_cannot_be_shared():
    with pytest.raises(TypeError, match=r"from_numpy\(\): argument must be numpy.ndarray, not list"):
        aj.from_numpy([1])
    with pytest.raises(TypeError, match="foreign byte order"):
        aj.from_numpy(np.zeros(2, dtype=">f4"))
    with pytest.raises(TypeError):
        aj.from_numpy(np.array(["a"]))
    with pytest.raises(RuntimeError, match=r"use .detach\(\).numpy\(\) instead"):
        aj.ones(1, requires_grad=True).numpy()
    with pytest.raises(RuntimeError, match="requires grad"):
        np.asarray(aj.ones(1, requires_grad=True))
    with pytest.raises(TypeError, match="NumPy has no"):
        aj.ones(1, dtype=aj.bfloat16).numpy()
    assert aj.ones(1, requires_grad=True).numpy(force=True).tolist() == [1.0]


def test_lifetimes():
    t = aj.from_numpy(np.full(1000, 7.0))
    view = t[10:]
    del t
    assert float(view.sum()) == 7.0 * 990
    x = aj.full((1000,), 3.0).numpy()
    assert x.sum() == 3000.0


def test_read_only_memory():
    x = np.zeros(3)
    x.flags.writeable = False
    t = aj.from_numpy(x)
    with pytest.raises(RuntimeError):
        t.add_(1)
    assert x.tolist() == [0.0] * 3


def test_buffers():
    t = aj.arange(3, dtype=aj.int32)
    m = memoryview(t)
    assert (m.format, m.shape, m.strides, m.tolist()) == ("i", (3,), (4,), [0, 1, 2])
    m[0] = 9
    assert t.tolist() == [9, 1, 2]
    assert aj.as_tensor(array.array("d", [1.5, 2.5])).tolist() == [1.5, 2.5]
    f = aj.frombuffer(bytearray(b"\1\0\2\0\3\0"), dtype=aj.int16, offset=2)
    assert f.tolist() == [2, 3]
    assert aj.frombuffer(bytearray(b"\1\0\2\0"), dtype=aj.int16, count=1).tolist() == [1]
    with pytest.raises(ValueError, match="actual buffer length .4 bytes"):
        aj.frombuffer(b"\1\0\2\0", dtype=aj.int16, count=3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_array_interface(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    ours, theirs = aj.from_numpy(x).__array_interface__, x.__array_interface__
    assert ours["typestr"] == theirs["typestr"] and ours["data"][0] == theirs["data"][0]
    assert not hasattr(aj.ones(1, requires_grad=True), "__array_interface__")


class Offers:
    """An array of another library."""

    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.kept = array


def test_objects_with_an_array_interface():
    x = np.arange(3.0)
    assert aj.as_tensor(Offers(x)).data_ptr() == x.ctypes.data and aj.tensor(Offers(x)).tolist() == x.tolist()


def test_dlpack():
    x = np.arange(6.0).reshape(2, 3)
    t = aj.from_dlpack(x)
    assert t.data_ptr() == x.ctypes.data and t.tolist() == x.tolist()
    assert np.from_dlpack(t).ctypes.data == x.ctypes.data
    u = aj.arange(4.0)
    assert aj.from_dlpack(u).data_ptr() == u.data_ptr() and u.__dlpack_device__() == (1, 0)
    capsule = u.__dlpack__()
    assert aj.from_dlpack(capsule).tolist() == u.tolist()
    with pytest.raises(ValueError, match="used before"):
        aj.from_dlpack(capsule)
    assert "dltensor_versioned" in repr(u.__dlpack__(max_version=(1, 0)))
    with pytest.raises(BufferError, match="requires grad"):
        aj.ones(1, requires_grad=True).__dlpack__()


def test_dlpack_exchange_table():
    assert "dlpack_exchange_api" in repr(aj.Tensor.__dlpack_c_exchange_api__)


def test_numpy_functions_on_tensors():
    t = aj.tensor([1.0, 4.0])
    assert np.sqrt(t).tolist() == [1.0, 2.0] and np.array(t, dtype=np.int64).tolist() == [1, 4]
    assert type(np.sqrt(t)) is aj.Tensor and (t * np.array([2.0, 3.0])).tolist() == [2.0, 12.0]


def test_without_numpy():
    program = (
        "import sys; sys.modules['numpy'] = None\n"
        "import adjoin as aj\n"
        "t = aj.tensor([[1.0, 2.0]]) @ aj.ones(2, 1)\n"
        "assert t.tolist() == [[3.0]] and repr(t) == 'tensor([[3.]])'\n"
        "memoryview(t)\n"
        "try: t.numpy()\n"
        "except ImportError: print('fine')\n"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert out.stdout == "fine\n", out.stderr


def test_a_buffer_that_is_not_writable_is_told():
    with pytest.warns(UserWarning, match="The given buffer is not writable"):
        assert aj.frombuffer(b"\x01\x02", dtype=aj.uint8).tolist() == [1, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        aj.frombuffer(bytearray(b"\x01\x02"), dtype=aj.uint8)
    with pytest.raises(ValueError, match="object does not implement Python buffer protocol: a list"):
        aj.frombuffer([1, 2], dtype=aj.uint8)


def test_asarray_takes_capsules():
    x = aj.tensor([1.0, 2.0])
    shared = aj.asarray(x.__dlpack__(), copy=False)
    assert shared.data_ptr() == x.data_ptr() and aj.asarray(x.__dlpack__()).data_ptr() == x.data_ptr()
    assert aj.asarray(x.__dlpack__(), copy=True).tolist() == [1.0, 2.0]


def test_memory_that_may_not_be_written_is_told_once_in_a_program():
    program = """
import warnings, numpy, adjoin
rows = numpy.zeros(3)
rows.flags.writeable = False
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    adjoin.from_numpy(numpy.zeros(3))
    first, second = adjoin.from_numpy(rows), adjoin.from_numpy(rows)
print([(w.category.__name__, str(w.message)[:40]) for w in told])
try:
    second.add_(1)
except RuntimeError:
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[('UserWarning', 'The given NumPy array is not writable: a')]", "refused"]


def test_a_class_that_is_no_tensor_takes_no_tensor():
    for wrong in (int, 3):
        with pytest.raises(RuntimeError, match="a class that does not inherit from Tensor"):
            aj.ones(2).as_subclass(wrong)


def test_memory_that_was_taken_twice():
    numbers = np.arange(8.0)
    first, second = aj.from_numpy(numbers), aj.from_numpy(numbers[1:])
    with pytest.raises(RuntimeError, match="shares part of its memory"):
        first[:-1].add_(second)
    second.copy_(first[:-1])
    assert numbers.tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
    first.add_(aj.from_numpy(numbers))  # the very same elements are read before they are written
    assert numbers.tolist() == [0, 0, 2, 4, 6, 8, 10, 12]


GIVEN_ANOTHER = {
    "a larger shape": lambda x: x.resize_(1000, 1000),
    "other memory": lambda x: x.set_(aj.zeros(3)),
    "other data": lambda x: setattr(x, "data", aj.zeros(3)),
    "its dimensions in turns": lambda x: x.t_(),
}


@pytest.mark.parametrize("change", GIVEN_ANOTHER)
def test_who_has_the_memory_keeps_it_when_the_tensor_is_given_another(change):
    """An array, a buffer and a capsule read memory that was free, in a shape that was not theirs."""
    for lent in (lambda x: x.numpy(), memoryview, np.asarray, lambda x: np.from_dlpack(x), lambda x: x.__dlpack__()):
        x = aj.arange(60_000.0).reshape(200, 300)
        there = lent(x)
        GIVEN_ANOTHER[change](x)
        others = [aj.full((200, 300), -1.0) for _ in range(8)]  # who takes what was given back
        read = aj.from_dlpack(there).numpy() if "capsule" in repr(there) else np.asarray(there)
        assert read.shape == (200, 300) and (read.ravel() == np.arange(60_000.0)).all()
        del others
