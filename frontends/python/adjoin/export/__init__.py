"""adjoin.export: a module as a program that runs without its Python: traced once, with dimensions that may differ."""

from ._dims import Dim, dims  # noqa: F401
from ._program import (  # noqa: F401
    ExportedProgram,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
    export,
    export_for_training,
    load,
    save,
)


def register_dataclass(cls, *, serialized_type_name=None):
    """Objects of a data class may be inputs and results of programs from now on. A file has the name of the class alone: who reads it
    registers the class, too."""
    from ..utils._pytree import register_dataclass

    register_dataclass(cls, serialized_type_name=serialized_type_name)
