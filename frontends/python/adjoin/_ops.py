"""adjoin._ops: the classes of ops under the path by which PyTorch's programs ask whether something is one."""

from . import ops
from ._aten import OpOverloadPacket
from ._op_overload import OpOverload

__all__ = ["OpOverload", "OpOverloadPacket", "ops"]
