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
