"""adjoin.safetensors: tensors in a file that holds nothing but a JSON header and their bytes.

The layout: 8 bytes of header length, little endian; the header, {"name": {"dtype", "shape",
"data_offsets"}, "__metadata__": {str: str}}; the data, of which every byte belongs to exactly one
tensor.
"""

import json
import math
import sys

import adjoin
from adjoin import _C

from ._files import contents

_MAX_HEADER = 100_000_000  # bytes, the limit of the format's other readers
_CODES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
    "uint16": "U16", "uint32": "U32", "uint64": "U64", "float16": "F16", "bfloat16": "BF16",
    "float32": "F32", "float64": "F64", "complex64": "C64", "complex128": "C128",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0",
}  # fmt: skip


def _dtypes():
    """Code in the file -> dtype, for those that this build has."""
    known = {code: getattr(adjoin, name, None) for name, code in _CODES.items()}
    return {code: dtype for code, dtype in known.items() if dtype is not None}


def _bytes_of(tensor):
    """A contiguous tensor's elements as bytes, without a copy where it is one already."""
    flat = tensor.detach().cpu().contiguous().view(-1)
    if flat.numel() == 0:
        return b""
    return memoryview(flat.view(adjoin.uint8)).cast("B")


def _parts(tensors, metadata):
    """The header and, in the order of the file, the tensors: the widest first, so that all are
    aligned."""
    codes = {dtype: code for code, dtype in _dtypes().items()}
    for name, tensor in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise ValueError(f"safetensors: {name!r} cannot name a tensor; use another string")
        if not isinstance(tensor, adjoin.Tensor):
            raise TypeError(f"safetensors: {name!r} is a {type(tensor).__name__}; a tensor is wanted")
        if tensor.dtype not in codes:
            raise ValueError(f"safetensors: {name!r} is {tensor.dtype}, which the format does not have; cast it first")
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header, at = {}, 0
    if metadata:
        for key, value in metadata.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError("safetensors: metadata maps strings to strings; convert it first")
        header["__metadata__"] = dict(metadata)
    for name in order:
        tensor = tensors[name]
        end = at + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": codes[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [at, end],
        }
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, [tensors[name] for name in order]


def save(tensors, metadata=None):
    """The file's bytes for {name: tensor}."""
    _check_order()
    header, ordered = _parts(tensors, metadata)
    return b"".join([header, *map(_bytes_of, ordered)])


def save_file(tensors, filename, metadata=None):
    """Writes {name: tensor} to a file, which appears whole or not at all."""
    _check_order()
    header, ordered = _parts(tensors, metadata)
    _C.write_atomically(filename, [header, *map(_bytes_of, ordered)])


def load(data, device=None):
    """{name: tensor} from the bytes of a file; the tensors are copies."""
    return _read(memoryview(data).cast("B"), "data", device, copy=True)[0]


def load_file(filename, device=None):
    """{name: tensor} from a file. From 64 MB on it is mapped privately, as by ``adjoin.load``: nobody may cut it short then."""
    return _read(*_contents(filename), device, copy=False)[0]


def load_metadata(filename):
    """The strings that were saved beside the tensors."""
    return _read(*_contents(filename), None, copy=False)[1]


def _contents(filename):
    view = contents(filename)
    if not view:
        raise _fault(filename, "it is empty")
    return view, filename


def _fault(where, what):
    return ValueError(f"safetensors: {where}: {what}; the file is damaged or of another format")


def _check_order():
    if sys.byteorder != "little":
        raise RuntimeError("safetensors: this machine is big endian and the format is not")


def _read(view, where, device, copy):
    _check_order()
    if len(view) < 8:
        raise _fault(where, f"it has {len(view)} bytes and 8 are the least")
    length = int.from_bytes(view[:8], "little")
    if length > min(_MAX_HEADER, len(view) - 8):
        raise _fault(where, f"its header claims {length} bytes of {len(view) - 8}")
    try:
        header = json.loads(bytes(view[8 : 8 + length]), object_pairs_hook=_no_repeats)
    except (ValueError, RecursionError) as error:
        raise _fault(where, f"its header is no JSON object with distinct names ({error})") from None
    if not isinstance(header, dict):
        raise _fault(where, "its header is no JSON object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or any(not isinstance(v, str) for v in metadata.values()):
        raise _fault(where, "its metadata is not a mapping of strings")
    data = view[8 + length :]
    spans = [_span(name, entry, where, len(data)) for name, entry in header.items()]
    end = 0
    for start, stop, name, _, _ in sorted(spans, key=lambda span: span[:2]):
        if start != end:
            fault = "overlaps another" if start < end else "leaves a gap before it"
            raise _fault(where, f"tensor {name!r} at byte {start} {fault}")
        end = stop
    if end != len(data):
        raise _fault(where, f"it has {len(data) - end} bytes that belong to no tensor")
    tensors = {}
    for start, stop, name, dtype, shape in spans:
        # Another writer need not have aligned its data, and kernels want it aligned.
        own = copy or (8 + length + start) % dtype.itemsize != 0
        tensors[name] = _tensor(data[start:stop], dtype, shape, device, own)
    return tensors, metadata


def _no_repeats(pairs):
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name stands twice")
    return result


def _is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _span(name, entry, where, size):
    """(start, stop, name, dtype, shape) of a header's entry, all of it checked."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise _fault(where, f"tensor {name!r} needs dtype, shape and data_offsets, and no more")
    dtype = _dtypes().get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise _fault(where, f"tensor {name!r} has the unknown dtype {entry['dtype']!r}")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not isinstance(shape, list) or len(shape) > 64 or not all(map(_is_count, shape)):
        raise _fault(where, f"tensor {name!r} has the shape {str(shape)[:80]}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise _fault(where, f"tensor {name!r} has the offsets {str(offsets)[:80]}")
    start, stop = offsets
    wanted = math.prod(shape) * dtype.itemsize
    if not start <= stop <= size or stop - start != wanted:
        raise _fault(
            where,
            f"tensor {name!r} lies at bytes {start} to {stop} of {size} and its shape needs {wanted}",
        )
    return start, stop, name, dtype, shape


def _tensor(view, dtype, shape, device, copy):
    if len(view) == 0:
        return adjoin.empty(shape, dtype=dtype, device=device)
    if copy:
        view = bytearray(view)
    tensor = _C.frombuffer(view, dtype=adjoin.uint8).view(dtype).view(shape)
    return tensor if device is None else tensor.to(device)
