"""tests/python/files/safetensors_test.py: the file format both ways, and files that lie."""

import json
import os
import random

import adjoin
import numpy as np
import pytest
from adjoin import safetensors

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
          "float64", "complex64", "complex128"]  # fmt: skip


def sample():
    tensors = {name: (adjoin.arange(6) % 2).view(2, 3).to(getattr(adjoin, name)) for name in DTYPES}
    tensors["empty"] = adjoin.zeros(0, 4)
    tensors["scalar"] = adjoin.tensor(2.5)
    tensors["strided"] = adjoin.arange(6).view(2, 3).t()
    return tensors


def same(a, b):
    assert set(a) == set(b)
    for name in a:
        assert a[name].dtype == b[name].dtype and a[name].shape == b[name].shape, name
        assert a[name].tolist() == b[name].tolist(), name


def test_there_and_back(tmp_path):
    path = tmp_path / "x.safetensors"
    safetensors.save_file(sample(), path, {"by": "a test"})
    same(safetensors.load_file(path), sample())
    same(safetensors.load(safetensors.save(sample())), sample())
    assert safetensors.load_metadata(path) == {"by": "a test"}
    assert os.listdir(tmp_path) == ["x.safetensors"]


def test_what_is_loaded_may_be_written(tmp_path):
    path = tmp_path / "x.safetensors"
    safetensors.save_file({"a": adjoin.zeros(4)}, path)
    safetensors.load_file(path)["a"].fill_(1)
    assert safetensors.load_file(path)["a"].sum().item() == 0


def test_layout_of_the_file():
    data = safetensors.save({"b": adjoin.tensor([1, 2], dtype=adjoin.int16), "a": adjoin.ones(1)})
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    assert size % 8 == 0
    assert header["a"] == {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    assert header["b"] == {"dtype": "I16", "shape": [2], "data_offsets": [4, 8]}
    assert data[8 + size :] == np.float32(1).tobytes() + np.array([1, 2], np.int16).tobytes()


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.safetensors"
    safetensors.save_file({"a": adjoin.ones(1)}, path)
    with pytest.raises(TypeError, match="'b' is a int; a tensor is wanted"):
        safetensors.save_file({"b": 3}, path)
    assert list(safetensors.load_file(path)) == ["a"] and len(os.listdir(tmp_path)) == 1
    with pytest.raises(TypeError, match="metadata maps strings to strings"):
        safetensors.save({"a": adjoin.ones(1)}, {"a": 3})


def file(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(offsets, shape=(2,), dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}


LIES = {
    "empty": b"",
    "short": b"123",
    "huge header": (1 << 62).to_bytes(8, "little"),
    "no object": file(b"[]"),
    "no JSON": file(b"{"),
    "deep JSON": file(b"[" * 100_000),
    "a name twice": file(b'{"a":1,"a":2}'),
    "no data": file({"a": entry([0, 8])}),
    "size and shape differ": file({"a": entry([0, 4])}, b"0" * 4),
    "overlap": file({"a": entry([0, 8]), "b": entry([4, 12])}, b"0" * 12),
    "gap": file({"a": entry([1, 9])}, b"0" * 9),
    "rest": file({"a": entry([0, 8])}, b"0" * 9),
    "backwards": file({"a": entry([8, 0])}, b"0" * 8),
    "negative offset": file({"a": entry([0, -8])}, b"0" * 8),
    "negative shape": file({"a": entry([0, 8], [-2])}, b"0" * 8),
    "overflow": file({"a": entry([0, 8], [2**62, 2**62])}, b"0" * 8),
    "dtype": file({"a": entry([0, 8], dtype="Q")}, b"0" * 8),
    "float offset": file({"a": entry([0, 8.0])}, b"0" * 8),
    "missing key": file({"a": {"dtype": "F32"}}),
    "metadata": file({"__metadata__": {"a": 1}}),
}


@pytest.mark.parametrize("name", LIES)
def test_lying_file(name, tmp_path):
    path = tmp_path / "x"
    path.write_bytes(LIES[name])
    for read in (lambda: safetensors.load(LIES[name]), lambda: safetensors.load_file(path)):
        with pytest.raises(ValueError, match="safetensors: .*damaged or of another format"):
            read()


def test_damaged_bytes_load_or_raise():
    good = safetensors.save(sample())
    generator = random.Random(int(os.environ.get("ADJOIN_FUZZ_SEED", 0)))
    for _ in range(int(os.environ.get("ADJOIN_FUZZ_TURNS", 500))):
        data = bytearray(good)
        for _ in range(generator.randint(1, 4)):
            data[generator.randrange(900)] = generator.randrange(256)
        try:
            safetensors.load(bytes(data))
        except ValueError as error:
            assert str(error).startswith("safetensors: ")
