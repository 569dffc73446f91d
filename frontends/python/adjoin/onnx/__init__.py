"""adjoin.onnx: networks to and from ONNX: export() as PyTorch has it, load()."""

import enum

from . import symbolic_helper, symbolic_opset11  # noqa: F401


class TensorProtoDataType(enum.IntEnum):
    """ONNX's numbers of dtypes."""

    UNDEFINED, FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL = range(10)
    FLOAT16, DOUBLE, UINT32, UINT64, COMPLEX64, COMPLEX128, BFLOAT16 = range(10, 17)
    FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ = range(17, 21)


registered = {}  # "space::name" -> {opset: the function that a package gave}


class OnnxExporterError(RuntimeError):
    """An export that failed."""


class OperatorExportTypes(enum.Enum):
    """What to do with ops that ONNX lacks."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(enum.Enum):
    """Whether a network is exported as it trains."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Keeps a function that writes an op as a node."""
    if "::" not in symbolic_name:
        raise ValueError(f"register_custom_op_symbolic: {symbolic_name!r}: a name is SPACE::NAME")
    registered.setdefault(symbolic_name, {})[opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name, opset_version):
    """Forgets it."""
    registered.get(symbolic_name, {}).pop(opset_version, None)


_exporting = False


def is_in_onnx_export():
    """Is a network traced for export() now?"""
    return _exporting


def export(
    model, args=(), f=None, *, kwargs=None, export_params=True, verbose=None, training=TrainingMode.EVAL, input_names=None,
    output_names=None, opset_version=None, dynamic_axes=None, dynamic_shapes=None, dynamo=False, external_data=False,
    keep_initializers_as_inputs=False, do_constant_folding=True, **ignored,
):  # fmt: skip
    """Writes the calls that a module or function makes for these arguments as an ONNX model of opset 13 to 20 (18).

    dynamic_axes: {"input": {0: "batch"}}; dynamic_shapes as torch.export has it. With f=None the model comes back as an
    ONNXProgram, which save() writes. Weights of 2 GB or more, or external_data=True, lie in a file beside f.
    """
    from ._program import export

    if not callable(model):
        raise TypeError(
            f"onnx.export: a module or a function is expected, got {type(model).__name__}; give what computes"
        )
    return export(
        model, args, f, kwargs, export_params, training, input_names or (), output_names or (), opset_version, dynamic_axes,
        dynamic_shapes, external_data,
    )  # fmt: skip


dynamo_export = export


def load(f):
    """The module that an ONNX model says, of a path, a file that is open, or bytes. Nothing in the file is executed while it is read.

    Its parameters are the initializers; a call computes the nodes. jit.trace(module, example) makes a program of it.
    """
    from ._import import load

    return load(f)
