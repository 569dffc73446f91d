"""tests/python/files/serialization_test.py: the `.pt` layout there and back, files that lie, and saves that are interrupted."""

import collections
import io
import os
import pickle
import pickletools
import random
import resource
import signal
import struct
import subprocess
import sys
import threading
import time
import zipfile

import adjoin
import pytest
from pt_files import archive, load_bytes, through

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16",
          "float32", "float64", "complex64", "complex128"]  # fmt: skip


def same(a, b):
    assert type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride()
    assert a.requires_grad == b.requires_grad and a.tolist() == b.tolist()


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype(name, tmp_path):
    x = (adjoin.arange(6) % 2).view(2, 3).to(getattr(adjoin, name))
    path = tmp_path / "x.pt"
    adjoin.save({"x": x, "empty": x[:0], "scalar": x[1, 1], "turned": x.t()}, path)
    for settings in ({}, {"mmap": True}, {"mmap": False}, {"check_sums": True}):
        found = adjoin.load(path, **settings)
        same(found["x"], x)
        same(found["empty"], x[:0])
        same(found["scalar"], x[1, 1])
        same(found["turned"], x.t())
        assert found["x"].untyped_storage() == found["turned"].untyped_storage()


def test_containers_and_values():
    loop = [1]
    loop.append(loop)
    shared = adjoin.ones(2)
    values = {
        "none": None, "numbers": [True, 0, 255, 256, 65535, 65536, -1, 2**31, -(2**40), 2**80, -(2**2100), 1.5, -0.0, 1e300, 2 + 1j],
        "texts": ["", "ü", "\ud800", "a" * 300], "bytes": [b"", b"a\xff"], "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
        "nested": {"a": [{}, {"b": ({1, 2}, bytearray(b"x"))}]}, (1, "key"): 3, 4: 5,
        "ordered": collections.OrderedDict(b=1, a=2), "counter": collections.Counter("aab"),
        "size": adjoin.Size([2, 3]), "dtype": adjoin.float16, "device": adjoin.device("cpu"),
        "one": shared, "again": shared, "format": adjoin.channels_last, "layout": adjoin.strided,
    }  # fmt: skip
    found = through(values)
    assert found["one"] is found["again"]
    assert found["format"] is adjoin.channels_last and found["layout"] is adjoin.strided
    for key in ("one", "again", "format", "layout"):
        del found[key], values[key]
    assert repr(found) == repr(values)
    found = through(loop)
    assert found[0] == 1 and found[1] is found
    pair = ([],)
    pair[0].append(pair)
    found = through(pair)
    assert found[0][0] is found


def test_tensors_of_all_kinds():
    x = adjoin.arange(12.0)
    strange = adjoin.ones(2)
    strange.note = "kept"
    parameter = adjoin.nn.Parameter(adjoin.ones(3), requires_grad=False)
    parameter.note = [1]
    found = through([
        x[2:8:2], x.view(adjoin.int32), adjoin.nn.Parameter(adjoin.ones(2)), parameter, adjoin.ones(2, requires_grad=True),
        adjoin.ones(3).expand(2, 3), strange, adjoin.empty(2, 3, device="meta"), adjoin.zeros(2, 3, 4, 4).to(memory_format=adjoin.channels_last),
    ])  # fmt: skip
    same(found[0], x[2:8:2])
    same(found[1], x.view(adjoin.int32))
    assert found[0].untyped_storage() == found[1].untyped_storage()
    found[0][0] = 7
    assert found[1][2].item() == 0x40E00000
    assert type(found[2]) is adjoin.nn.Parameter and found[2].requires_grad and found[2].is_leaf
    assert type(found[3]) is adjoin.nn.Parameter and not found[3].requires_grad and found[3].note == [1]
    assert found[4].requires_grad and found[4].is_leaf
    assert found[5].stride() == (0, 1) and found[5].untyped_storage().nbytes() == 12
    assert found[6].note == "kept"
    assert found[7].device.type == "meta" and found[7].shape == (2, 3)
    assert found[8].stride() == (48, 1, 12, 3)


def test_state_of_training():
    model = adjoin.nn.Sequential(adjoin.nn.Linear(3, 4), adjoin.nn.BatchNorm1d(4))
    optimizer = adjoin.optim.Adam(model.parameters(), lr=0.1)
    model(adjoin.ones(5, 3)).sum().backward()
    optimizer.step()
    found = through({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3})
    assert found["model"]._metadata == model.state_dict()._metadata
    other = adjoin.nn.Sequential(adjoin.nn.Linear(3, 4), adjoin.nn.BatchNorm1d(4))
    other.load_state_dict(found["model"], assign=True)
    assert other[0].weight.tolist() == model[0].weight.tolist()
    again = adjoin.optim.Adam(other.parameters(), lr=0.5)
    again.load_state_dict(found["optimizer"])
    assert repr(again.state_dict()) == repr(optimizer.state_dict())


def test_the_file_is_as_pytorch_lays_it_out(tmp_path):
    path = tmp_path / "net.pt"
    adjoin.save({"a": adjoin.ones(5), "b": adjoin.zeros(0), "c": adjoin.ones(30000)}, path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = [entry.filename for entry in archive.infolist()]
        assert names == ["net/" + n for n in ("data.pkl", ".format_version", ".storage_alignment", "byteorder", "data/0", "data/1",
                                              "data/2", "version", ".data/serialization_id")]  # fmt: skip
        data = path.read_bytes()
        for entry in archive.infolist():
            name, extra = struct.unpack_from("<HH", data, entry.header_offset + 26)
            assert (entry.header_offset + 30 + name + extra) % 64 == 0
        assert archive.read("net/version") == b"3\n" and archive.read("net/byteorder") == b"little"
        used = {op.name for op, _, _ in pickletools.genops(archive.read("net/data.pkl"))}
    assert used <= {"PROTO", "GLOBAL", "EMPTY_TUPLE", "REDUCE", "MARK", "BINUNICODE", "BINPUT", "BINGET", "TUPLE", "TUPLE1", "TUPLE2",
                    "BINPERSID", "BININT1", "BININT2", "LONG1", "NEWFALSE", "SETITEMS", "STOP", "EMPTY_DICT"}  # fmt: skip


def test_many_records():
    found = through([adjoin.full((1,), i) for i in range(66000)])
    assert len(found) == 66000 and found[-1].item() == 65999


def test_open_files(tmp_path):
    path = tmp_path / "x.pt"
    adjoin.save(adjoin.zeros(1000), path)
    with open(path, "rb") as file:
        found = adjoin.load(file)
        assert file.read() == b""
    assert found.sum().item() == 0
    with open(path, "r+b") as file:  # may change under us
        assert adjoin.load(file).shape == (1000,)
    with open(path, "wb") as file:
        file.write(b"before")
        adjoin.save([1, 2], file)
    with open(path, "rb") as file:
        file.read(6)
        assert adjoin.load(file) == [1, 2]


def test_mapped_memory_is_private(tmp_path):
    path = tmp_path / "x.pt"
    adjoin.save(adjoin.zeros(1000), path)
    adjoin.load(path).fill_(1)
    assert adjoin.load(path).sum().item() == 0
    kept = adjoin.load(path)
    adjoin.save(adjoin.ones(1000), path)
    os.unlink(path)
    assert kept.sum().item() == 0


# Where tensors go


def test_a_device_that_is_not_the_host():
    x = adjoin.arange(6.0, device="reference")
    saved = {"x": x, "turned": x.view(2, 3).t()}
    found = through(saved)
    assert found["x"].device == x.device and found["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert found["x"].untyped_storage() == found["turned"].untyped_storage()
    for where in (
        "cpu",
        {"reference:0": "cpu"},
        lambda storage, location: storage,
        lambda storage, location: storage.cpu(),
    ):
        assert through(saved, map_location=where)["x"].is_cpu
    assert (
        through({"x": x.cpu()}, map_location=lambda storage, location: storage.to("reference"))["x"].device == x.device
    )


def test_locations_are_hints():
    x = adjoin.ones(3)
    file = io.BytesIO()
    adjoin.save({"x": x}, file)
    data = file.getvalue()
    seen = []

    def place(storage, location):
        seen.append((storage.nbytes(), location))
        return storage

    for where in ("cpu", adjoin.device("cpu"), {"cpu": "cpu"}, {}, place, lambda storage, location: None):
        assert load_bytes(data, map_location=where)["x"].tolist() == [1, 1, 1]
    assert seen == [(12, "cpu")]
    assert load_bytes(data, map_location="meta")["x"].device.type == "meta"
    foreign = data.replace(b"X\x03\x00\x00\x00cpu", b"X\x03\x00\x00\x00npu")
    foreign = archive(
        zipfile.ZipFile(io.BytesIO(foreign)).open("archive/version").read() and _pickle_of(foreign), [b"\0" * 12]
    )
    with pytest.warns(UserWarning, match="'npu', which is not here"):
        assert load_bytes(foreign)["x"].device.type == "cpu"
    assert load_bytes(foreign, map_location="cpu")["x"].tolist() == [0, 0, 0]


def _pickle_of(data):
    start = data.index(b"\x80\x02")
    return data[start : data.index(b".PK", start) + 1]


# What happens to the old file


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    adjoin.save(1, path)
    with pytest.raises(pickle.PicklingError, match="cannot be saved"):
        adjoin.save([threading.Lock()], path)
    with pytest.raises(FileNotFoundError, match="the folder '.*' does not exist; make it first"):
        adjoin.save(1, tmp_path / "no" / "x.pt")
    with pytest.raises(IsADirectoryError):
        adjoin.save(1, tmp_path)
    with pytest.raises(TypeError, match="a path or a file"):
        adjoin.save(1, 3)
    with pytest.raises(ValueError, match="null byte"):
        adjoin.save(1, f"{path}\0more")
    with pytest.raises(OSError, match="no ordinary file"):
        adjoin.load("/dev/null")
    assert adjoin.load(path) == 1 and os.listdir(tmp_path) == ["x.pt"]


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    adjoin.save(1, path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        for save in (adjoin.save, adjoin.safetensors.save_file):
            with pytest.raises(OSError, match="more than a file may have here .*untouched"):
                save({"x": adjoin.ones(100_000)}, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert adjoin.load(path) == 1 and os.listdir(tmp_path) == ["x.pt"]


def test_links_and_modes_stay(tmp_path):
    target, link = tmp_path / "target.pt", tmp_path / "link.pt"
    adjoin.save(1, target)
    os.chmod(target, 0o640)
    link.symlink_to(target)
    adjoin.save(2, link)
    assert link.is_symlink() and adjoin.load(target) == 2 and target.stat().st_mode & 0o777 == 0o640
    adjoin.save(3, "/dev/null")
    os.mkfifo(tmp_path / "pipe")


class Trickle(io.RawIOBase):
    """Takes a few bytes of each write."""

    def __init__(self):
        self.data = b""

    def writable(self):
        return True

    def write(self, data):
        taken = bytes(data[:1000])
        self.data += taken
        return len(taken)


def test_files_that_write_little():
    file = Trickle()
    adjoin.save(adjoin.arange(50000), file)
    assert load_bytes(file.data).tolist() == list(range(50000))


def test_large_files_in_turn_and_from_a_forked_child(tmp_path):
    x = adjoin.arange(9_000_000)
    adjoin.save(x, tmp_path / "a")
    child = os.fork()
    if child == 0:
        try:
            adjoin.save(x + 1, tmp_path / "b")
        finally:
            os._exit(0)
    adjoin.save(x + 2, tmp_path / "a")
    assert os.waitpid(child, 0)[1] == 0
    for name, more in (("a", 2), ("b", 1)):
        found = adjoin.load(tmp_path / name, check_sums=True)
        assert found[0].item() == more and found[-1].item() == 8_999_999 + more


SAVER = """
import sys, adjoin
path, n = sys.argv[1:]
print("ready", flush=True)
i = 0
while True:
    i += 1
    adjoin.save({"i": i, "x": adjoin.full((int(n),), float(i))}, path)
"""


@pytest.mark.parametrize("count", [300_000, 9_000_000], ids=["cached", "direct"])
def test_killed_at_any_moment(tmp_path, count):
    """Whoever loads finds a whole file: the old one or the new one."""
    path = tmp_path / "x.pt"
    adjoin.save({"i": 0, "x": adjoin.zeros(count)}, path)
    generator = random.Random(int(os.environ.get("ADJOIN_FUZZ_SEED", 0)))
    left = 0
    for _ in range(int(os.environ.get("ADJOIN_KILLS", 6))):
        child = subprocess.Popen([sys.executable, "-c", SAVER, str(path), str(count)], stdout=subprocess.PIPE)
        child.stdout.readline()
        time.sleep(generator.uniform(0, 0.15))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        found = adjoin.load(path, check_sums=True)
        assert found["x"].shape == (count,) and found["x"].min().item() == found["x"].max().item() == found["i"]
        left += len(os.listdir(tmp_path)) - 1
        for name in os.listdir(tmp_path):
            if name != "x.pt":
                os.unlink(tmp_path / name)
    print(f"{left} files left behind")


def test_links(tmp_path):
    loop, other, dangling = tmp_path / "a", tmp_path / "b", tmp_path / "sub" / "c"
    loop.symlink_to(other)
    other.symlink_to(loop)
    for save in (adjoin.save, lambda t, path: adjoin.safetensors.save_file({"x": t}, path)):
        with pytest.raises(OSError, match="symbolic links"):
            save(adjoin.ones(1), loop)
    assert loop.is_symlink() and other.is_symlink()
    dangling.parent.mkdir()
    dangling.symlink_to("../d")
    adjoin.save(adjoin.ones(2), dangling)
    assert dangling.is_symlink() and adjoin.load(tmp_path / "d").tolist() == [1.0, 1.0]
    adjoin.save(adjoin.zeros(2), dangling)
    assert dangling.is_symlink() and adjoin.load(tmp_path / "d").tolist() == [0.0, 0.0]


# What a program sets for all files


@pytest.fixture
def packages():
    from adjoin import _pt_places

    yield
    _pt_places.packages.clear()


def test_packages_say_where_storages_go(packages):
    x = adjoin.arange(3.0)
    file = io.BytesIO()
    adjoin.save({"x": x, "again": x[1:]}, file)
    seen = []

    def first(storage, location):
        seen.append(location)
        return storage.to("reference") if location == "cpu" else None

    adjoin.serialization.register_package(
        30, lambda storage: None, lambda storage, location: 1 / 0
    )  # the host is before it
    assert load_bytes(file.getvalue())["x"].is_cpu
    adjoin.serialization.register_package(5, lambda storage: None, first)
    found = load_bytes(file.getvalue())
    assert found["x"].device.type == "reference" and found["again"].tolist() == [1, 2] and seen == ["cpu"]
    assert load_bytes(file.getvalue(), map_location="cpu")["x"].device.type == "reference" and seen == ["cpu"] * 2


def test_packages_make_what_the_bytes_are(packages):
    file = io.BytesIO()
    adjoin.save(adjoin.arange(3.0), file)

    def doubled(storage, location):
        return (adjoin.tensor(storage.tolist(), dtype=adjoin.uint8).view(adjoin.float32) * 2).untyped_storage()

    adjoin.serialization.register_package(1, lambda storage: None, doubled)
    assert load_bytes(file.getvalue()).tolist() == [0, 2, 4]


def test_a_location_of_a_storage_and_back(packages):
    from adjoin.serialization import default_restore_location, location_tag, register_package

    storage = adjoin.ones(2).untyped_storage()
    assert location_tag(storage) == "cpu" and location_tag(storage.to("reference")) == "reference:0"
    assert default_restore_location(storage, "reference").device.type == "reference"
    assert default_restore_location(storage, "cpu") == storage
    with pytest.raises(RuntimeError, match="to 'npu:1'; name a device that is here"):
        default_restore_location(storage, "npu:1")
    register_package(
        15, lambda s: "npu" if s.nbytes() == 4 else None, lambda s, where: s if where[:3] == "npu" else None
    )
    assert default_restore_location(storage, "npu:1") == storage
    register_package(2, lambda s: "npu" if s.nbytes() == 4 else None, lambda s, where: None)
    assert location_tag(adjoin.ones(1).untyped_storage()) == "npu" and location_tag(storage) == "cpu"
    with pytest.raises(NotImplementedError, match="tags a storage of cpu as 'npu'.*map_location"):
        adjoin.save({"deep": [adjoin.ones(1)]}, io.BytesIO())
    assert through([adjoin.ones(2)])[0].tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="'cpu' names no cuda device"):
        adjoin.serialization.validate_cuda_device("cpu")
    with pytest.raises(RuntimeError, match="'cuda:77' is asked for and is not here"):
        adjoin.serialization.validate_cuda_device("cuda:77")


def _unmarked(x):
    """A file of one tensor in the other order of bytes, without a record that says so."""
    whole, made = io.BytesIO(), io.BytesIO()
    adjoin.save(x, whole)
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if "/data/" in name:
                data = struct.pack(">3f", *struct.unpack("<3f", data))
            if not name.endswith("byteorder"):
                new.writestr(name, data)
    return made.getvalue()


def test_the_order_of_bytes_of_files_without_a_mark(tmp_path):
    from adjoin.serialization import LoadEndianness, get_default_load_endianness, set_default_load_endianness

    data, x = _unmarked(adjoin.tensor([1.0, 2, 3])), adjoin.tensor([4.0, 5, 6])
    path, marked = tmp_path / "unmarked.pt", tmp_path / "marked.pt"
    path.write_bytes(data)
    adjoin.save(x, marked)
    assert get_default_load_endianness() is None
    try:
        set_default_load_endianness(LoadEndianness.BIG)
        assert get_default_load_endianness() is LoadEndianness.BIG
        for settings in ({}, {"mmap": True}):
            assert adjoin.load(path, **settings).tolist() == [1, 2, 3]
            assert adjoin.load(marked, **settings).tolist() == [4, 5, 6]
        assert load_bytes(data).tolist() == [1, 2, 3]
        set_default_load_endianness(LoadEndianness.LITTLE)
        assert adjoin.load(path).tolist() != [1, 2, 3]
    finally:
        set_default_load_endianness(None)
    with pytest.raises(TypeError, match="a LoadEndianness or None is wanted, not 'big'"):
        set_default_load_endianness("big")


def test_files_without_the_bytes_of_storages(tmp_path):
    path, file = tmp_path / "x.pt", io.BytesIO()
    x = {"x": adjoin.arange(1.0, 4), "y": adjoin.ones(2, 2, dtype=adjoin.int64), "n": 7}
    with adjoin.serialization.skip_data():
        adjoin.save(x, path)
        adjoin.save(x, file)
    for found in (adjoin.load(path), adjoin.load(path, check_sums=True), load_bytes(file.getvalue())):
        assert found["x"].tolist() == [0, 0, 0] and found["y"].tolist() == [[0, 0], [0, 0]] and found["n"] == 7
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        begin = archive.getinfo("x/data/0").header_offset
    data = bytearray(path.read_bytes())  # the bytes come later
    begin += 30 + sum(struct.unpack_from("<HH", data, begin + 26))
    data[begin : begin + 12] = struct.pack("<3f", 7, 8, 9)
    assert load_bytes(bytes(data), check_sums=False)["x"].tolist() == [7, 8, 9]
    adjoin.save(x, path)
    with adjoin.serialization.skip_data():
        found = adjoin.load(path)
        assert found["x"].tolist() == [0, 0, 0] and found["y"].shape == (2, 2)
    assert adjoin.load(path)["x"].tolist() == [1, 2, 3] and os.listdir(tmp_path) == ["x.pt"]


def test_small_tools_of_serialization():
    import mmap
    import types

    from adjoin import serialization

    for version, wanted, there in (("1.10.2", (1, 9), True), ("1.10.2", (1, 11), False), ("2.0", (2,), True)):
        module = types.SimpleNamespace(__name__="m", __version__=version)
        assert serialization.check_module_version_greater_or_equal(module, wanted) is there
    odd = types.SimpleNamespace(__name__="m", __version__="today")
    with pytest.raises(RuntimeError, match="'m' module version string is malformed 'today'"):
        serialization.check_module_version_greater_or_equal(odd, (1, 2))
    with pytest.warns(UserWarning, match="malformed"):
        assert serialization.check_module_version_greater_or_equal(odd, (1, 2), error_if_malformed=False)
    with serialization.mkdtemp() as folder:
        assert os.path.isdir(folder)
    assert not os.path.exists(folder)
    assert serialization.StorageType("HalfStorage").dtype is adjoin.float16
    with pytest.raises(KeyError, match="no class of storages"):
        serialization.StorageType("ListStorage")
    with serialization.set_default_mmap_options(mmap.MAP_PRIVATE):
        assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    with pytest.raises(NotImplementedError, match="adjoin.save"):
        serialization.set_default_mmap_options(mmap.MAP_SHARED)
    with pytest.raises(ValueError, match="77 is given"):
        serialization.set_default_mmap_options(77)


def test_the_old_layout_is_written(tmp_path):
    x = adjoin.arange(12.0).view(3, 4)
    net = adjoin.nn.Linear(3, 2)
    kept = {
        "x": x,
        "part": x[1:, ::2],  # of the same memory
        "again": [x, x.t(), {"deep": x[0]}],
        "others": [
            adjoin.tensor([True]),
            adjoin.empty(0),
            adjoin.ones(2, dtype=adjoin.bfloat16),
            adjoin.tensor(3),
            1j,
            None,
        ],
        "words": ["x", 0, 1, "cpu", b"bytes"],
        "net": net.state_dict(),
    }
    adjoin.save(kept, tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    held = io.BytesIO()
    adjoin.save(kept, held, _use_new_zipfile_serialization=False)
    assert (tmp_path / "x.pt").read_bytes() == held.getvalue() and os.listdir(tmp_path) == ["x.pt"]
    assert pickle.loads(held.getvalue()) == 0x1950A86A20F9469CFC6C  # the first of its pickles
    found = adjoin.load(tmp_path / "x.pt")
    assert found["part"].tolist() == [[4, 6], [8, 10]] and found["words"] == kept["words"]
    found["x"][1, 0] = 40
    assert found["part"][0, 0] == found["again"][1][0, 1] == 40 and found["again"][2]["deep"][3] == 3
    for a, b in zip(found["others"], kept["others"], strict=True):
        assert adjoin.equal(a, b) and a.dtype is b.dtype if isinstance(b, adjoin.Tensor) else a == b
    assert adjoin.equal(found["net"]["weight"], net.weight)
    with pytest.raises(TypeError, match="open for writing"):
        adjoin.save(kept, 3, _use_new_zipfile_serialization=False)
    with pytest.raises(FileNotFoundError):
        adjoin.save(kept, tmp_path / "none" / "x.pt", _use_new_zipfile_serialization=False)
