"""adjoin._pt_numpy: NumPy's arrays, dtypes and numbers in a `.pt` file, which load makes with weights_only=False.

NumPy's own functions make them, of bytes and numbers that the file has; none runs what a file names.
"""


class Arrays:
    """What a file may name of NumPy, while one is read."""

    def __init__(self):
        import numpy

        core = numpy._core if hasattr(numpy, "_core") else numpy.core
        self._kinds = numpy.ndarray, numpy.dtype
        self._reconstruct = core.multiarray._reconstruct
        self._made = {
            "_reconstruct": self._empty,
            "scalar": core.multiarray.scalar,
            "_frombuffer": getattr(core.numeric, "_frombuffer", None),
            "dtype": numpy.dtype,
            "ndarray": numpy.ndarray,
        }
        self.calls = [f for name, f in self._made.items() if name != "ndarray" and f is not None]

    def _empty(self, cls, shape, kind):
        """An array that its state fills. A size that the file merely claims takes no memory."""
        if cls is not self._kinds[0] or tuple(shape) != (0,):
            raise ValueError(f"load: an array of the file is a {cls!r} of shape {shape!r} before it is filled")
        return self._reconstruct(cls, shape, kind)

    def find(self, name):
        """The function or class of a name, or None."""
        return self._made.get(name)

    def holds(self, obj):
        """Whether an object takes its state from the file."""
        return isinstance(obj, self._kinds)
