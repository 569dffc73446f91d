"""adjoin.storage: the memory under tensors."""

import mmap
import os
import weakref

import adjoin

from . import _C


_known = {}  # where memory is: a weak reference to the storage that stands for it


class _Seen(weakref.ref):
    __slots__ = ("key",)


def _forget(seen):
    if _known.get(seen.key) is seen:
        del _known[seen.key]


def of(tensor):
    """The storage under a tensor: the same object for all tensors that share it, as long as somebody holds it."""
    try:
        key = tensor._storage_info()[3]
    except NotImplementedError:  # its class keeps the values
        return UntypedStorage(tensor)
    seen = _known.get(key)
    found = None if seen is None else seen()
    if found is None or found._cdata != key:
        found = UntypedStorage.__new__(UntypedStorage)
        found._tensor, found._maker = tensor.detach(), weakref.ref(tensor)
        seen = _known[key] = _Seen(found, _forget)
        seen.key = key
    elif found._maker() is None:
        found._maker = weakref.ref(tensor)
    return found


class UntypedStorage:
    """The bytes that one tensor or several look at: those of a tensor, of a list of ints, or a number of new ones."""

    __slots__ = ("__dict__", "__weakref__", "_maker", "_tensor")
    filename = None  # of the file that is mapped

    def __init__(self, given=0, *, device=None):
        if isinstance(given, int):
            given = adjoin.empty(given, dtype=adjoin.uint8, device=device)
        elif not isinstance(given, adjoin.Tensor):
            given = adjoin.tensor(list(given), dtype=adjoin.uint8, device=device)
        elif device is not None:
            raise TypeError(
                "UntypedStorage: the bytes of a tensor are where it is; leave device out, or say storage.to(device)"
            )
        self._tensor = given.detach()
        self._maker = weakref.ref(given)
        self._note()

    def _note(self):
        """This object stands for its memory from now on."""
        try:
            key = self._tensor._storage_info()[3]
        except NotImplementedError:
            return
        seen = _known[key] = _Seen(self, _forget)
        seen.key = key

    @classmethod
    def from_file(cls, filename, shared=False, nbytes=0):
        """The bytes of a file, mapped: with ``shared`` what is written goes to the file, which is made if it is missing."""
        if shared:
            with open(filename, "ab") as file:
                if nbytes and os.path.getsize(filename) < nbytes:
                    file.truncate(nbytes)
        size = os.path.getsize(filename)
        if nbytes > size:
            raise RuntimeError(f"UntypedStorage.from_file: {filename!r} has {size} bytes, {nbytes} are asked for")
        nbytes = nbytes or size
        if not nbytes:
            return cls(adjoin.empty(0, dtype=adjoin.uint8))
        with open(filename, "r+b" if shared else "rb") as file:
            held = mmap.mmap(file.fileno(), nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
        made = cls(_C.frombuffer(held, dtype=adjoin.uint8))
        made.filename = filename
        return made

    @classmethod
    def from_buffer(cls, buffer, byte_order="native", *, dtype=None, count=-1, offset=0):
        """A copy of a buffer's bytes, whose numbers of a dtype are in that order ("native", "little", "big")."""
        from ._typed_storage import TypedStorage

        return TypedStorage.from_buffer(
            buffer, byte_order, dtype=dtype or _C.uint8, count=count, offset=offset
        ).untyped()

    def new(self):
        """A storage of no bytes on the same device."""
        return UntypedStorage(0, device=self.device)

    def untyped(self):
        """Itself."""
        return self

    def type(self, dtype=None):
        """The name of its class, or a typed storage with each byte as a number of a dtype."""
        if dtype is None:
            return f"{type(self).__module__}.{type(self).__name__}"
        from ._typed_storage import TypedStorage

        return TypedStorage._of(self._all()).type(dtype)

    def data_ptr(self):
        """The address of the first byte; 0 where there is no memory."""
        self._tensor.data_ptr()  # tells the core that somebody may write there
        return self._tensor._storage_info()[0]

    def nbytes(self):
        """The number of bytes."""
        try:
            return self._tensor._storage_info()[1]
        except NotImplementedError:
            if self._tensor.layout is not _C.strided:
                raise
            return (
                self._tensor.numel() * self._tensor.element_size()
            )  # its class keeps the values: what they would take

    size = __len__ = nbytes

    @property
    def device(self):
        """Where the bytes are."""
        return self._tensor.device

    is_cuda = property(lambda self: self._tensor.is_cuda)
    is_sparse = is_sparse_csr = is_hpu = False

    def get_device(self):
        """The number of its device, -1 on the host."""
        return self._tensor.get_device()

    def is_pinned(self, device="cuda"):
        """Whether a device reads the bytes at once."""
        return self._tensor.is_pinned()

    def pin_memory(self, device="cuda"):
        """A copy in memory that a device reads at once; itself where it is that."""
        return self if self.is_pinned() else UntypedStorage(self._all().pin_memory())

    def element_size(self):
        """The bytes of one element: one."""
        return 1

    def clone(self):
        """A copy."""
        return UntypedStorage(self._all().clone())

    def copy_(self, source, non_blocking=False):
        """Takes the bytes of another storage, which has as many."""
        self._all().copy_(source.untyped()._all(), non_blocking)
        return self

    def fill_(self, value):
        """Sets every byte."""
        self._all().fill_(value)
        return self

    def to(self, device):
        """The bytes on another device."""
        return UntypedStorage(self._all().to(device))

    def cpu(self):
        """The bytes on the host."""
        return self.to("cpu")

    def cuda(self, device=None):
        """The bytes on a CUDA device."""
        return self.to("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)

    @property
    def _cdata(self):
        return self._tensor._storage_info()[3]

    def _all(self):
        flat = self._tensor.as_strided((self.nbytes() // self._tensor.itemsize,), (1,), 0)
        return flat.view(_C.uint8)

    def byteswap(self, dtype):
        """Turns the order of the bytes of each number of a dtype, or of each of its two parts."""
        width = dtype.itemsize // (2 if dtype.is_complex else 1)
        whole = self._all()
        whole.copy_(whole.reshape(-1, width).flip(1).reshape(-1))

    def resizable(self):
        """False: tensors know where their memory is, and it does not move under them."""
        return False

    def resize_(self, size):
        """Raises, unless it has as many bytes: ``tensor.resize_()`` gives one tensor other memory."""
        if size != self.nbytes():
            raise NotImplementedError(
                f"UntypedStorage.resize_: {self.nbytes()} bytes cannot become {size} under the tensors that share them; "
                "say tensor.resize_() for one tensor, or make new ones"
            )
        return self

    def share_memory_(self):
        """Moves the bytes to where other processes see them, and the tensor that this storage was asked of."""
        if self._tensor.is_meta:
            self._on_host("share_memory_")
        maker = self._maker()
        if maker is not None:
            self._tensor = maker.share_memory_().detach()
        else:
            self._tensor.share_memory_()
        self._note()
        return self

    def _on_host(self, what):
        if self.device.type != "cpu":
            raise RuntimeError(f"{what}: only available on CPU, the storage is on {self.device}; move it with .cpu()")

    def _has_values(self):
        if self._tensor.is_meta:
            raise NotImplementedError("Not available for 'meta' device type: a meta storage has no bytes")

    def is_shared(self):
        """Whether other processes can see the bytes."""
        return self._tensor.is_shared()

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        key = "adjoin memory", self._cdata  # that of tensors which share it
        if key not in memo:
            memo[key] = self._all().clone()
        return UntypedStorage(memo[key])

    def __sizeof__(self):
        return object.__sizeof__(self) + self.nbytes()

    def _seen_as(self, dtype):
        """The bytes as numbers of a dtype, int64 where none is said; ``adjoin.tensor`` of a storage."""
        dtype, whole = dtype or _C.int64, self._all()
        return whole[: len(whole) // dtype.itemsize * dtype.itemsize].view(dtype)

    def tolist(self):
        """The bytes as ints."""
        self._has_values()
        return self._all().tolist()

    def __getitem__(self, index):
        self._has_values()
        found = self._all()[index]
        return found.item() if found.dim() == 0 else found.tolist()

    def __setitem__(self, index, value):
        self._all()[index] = value

    def __eq__(self, other):
        return isinstance(other, UntypedStorage) and self._cdata == other._cdata

    def __hash__(self):
        return hash(self._cdata)

    def __reduce__(self):
        return UntypedStorage, (self._all(),)

    def __repr__(self):
        return f"adjoin.UntypedStorage({self.nbytes()} bytes on {self.device})"


_SAME = "short int long half float double bool bfloat16 float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz"
CASTS = {name: getattr(_C, name) for name in _SAME.split()}
CASTS |= {"byte": _C.uint8, "char": _C.int8, "complex_float": _C.complex64, "complex_double": _C.complex128}


def _cast(name, dtype):
    def cast(self):
        return self.type(dtype)

    cast.__name__, cast.__doc__ = name, f"A typed storage of {dtype}: each element becomes one."
    return cast


for _name, _dtype in CASTS.items():
    setattr(UntypedStorage, _name, _cast(_name, _dtype))
StorageBase = UntypedStorage  # the class by which programs know every storage of bytes


def _load_from_bytes(b):
    """The storage that a pickle of PyTorch's has as the bytes of a file."""
    from . import _pt_plain

    return _pt_plain._load_from_bytes(b)


def _dtype_to_storage_type_map():
    """The name of the old storage type of each dtype that has one."""
    from . import _typed_storage

    return dict(_typed_storage._NAMES)


def __getattr__(name):
    if name == "TypedStorage":
        from ._typed_storage import TypedStorage

        return TypedStorage
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def from_file(
    filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """The first ``size`` elements of a file, mapped: with ``shared`` what is written goes to the file, which is made or made
    longer where it is too short."""
    if size < 0:
        raise ValueError(f"from_file: size must not be negative, got {size}")
    if adjoin.device(device or "cpu").type != "cpu" or pin_memory or layout not in (None, adjoin.strided):
        raise NotImplementedError("from_file: a file is mapped on the host, with strides; move the tensor afterwards")
    dtype = dtype or adjoin.get_default_dtype()
    if not size:
        return adjoin.empty(0, dtype=dtype, requires_grad=requires_grad)
    held = UntypedStorage.from_file(filename, bool(shared), size * dtype.itemsize)
    return held._all().view(dtype).requires_grad_(requires_grad)
