"""adjoin._numeric: finfo and iinfo: the limits of dtypes."""

from . import _C

# name: bits, explicit fraction bits, smallest exponent of a normal number, largest number
_FLOATS = {
    "float8_e4m3fn": (8, 3, -6, 448.0),
    "float8_e4m3fnuz": (8, 3, -7, 240.0),
    "float8_e5m2": (8, 2, -14, 57344.0),
    "float8_e5m2fnuz": (8, 2, -15, 57344.0),
    "float8_e8m0fnu": (8, 0, -127, 2.0**127),
    "float16": (16, 10, -14, 65504.0),
    "bfloat16": (16, 7, -126, (2 - 2.0**-7) * 2.0**127),
    "float32": (32, 23, -126, (2 - 2.0**-23) * 2.0**127),
    "float64": (64, 52, -1022, (2 - 2.0**-52) * 2.0**1023),
}


def _name(dtype):
    return str(dtype).rsplit(".", 1)[-1]


_known = {}  # (class, dtype) -> its limits, which nothing changes


class _Limits:
    """One object for each dtype that was asked for."""

    def __new__(cls, type):
        found = _known.get((cls, type))
        if found is None:
            found = object.__new__(cls)
            found._fill(type)
            _known[cls, type] = found
        return found


class finfo(_Limits):
    """The limits of a floating-point dtype."""

    def __new__(cls, type=None):
        return super().__new__(cls, _C.get_default_dtype() if type is None else type)

    def _fill(self, dtype):
        name = _name(dtype.to_real() if dtype.is_complex else dtype)
        if name not in _FLOATS:
            raise TypeError(f"finfo(): {name} is not a floating-point dtype; use iinfo")
        self.bits, fraction, low, self.max = _FLOATS[name]
        self.dtype = name
        self.eps = 2.0**-fraction
        self.tiny = self.smallest_normal = 2.0**low
        self.min = -self.max if name != "float8_e8m0fnu" else self.tiny  # that has no sign
        self.resolution = {10: 1e-3, 7: 1e-2, 23: 1e-6, 52: 1e-15}.get(fraction, 1.0)

    def __reduce__(self):
        return finfo, (getattr(_C, self.dtype),)

    def __repr__(self):
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.tiny:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo(_Limits):
    """The limits of an integer dtype."""

    def _fill(self, type):
        self.dtype = _name(type)
        if type.is_floating_point or type.is_complex or self.dtype == "bool":
            raise TypeError(f"iinfo(): {self.dtype} is not an integer dtype; use finfo")
        self.bits = type.itemsize * 8
        self.min = -(2 ** (self.bits - 1)) if type.is_signed else 0
        self.max = 2 ** (self.bits - type.is_signed) - 1

    def __reduce__(self):
        return iinfo, (getattr(_C, self.dtype),)

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
