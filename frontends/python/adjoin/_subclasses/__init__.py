"""adjoin._subclasses: PyTorch's tensors without values, by name. Nothing here makes one: tensors of device "meta" have only a shape."""

from .fake_tensor import FakeTensor, FakeTensorMode  # noqa: F401
