"""adjoin.nn._functional.grouped: products of groups of rows or columns with matrices of their own, as mixtures of experts need them."""

import adjoin

__all__ = ["grouped_mm"]


def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
    """Products of pairs of matrices, one for each group.

    A 3-D operand has a matrix for each group. A 2-D one is cut where ``offs`` says, the (int32) ends of the groups: ``mat_a`` (M, K) by
    rows for 3-D ``mat_b`` (G, K, N), which gives (M, N); ``mat_b`` (K, N) by columns for 3-D ``mat_a``; both along K if both are
    2-D, which gives (G, M, N). Rows or columns after the last end are zeros.
    """
    if mat_a.dim() not in (2, 3) or mat_b.dim() not in (2, 3):
        raise RuntimeError(f"grouped_mm: operands are 2-D or 3-D, not {mat_a.dim()}-D and {mat_b.dim()}-D")
    if (offs is None) != (mat_a.dim() == mat_b.dim() == 3):
        raise RuntimeError(
            "grouped_mm: Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if bias is not None:
        raise NotImplementedError("grouped_mm: Bias not supported yet; add it to the result")
    if out_dtype is not None and out_dtype is not mat_a.dtype:
        raise RuntimeError(
            f"grouped_mm: Grouped gemm output dtype must match `mat_a` dtype, {mat_a.dtype}; not {out_dtype}"
        )
    if offs is None:
        return mat_a @ mat_b
    if offs.dtype is not adjoin.int32 or offs.dim() != 1:
        raise RuntimeError(f"grouped_mm: Offsets have to be int32 in one dimension, not {offs.dtype} in {offs.dim()}")
    ends = offs.tolist()
    sides = [
        (tensor, dim)
        for tensor, dim in ((mat_a, 0 if mat_b.dim() == 3 else 1), (mat_b, 1 if mat_a.dim() == 3 else 0))
        if tensor.dim() == 2
    ]
    length = min(tensor.shape[dim] for tensor, dim in sides)
    groups = next((tensor.shape[0] for tensor in (mat_a, mat_b) if tensor.dim() == 3), len(ends))
    if groups != len(ends):
        raise RuntimeError(f"grouped_mm: there are {groups} matrices and {len(ends)} offsets; give one for each")
    if any(b < a for a, b in zip([0, *ends], [*ends, length], strict=True)):
        raise RuntimeError(f"grouped_mm: offsets {ends} do not rise from 0 to at most {length}")
    parts = list(zip([0, *ends], ends, strict=False))
    if mat_a.dim() == 2 and mat_b.dim() == 2:
        return adjoin.stack([mat_a[:, i:j] @ mat_b[i:j] for i, j in parts])
    if mat_a.dim() == 2:
        made, dim, rest = [mat_a[i:j] @ mat_b[g] for g, (i, j) in enumerate(parts)], 0, mat_a.shape[0] - ends[-1]
        shape = (rest, mat_b.shape[-1])
    else:
        made, dim, rest = [mat_a[g] @ mat_b[:, i:j] for g, (i, j) in enumerate(parts)], 1, mat_b.shape[1] - ends[-1]
        shape = (mat_a.shape[1], rest)
    return adjoin.cat([*made, mat_a.new_zeros(shape)] if rest else made, dim)
