"""adjoin._typed_storage: the memory under tensors as a row of numbers of one dtype, under the names of PyTorch's older storages."""

import copy
import sys

from . import _C
from .storage import CASTS, UntypedStorage

_op = _C.find_op


def _package():
    """adjoin, or torch where a program says so."""
    return sys.modules["adjoin"].__name__


def _numbers(name, given, dtype, device):
    """What a storage is made of, as a row of numbers."""
    if isinstance(given, (UntypedStorage, TypedStorage)):
        return given.untyped()._seen_as(dtype)
    if isinstance(given, str):
        raise TypeError(f"{name}: invalid data type 'str'; a size or numbers are wanted")
    if isinstance(given, _C.Tensor):
        raise TypeError(f"{name}: Argument type not recognized: Tensor; say tensor.storage()")
    if hasattr(given, "__index__"):
        return _op("empty")((given.__index__(),), dtype=dtype, device=device)
    return _C.tensor(list(given), dtype=dtype, device=device)


class TypedStorage:
    """Numbers of one dtype, in memory that tensors may share: ``TypedStorage(size)``, of a list, or over an UntypedStorage."""

    dtype = None

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        name, own = type(self).__name__, type(self).dtype
        if own is not None and (device is not None or dtype is not None):
            word = "device" if device is not None else "dtype"
            raise RuntimeError(f"{name}: '{word}' cannot be specified; TypedStorage takes it")
        dtype = own if dtype is None else dtype
        if dtype is None:
            raise RuntimeError(f"{name}: Argument 'dtype' must be specified")
        if not isinstance(dtype, _C.dtype):
            raise TypeError(f"{name}: Argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
        if wrap_storage is not None:
            if args:
                raise RuntimeError(f"{name}: No positional arguments should be given when using 'wrap_storage'")
            if device is not None:
                raise RuntimeError(f"{name}: Argument 'device' should not be specified when 'wrap_storage' is given")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    f"{name}: Argument 'wrap_storage' must be UntypedStorage, not {type(wrap_storage).__name__}"
                )
        if len(args) > 1:
            raise RuntimeError(
                f"{name}: Too many positional arguments: a size, a list or a storage is wanted, there are {len(args)}"
            )
        given = args[0] if args else 0
        if wrap_storage is not None:
            given = wrap_storage
        self._row, self.dtype = _numbers(name, given, dtype, device), dtype
        self.filename = getattr(wrap_storage, "filename", None)

    filename = None  # of the file that is mapped

    @classmethod
    def _new_shared(cls, size, *, device=None):
        made = cls._of(_op("empty")((size,), dtype=cls.dtype, device=device))
        made._row.share_memory_()
        return made

    @property
    def _cdata(self):
        return self.untyped()._cdata

    def is_shared(self):
        """Whether other processes can see the numbers."""
        return self._row.is_shared()

    def share_memory_(self):
        """Moves the numbers to where other processes see them."""
        self._row.untyped_storage()._on_host("share_memory_")
        self._row.share_memory_()
        return self

    def pin_memory(self, device=None):
        """A copy in memory that a device reads at once."""
        return type(self)._of(self._row.pin_memory())

    @property
    def device(self):
        """Where the numbers are."""
        return self._row.device

    is_cuda = property(lambda self: self._row.is_cuda)
    is_sparse = is_hpu = False

    def get_device(self):
        """The number of its device, -1 on the host."""
        return self._row.get_device()

    def is_pinned(self, device="cuda"):
        """Whether a device reads the numbers at once."""
        return self._row.is_pinned()

    def to(self, *, device, non_blocking=False):
        """The numbers on another device."""
        return type(self)._of(self._row.to(device, non_blocking=non_blocking))

    def untyped(self):
        """The same memory as bytes."""
        return self._row.untyped_storage()

    _untyped_storage = property(untyped)

    @classmethod
    def from_buffer(cls, buffer, byte_order="native", *, dtype=None, count=-1, offset=0):
        """Copies the numbers of a buffer, whose bytes are in that order ("native", "little", "big")."""
        kind = dtype or cls.dtype
        made = cls._of(_C.frombuffer(bytearray(buffer), dtype=kind, count=count, offset=offset))
        if byte_order not in ("native", sys.byteorder):
            made.untyped().byteswap(kind)
        return made

    @classmethod
    def from_file(cls, filename, shared=False, size=0):
        """The numbers of a file, mapped, as ``UntypedStorage.from_file`` maps its bytes."""
        return cls(wrap_storage=UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize))

    def cpu(self):
        """The numbers on the host."""
        return type(self)._of(self._row.cpu())

    def cuda(self, device=None):
        """The numbers on a CUDA device."""
        return type(self)._of(self._row.cuda(device))

    def resizable(self):
        """True: memory of the package grows."""
        return True

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
        """The address of the first number; 0 where there is no memory."""
        return self._row.data_ptr()

    def __getitem__(self, key):
        if isinstance(key, slice):
            return type(self)._of(self._row[key].clone())
        self._row.untyped_storage()._has_values()
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
        self._row.untyped_storage()._has_values()
        return self._row.tolist()

    def fill_(self, value):
        """Sets all numbers."""
        if isinstance(value, (TypedStorage, UntypedStorage)):
            raise RuntimeError(f"{type(self).__name__}: cannot set item with a {type(value).__name__}; give a number")
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
            return f"{_package()}.{_NAMES.get(self.dtype, 'TypedStorage')}"
        return named.get(_NAMES.get(dtype), TypedStorage)._of(self._row.to(dtype))

    def _seen_as(self, dtype):
        """The numbers as a tensor in this memory; ``adjoin.tensor`` of a storage."""
        if dtype not in (None, self.dtype):
            raise RuntimeError(
                f"tensor: Expected a Storage of type {dtype} or an UntypedStorage, but got type {self.dtype}; "
                "give storage.untyped() to read its bytes so"
            )
        return self._row

    def __sizeof__(self):
        return object.__sizeof__(self) + self.nbytes()

    def __deepcopy__(self, memo):
        return type(self)._of(copy.deepcopy(self._row, memo))

    def __copy__(self):
        return self.clone()

    def resize_(self, size):
        """Another number of elements; new ones are not set."""
        self._row.resize_(size)
        return self

    def __eq__(self, other):
        return isinstance(other, TypedStorage) and other.dtype is self.dtype and other.data_ptr() == self.data_ptr()

    __hash__ = object.__hash__

    def __repr__(self):
        numbers = "...\n" if self._row.is_meta else "".join(f" {n}\n" for n in self.tolist())
        return f"{numbers}[{_package()}.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"


# The names by which packages ask without the warning that PyTorch's public ones give.
for _name in ("resize_", "size", "is_shared", "share_memory_", "element_size", "data_ptr", "nbytes"):
    setattr(TypedStorage, "_" + _name, vars(TypedStorage)[_name])
TypedStorage._setitem, TypedStorage._getitem = TypedStorage.__setitem__, TypedStorage.__getitem__
TypedStorage._deepcopy = TypedStorage.__deepcopy__
TypedStorage._pickle_storage_type = TypedStorage.pickle_storage_type = lambda self: _NAMES.get(
    self.dtype, "TypedStorage"
)

_DTYPES = {
    "ByteStorage": _C.uint8, "CharStorage": _C.int8, "ShortStorage": _C.int16, "IntStorage": _C.int32, "LongStorage": _C.int64,
    "HalfStorage": _C.float16, "BFloat16Storage": _C.bfloat16, "FloatStorage": _C.float32, "DoubleStorage": _C.float64,
    "BoolStorage": _C.bool, "ComplexFloatStorage": _C.complex64, "ComplexDoubleStorage": _C.complex128,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


for _name in CASTS:
    setattr(TypedStorage, _name, vars(UntypedStorage)[_name])
named = {
    name: type(name, (TypedStorage,), {"dtype": dtype, "_dtype": dtype, "__doc__": f"A storage of {dtype}."})
    for name, dtype in _DTYPES.items()
}


named["Storage"] = named["FloatStorage"]  # the name without a dtype


def storage(tensor):
    """The memory under a tensor as numbers of its dtype."""
    kind = named.get(_NAMES.get(tensor.dtype), TypedStorage)
    if tensor.is_meta:
        return kind._of(tensor.detach().reshape(-1))
    return kind._of(tensor.untyped_storage()._seen_as(tensor.dtype))


def over(row):
    """The storage whose numbers a tensor of one dimension is: that of a file."""
    return named.get(_NAMES.get(row.dtype), TypedStorage)._of(row)


def storage_type(tensor):
    """The class of ``storage()``."""
    return type(storage(tensor))


def __getattr__(name):
    if name in named:
        return named[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
