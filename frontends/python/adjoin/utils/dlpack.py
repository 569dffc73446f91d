"""adjoin.utils.dlpack: tensors to other libraries and back over the same memory."""

import ctypes
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


class ReadOnlyTensorWrapper:
    """A tensor to hand to another library over the same memory, marked as one that must not be written. It is good for
    ``__dlpack__`` alone; compute with the tensor itself."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, *, max_version=None, **options):
        if max_version is None or tuple(max_version) < (1, 0):
            raise BufferError(
                "ReadOnlyTensorWrapper: who asks knows DLPack before 1.0, which cannot say that memory is read-only; give a copy"
            )
        capsule = self._tensor.__dlpack__(max_version=max_version, **options)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        flags = ctypes.c_uint64.from_address(
            pointer(capsule, b"dltensor_versioned") + 24
        )  # after version, context, deleter
        flags.value |= 1
        return capsule

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


def to_dlpack(tensor):
    """A capsule that any library takes once."""
    return _C.Tensor.__dlpack__(tensor)
