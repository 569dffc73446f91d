"""adjoin._sparse_products: products of sparse matrices whose result is sparse, and sparse tensors of another size."""

from . import _C

_op = _C.find_op


def _matrices(who, input, mat):
    if input.layout is not _C.sparse_coo or input.dim() != 2 or input.dense_dim():
        raise RuntimeError(
            f"{who}: the first matrix must be sparse COO, it is {input.layout} of {input.dim()} dimensions; use to_sparse()"
        )
    if mat.layout is not _C.strided or mat.dim() != 2:
        raise RuntimeError(f"{who}: the second matrix must be strided, it is {mat.layout} of {mat.dim()} dimensions")
    if input.shape[1] != mat.shape[0]:
        raise RuntimeError(f"{who}: shapes {tuple(input.shape)} and {tuple(mat.shape)} cannot be multiplied")


def _rows(input, mat):
    """The rows of the product that can differ from 0, and which they are."""
    rows = input.coalesce().indices()[0].unique()
    return rows, _op("sparse::mm")(input, mat)[rows]


def smm(input, mat):
    """The product of a sparse and a strided matrix, as a sparse one that has each column of the rows which ``input`` has."""
    _matrices("smm", input, mat)
    rows, values = _rows(input, mat)
    columns = _op("arange")(mat.shape[1], device=mat.device)
    places = _op("stack")([rows.repeat_interleave(len(columns)), columns.repeat(len(rows))])
    from ._sparse import sparse_coo_tensor

    return sparse_coo_tensor(places, values.reshape(-1), (input.shape[0], mat.shape[1]), is_coalesced=True)


def hspmm(mat1, mat2):
    """The product of a sparse and a strided matrix, with one sparse dimension: whole rows."""
    _matrices("hspmm", mat1, mat2)
    rows, values = _rows(mat1, mat2)
    from ._sparse import sparse_coo_tensor

    return sparse_coo_tensor(rows.unsqueeze(0), values, (mat1.shape[0], mat2.shape[1]), is_coalesced=True)


def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1):
    """beta * input + alpha * (mat1 @ mat2), of which mat2 alone is strided; not coalesced."""
    if input.layout is not _C.sparse_coo:
        raise RuntimeError(f"sspaddmm: input must be sparse COO, it is {input.layout}; use to_sparse()")
    product = smm(mat1, mat2)
    if input.shape != product.shape:
        raise RuntimeError(f"sspaddmm: input has shape {tuple(input.shape)}, the product {tuple(product.shape)}")
    from ._sparse import sparse_coo_tensor

    places = _op("cat")([input._indices(), product._indices()], 1)
    values = _op("cat")([input._values() * beta, product._values() * alpha])
    return sparse_coo_tensor(places, values, tuple(input.shape))


def spmm(input, mat2):
    """mm: the product of two matrices, of which the first or both may be sparse."""
    return _op("mm" if input.layout is _C.strided else "sparse::mm")(input, mat2)


dsmm = spmm


def saddmm(input, mat1, mat2, *, beta=1, alpha=1):
    """sspaddmm by its other name."""
    return sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha)


def _of_one_size(self, *args, **settings):
    raise NotImplementedError(
        "sparse_resize_: a sparse tensor keeps its size here; torch.sparse_coo_tensor(t._indices(), t._values(), size) makes "
        "one of another size"
    )
