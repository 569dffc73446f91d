"""adjoin._numeric: finfo and iinfo: the limits of dtypes."""

from . import _C

# name: bits, explicit fraction bits, smallest exponent of a normal number, largest
_FLOATS = {
    "float16": (16, 10, -14, 15),
    "bfloat16": (16, 7, -126, 127),
    "float32": (32, 23, -126, 127),
    "float64": (64, 52, -1022, 1023),
}


def _name(dtype):
    return str(dtype).rsplit(".", 1)[-1]


class finfo:
    """The limits of a floating-point dtype."""

    def __init__(self, type=None):
        dtype = _C.get_default_dtype() if type is None else type
        name = _name(dtype.to_real() if dtype.is_complex else dtype)
        if name not in _FLOATS:
            raise TypeError(f"finfo(): {name} is not a floating-point dtype; use iinfo")
        self.bits, fraction, low, high = _FLOATS[name]
        self.dtype = name
        self.eps = 2.0**-fraction
        self.max = (2.0 - self.eps) * 2.0**high
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0**low
        self.resolution = {10: 1e-3, 7: 1e-2, 23: 1e-6, 52: 1e-15}[fraction]

    def __repr__(self):
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.tiny:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype."""

    def __init__(self, type):
        self.dtype = _name(type)
        if type.is_floating_point or type.is_complex or self.dtype == "bool":
            raise TypeError(f"iinfo(): {self.dtype} is not an integer dtype; use finfo")
        self.bits = type.itemsize * 8
        self.min = -(2 ** (self.bits - 1)) if type.is_signed else 0
        self.max = 2 ** (self.bits - type.is_signed) - 1

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
