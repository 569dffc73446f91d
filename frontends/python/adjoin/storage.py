"""adjoin.storage: the memory under tensors."""

from . import _C


class UntypedStorage:
    """The bytes that one tensor or several look at."""

    def __init__(self, tensor):
        self._tensor = tensor.detach()
        self._address, self._bytes, _, self._id = tensor._storage_info()

    def data_ptr(self):
        """The address of the first byte."""
        self._tensor.data_ptr()  # tells the core that somebody may write there
        return self._address

    def nbytes(self):
        """The number of bytes."""
        return self._bytes

    size = __len__ = nbytes

    @property
    def device(self):
        """Where the bytes are."""
        return self._tensor.device

    @property
    def _cdata(self):
        return self._id

    def _all(self):
        flat = self._tensor.as_strided((self._bytes // self._tensor.itemsize,), (1,), 0)
        return flat.view(_C.uint8)

    def tolist(self):
        """The bytes as ints."""
        return self._all().tolist()

    def __getitem__(self, index):
        found = self._all()[index]
        return found.item() if found.dim() == 0 else found.tolist()

    def __setitem__(self, index, value):
        self._all()[index] = value

    def __eq__(self, other):
        return isinstance(other, UntypedStorage) and self._id == other._id

    def __hash__(self):
        return hash(self._id)

    def __repr__(self):
        return f"adjoin.UntypedStorage({self._bytes} bytes on {self.device})"


TypedStorage = UntypedStorage
