"""adjoin._typed_storage: the memory under tensors as a row of numbers of one dtype, under the names of PyTorch's older storages."""

from . import _C
from .storage import UntypedStorage

_op = _C.find_op


class TypedStorage:
    """Numbers of one dtype, in memory that tensors may share: ``TypedStorage(size)``, of a list, or over an UntypedStorage."""

    dtype = None

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        dtype = dtype or type(self).dtype
        if dtype is None:
            raise RuntimeError("TypedStorage: dtype is wanted")
        if len(args) > 1:
            raise TypeError(
                f"{type(self).__name__}: a size, a list or a storage is wanted, there are {len(args)} arguments"
            )
        given = args[0] if args else 0
        if wrap_storage is not None:
            given = wrap_storage
        if isinstance(given, (UntypedStorage, TypedStorage)):
            whole = given.untyped()._all()
            self._row = whole[: len(whole) // dtype.itemsize * dtype.itemsize].view(dtype)
        elif isinstance(given, int):
            self._row = _op("empty")((given,), dtype=dtype, device=device)
        else:
            self._row = _C.tensor(list(given), dtype=dtype, device=device)
        self.dtype = dtype

    @classmethod
    def _new_shared(cls, size, *, device=None):
        made = cls(size, device=device)
        made._row.share_memory_()
        return made

    @property
    def device(self):
        """Where the numbers are."""
        return self._row.device

    is_cuda = property(lambda self: self._row.is_cuda)

    def untyped(self):
        """The same memory as bytes."""
        return self._row.untyped_storage()

    def __len__(self):
        return len(self._row)

    size = __len__

    def nbytes(self):
        """The number of bytes."""
        return len(self) * self.dtype.itemsize

    def element_size(self):
        """The bytes of one number."""
        return self.dtype.itemsize

    def data_ptr(self):
        """The address of the first number."""
        return self._row.data_ptr()

    def __getitem__(self, key):
        if isinstance(key, slice):
            return type(self)._of(self._row[key].clone())
        return self._row[key].item()

    def __setitem__(self, key, value):
        self._row[key] = value if not isinstance(value, (list, tuple)) else _C.tensor(value, dtype=self.dtype)

    @classmethod
    def _of(cls, row):
        made = cls.__new__(cls)
        made._row, made.dtype = row, row.dtype
        return made

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        """The numbers as a list."""
        return self._row.tolist()

    def fill_(self, value):
        """Sets all numbers."""
        self._row.fill_(value)
        return self

    def copy_(self, source, non_blocking=False):
        """Takes the numbers of another storage of the same size."""
        self._row.copy_(source._row)
        return self

    def clone(self):
        """A copy."""
        return type(self)._of(self._row.clone())

    def type(self, dtype=None):
        """The name of the storage's type, or a copy in another dtype."""
        if dtype is None:
            return f"adjoin.{_NAMES.get(self.dtype, 'TypedStorage')}"
        return TypedStorage._of(self._row.to(dtype))

    def resize_(self, size):
        """Another number of elements; new ones are not set."""
        self._row.resize_(size)
        return self

    def __eq__(self, other):
        return isinstance(other, TypedStorage) and other.dtype is self.dtype and other.data_ptr() == self.data_ptr()

    __hash__ = object.__hash__

    def __repr__(self):
        numbers = "".join(f" {n}\n" for n in self.tolist())
        return f"{numbers}[adjoin.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"


_DTYPES = {
    "ByteStorage": _C.uint8, "CharStorage": _C.int8, "ShortStorage": _C.int16, "IntStorage": _C.int32, "LongStorage": _C.int64,
    "HalfStorage": _C.float16, "BFloat16Storage": _C.bfloat16, "FloatStorage": _C.float32, "DoubleStorage": _C.float64,
    "BoolStorage": _C.bool, "ComplexFloatStorage": _C.complex64, "ComplexDoubleStorage": _C.complex128,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
named = {
    name: type(name, (TypedStorage,), {"dtype": dtype, "__doc__": f"A storage of {dtype}."})
    for name, dtype in _DTYPES.items()
}


def __getattr__(name):
    if name in named:
        return named[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
