"""adjoin.onnx._model: the messages of an ONNX file, and its tensors."""

import os

import adjoin

from .._files import contents
from ._wire import Kind, Malformed, Message, read, write  # noqa: F401

Entry = Kind("StringStringEntryProto", key=(1, "text"), value=(2, "text"))
OperatorSet = Kind("OperatorSetIdProto", domain=(1, "text"), version=(2, "int"))
Tensor = Kind(
    "TensorProto", dims=(1, ["int"]), data_type=(2, "int"), float_data=(4, ["float"]), int32_data=(5, ["int"]),
    string_data=(6, ["bytes"]), int64_data=(7, ["int"]), name=(8, "text"), raw_data=(9, "bytes"),
    double_data=(10, ["double"]), uint64_data=(11, ["int"]), external_data=(13, [Entry]), data_location=(14, "int"),
)  # fmt: skip
Sparse = Kind("SparseTensorProto", values=(1, Tensor), indices=(2, Tensor), dims=(3, ["int"]))
Dimension = Kind("Dimension", dim_value=(1, "int"), dim_param=(2, "text"))
Shape = Kind("TensorShapeProto", dim=(1, [Dimension]))
TensorType = Kind("TypeProto.Tensor", elem_type=(1, "int"), shape=(2, Shape))
Type = Kind("TypeProto", tensor_type=(1, TensorType))
Sequence = Kind("TypeProto.Sequence", elem_type=(1, Type))
Type.add(sequence_type=(4, Sequence), optional_type=(9, Sequence), sparse_tensor_type=(8, TensorType))
ValueInfo = Kind("ValueInfoProto", name=(1, "text"), type=(2, Type), doc_string=(3, "text"))
Node = Kind(
    "NodeProto", input=(1, ["text"]), output=(2, ["text"]), name=(3, "text"), op_type=(4, "text"), doc_string=(6, "text"),
    domain=(7, "text"), overload=(8, "text"),
)  # fmt: skip
Graph = Kind(
    "GraphProto", node=(1, [Node]), name=(2, "text"), initializer=(5, [Tensor]), doc_string=(10, "text"),
    input=(11, [ValueInfo]), output=(12, [ValueInfo]), value_info=(13, [ValueInfo]), sparse_initializer=(15, [Sparse]),
)  # fmt: skip
Attribute = Kind(
    "AttributeProto", name=(1, "text"), f=(2, "float"), i=(3, "int"), s=(4, "bytes"), t=(5, Tensor), g=(6, Graph),
    floats=(7, ["float"]), ints=(8, ["int"]), strings=(9, ["bytes"]), tensors=(10, [Tensor]), graphs=(11, [Graph]),
    tp=(14, Type), type_protos=(15, [Type]), type=(20, "int"), ref_attr_name=(21, "text"), sparse_tensor=(22, Sparse),
)  # fmt: skip
Node.add(attribute=(5, [Attribute]))
Function = Kind(
    "FunctionProto", name=(1, "text"), input=(4, ["text"]), output=(5, ["text"]), attribute=(6, ["text"]), node=(7, [Node]),
    opset_import=(9, [OperatorSet]), domain=(10, "text"), attribute_proto=(11, [Attribute]), overload=(13, "text"),
)  # fmt: skip
Model = Kind(
    "ModelProto", ir_version=(1, "int"), producer_name=(2, "text"), producer_version=(3, "text"), domain=(4, "text"),
    model_version=(5, "int"), doc_string=(6, "text"), graph=(7, Graph), opset_import=(8, [OperatorSet]),
    metadata_props=(14, [Entry]), functions=(25, [Function]),
)  # fmt: skip

# The field of an attribute, by its type.
FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings", 9: "tensors", 10: "graphs", 11: "sparse_tensor", 13: "tp"}  # fmt: skip
TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16", 17: "float8_e4m3fn",
    18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz",
}  # fmt: skip
_OTHERS = {8: "string", 21: "uint4", 22: "int4", 23: "float4e2m1", 24: "float8e8m0"}
NUMBERS = {name: number for number, name in TYPES.items()}


def dtype_of(number):
    """Adjoin's dtype of ONNX's number of one."""
    if number in TYPES:
        return getattr(adjoin, TYPES[number])
    raise NotImplementedError(f"onnx: tensors of type {_OTHERS.get(number, number)} are not served")


def number_of(dtype):
    """ONNX's number of a dtype."""
    name = str(dtype).rpartition(".")[2]
    if name not in NUMBERS:
        raise NotImplementedError(f"onnx: ONNX has no type for {dtype}")
    return NUMBERS[name]


def parse(data):
    """The ModelProto in bytes."""
    try:
        model = read(Model, memoryview(data))
    except Malformed as error:
        raise ValueError(f"onnx.load: this is no ONNX model: {error}") from None
    if model.graph is None or not model.opset_import:
        raise ValueError("onnx.load: this is no ONNX model: it has no graph, or does not say its opset")
    return model


def file_bytes(f):
    """(the bytes of a path or an open file, the folder of external data)."""
    if hasattr(f, "read"):
        return memoryview(f.read()), None
    if isinstance(f, (bytes, bytearray, memoryview)):
        return memoryview(f), None
    path = os.fspath(f)
    return contents(path), os.path.dirname(os.path.abspath(path))


def store(message, f):
    """Writes a message to a path or an open file."""
    parts, length = write(message)
    if length >= 1 << 31:
        raise ValueError(
            f"onnx.export: the file would have {length} bytes, a protocol buffer has less than 2 GB; give a path and external_data=True"
        )
    if hasattr(f, "write"):
        for part in parts:
            f.write(part)
        return
    with open(f, "wb") as file:
        file.writelines(parts)


def _external(tensor, folder):
    said = {e.key: e.value for e in tensor.external_data}
    place = said.get("location", "")
    if folder is None:
        raise ValueError(
            f"onnx.load: the values of '{tensor.name}' lie in another file, '{place}'; give the path of the model, not its bytes"
        )
    path = os.path.realpath(os.path.join(folder, place))
    if (
        not place
        or os.path.isabs(place)
        or os.path.commonpath([path, os.path.realpath(folder)]) != os.path.realpath(folder)
    ):
        raise ValueError(f"onnx.load: the values of '{tensor.name}' would lie outside of the model's folder: '{place}'")
    try:
        offset, length = int(said.get("offset", "0")), int(said.get("length", "-1"))
    except ValueError:
        raise ValueError(f"onnx.load: '{tensor.name}' has an offset or a length that is no number") from None
    data = contents(path)
    length = len(data) - offset if length < 0 else length
    if offset < 0 or offset + length > len(data):
        raise ValueError(
            f"onnx.load: '{tensor.name}' lies at {offset} to {offset + length} of '{place}', which has {len(data)} bytes"
        )
    return data[offset : offset + length]


def tensor_of(tensor, folder=None):
    """The tensor that a TensorProto says; as many bytes as its shape wants must be there."""
    dtype, dims = dtype_of(tensor.data_type), list(tensor.dims)
    count = 1
    for n in dims:
        if n < 0:
            raise ValueError(f"onnx.load: '{tensor.name}' has a size of {n}")
        count *= n
    if len(dims) > 64:
        raise ValueError(f"onnx.load: '{tensor.name}' has {len(dims)} dimensions, at most 64 are possible")
    if tensor.data_location == 1:
        return _from_bytes(tensor, _external(tensor, folder), dtype, dims, count)
    if tensor.has("raw_data"):
        return _from_bytes(tensor, tensor.raw_data, dtype, dims, count)
    name = str(dtype).rpartition(".")[2]
    given = {
        "float32": "float_data", "complex64": "float_data", "float64": "double_data", "complex128": "double_data",
        "int64": "int64_data", "uint64": "uint64_data", "uint32": "uint64_data",
    }.get(name, "int32_data")  # fmt: skip
    values = getattr(tensor, given)
    wanted = count * (2 if dtype.is_complex else 1)
    if len(values) != wanted:
        raise ValueError(f"onnx.load: '{tensor.name}' has {len(values)} values, its shape {dims} wants {wanted}")
    if not count:
        return adjoin.empty(dims, dtype=dtype)
    if given in ("float_data", "double_data"):
        return adjoin.frombuffer(bytearray(values.tobytes()), dtype=dtype).reshape(dims)
    return _narrow(tensor, values, dtype).reshape(dims)


def _narrow(tensor, values, dtype):
    if dtype.is_floating_point:  # of 8 and 16 bits: their bits as numbers
        size = dtype.itemsize
        try:
            raw = b"".join((n & 0xFFFFFFFF).to_bytes(size, "little") for n in values)
        except OverflowError:
            raise ValueError(f"onnx.load: '{tensor.name}' has a value that is no {dtype}") from None
        return adjoin.frombuffer(bytearray(raw), dtype=dtype)
    wide = adjoin.frombuffer(
        bytearray(values.tobytes()), dtype=adjoin.uint64 if dtype == adjoin.uint64 else adjoin.int64
    )
    return wide.to(dtype)


def _from_bytes(tensor, raw, dtype, dims, count):
    if len(raw) != count * dtype.itemsize:
        raise ValueError(
            f"onnx.load: '{tensor.name}' has {len(raw)} bytes, its type {dtype} and shape {dims} want {count * dtype.itemsize}"
        )
    if not count:
        return adjoin.empty(dims, dtype=dtype)
    if raw.readonly:
        raw = bytearray(raw)
    return adjoin.frombuffer(raw, dtype=dtype).reshape(dims)


def tensor_message(name, t):
    """The TensorProto of a tensor."""
    t = t.detach().cpu().contiguous()
    return Tensor(name=name, dims=list(t.shape), data_type=number_of(t.dtype), raw_data=bytes_of(t))


def bytes_of(t):
    """The elements of a contiguous tensor of the host, in order; a view of its memory."""
    return memoryview(t.reshape(-1).view(adjoin.uint8)).cast("B") if t.numel() else b""
