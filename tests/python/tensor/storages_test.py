"""tests/python/tensor/storages_test.py: storages as objects: one for each memory, tensors made over one, storages without values."""

import copy
import struct

import adjoin
import pytest


def test_one_object_stands_for_one_memory():
    x = adjoin.arange(6.0)
    memory = x.untyped_storage()
    memory.note = "mine"
    assert x[2:].untyped_storage() is memory and x.detach().storage().untyped().note == "mine"
    assert adjoin.arange(6.0).untyped_storage() is not memory and x.clone().untyped_storage() is not memory
    before = memory.data_ptr()
    x.share_memory_()
    assert x.untyped_storage().data_ptr() != before and x.untyped_storage() is not memory
    kept = [adjoin.ones(2).untyped_storage() for _ in range(100)]
    assert len({id(s) for s in kept}) == len({s.data_ptr() for s in kept}) == 100


def test_a_subclass_is_found_again():
    class Mine(adjoin.UntypedStorage):
        pass

    made = Mine(8)
    assert adjoin.tensor(made, dtype=adjoin.float64).untyped_storage() is made


@pytest.mark.parametrize(
    "dtype", [adjoin.float32, adjoin.int8, adjoin.uint16, adjoin.complex64, adjoin.bool, adjoin.bfloat16]
)
def test_a_tensor_of_a_storage_sees_its_numbers(dtype):
    x = adjoin.tensor([1, 0, 1, 1]).to(dtype)
    for storage in (x.storage(), x.untyped_storage()):
        seen = adjoin.tensor(storage, dtype=dtype)
        assert seen.dtype is dtype and seen.tolist() == x.tolist() and seen.data_ptr() == x.data_ptr()
    assert adjoin.tensor(x.storage()).dtype is dtype
    with pytest.raises(RuntimeError, match="Expected a Storage of type"):
        adjoin.tensor(x.storage(), dtype=adjoin.int32)
    assert adjoin.tensor(adjoin.UntypedStorage(12)).shape == (1,)  # bytes without a dtype are int64, as in PyTorch
    assert not adjoin.tensor(x.untyped_storage(), dtype=dtype, requires_grad=False).requires_grad


def test_a_meta_storage_has_no_values():
    typed = adjoin.TypedStorage([1, 2, 3], dtype=adjoin.int16, device="meta")
    for storage in (typed, typed.untyped()):
        assert storage.data_ptr() == 0 and storage.nbytes() == 6
        for wrong in (lambda: storage[0], storage.tolist):  # noqa: B023
            with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
                wrong()
        with pytest.raises(RuntimeError, match="only available on CPU"):
            storage.share_memory_()


def test_wrong_arguments_of_typed_storages():
    typed, bytes_ = adjoin.TypedStorage, adjoin.UntypedStorage(4)
    for error, words, wrong in (
        (RuntimeError, "'device' cannot be specified", lambda: adjoin.FloatStorage(device="cpu")),
        (RuntimeError, "'dtype' cannot be specified", lambda: adjoin.FloatStorage(dtype=adjoin.float32)),
        (RuntimeError, "Too many positional", lambda: adjoin.FloatStorage(0, 0)),
        (TypeError, "invalid data type", lambda: adjoin.FloatStorage("string")),
        (TypeError, "Argument type not recognized", lambda: adjoin.FloatStorage(adjoin.ones(1))),
        (RuntimeError, "No positional arguments", lambda: adjoin.FloatStorage(0, wrap_storage=bytes_)),
        (TypeError, "must be UntypedStorage", lambda: adjoin.FloatStorage(wrap_storage=adjoin.FloatStorage())),
        (RuntimeError, "'dtype' must be specified", lambda: typed(wrap_storage=bytes_)),
        (TypeError, "'dtype' must be torch.dtype", lambda: typed(3, dtype=0)),
        (RuntimeError, "'device' should not", lambda: typed(wrap_storage=bytes_, dtype=adjoin.int8, device="cpu")),
        (RuntimeError, "cannot set item", lambda: adjoin.FloatStorage(2).fill_(adjoin.FloatStorage(2))),
    ):
        with pytest.raises(error, match=words):
            wrong()


def test_the_names_that_packages_use():
    storage = adjoin.arange(3.0).storage()
    assert (storage._size(), storage._nbytes(), storage._element_size(), storage._is_shared()) == (3, 12, 4, False)
    assert storage._data_ptr() == storage.data_ptr() and storage._pickle_storage_type() == "FloatStorage"
    storage._setitem(slice(0, 2), 7)
    assert storage.tolist() == [7, 7, 2] and adjoin.FloatStorage._dtype is adjoin.float32
    twin = copy.deepcopy(storage)
    twin[0] = 0
    assert storage[0] == 7 and type(twin) is adjoin.FloatStorage and adjoin.ones(9).storage().__sizeof__() > 36


def test_memory_that_grows_is_another_version():
    x = adjoin.ones(3, requires_grad=True)
    y = x * 1
    out, data = (y * y).sum(), y.detach()
    seen = [data._version]
    for shape in ((3,), (9,), (9,), (2,)):
        data.resize_(shape)
        seen.append(data._version - seen[0])
    assert seen[1:] == [0, 1, 1, 2], "another shape counts, the same one changes nothing"
    out.backward()  # the memory that y looks at stays what it was
    assert x.grad.tolist() == [2, 2, 2]
    held = adjoin.ones(2, requires_grad=True) * 1
    out, same = (held * held).sum(), held.detach()
    same.resize_(1)  # in its place
    with pytest.raises(RuntimeError, match="in place|inplace"):
        out.backward()


def test_what_is_new_alone_is_filled_while_algorithms_are_deterministic():
    with adjoin.no_grad():
        adjoin.use_deterministic_algorithms(True)
        try:
            spread, grown = adjoin.zeros(1).expand(10), adjoin.zeros(2)
            spread.resize_((10,))
            grown.resize_((4,))
        finally:
            adjoin.use_deterministic_algorithms(False)
    assert spread.tolist() == [0] * 10 and grown[:2].tolist() == [0, 0] and grown[2:].isnan().all()


def test_bytes_become_numbers_and_come_from_buffers():
    held = adjoin.tensor([1.0, -2.0]).untyped_storage()
    assert held.long().tolist() == list(struct.pack("=2f", 1, -2)) and held.long().dtype is adjoin.int64
    assert held.type(adjoin.float64).tolist() == held.double().tolist() and held.type().endswith(
        "storage.UntypedStorage"
    )
    made = adjoin.UntypedStorage.from_buffer(struct.pack(">2i", 7, -9), "big", dtype=adjoin.int32)
    assert made.tolist() == list(struct.pack("=2i", 7, -9))
    assert adjoin.UntypedStorage.from_buffer(b"abcd", count=2, offset=1).tolist() == [98, 99]
    assert held.new().nbytes() == 0 and held.get_device() == -1 and not held.is_pinned() and not held.is_sparse
    typed = adjoin.tensor([1.5, 2.5]).storage().to(device="meta")
    assert typed.device.type == "meta" and len(typed) == 2


def test_memory_does_not_move_under_tensors():
    x = adjoin.arange(6.0)
    held = x.untyped_storage()
    assert held.resize_(24) is held and not held.resizable()
    for size in (0, 8, 48):
        with pytest.raises(NotImplementedError, match=rf"24 bytes cannot become {size} under .*say tensor.resize_\(\)"):
            held.resize_(size)
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
