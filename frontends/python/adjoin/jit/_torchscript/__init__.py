"""adjoin.jit._torchscript: archives of TorchScript, which PyTorch writes: read, and computed by an interpreter of their code.

Nothing in a file is executed: its pickle is read by the reader that makes no objects, its code is parsed, and each call in it
becomes a call of an op by name.
"""

from ._archive import load

__all__ = ["load"]
