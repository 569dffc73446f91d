"""tests/python/files/serialization_faults_test.py: what the reader of `.pt` files refuses: code, lies, damaged bytes."""

import copy
import io
import os
import pickle
import random
import struct
import zipfile
import collections

import adjoin
import pytest
from adjoin import serialization
from pt_files import archive, load_bytes, through


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/never",)


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_is_executed(protocol):
    data = archive(pickle.dumps({"x": Evil()}, protocol))
    with pytest.raises(pickle.UnpicklingError, match="posix.system, which is not allowed"):
        load_bytes(data)
    with (
        pytest.raises(pickle.UnpicklingError, match=r"names posix\.system"),
        serialization.safe_globals([collections.deque]),
    ):
        load_bytes(data)
    found = load_bytes(data, weights_only=False)["x"]
    assert repr(found) == "<unknown object of posix.system>" and found.args == ("touch /tmp/never",)
    with pytest.raises(AttributeError, match="may be meant to harm$"):
        found.eval()
    assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data)) == ["posix.system"]


def test_nobody_is_advised_to_allow_what_runs_code():
    for harmful, told in (
        (os.system, "no file of tensors needs"),
        (eval, "no file of tensors needs"),
        (collections.deque, "allow it by"),
    ):
        with pytest.raises(pickle.UnpicklingError, match=told):
            load_bytes(archive(pickle.dumps(harmful)))


class Point:
    def __init__(self, x):
        self.x = x


def test_classes_by_leave():
    data = archive(pickle.dumps([Point(3), Point([4])], 2))
    name = f"{Point.__module__}.Point"
    with pytest.raises(pickle.UnpicklingError, match=name):
        load_bytes(data)
    record = load_bytes(data, weights_only=False)[1]
    assert record.state == {"x": [4]} and repr(record) == f"<unknown object of {name}>"
    with pytest.raises(AttributeError, match=r"has no 'eval'.*safe_globals\(\[Point\]\)"):
        record.eval()
    with pytest.raises(TypeError, match=r"cannot be called.*pickle_module=pickle"):
        record(1)
    assert copy.deepcopy(record).state == pickle.loads(pickle.dumps(record)).state == record.state
    with serialization.safe_globals([Point]):
        assert serialization.get_safe_globals() == [Point]
        assert [p.x for p in load_bytes(data)] == [3, [4]]
    assert serialization.get_safe_globals() == []
    assert [p.x for p in load_bytes(data, pickle_module=pickle)] == [3, [4]]
    with pytest.raises(RuntimeError, match="leave one of them out"):
        load_bytes(data, pickle_module=pickle, weights_only=True)


def test_a_whole_module():
    net = adjoin.nn.Sequential(adjoin.nn.Linear(2, 3), adjoin.nn.ReLU())
    x = adjoin.ones(2)
    with pytest.raises(pickle.UnpicklingError, match=r"adjoin\.nn\.modules\.container\.Sequential"):
        through(net)
    assert through(net, pickle_module=pickle)(x).tolist() == net(x).tolist()
    with serialization.safe_globals([adjoin.nn.Sequential, adjoin.nn.Linear, adjoin.nn.ReLU]):
        assert through(net)(x).tolist() == net(x).tolist()


@pytest.mark.parametrize("protocol", range(6))
def test_pickles_of_every_protocol(protocol):
    values = [
        None,
        True,
        1,
        -5,
        300,
        70000,
        2**40,
        2**3000,
        1.25,
        "text\n",
        "ü",
        b"bytes\x00",
        (1, 2),
        [],
        [1],
        {"a": (3,)},
        {1},
        bytearray(b"z" * 9),
    ]
    if protocol >= 4:
        values.append(frozenset([1, (2, 3)]))
    values += [values[-1], [values[11]] * 3]
    found = load_bytes(archive(pickle.dumps(values, protocol)), weights_only=protocol >= 3)
    if protocol < 3:
        found, values = found[:11], values[:11]
    assert found == values


def test_faults_are_told(tmp_path):
    good = io.BytesIO()
    adjoin.save({"x": adjoin.ones(30000)}, good)
    good = good.getvalue()
    for data, match in [
        (b"", "no `.pt` file"), (b"hello, world" * 9, "no `.pt` file"), (good[:-100], "copied whole"), (good[:1000], "copied whole"),
        (archive(b"")[:0] + archive(b""), "ends before its STOP"), (archive(b"\x80\x09."), "newer than 5"),
        (archive(b"]", extra=[("x/constants.pkl", "")]), "TorchScript"), (archive(b"N."), None), (archive(b"."), "stack is empty"),
        (archive(b"h\x05."), "nothing at 5"), (archive(b"j\xff\xff\xff\xff."), "memo"), (archive(b"Nr\xff\xff\xff\xff."), "memo"),
        (archive(b"(" * 3000 + b"t" * 3000 + b"."), "nested deeper"), (archive(b"]" * 3000 + b"a" * 2999 + b"."), "nested deeper"),
        (archive(b"(" + b"N" * 9 + b"t" + b"\x85" * 0 + b"2\x86" * 60 + b"."), "repeating others"),
        (archive(b"B\xff\xff\xff\xff."), "ends before"), (archive(b"\x8b\xff\xff\xff\xff."), "negative"), (archive(b"\x82\x01."), "outside of the file"),
    ]:  # fmt: skip
        if match is None:
            assert load_bytes(data) is None
            continue
        with pytest.raises((RuntimeError, pickle.UnpicklingError), match=match):
            load_bytes(data)
    broken = bytearray(good)
    broken[good.index(b"\x00\x00\x80?" * 50) + 1000] ^= 1
    with pytest.raises(RuntimeError, match="check sum of the record 'archive/data/0'"):
        load_bytes(bytes(broken))
    path = tmp_path / "x.pt"
    path.write_bytes(broken)
    adjoin.load(path, mmap=True)
    for settings in ({}, {"mmap": False}, {"mmap": True, "check_sums": True}):
        with pytest.raises(RuntimeError, match="check sum"):
            adjoin.load(path, **settings)
    assert load_bytes(bytes(broken), check_sums=False)["x"].shape == (30000,)
    with pytest.raises(TypeError, match="open it in binary mode"):
        adjoin.load(io.StringIO("text"))
    with pytest.raises(TypeError, match="a path or a file"):
        adjoin.load(3)


def tensor_record(numel, offset, size, stride):
    """A pickle of one tensor, by hand."""
    numbers = b"".join(b"\x8a\x08" + n.to_bytes(8, "little", signed=True) for n in (offset,))
    sizes = b"(" + b"".join(b"\x8a\x09" + n.to_bytes(9, "little", signed=True) for n in size) + b"t"
    strides = b"(" + b"".join(b"\x8a\x09" + n.to_bytes(9, "little", signed=True) for n in stride) + b"t"
    count = b"\x8a\x08" + numel.to_bytes(8, "little", signed=True)
    return (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
            + count + b"tQ" + numbers + sizes + strides + b"\x89NtR.")  # fmt: skip


@pytest.mark.parametrize(
    ("numel", "offset", "size", "stride"),
    [
        (4, 0, [5], [1]), (4, 1, [4], [1]), (4, -1, [2], [1]), (4, 0, [-1], [1]), (4, 0, [2], [-1]), (4, 0, [2**62], [0]),
        (4, 0, [2**62, 2**62], [0, 0]), (4, 0, [2], [2**62]), (4, 0, [2**61 + 1], [2**3]), (5, 0, [1], [1]), (-1, 0, [1], [1]),
        (2**62, 0, [1], [1]), (4, 0, [2, 2], [1]), (4, 2**63 - 1, [1], [1]), (4, 0, [2**64], [1]), (4, 5, [0], [1]), (4, 0, [1] * 65, [1] * 65),
    ],
)  # fmt: skip
def test_geometry_that_lies(numel, offset, size, stride):
    with pytest.raises((RuntimeError, pickle.UnpicklingError), match="damaged|are not|inside"):
        load_bytes(archive(tensor_record(numel, offset, size, stride), [b"\0" * 16]))


def test_geometry_that_holds():
    assert (
        load_bytes(archive(tensor_record(4, 1, [3, 2], [0, 2]), [struct.pack("<4f", 0, 1, 2, 3)])).tolist()
        == [[1, 3]] * 3
    )
    big = archive(tensor_record(4, 1, [3], [1]), [struct.pack(">4f", 0, 1, 2, 3)], [("x/byteorder", "big")])
    assert load_bytes(big).tolist() == [1, 2, 3]


@pytest.mark.filterwarnings("ignore")
def test_damaged_bytes_load_or_raise():
    file = io.BytesIO()
    adjoin.save(
        {"x": adjoin.arange(10.0), "y": [adjoin.nn.Parameter(adjoin.ones(2)), adjoin.Size([1]), b"x", 2**70]}, file
    )
    good = file.getvalue()
    generator = random.Random(int(os.environ.get("ADJOIN_FUZZ_SEED", 0)))
    turns = int(os.environ.get("ADJOIN_FUZZ_TURNS", 1000))
    for _ in range(turns):
        data = bytearray(good)
        for _ in range(generator.randint(1, 4)):
            data[generator.randrange(len(good) if generator.random() < 0.3 else 700)] = generator.randrange(256)
        if generator.random() < 0.1:
            del data[generator.randrange(len(data)) :]
        try:
            load_bytes(bytes(data), weights_only=generator.random() < 0.5, check_sums=False)
        except (RuntimeError, pickle.UnpicklingError, ValueError, TypeError, KeyError, OverflowError, AttributeError):
            pass


@pytest.mark.filterwarnings("ignore")
def test_damaged_pickles_load_or_raise():
    obj = {
        "x": adjoin.arange(10.0),
        "y": [adjoin.nn.Parameter(adjoin.ones(2)), adjoin.Size([1]), b"x", 2**70, adjoin.float16, {1}],
    }
    file = io.BytesIO()
    adjoin.save(obj, file)
    with zipfile.ZipFile(file) as z:
        good, storages = z.read("archive/data.pkl"), [z.read("archive/data/0"), z.read("archive/data/1")]
    generator = random.Random(int(os.environ.get("ADJOIN_FUZZ_SEED", 0)))
    turns = int(os.environ.get("ADJOIN_FUZZ_TURNS", 1000))
    for _ in range(turns):
        data = bytearray(good)
        for _ in range(generator.randint(1, 3)):
            at = generator.randrange(len(data))
            kind = generator.randrange(4)
            if kind == 0:
                data[at] = generator.choice(b"()]}NRbtuaehqrQ.012\x81\x85\x86\x87\x88\x89\x8a\x8f\x90\x91\x92\x93\x94")
            elif kind == 1:
                data[at] = generator.randrange(256)
            elif kind == 2:
                del data[at : at + generator.randint(1, 9)]
            else:
                data[at:at] = data[(b := generator.randrange(len(data))) : b + generator.randint(1, 40)]
            if not data:
                data = bytearray(b".")
        try:
            load_bytes(archive(bytes(data), storages), weights_only=generator.random() < 0.5)
        except (RuntimeError, pickle.UnpicklingError, ValueError, TypeError, KeyError, OverflowError, AttributeError):
            pass


def test_a_file_without_check_sums_is_read():
    adjoin.serialization.set_crc32_options(False)
    try:
        file = io.BytesIO()
        adjoin.save({"x": adjoin.arange(5.0)}, file)
    finally:
        adjoin.serialization.set_crc32_options(True)
    with zipfile.ZipFile(file) as z:
        assert all(record.CRC == 0 for record in z.infolist())
    for settings in ({}, {"check_sums": True}):
        file.seek(0)
        assert adjoin.load(file, **settings)["x"].tolist() == [0, 1, 2, 3, 4]


def test_a_text_that_is_no_text_is_told():
    file = io.BytesIO()
    adjoin.save({"a_name": adjoin.ones(2)}, file, _use_new_zipfile_serialization=False)
    damaged = file.getvalue().replace(b"a_name", b"a_na\xffe")
    with pytest.raises(pickle.UnpicklingError, match="the file is damaged: a text in it is no UTF-8"):
        adjoin.load(io.BytesIO(damaged))
