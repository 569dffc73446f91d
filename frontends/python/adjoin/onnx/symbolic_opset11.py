"""adjoin.onnx.symbolic_opset11: a module that packages import to write nodes with; using it raises."""

from .symbolic_helper import _missing as __getattr__  # noqa: F401
