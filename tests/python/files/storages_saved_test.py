"""tests/python/files/storages_saved_test.py: storages saved alone, several saves in one file, records one by one, and who decides what is trusted."""

import io
import os
import pickle
import zipfile

import adjoin
import pytest
from adjoin import serialization
from pt_files import through

BOTH = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "old"])
# A list of two storages of one float each, which are the halves of one of two, in the layout of PyTorch 0.3.
HALVES = (
    b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}.\x80\x02]("
    b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00aX\x03\x00\x00\x00cpuK\x02(X\x01\x00\x00\x00bK\x00K\x01ttQ"
    b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00aX\x03\x00\x00\x00cpuK\x02(X\x01\x00\x00\x00cK\x01K\x01ttQ"
    b"e.\x80\x02]X\x01\x00\x00\x00aa.\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80?\x00\x00\x00@"
)


@BOTH
@pytest.mark.parametrize("weights_only", [True, False])
def test_a_storage_stays_the_memory_of_its_tensor(zipped, weights_only):
    tensor = adjoin.arange(6.0).reshape(2, 3)
    file = io.BytesIO()
    adjoin.save([tensor.storage(), tensor[1], tensor.storage()], file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    storage, row, again = adjoin.load(file, weights_only=weights_only)
    assert type(storage) is adjoin.FloatStorage and storage.tolist() == [0, 1, 2, 3, 4, 5] and again is storage
    storage[3] = 9
    assert row.tolist() == [9, 4, 5]


@BOTH
def test_bytes_alone_are_saved(zipped):
    file = io.BytesIO()
    adjoin.save({"bytes": adjoin.UntypedStorage([1, 2, 250])}, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    assert adjoin.load(file)["bytes"].tolist() == [1, 2, 250]
    shared = adjoin.tensor([1.0, 2.0])
    numbers, memory = through([shared, shared.untyped_storage()])
    numbers[0] = 3
    assert memory.tolist() == [3, 2]  # as the numbers that the file knew it by first


def test_parts_of_a_storage_in_an_old_file():
    first, second = adjoin.load(io.BytesIO(HALVES))
    assert first.tolist() == [1] and second.tolist() == [2] and first.data_ptr() + 4 == second.data_ptr()
    outside = HALVES.replace(b"cK\x01K\x01tt", b"cK\x01K\x02tt")
    with pytest.raises(pickle.UnpicklingError, match="outside"):
        adjoin.load(io.BytesIO(outside))


def test_what_follows_in_an_old_file_is_left_to_who_reads_next(tmp_path):
    layer = adjoin.nn.Linear(2, 3)
    with open(tmp_path / "x", "wb") as file:
        pickle.dump("begin", file)
        adjoin.save(adjoin.ones(300, 2), file, _use_new_zipfile_serialization=False)
        pickle.dump("between", file)
        adjoin.save(layer.state_dict(), file, _use_new_zipfile_serialization=False)
        adjoin.save([1, "two"], file, _use_new_zipfile_serialization=False)
    for file in (open(tmp_path / "x", "rb"), io.BytesIO((tmp_path / "x").read_bytes())):
        with file:
            assert pickle.load(file) == "begin" and adjoin.load(file).shape == (300, 2)
            assert pickle.load(file) == "between"
            assert adjoin.load(file)["weight"].equal(layer.weight) and adjoin.load(file) == [1, "two"]
            assert file.read() == b""


@pytest.mark.parametrize("place", ["path", "memory"])
def test_records_are_written_and_read_one_by_one(tmp_path, place):
    where = tmp_path / "x.pt" if place == "path" else io.BytesIO()
    records = {"a": b"first", "b/c": bytes(range(256)), "none": b""}
    with serialization._open_zipfile_writer(where) as writer:
        for name, data in records.items():
            writer.write_record(name, data, len(data))
        writer.write_record("memory", adjoin.tensor([1, 2], dtype=adjoin.uint8).untyped_storage(), 2)
    with serialization._open_zipfile_reader(where) as reader:
        assert {name: reader.get_record(name) for name in records} == records
        assert reader.get_record("memory") == b"\x01\x02" and reader.has_record("version")
    with zipfile.ZipFile(where) as archive:
        for info in archive.infolist():
            with archive.open(info) as opened:
                assert opened._fileobj._pos % 64 == 0 or not info.file_size
    if place == "memory":
        where.seek(0)
        assert serialization._is_zipfile(where) and where.tell() == 0
        assert not serialization._is_zipfile(io.BytesIO(b"PK\x05\x06"))


def test_the_environment_decides_what_is_trusted(tmp_path, monkeypatch):
    adjoin.save({"device": adjoin.device("cpu"), "class": os.path.join}, tmp_path / "x")
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        adjoin.load(tmp_path / "x", weights_only=False)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="only one of"):
        adjoin.load(tmp_path / "x")
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD")
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        assert adjoin.load(tmp_path / "x")["device"].type == "cpu"
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        adjoin.load(tmp_path / "x", weights_only=True)


def test_functions_of_the_system_are_let_in_by_no_list():
    file = io.BytesIO()
    adjoin.save(os.execv, file)
    file.seek(0)
    with serialization.safe_globals([os.execv]), pytest.raises(pickle.UnpicklingError, match="posix.execv"):
        adjoin.load(file, weights_only=True)


@pytest.mark.parametrize("kind", [AttributeError, TypeError])
def test_what_is_no_file_is_refused(kind):
    with pytest.raises(kind, match="save: a path or a file that is open for writing"):
        adjoin.save([], adjoin.ones(1))
    with pytest.raises(kind, match="load: a path or a file that is open for reading"):
        adjoin.load(3)


class Pair(adjoin.Tensor):
    """Two tensors, whose sum is seen."""

    @staticmethod
    def __new__(cls, a, b):
        made = adjoin.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype)
        made.a, made.b = a, b
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is adjoin.ops.aten.detach.default:
            return cls(args[0].a, args[0].b)
        return func(*(x.a + x.b if isinstance(x, cls) else x for x in args), **(kwargs or {}))


def test_a_tensor_without_memory_is_saved_with_what_its_class_keeps():
    weight = adjoin.nn.Parameter(Pair(adjoin.ones(2), adjoin.arange(2.0)))
    file = io.BytesIO()
    adjoin.save({"weight": weight, "part": weight.a}, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Pair"):
        adjoin.load(file, weights_only=True)
    assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(file.getvalue())) == [f"{__name__}.Pair"]
    for settings in ({"weights_only": True}, {"pickle_module": pickle}):
        file.seek(0)
        with serialization.safe_globals([Pair]):
            found = adjoin.load(file, **settings)
        assert type(found["weight"]) is Pair and isinstance(found["weight"], adjoin.nn.Parameter)
        assert (found["weight"] * 2).tolist() == [2, 4] and found["weight"].requires_grad
        found["part"].fill_(5)
        assert found["weight"].a.tolist() == [5, 5]


def test_text_of_python_2_is_given_as_bytes():
    two = (  # [b"a", zeros(1)], as Python 2 pickled it: text by the codes of bytes
        b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}.\x80\x02](U\x01actorch._utils\n_rebuild_tensor_v2\n((U\x07storage"
        b"ctorch\nFloatStorage\nU\x03keyU\x03cpuK\x01NtQK\x00K\x01\x85K\x01\x85\x89NtRe.\x80\x02]U\x03keya."
        b"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    )
    text, tensor = adjoin.load(io.BytesIO(two), pickle_module=pickle, encoding="bytes")
    assert text == b"a" and tensor.tolist() == [0]
    assert adjoin.load(io.BytesIO(two), encoding="latin1")[0] == "a"
    with pytest.raises(NotImplementedError, match="weights_only=False"):  # not text where bytes are asked for
        adjoin.load(io.BytesIO(two), weights_only=True, encoding="bytes")
