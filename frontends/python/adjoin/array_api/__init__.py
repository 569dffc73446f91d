"""adjoin.array_api: Adjoin under the names of the Python array API standard, version 2024.12.

`x.__array_namespace__()` gives this module. Its functions have the standard's signatures and its rules of promotion,
where a function at the package's top has PyTorch's. The arrays it makes are tensors of the subclass `Array`, whose operators
promote by the standard and whose `x.size` is a number. A tensor made elsewhere is taken, too; on it `x.size` is a method, and
its operators promote as PyTorch's do.
"""

from math import e, inf, nan, pi

from .. import bool, complex64, complex128, float32, float64, int8, int16, int32, int64  # noqa: A004
from .. import uint8, uint16, uint32, uint64
from . import _array, _creation, _dtypes, _elementwise, _manipulation, _products, _searching, _statistics, fft, linalg
from ._creation import *
from ._dtypes import *
from ._elementwise import *
from ._info import __array_namespace_info__
from ._manipulation import *
from ._products import *
from ._searching import *
from ._statistics import *

_array.give_operators(globals())

__array_api_version__ = "2024.12"
newaxis = None

__all__ = [  # noqa: PLE0604, PLE0605  (the parts say their names)
    "__array_api_version__", "__array_namespace_info__", "bool", "complex128", "complex64", "e", "fft", "float32", "float64",
    "inf", "int16", "int32", "int64", "int8", "linalg", "nan", "newaxis", "pi", "uint16", "uint32", "uint64", "uint8",
    *_creation.__all__, *_dtypes.__all__, *_elementwise.__all__, *_manipulation.__all__, *_products.__all__,
    *_searching.__all__, *_statistics.__all__,
]  # fmt: skip


def __dir__():
    return sorted(__all__)
