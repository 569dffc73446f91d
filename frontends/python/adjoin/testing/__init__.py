"""adjoin.testing: closeness of tensors with messages that say where, and tensors to test with."""

from .comparison import assert_allclose, assert_close  # noqa: F401
from .creation import make_tensor  # noqa: F401
