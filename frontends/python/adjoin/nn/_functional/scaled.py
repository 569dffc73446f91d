"""adjoin.nn._functional.scaled: products of matrices of small floats that bring their scales.

By their definition: each matrix times its scales, in float32, then the product, rounded once to the output's dtype.
"""

import enum

import adjoin

from . import op

__all__ = ["ScalingType", "SwizzleType", "scaled_addmm", "scaled_addmm_", "scaled_grouped_mm", "scaled_mm"]


class ScalingType(enum.Enum):
    """How many elements have one scale: rows by columns of a block."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.Enum):
    """How the scales lie in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1
    SWIZZLE_32_8 = 2


_BLOCKS = {
    ScalingType.BlockWise1x16: (1, 16),
    ScalingType.BlockWise1x32: (1, 32),
    ScalingType.BlockWise1x128: (1, 128),
    ScalingType.BlockWise128x128: (128, 128),
}


def _one(what, given):
    """The single recipe, scale or layout of those that may be lists."""
    if isinstance(given, (list, tuple)):
        if len(given) != 1:
            raise NotImplementedError(
                f"scaled_mm: {len(given)} {what} for one matrix are not there; multiply the scales first"
            )
        return given[0]
    return given


def _plain(swizzle):
    swizzle = _one("swizzles", swizzle) if swizzle else None
    if swizzle not in (None, SwizzleType.NO_SWIZZLE):
        raise NotImplementedError(
            f"scaled_mm: scales in the order {swizzle} are read by one vendor's unit; give them as a matrix, SwizzleType.NO_SWIZZLE"
        )


def _times_scale(who, matrix, scale, recipe):
    """A matrix, its rows along the sum's other side, times its scales."""
    scale, recipe = _one("scales", scale), _one("recipes", recipe)
    wide, (rows, columns) = matrix.float(), matrix.shape
    if not isinstance(recipe, ScalingType):
        raise TypeError(f"{who}: a recipe must be a ScalingType, it is {recipe!r}")
    scale = scale.float()
    if recipe is ScalingType.TensorWise:
        wanted = 1
        if scale.numel() == 1:
            return wide * scale.reshape(())
    elif recipe is ScalingType.RowWise:
        wanted = rows
        if scale.numel() == rows:
            return wide * scale.reshape(rows, 1)
    else:
        high, broad = _BLOCKS[recipe]
        shape = (-(-rows // high), -(-columns // broad))
        wanted = shape[0] * shape[1]
        if scale.numel() == wanted:
            # The scales of blocks of 1 x 128 and 128 x 128 may lie by columns; their shape tells.
            grid = (
                scale
                if tuple(scale.shape) == shape
                else scale.t()
                if tuple(scale.shape) == shape[::-1]
                else scale.reshape(shape)
            )
            return wide * grid.repeat_interleave(high, 0)[:rows].repeat_interleave(broad, 1)[:, :columns]
    raise ValueError(
        f"{who}: {recipe} of a matrix of {rows} rows of {columns} wants {wanted} scales, there are {scale.numel()}"
    )


def _product(who, mat_a, mat_b, scale_a, recipe_a, scale_b, recipe_b, swizzle_a, swizzle_b, contraction_dim):
    if mat_a.dim() != 2 or mat_b.dim() != 2 or mat_a.shape[1] != mat_b.shape[0]:
        raise ValueError(f"{who}: shapes {tuple(mat_a.shape)} and {tuple(mat_b.shape)} cannot be multiplied")
    if tuple(d % 2 for d in contraction_dim) not in ((), (1, 0)):
        raise ValueError(f"{who}: contraction_dim must be empty or (1, 0), it is {tuple(contraction_dim)}")
    for swizzle in (swizzle_a, swizzle_b):
        _plain(swizzle)
    a = _times_scale(who, mat_a, scale_a, recipe_a)
    b = _times_scale(who, mat_b.t(), scale_b, recipe_b)
    return a @ b.t()


def scaled_mm(mat_a, mat_b, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None, bias=None,
              output_dtype=adjoin.bfloat16, contraction_dim=(), use_fast_accum=False):  # fmt: skip
    """(mat_a * scale_a) @ (mat_b * scale_b) + bias, of matrices of small floats."""
    made = _product(
        "scaled_mm",
        mat_a,
        mat_b,
        scale_a,
        scale_recipe_a,
        scale_b,
        scale_recipe_b,
        swizzle_a,
        swizzle_b,
        contraction_dim,
    )
    made = made if bias is None else made + bias.float()
    return made if output_dtype is None else made.to(output_dtype)


def scaled_addmm(input, mat1, mat2, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None,
                 contraction_dim=(), use_fast_accum=False, *, beta=1.0, alpha=1.0):  # fmt: skip
    """beta * input + alpha * scaled_mm(mat1, mat2), in the dtype of input."""
    made = _product(
        "scaled_addmm",
        mat1,
        mat2,
        scale_a,
        scale_recipe_a,
        scale_b,
        scale_recipe_b,
        swizzle_a,
        swizzle_b,
        contraction_dim,
    )
    if input.shape != made.shape:
        raise ValueError(
            f"scaled_addmm: input must have the product's shape {tuple(made.shape)}, it has {tuple(input.shape)}"
        )
    return (made * alpha if beta == 0 else input.float() * beta + made * alpha).to(input.dtype)


def scaled_addmm_(input, mat1, mat2, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None,
                  contraction_dim=(), use_fast_accum=False, *, beta=1.0, alpha=1.0):  # fmt: skip
    """scaled_addmm into input."""
    return input.copy_(scaled_addmm(input, mat1, mat2, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a, swizzle_b,
                                    contraction_dim, beta=beta, alpha=alpha))  # fmt: skip


def scaled_grouped_mm(mat_a, mat_b, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None, bias=None,
                      offs=None, output_dtype=adjoin.bfloat16, contraction_dim=(), use_fast_accum=False):  # fmt: skip
    """scaled_mm of each group: rows of mat_a that end at ``offs``, each with a matrix of mat_b (groups, k, n); or two stacks."""
    who = "scaled_grouped_mm"
    if mat_b.dim() != 3 or mat_a.dim() not in (2, 3) or (mat_a.dim() == 2) != (offs is not None):
        raise NotImplementedError(
            f"{who}: rows with offs and a stack, or two stacks, are there; the shapes are {tuple(mat_a.shape)}, {tuple(mat_b.shape)}"
        )
    if bias is not None:
        raise NotImplementedError(f"{who}: bias is not there; add it to the result")
    scale_a, scale_b = _one("scales", scale_a), _one("scales", scale_b)
    ends = list(range(1, len(mat_a) + 1)) if offs is None else offs.tolist()
    if (
        len(ends) != len(mat_b)
        or any(b < a for a, b in zip([0, *ends], ends, strict=False))
        or (ends and ends[-1] > len(mat_a))
    ):
        raise ValueError(
            f"{who}: offs must ascend, one for each of {len(mat_b)} matrices, up to {len(mat_a)}; they are {ends}"
        )
    by_row = _one("recipes", scale_recipe_a) is not ScalingType.TensorWise
    parts, begin = [], 0
    for group, end in enumerate(ends):
        rows = mat_a[group] if offs is None else mat_a[begin:end]
        of_rows = scale_a if not by_row else scale_a[group] if offs is None else scale_a[begin:end]
        of_matrix = scale_b if scale_b.numel() == 1 else scale_b[group]
        parts.append(scaled_mm(rows, mat_b[group], of_rows, scale_recipe_a, of_matrix, scale_recipe_b, swizzle_a, swizzle_b,
                               None, output_dtype, contraction_dim))  # fmt: skip
        begin = end
    return op("cat")(parts) if offs is not None else op("stack")(parts)
