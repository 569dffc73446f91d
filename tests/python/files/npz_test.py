"""tests/python/files/npz_test.py: `.npy` and `.npz` beside NumPy's own reader and writer, and files that lie."""

import io
import os
import random
import zipfile

import adjoin
import numpy as np
import pytest
from adjoin.utils import npz

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "float32", "float64",
          "complex64", "complex128"]  # fmt: skip


def arrays():
    some = {name: (np.arange(6) % 2).reshape(2, 3).astype(name) for name in DTYPES}
    return {
        **some,
        "empty": np.zeros((0, 4), np.float32),
        "scalar": np.array(2.5),
        "one": np.arange(3),
        "deep": np.zeros((1,) * 20),
    }


def same(tensors, expected):
    assert list(tensors) == list(expected)
    for name, array in expected.items():
        found = tensors[name].numpy()
        assert found.dtype == array.dtype and found.shape == array.shape, name
        np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("writer", [np.savez, np.savez_compressed])
def test_what_numpy_wrote(writer, tmp_path):
    writer(tmp_path / "x.npz", **arrays())
    same(npz.load(tmp_path / "x.npz"), arrays())
    same(npz.load(io.BytesIO((tmp_path / "x.npz").read_bytes())), arrays())


@pytest.mark.parametrize("compressed", [False, True])
def test_what_numpy_reads(compressed, tmp_path):
    tensors = {name: adjoin.from_numpy(array.copy()) for name, array in arrays().items()}
    tensors["turned"] = adjoin.arange(6.0).view(2, 3).t()
    npz.save(tmp_path / "x.npz", tensors, compressed=compressed)
    with np.load(tmp_path / "x.npz") as found:
        same(tensors, dict(found))
    same(npz.load(tmp_path / "x.npz"), {name: t.numpy() for name, t in tensors.items()})
    file = io.BytesIO()
    npz.save(file, tensors)
    same(npz.load(io.BytesIO(file.getvalue())), {name: t.numpy() for name, t in tensors.items()})
    assert os.listdir(tmp_path) == ["x.npz"]


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)), np.arange(5, dtype=">i4"),
                                   np.arange(4, dtype=">c8"), np.arange(4, dtype=">f8").reshape(2, 2).T, np.array(3, np.int8), np.zeros((3, 0))])  # fmt: skip
def test_single_arrays(array, tmp_path):
    np.save(tmp_path / "x.npy", array)
    for found in (npz.load_npy(tmp_path / "x.npy"), npz.load_npy(io.BytesIO((tmp_path / "x.npy").read_bytes()))):
        np.testing.assert_array_equal(found.numpy(), array)
        assert found.shape == array.shape
    if array.size:
        found.fill_(1)
    npz.save_npy(tmp_path / "y.npy", adjoin.from_numpy(array.astype(array.dtype.newbyteorder("="))))
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), array)


def test_mapped_memory_is_private(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(5))
    npz.load_npy(tmp_path / "x.npy").fill_(1)
    assert np.load(tmp_path / "x.npy").sum() == 0


def npy(header, data=b"", version=b"\x01\x00"):
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header + data


LIES = {
    "short": b"\x93NUM", "no magic": b"hello, hello", "version": npy(b"{}", version=b"\x09\x00"), "long header": b"\x93NUMPY\x01\x00\xff\xff",
    "no dict": npy(b"[]"), "deep": npy(b"(" * 60000), "calls": npy(b"{'descr': __import__('os'), 'fortran_order': False, 'shape': ()}"),
    "too big": npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}"), "keys": npy(b"{'descr': '<f4', 'descr': '<f4', 'shape': ()}"),
    "short data": npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", b"0" * 11), "negative": npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}"),
    "zero and huge": npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 999999999999999999, 999999999999999999)}"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_files_that_lie(name, tmp_path):
    with pytest.raises(ValueError, match="damaged or of another kind"):
        npz.load_npy(io.BytesIO(LIES[name]))
    (tmp_path / "x.npz").write_bytes(LIES[name])
    with pytest.raises(ValueError, match="damaged or of another kind"):
        npz.load(tmp_path / "x.npz")


def test_objects_are_refused():
    file = io.BytesIO()
    np.save(file, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="pickled Python objects, which are not read"):
        npz.load_npy(io.BytesIO(file.getvalue()))
    with pytest.raises(ValueError, match=r"elements of '<U3'"):
        npz.load_npy(io.BytesIO(npy(b"{'descr': '<U3', 'fortran_order': False, 'shape': ()}", b"0" * 12)))
    with pytest.raises(ValueError, match="bfloat16, which NumPy does not have"):
        npz.save(io.BytesIO(), {"a": adjoin.ones(1, dtype=adjoin.bfloat16)})


def test_a_record_that_grows_is_refused():
    """A hundred bytes do not become gigabytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("a.npy", npy(b"{'descr': '|u1', 'fortran_order': False, 'shape': (99,)}") + b"\0" * 50_000_000)
    data = bytearray(file.getvalue())
    at = data.index(b"PK\x01\x02")
    data[at + 24 : at + 28] = (200).to_bytes(4, "little")
    with pytest.raises(ValueError, match="npz: "):
        npz.load(io.BytesIO(bytes(data)))


@pytest.mark.parametrize("kind", ["npy", "npz", "compressed"])
def test_damaged_bytes_load_or_raise(kind):
    file = io.BytesIO()
    if kind == "npy":
        npz.save_npy(file, adjoin.arange(6.0).view(2, 3))
    else:
        npz.save(
            file,
            {"a": adjoin.arange(6.0).view(2, 3), "b": adjoin.ones(2, dtype=adjoin.int8)},
            compressed=kind == "compressed",
        )
    good = file.getvalue()
    generator = random.Random(int(os.environ.get("ADJOIN_FUZZ_SEED", 0)))
    for _ in range(int(os.environ.get("ADJOIN_FUZZ_TURNS", 500))):
        data = bytearray(good)
        for _ in range(generator.randint(1, 4)):
            data[generator.randrange(len(data))] = generator.choice([generator.randrange(256), 0, 255, 57])
        if generator.random() < 0.1:
            del data[generator.randrange(len(data)) :]
        try:
            npz.load_npy(io.BytesIO(bytes(data))) if kind == "npy" else npz.load(io.BytesIO(bytes(data)))
        except ValueError as error:
            assert str(error).startswith("npz: "), error
