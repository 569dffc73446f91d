"""adjoin.onnx: names of PyTorch's exporter. What packages register is kept; exporting raises."""

import enum

from . import symbolic_helper, symbolic_opset11  # noqa: F401

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


def is_in_onnx_export():
    """False: nothing is exported."""
    return False


def export(*args, **kwargs):
    """Raises: there is no exporter yet."""
    raise NotImplementedError(
        "onnx.export: networks cannot be exported; save module.state_dict() with adjoin.save, and export from PyTorch"
    )


dynamo_export = export
