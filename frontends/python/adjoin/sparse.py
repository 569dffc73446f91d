"""adjoin.sparse: functions over sparse tensors: the ops of the registry whose names begin with ``sparse::``, and what is made of them."""

from . import _C
from ._tensor import _TYPES
from .ops import _Space

__path__ = []  # `import torch.sparse.semi_structured` asks the finder of _names
_space = _Space("sparse", __name__)


def sum(input, dim=None, dtype=None):  # noqa: A001  (PyTorch's name)
    """The sum of the elements; the gradient has the places of ``input``."""
    dims = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    return _C.find_op("sparse::sum")(input, dims, dtype=dtype)


def mm(mat1, mat2, reduce=None):
    """The product of matrices, one of them sparse; with reduce the products of a row are summed, averaged, or their extreme is taken."""
    product = _C.find_op("sparse::mm")
    if reduce is None:
        return product(mat1, mat2)
    if mat1.layout is not _C.sparse_csr or mat2.layout is not _C.strided:
        raise RuntimeError(
            f"mm: reduce wants a sparse_csr and a strided matrix, these are {mat1.layout} and {mat2.layout}; "
            "convert the first with .to_sparse_csr()"
        )
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"mm: reduce must be 'sum', 'mean', 'amax' or 'amin', it is {reduce!r}")
    if reduce == "sum":
        return product(mat1, mat2)
    counts = mat1.crow_indices().diff().long()
    rows = _C.find_op("repeat_interleave")(counts)
    each = mat1.values().unsqueeze(1) * mat2[mat1.col_indices().long()]
    made = each.new_zeros((mat1.shape[0], mat2.shape[1]))
    return made.scatter_reduce(0, rows.unsqueeze(1).expand_as(each), each, reduce, include_self=False)


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """``beta * input + alpha * (mat1 @ mat2)``; the gradient of ``mat1`` is sparse if it is."""
    product = _C.find_op("sparse::mm")(mat1, mat2)
    return (input if beta == 1 else input * beta) + (product if alpha == 1 else product * alpha)


def spdiags(diagonals, offsets, shape, layout=None):
    """A matrix whose diagonal ``offsets[i]`` is row i of ``diagonals``; element j of a row stands in column j."""
    from ._sparse import sparse_coo_tensor

    diagonals = diagonals.reshape(1, -1) if diagonals.dim() == 1 else diagonals
    offsets = offsets.reshape(-1)
    if diagonals.dim() != 2 or offsets.numel() != diagonals.shape[0]:
        raise RuntimeError(
            f"spdiags: a row of diagonals for each offset is wanted, the shapes are {tuple(diagonals.shape)} and "
            f"{tuple(offsets.shape)}"
        )
    if offsets.is_floating_point() or offsets.is_complex():
        raise RuntimeError(f"spdiags: offsets must be integers, they are {offsets.dtype}")
    if len(set(offsets.tolist())) != offsets.numel():
        raise RuntimeError(f"spdiags: each offset must stand there once, they are {offsets.tolist()}")
    if len(shape) != 2:
        raise RuntimeError(f"spdiags: shape must have two sizes, it is {tuple(shape)}")
    columns = _C.find_op("arange")(diagonals.shape[1], device=diagonals.device)
    rows = columns - offsets.long().unsqueeze(1)
    inside = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    indices = _C.find_op("stack")([rows[inside], columns.expand(rows.shape)[inside]])
    made = sparse_coo_tensor(indices, diagonals[inside], shape)
    return made if layout is None else made.coalesce().to_sparse(layout=layout)


class check_sparse_tensor_invariants:
    """Whether invariants are checked: they always are, so this only says so."""

    def __init__(self, enable=True):
        self._enable = enable

    @staticmethod
    def is_enabled():
        return True

    @staticmethod
    def enable():
        """Changes nothing: the checks are on."""

    @staticmethod
    def disable():
        """Changes nothing: the checks stay on, for bad indices must not crash."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def __call__(self, function):
        return function


def as_sparse_gradcheck(gradcheck):
    """gradcheck itself: it takes functions of sparse tensors as they are."""
    return gradcheck


def __getattr__(name):
    if name in ("SparseSemiStructuredTensor", "to_sparse_semi_structured"):
        from . import _semi_structured

        return getattr(_semi_structured, name)
    if name.endswith("Tensor"):
        from . import _legacy

        found = _legacy.sparse(name)
        if found is not None:
            globals()[name] = found
            return found
    globals()[name] = found = getattr(_space, name)  # the next look-up is an ordinary one
    return found


def __dir__():
    return sorted(
        {
            *dir(_space),
            *_TYPES.values(),
            "sum",
            "mm",
            "addmm",
            "spdiags",
            "check_sparse_tensor_invariants",
            "as_sparse_gradcheck",
            "SparseSemiStructuredTensor",
            "to_sparse_semi_structured",
        }
    )
