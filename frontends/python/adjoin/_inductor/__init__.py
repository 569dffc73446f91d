"""adjoin._inductor: what programs ask and tell PyTorch's compiler of kernels. Adjoin has another one: compile() is its face."""

from .._compile import list_mode_options, list_options  # noqa: F401
from ..compiler import cudagraph_mark_step_begin  # noqa: F401
from . import config  # noqa: F401
