"""adjoin.utils.dlpack: tensors to other libraries and back over the same memory."""

import enum

from .. import _C
from .._C import from_dlpack  # noqa: F401


class DLDeviceType(enum.IntEnum):
    """The kinds of devices as DLPack numbers them: the first of what ``tensor.__dlpack_device__()`` gives."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor):
    """A capsule that any library takes once."""
    return _C.Tensor.__dlpack__(tensor)
