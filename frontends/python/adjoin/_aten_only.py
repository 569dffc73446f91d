"""adjoin._aten_only: ops that PyTorch has for its own compilers, under ``torch.ops.aten`` and with an underscore; here by other ops."""

import math

from . import _C

_op = _C.find_op


def _upsample_bilinear2d_aa(input, output_size, align_corners, scale_factors=None, scales_w=None, *, scales_h=None):
    """Images resized by a filter that is as wide as it shrinks; factors, or a height's and a width's, count before sizes."""
    each = scale_factors if isinstance(scale_factors, (list, tuple)) else (scales_h or scale_factors, scales_w)
    shape = (
        list(output_size)
        if output_size is not None
        else [math.floor(n * s) for n, s in zip(input.shape[-2:], each, strict=True)]
    )
    factors = [float(s or 0) for s in each]
    resize = _op("_::resample")
    if input.dtype is not _C.uint8:
        return resize(input, [*input.shape[:2], *shape], "linear-smooth", align_corners, factors)
    for d in (3, 2):  # rounded to bytes each time
        size = [*input.shape]
        size[d] = shape[d - 2]
        if input.size(d) != size[d]:
            made = resize(
                input.float(),
                size,
                "linear-smooth",
                align_corners,
                [s if k == d - 2 else 0.0 for k, s in enumerate(factors)],
            )
            input = (made + 0.5).floor().clamp(0, 255).to(_C.uint8)
    return input


def max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
    """Each window's gradient where its largest element was."""
    return _op("max_pool2d_backward")(grad_output, indices, list(self.shape))


def native_dropout_backward(grad_output, mask, scale):
    """The gradient of what was kept."""
    return grad_output * mask * scale


def _safe_softmax(self, dim, dtype=None):
    """softmax whose rows of -inf alone are 0."""
    wide = self if dtype is None else self.to(dtype)
    nothing = (wide == -math.inf).all(dim, keepdim=True)
    zero = wide.new_zeros(())
    return wide.where(~nothing, zero).softmax(dim).where(~nothing, zero)


def _clamped(self, indices):
    """Indices of which those that a mask leaves out may point anywhere."""
    lead = enumerate(indices)
    return tuple(slice(None) if i is None else i.clamp(-self.size(d), self.size(d) - 1) for d, i in lead)


def _unsafe_masked_index(self, mask, indices, fill):
    """self[indices] under the mask, and fill elsewhere."""
    return self[_clamped(self, indices)].where(mask, self.new_full((), fill))


def _unsafe_masked_index_put_accumulate(self, mask, indices, values):
    """self with the values under the mask added at indices."""
    made = self.clone()
    at = [None if isinstance(i, slice) else i for i in _clamped(self, indices)]
    return _op("index_put")(made, at, values.where(mask, values.new_zeros(())), accumulate=True)


def _grouped_mm(self, mat2, offs=None, bias=None, out_dtype=None):
    """nn.functional.grouped_mm."""
    from .nn.functional import grouped_mm

    return grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


def _int_mm(self, mat2, *, out=None):
    """The product of two matrices of int8 in int32."""
    for name, matrix in (("self", self), ("mat2", mat2)):
        if matrix.dtype is not _C.int8 or matrix.dim() != 2:
            raise RuntimeError(
                f"_int_mm: Expected {name} to be a matrix of int8 but got {matrix.dim()} dimensions of {matrix.dtype}"
            )
    made = self.int().mm(mat2.int())
    if out is None:
        return made
    from ._out import put

    return put("_int_mm", made, out)


def _chunk_cat(tensors, dim, num_chunks, *, out=None):
    """Each tensor cut into as many chunks, filled up with zeros; the flat chunks of one number one after the other."""
    if not tensors or num_chunks < 1:
        raise RuntimeError(
            f"_chunk_cat: tensors and num_chunks above 0 are wanted, they are {len(tensors)} and {num_chunks}"
        )
    parts = []
    for t in tensors:
        if not t.numel():
            raise RuntimeError("_chunk_cat expects non-empty tensors; leave empty ones out")
        d = dim % t.dim()
        each = -(-t.size(d) // num_chunks)
        rest = each * num_chunks - t.size(d)
        if rest:
            t = _op("cat")([t, t.new_zeros((*t.shape[:d], rest, *t.shape[d + 1 :]))], d)
        parts.append(t.reshape(*t.shape[:d], num_chunks, -1))
    made = _op("cat")(parts, -1)
    return made if out is None else out.resize_(made.shape).copy_(made)


def _native_batch_norm_legit(input, weight, bias, *rest, out=None):
    """native_batch_norm with running numbers, or without: (input, weight, bias, training, momentum, eps)."""
    from ._layer_functions import native_batch_norm

    running = rest[:2] if len(rest) == 5 else (None, None)
    words = {} if out is None else {"out": out}
    return native_batch_norm(input, weight, bias, *running, *rest[-3:], **words)


def _batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps):
    """native_batch_norm in training, and bytes that a backward pass elsewhere wants."""
    made = _native_batch_norm_legit(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*made, input.new_empty((0,), dtype=_C.uint8))


def _recipe(scale, rows):
    from .nn.functional import ScalingType

    return ScalingType.TensorWise if scale.numel() == 1 and rows != 1 else ScalingType.RowWise


def _scaled_mm(
    self, mat2, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False, *, out=None
):
    """nn.functional.scaled_mm, with one scale for a matrix, or one for a row of the first and a column of the second."""
    from .nn.functional import scaled_mm

    made = scaled_mm(
        self,
        mat2,
        scale_a,
        _recipe(scale_a, self.size(0)),
        scale_b,
        _recipe(scale_b, mat2.size(1)),
        bias=bias,
        output_dtype=None,
    )
    made = made if scale_result is None else made * scale_result
    made = made.to(self.dtype if out_dtype is None else out_dtype)
    return made if out is None else out.resize_(made.shape).copy_(made)


def _scaled_mm_v2(
    self,
    mat2,
    scale_a,
    recipe_a,
    swizzle_a,
    scale_b,
    recipe_b,
    swizzle_b,
    bias=None,
    out_dtype=None,
    contraction_dim=(),
    use_fast_accum=False,
    *,
    out=None,
):
    """nn.functional.scaled_mm, with recipes and orders of scales by their numbers."""
    from .nn.functional import ScalingType, SwizzleType, scaled_mm

    recipes = [[ScalingType(int(r)) for r in given] for given in (recipe_a, recipe_b)]
    orders = [[SwizzleType(int(s)) for s in given] for given in (swizzle_a, swizzle_b)]
    dtype = self.dtype if out_dtype is None else out_dtype
    made = scaled_mm(
        self,
        mat2,
        scale_a,
        recipes[0],
        scale_b,
        recipes[1],
        orders[0],
        orders[1],
        bias,
        dtype,
        contraction_dim,
        use_fast_accum,
    )
    return made if out is None else out.resize_(made.shape).copy_(made)


# What a tensor tells of itself: a class with a policy of its own is asked by these (utils._told_by_class).
def dim(self):
    """How many dimensions it has."""
    return self.dim()


def size(self):
    """Its sizes."""
    return self.size()


def stride(self):
    """Its strides."""
    return self.stride()


def numel(self):
    """How many elements it has."""
    return self.numel()


def storage_offset(self):
    """Where its first element stands in its storage."""
    return self.storage_offset()


def is_contiguous(self, memory_format=_C.contiguous_format):
    """Whether it lies in order, or in that of a memory format."""
    return self.is_contiguous(memory_format=memory_format)


def is_strides_like_format(self, memory_format):
    """Whether its strides are those of a memory format."""
    return self.is_contiguous(memory_format=memory_format)


def is_non_overlapping_and_dense(self):
    """Whether its elements fill their memory, in any order."""
    room = 1
    for n, step in sorted(zip(self.shape, self.stride(), strict=True), key=lambda pair: pair[1]):
        if n > 1:
            if step != room:
                return False
            room *= n
    return True


sym_size, sym_stride, sym_numel, sym_storage_offset = size, stride, numel, storage_offset
