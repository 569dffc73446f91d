"""adjoin.types: names for annotations."""

import builtins
from collections.abc import Sequence
from typing import Union

from ._C import Size, Tensor, device, dtype  # noqa: F401

Number = Union[builtins.int, builtins.float, builtins.bool]  # noqa: UP007  (isinstance of old programs)
Device = Union[device, builtins.str, builtins.int, None]  # noqa: UP007
_device, _dtype, _size = device, dtype, Sequence[builtins.int]
_int, _float, _bool = builtins.int, builtins.float, builtins.bool
