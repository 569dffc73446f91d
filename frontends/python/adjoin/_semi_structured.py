"""adjoin._semi_structured: matrices of which two of four neighbours are 0, kept in half the memory.

The packed form is what is kept: the two others, and where they stand, two bits each. Products unpack it and multiply: they give
what a product of the whole matrix gives, and take its time. Processors have no unit for such matrices.
"""

from . import _C
from ._overridden import as_op, of_the_object

_op = _C.find_op


def _pack(dense):
    """The two elements to keep of each four, and their places, four bits for each four."""
    rows, columns = dense.shape
    fours = dense.detach().reshape(rows, columns // 4, 4)
    used = fours != 0
    if bool((used.sum(-1) > 2).any()):
        raise RuntimeError(
            "to_sparse_semi_structured: of each four neighbours of a row two must be 0; make them so, by magnitude say, before"
        )
    # The places that are used first, those before that come first: of 0 and 1 if less than two are.
    order = (used.long() * 8 + (4 - _op("arange")(4, device=dense.device))).topk(2, -1)[1].sort(-1)[0]
    values = fours.gather(-1, order).reshape(rows, columns // 2)
    places = order[..., 0] | order[..., 1] << 2
    return values, places.to(_C.uint8)


class SparseSemiStructuredTensor(_C.Tensor):
    """A matrix of which at least two of four neighbours in a row are 0."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        func, args = as_op(func, args)
        name = func.__name__
        if name not in _SERVED and of_the_object(func):
            with _C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        if name not in _SERVED:
            raise NotImplementedError(f"{name}: not there for semi-structured sparse tensors; call to_dense() first")
        whole = [a.to_dense() if isinstance(a, SparseSemiStructuredTensor) else a for a in args]
        with _C.DisableTorchFunctionSubclass():
            return func(*whole, **(kwargs or {}))

    @property
    def shape(self):
        rows, columns = self._sizes
        return _C.Size([columns, rows] if self._swapped else [rows, columns])

    def size(self, dim=None):
        """The sizes of the whole matrix, or one of them."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self):
        """How many elements the whole matrix has."""
        return self._sizes[0] * self._sizes[1]

    def values(self):
        """The elements that are kept, half of each row."""
        with _C.DisableTorchFunctionSubclass():
            return self.as_subclass(_C.Tensor)

    def indices(self):
        """Where they stand: two bits for each of the two elements of four neighbours."""
        return self._places

    def to_dense(self):
        """The whole matrix."""
        values, places = self.values(), self._places.long()
        rows, columns = self._sizes
        order = _op("stack")([places & 3, places >> 2], -1)
        fours = values.new_zeros((rows, columns // 4, 4)).scatter(-1, order, values.reshape(rows, columns // 4, 2))
        made = fours.reshape(rows, columns)
        return made.t() if self._swapped else made

    def t(self):
        """The transposed matrix."""
        return _wrapped(self.values(), self._places, self._sizes, not self._swapped)

    def detach(self):
        """The same elements without history."""
        return _wrapped(self.values().detach(), self._places, self._sizes, self._swapped)

    def __repr__(self, *, tensor_contents=None):
        return f"SparseSemiStructuredTensor(shape={self.shape})"


_SERVED = frozenset(("mm", "matmul", "linear", "addmm", "__matmul__"))


def _wrapped(values, places, sizes, swapped=False):
    made = values.as_subclass(SparseSemiStructuredTensor)
    made._places, made._sizes, made._swapped = places, sizes, swapped
    return made


def to_sparse_semi_structured(original_tensor, transposed=False, alg_id=0):
    """The packed form of a matrix of which two of four neighbours in each row are 0."""
    t = original_tensor
    if t.dim() != 2 or t.layout is not _C.strided:
        raise RuntimeError(
            f"to_sparse_semi_structured: a strided matrix is wanted, there are {t.dim()} dimensions, {t.layout}"
        )
    if t.dtype not in (_C.float16, _C.bfloat16, _C.float32, _C.float64, _C.int8):
        raise RuntimeError(
            f"to_sparse_semi_structured: the dtype {t.dtype} is not supported; float16, bfloat16, float32, int8 are"
        )
    if not t.numel() or t.shape[1] % 4:
        raise RuntimeError(f"to_sparse_semi_structured: rows must be of a multiple of 4, the shape is {tuple(t.shape)}")
    return _wrapped(*_pack(t), tuple(t.shape))
