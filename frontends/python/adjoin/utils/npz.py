"""adjoin.utils.npz: NumPy's `.npy` and `.npz` files, without NumPy.

`.npy`: a magic text, a version, the length of a header, the header (a Python literal of ``descr``,
``fortran_order`` and ``shape``), the elements. `.npz`: a zip archive of such files. Objects, which
NumPy would pickle, and structured dtypes are refused.
"""

import io
import math
import os
import re
import struct
import sys
import zipfile
import zlib

import adjoin
from adjoin import _C

from .._files import contents

_MAGIC = b"\x93NUMPY"
_MAX_HEADER = 1 << 16  # bytes; a header that needs more describes no tensor
# What NumPy writes, and no other literal of Python.
_ITEM = re.compile(r"'(descr|fortran_order|shape)'\s*:\s*('[^'\\]*'|True|False|\([0-9, ]*\))")
_HEADER = re.compile(rf"\s*\{{\s*(?:{_ITEM.pattern}\s*,\s*){{2}}{_ITEM.pattern}\s*,?\s*\}}\s*")
_CODES = {
    "bool": "|b1", "uint8": "|u1", "int8": "|i1", "int16": "<i2", "int32": "<i4", "int64": "<i8", "uint16": "<u2", "uint32": "<u4",
    "uint64": "<u8", "float16": "<f2", "float32": "<f4", "float64": "<f8", "complex64": "<c8", "complex128": "<c16",
}  # fmt: skip


def _dtypes():
    """Code without byte order -> dtype."""
    return {code[1:]: getattr(adjoin, name) for name, code in _CODES.items()}


def _fault(where, what):
    return ValueError(f"npz: {where}: {what}; the file is damaged or of another kind")


# What the interpreter's own reader of archives raises for damaged ones.
_FAULTS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, IndexError, NotImplementedError, OverflowError,
           RuntimeError, ValueError)  # fmt: skip


# Writing


def _bytes_of(tensor):
    flat = tensor.detach().cpu().contiguous().view(-1)
    return memoryview(flat.view(adjoin.uint8)).cast("B") if flat.numel() else b""


def _parts(name, tensor):
    """A `.npy` file's header and elements."""
    if sys.byteorder != "little":
        raise RuntimeError("npz: this machine is big endian; only little endian files are written")
    if not isinstance(tensor, adjoin.Tensor):
        tensor = adjoin.as_tensor(tensor)
    code = _CODES.get(str(tensor.dtype).rpartition(".")[2])
    if code is None:
        raise ValueError(f"npz: {name!r} is {tensor.dtype}, which NumPy does not have; cast it first")
    shape = tuple(tensor.shape)
    text = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return _MAGIC + b"\x01\x00" + len(text).to_bytes(2, "little") + text.encode("latin1"), _bytes_of(tensor)


def save_npy(file, tensor):
    """Writes one tensor to a `.npy` file: a path, which appears whole or not at all, or what has ``write``."""
    parts = _parts("the tensor", tensor)
    if hasattr(file, "write"):
        for part in parts:
            file.write(part)
    else:
        _C.write_atomically(file, parts)


def save(file, tensors, *, compressed=False):
    """Writes {name: tensor} to a `.npz` file: a path, which appears whole or not at all, or what has ``write``."""
    memory = io.BytesIO() if not hasattr(file, "write") else file
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(memory, "w", method, allowZip64=True) as archive:
        for name, tensor in tensors.items():
            if not isinstance(name, str) or not name:
                raise ValueError(f"npz: {name!r} cannot name a tensor; use a string")
            header, data = _parts(name, tensor)
            with archive.open(name + ".npy", "w", force_zip64=True) as entry:
                entry.write(header)
                entry.write(data)
    if memory is not file:
        _C.write_atomically(file, [memory.getbuffer()])


# Reading


def load_npy(file):
    """The tensor of a `.npy` file. The file of a path is mapped privately from 64 MB on, as by ``adjoin.load``."""
    if hasattr(file, "read"):
        data = file.read()
        return _read(memoryview(data).cast("B"), "the file", own=False)
    return _read(_contents(file), os.fspath(file), own=True)


def load(file):
    """{name: tensor} of a `.npz` file, a path or what has ``read`` and ``seek``."""
    try:
        archive = zipfile.ZipFile(file)
    except _FAULTS as error:
        raise _fault(_shown(file), str(error)) from None
    tensors = {}
    with archive:
        for entry in archive.infolist():
            if not entry.filename.endswith(".npy"):
                continue
            name = entry.filename[:-4]
            tensors[name] = _read(memoryview(_unpacked(archive, entry)), f"{_shown(file)}: {name!r}", own=True)
    return tensors


def _shown(file):
    return os.fspath(file) if isinstance(file, (str, bytes, os.PathLike)) else "the file"


def _unpacked(archive, entry):
    """A record's bytes, which may be written to; as many as come, never as many as are claimed."""
    data = bytearray()
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _fault(entry.filename, f"it is packed in the way {entry.compress_type}")
    try:
        with archive.open(entry) as record:
            while len(data) <= entry.file_size and (piece := record.read(1 << 22)):
                data += piece
    except (*_FAULTS, OSError) as error:
        raise _fault(entry.filename, str(error)) from None
    if len(data) > entry.file_size:
        raise _fault(entry.filename, f"it is longer than {entry.file_size} bytes, as the archive says")
    return data


def _contents(path):
    view = contents(path)
    if not view:
        raise _fault(path, "it is empty")
    return view


def _header(view, where):
    """(the header's text, where the elements begin)"""
    if bytes(view[:6]) != _MAGIC:
        raise _fault(where, "it does not begin as a .npy file does")
    version = bytes(view[6:8])
    if version not in (b"\x01\x00", b"\x02\x00", b"\x03\x00"):
        raise _fault(where, f"its version is {version.hex()}")
    width = 2 if version == b"\x01\x00" else 4
    length = int.from_bytes(view[8 : 8 + width], "little")
    begin = 8 + width
    if length > min(_MAX_HEADER, len(view) - begin):
        raise _fault(where, f"its header claims {length} bytes of {len(view) - begin}")
    return bytes(view[begin : begin + length]).decode(
        "utf-8" if version == b"\x03\x00" else "latin1", "replace"
    ), begin + length


def _read(view, where, own):
    text, begin = _header(view, where)
    found = _HEADER.fullmatch(text)
    header = dict(_ITEM.findall(text)) if found else {}
    if set(header) != {"descr", "fortran_order", "shape"}:
        raise _fault(where, f"its header is not of descr, fortran_order and shape of plain elements: {text[:80]!r}")
    descr, turned = header["descr"].strip("'"), header["fortran_order"] == "True"
    numbers = header["shape"].strip("()").replace(",", " ").split()
    if header["descr"][0] != "'" or descr[:1] not in ("<", ">", "|", "=") or descr[1:] not in _dtypes():
        if descr[1:] == "O":
            raise ValueError(f"npz: {where}: it holds pickled Python objects, which are not read")
        raise ValueError(f"npz: {where}: it holds elements of {descr[:80]!r}, which no tensor has")
    dtype = _dtypes()[descr[1:]]
    if (
        header["shape"][0] != "("
        or header["fortran_order"][0] not in "TF"
        or len(numbers) > 64
        or any(len(n) > 18 for n in numbers)
    ):
        raise _fault(where, f"its shape is {header['shape'][:80]}")
    shape = tuple(map(int, numbers))
    data = view[begin:]
    wanted = math.prod(shape) * dtype.itemsize
    if len(data) < wanted or math.prod(n for n in shape if n) >= 2**62:
        raise _fault(where, f"its shape needs {wanted} bytes, and {len(data)} are there")
    return _tensor(data[:wanted], dtype, shape, turned, descr[0] == ">", own and begin % dtype.itemsize == 0)


def _tensor(data, dtype, shape, turned, swapped, share):
    if len(data) == 0:
        return adjoin.empty(shape, dtype=dtype)
    data = data if share and not swapped else bytearray(data)
    if swapped:
        part = dtype.itemsize // (2 if dtype.is_complex else 1)
        for i in range(part // 2):
            data[i::part], data[part - 1 - i :: part] = data[part - 1 - i :: part], data[i::part]
    flat = _C.frombuffer(data, dtype=adjoin.uint8).view(dtype)
    if not turned:
        return flat.view(shape)
    return flat.view(shape[::-1]).permute(*range(len(shape) - 1, -1, -1)) if len(shape) > 1 else flat.view(shape)
