"""tests/compat/beside_files_test.py: checkpoints written by PyTorch and read here, and the reverse, bit for bit."""

import collections
import io
import random

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

import adjoin

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128"]  # fmt: skip


def bits(t):
    """The elements of a tensor of either library, as bytes."""
    lib = torch if isinstance(t, torch.Tensor) else adjoin
    flat = t.detach().contiguous().reshape(-1)
    return bytes(flat.view(lib.uint8).tolist()) if flat.numel() else b""


def alike(a, b):
    """Fails unless an object of one library is the other's in every part."""
    if isinstance(a, (torch.Tensor, adjoin.Tensor)):
        assert type(a).__name__ == type(b).__name__ and str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1]
        assert (
            tuple(a.shape) == tuple(b.shape) and a.stride() == b.stride() and a.storage_offset() == b.storage_offset()
        )
        assert a.requires_grad == b.requires_grad and a.is_leaf == b.is_leaf
        assert a.untyped_storage().nbytes() == b.untyped_storage().nbytes() and bits(a) == bits(b)
    elif isinstance(a, dict):
        assert type(a) is type(b) and len(a) == len(b)
        for (x, v), (y, w) in zip(a.items(), b.items(), strict=True):
            alike(x, y)
            alike(v, w)
        alike(getattr(a, "_metadata", None), getattr(b, "_metadata", None))
    elif isinstance(a, (list, tuple)):
        assert type(a).__name__ == type(b).__name__ and len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            alike(x, y)
    elif isinstance(a, (torch.dtype, adjoin.dtype)):
        assert str(a).split(".")[1] == str(b).split(".")[1]
    else:
        assert type(a).__name__ == type(b).__name__ and str(a) == str(b)


def tensors(lib):
    random_bits = torch.randint(0, 256, (480,), dtype=torch.uint8, generator=torch.Generator().manual_seed(1)).tolist()
    found = {}
    for name in DTYPES:
        raw = lib.tensor([b % 2 for b in random_bits] if name == "bool" else random_bits, dtype=lib.uint8)
        found[name] = raw.view(getattr(lib, name)).reshape(-1, 6) if name != "bool" else raw.to(lib.bool).reshape(-1, 6)
    return found


def zoo(lib):
    base = lib.arange(24.0).reshape(2, 3, 4)
    parameter = lib.nn.Parameter(lib.ones(3))
    return {
        "dtypes": tensors(lib), "view": base[1].t(), "part": base[:, 1:, ::2], "base": base, "again": base, "wide": lib.ones(3).expand(2, 3),
        "scalar": lib.tensor(3), "empty": lib.empty(0, 5), "grad": lib.ones(2, requires_grad=True), "parameter": parameter, "frozen": lib.nn.Parameter(lib.ones(1), requires_grad=False),
        "last": lib.zeros(2, 3, 4, 4).contiguous(memory_format=lib.channels_last), "size": lib.Size([2, 3]), "dtype": lib.float16, "device": lib.device("cpu"),
        "plain": [None, True, 0, -1, 2**31, 2**80, -(2**90), 1.5, "text", "ü", b"\x00\xff", (), (1,), (1, 2, 3, 4), {1, 2}, 1 + 2j, bytearray(b"x")],
        "ordered": collections.OrderedDict([("b", 1), ("a", [2])]), "counter": collections.Counter("aab"), 7: {"nested": {"deeper": [[], {}]}},
    }  # fmt: skip


def network(lib):
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16, 5),
        nn.LayerNorm(5),
        nn.Embedding(3, 2),
    )


def trained(lib, name, **settings):
    lib.manual_seed(3)
    net = lib.nn.Sequential(lib.nn.Linear(4, 5), lib.nn.BatchNorm1d(5), lib.nn.Linear(5, 2))
    optimizer = getattr(lib.optim, name)(net.parameters(), lr=0.1, **settings)
    for _ in range(2):
        optimizer.zero_grad()
        net(lib.ones(6, 4)).sum().backward()
        optimizer.step()
    return net, optimizer


@pytest.mark.parametrize("settings", [{}, {"_use_new_zipfile_serialization": False}], ids=["zip", "old"])
def test_the_zoo_from_pytorch(settings, tmp_path):
    theirs = zoo(torch)
    torch.save(theirs, tmp_path / "x.pt", **settings)
    for how in ({}, {"mmap": False}, {"check_sums": True}):
        found = adjoin.load(tmp_path / "x.pt", **how)
        alike(theirs, found)
        assert found["view"].untyped_storage() == found["base"].untyped_storage() and found["again"] is found["base"]
    alike(theirs, adjoin.load(io.BytesIO((tmp_path / "x.pt").read_bytes())))


def test_the_zoo_from_here(tmp_path):
    ours = zoo(adjoin)
    adjoin.save(ours, tmp_path / "x.pt")
    for how in ({}, {"mmap": True}, {"weights_only": False}):
        found = torch.load(tmp_path / "x.pt", **how)
        alike(ours, found)
        assert (
            found["view"].untyped_storage()._cdata == found["base"].untyped_storage()._cdata
            and found["again"] is found["base"]
        )
    file = io.BytesIO()
    adjoin.save(ours, file)
    file.seek(0)
    alike(ours, torch.load(file))
    with torch.serialization.skip_data():
        assert torch.load(tmp_path / "x.pt")["base"].shape == (2, 3, 4)


def test_offsets_that_pytorch_computes(tmp_path):
    """It may skip the local headers and compute where storages lie."""
    from torch.utils.serialization import config

    ours = {str(i): adjoin.full((i * 1000,), float(i)) for i in range(30)}
    adjoin.save(ours, tmp_path / "x.pt")
    before = config.load.calculate_storage_offsets
    config.load.calculate_storage_offsets = True
    try:
        alike(ours, torch.load(tmp_path / "x.pt", mmap=True))
    finally:
        config.load.calculate_storage_offsets = before


def test_networks_both_ways(tmp_path):
    theirs, ours = network(torch), network(adjoin)
    torch.save(theirs.state_dict(), tmp_path / "t.pt")
    state = adjoin.load(tmp_path / "t.pt")
    alike(theirs.state_dict(), state)
    ours.load_state_dict(state, assign=True)
    adjoin.save(ours.state_dict(), tmp_path / "a.pt")
    back = torch.load(tmp_path / "a.pt")
    alike(theirs.state_dict(), back)
    theirs.load_state_dict(back)


@pytest.mark.parametrize(("name", "settings"), [("SGD", {"momentum": 0.9}), ("Adam", {"amsgrad": True}), ("AdamW", {})])
def test_optimizers_both_ways(name, settings, tmp_path):
    for lib, other in ((torch, adjoin), (adjoin, torch)):
        net, optimizer = trained(lib, name, **settings)
        lib.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 2}, tmp_path / "x.pt")
        found = other.load(tmp_path / "x.pt")
        alike({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 2}, found)
        second, continued = trained(other, name, **settings)
        second.load_state_dict(found["net"])
        continued.load_state_dict(found["optimizer"])
        second(other.ones(6, 4)).sum().backward()
        continued.step()


def generated(lib, generator, depth=0):
    kind = generator.randrange(9 if depth < 4 else 5)
    if kind == 0:
        return generator.choice([None, True, 3, -(2**70), 0.5, "x", b"y"])
    if kind < 5:
        shape = [generator.randrange(4) for _ in range(generator.randrange(4))]
        made = lib.arange(64.0).to(getattr(lib, generator.choice(DTYPES[1:6] + DTYPES[9:13])))
        made = made[: int(torch.tensor(shape).prod()) or 0].reshape(shape)
        return made.transpose(0, -1) if len(shape) > 1 and generator.random() < 0.5 else made
    items = [generated(lib, generator, depth + 1) for _ in range(generator.randrange(5))]
    if kind == 5:
        return items
    if kind == 6:
        return tuple(items)
    pairs = [(f"key{i}", item) for i, item in enumerate(items)]
    return dict(pairs) if kind == 7 else collections.OrderedDict(pairs)


@pytest.mark.parametrize("seed", range(20))
def test_generated_objects_both_ways(seed):
    theirs, ours = generated(torch, random.Random(seed)), generated(adjoin, random.Random(seed))
    for lib, other, obj in ((torch, adjoin, theirs), (adjoin, torch, ours)):
        file = io.BytesIO()
        lib.save(obj, file)
        file.seek(0)
        alike(obj, other.load(file))


def test_a_large_tensor_both_ways(tmp_path):
    theirs = torch.arange(20_000_000, dtype=torch.int32)
    torch.save(theirs, tmp_path / "x.pt")
    ours = adjoin.load(tmp_path / "x.pt", check_sums=True)
    assert int(ours.to(adjoin.int64).sum()) == int(theirs.sum())
    adjoin.save(ours, tmp_path / "y.pt")
    assert torch.equal(torch.load(tmp_path / "y.pt", mmap=True), theirs)


def test_what_each_refuses(tmp_path):
    """A module of theirs is a record here; one of ours is refused there."""
    torch.save(torch.nn.Linear(2, 3), tmp_path / "x.pt")
    with pytest.raises(Exception, match=r"torch\.nn\.modules\.linear\.Linear"):
        adjoin.load(tmp_path / "x.pt")
    record = adjoin.load(tmp_path / "x.pt", weights_only=False)
    assert record.state["_parameters"]["weight"].shape == (3, 2)
    with adjoin.serialization.safe_globals([(adjoin.nn.Linear, "torch.nn.modules.linear.Linear")]):
        assert adjoin.load(tmp_path / "x.pt").in_features == 2
    torch.save({"x": torch.zeros(2, dtype=torch.float8_e4m3fn)}, tmp_path / "x.pt")
    assert adjoin.load(tmp_path / "x.pt")["x"].dtype is adjoin.float8_e4m3fn


def test_sparse_tensors_of_theirs(tmp_path):
    whole = torch.tensor([[0.0, 2.0, 0.0, 1.0], [3.0, 0.0, 4.0, 0.0]])
    for layout in ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"):
        blocks = {"blocksize": (2, 2)} if layout.startswith("sparse_b") else {}
        torch.save({"s": whole.to_sparse(layout=getattr(torch, layout), **blocks)}, tmp_path / "x.pt")
        s = adjoin.load(tmp_path / "x.pt")["s"]
        assert s.layout is getattr(adjoin, layout) and s.to_dense().tolist() == whole.tolist()


def test_the_old_layout_of_ours_is_read_by_theirs(tmp_path):
    x = adjoin.arange(12.0).view(3, 4)
    kept = {"x": x, "part": x[1:, ::2], "half": adjoin.ones(3, dtype=adjoin.bfloat16), "none": [None, adjoin.empty(0)]}
    adjoin.save(kept, tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    theirs = torch.load(tmp_path / "x.pt", weights_only=True)
    assert theirs["part"].tolist() == [[4, 6], [8, 10]] and theirs["half"].dtype == torch.bfloat16
    assert theirs["part"].untyped_storage().data_ptr() == theirs["x"].untyped_storage().data_ptr()
