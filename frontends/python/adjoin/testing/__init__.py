"""adjoin.testing: closeness of tensors with messages that say where, tensors to test with, two backends side by side."""

from ._filecheck import FileCheck  # noqa: F401
from ._shadow import shadow  # noqa: F401
from .comparison import assert_allclose, assert_close  # noqa: F401
from .creation import make_tensor  # noqa: F401
