"""tests/ops/closed_forms.py: what rows compute, written again with NumPy from their definitions, for rows without a `ref`.

A form has the row's parameters, with their names and defaults, and gets arrays for tensors.
"""

import numpy as np

FORMS = {}


def of(*names):
    def keep(function):
        for name in names:
            FORMS[name] = function
        return function

    return keep


def axes(dim):
    return None if dim is None else tuple(dim) if isinstance(dim, (list, tuple)) else dim


CASTS = {"float": np.float32, "double": np.float64, "half": np.float16, "int": np.int32, "long": np.int64, "short": np.int16,
         "char": np.int8, "byte": np.uint8, "bool": np.bool_, "cfloat": np.complex64, "cdouble": np.complex128}  # fmt: skip
for name, kind in CASTS.items():
    FORMS[name] = lambda input, kind=kind: (input.astype(np.int64) if kind == np.uint8 else input).astype(kind)


@of("to", "_::to_copy")
def to(input, dtype, device=None):
    return input.astype(str(dtype).split(".")[-1])


FORMS["new_zeros"] = lambda input, size: np.zeros(size, input.dtype)
FORMS["new_ones"] = lambda input, size: np.ones(size, input.dtype)
FORMS["new_full"] = lambda input, size, fill_value: np.full(size, fill_value, input.dtype)
FORMS["contiguous"] = FORMS["alias"] = FORMS["resolve_conj"] = lambda input: input
FORMS["copy_"] = lambda input, src: np.broadcast_to(src, input.shape)
FORMS["fill_"] = lambda input, value: np.full_like(input, value)
FORMS["zero_"] = lambda input: np.zeros_like(input)
FORMS["type_as"] = lambda input, other: input.astype(other.dtype)
FORMS["item"] = lambda input: input.reshape(())
FORMS["is_nonzero"] = lambda input: input.reshape(()) != 0
FORMS["arange_fill_"] = lambda input, start, step: (
    start + step * np.arange(input.size, dtype=input.dtype).reshape(input.shape)
)
FORMS["logspace"] = lambda start, end, steps, base=10.0: base ** np.linspace(start, end, steps)
FORMS["rsub"] = lambda input, other, alpha=1: other - alpha * input
FORMS["where.method"] = lambda input, condition, other: np.where(condition, input, other)
FORMS["clamp_min"] = lambda input, min: np.maximum(input, min)
FORMS["clamp_max"] = lambda input, max: np.minimum(input, max)
FORMS["lerp"] = lambda input, end, weight: input + weight * (end - input)
FORMS["addcmul"] = lambda input, tensor1, tensor2, value=1: input + value * tensor1 * tensor2
FORMS["addcdiv"] = lambda input, tensor1, tensor2, value=1: input + value * tensor1 / tensor2
FORMS["complex"] = lambda real, imag: real + 1j * imag
FORMS["polar"] = lambda abs, angle: abs * np.exp(1j * angle)
FORMS["_::logit_backward"] = lambda grad, input, low, high, beyond: np.where(
    (input < low) | (input > high), beyond, grad / (input * (1 - input))
)
FORMS["_::angle_of_real"] = lambda input: np.where(np.isnan(input), input, np.where(input < 0, np.pi, 0.0))
FORMS["_::mantissa"] = lambda input: np.frexp(input)[0]
FORMS["_::exponent"] = lambda input: np.frexp(input)[1].astype(input.dtype)
FORMS["_::nan_to_num_each"] = lambda input, nan, posinf, neginf: np.nan_to_num(
    input, nan=nan, posinf=posinf, neginf=neginf
)
FORMS["frac"] = lambda input: input - np.trunc(input)
FORMS["rsqrt"] = lambda input: 1 / np.sqrt(input)


@of("_::trigamma")
def trigamma(input):
    from scipy.special import polygamma

    return polygamma(1, input)


# Reductions.
@of("max.dim", "median.dim", "min.dim")
def best(input, dim, keepdim=False, take=None):
    order = np.argsort(input, axis=dim, kind="stable")
    at = np.take(order, [take], axis=dim)
    values = np.take_along_axis(input, at, dim)
    return (values, at) if keepdim else (np.squeeze(values, dim), np.squeeze(at, dim))


FORMS["max.dim"] = lambda input, dim, keepdim=False: best(input, dim, keepdim, -1)
FORMS["min.dim"] = lambda input, dim, keepdim=False: best(input, dim, keepdim, 0)
FORMS["median.dim"] = lambda input, dim, keepdim=False: best(input, dim, keepdim, (input.shape[dim] - 1) // 2)
FORMS["kthvalue"] = lambda input, k, dim=-1, keepdim=False: best(input, dim, keepdim, k - 1)
FORMS["median"] = lambda input: np.sort(input, axis=None)[(input.size - 1) // 2]


@of("aminmax")
def aminmax(input, dim=None, keepdim=False):
    return input.min(axis=dim, keepdims=keepdim), input.max(axis=dim, keepdims=keepdim)


def var(input, dim=None, correction=None, keepdim=False):
    return np.var(input, axis=axes(dim), ddof=1 if correction is None else correction, keepdims=keepdim)


def std(*args, **kwargs):
    return np.sqrt(var(*args, **kwargs))


FORMS["var"], FORMS["std"] = var, std
FORMS["var.unbiased"] = FORMS["var.unbiased_dim"] = (
    lambda input, unbiased, dim=None, keepdim=False: var(input, dim, int(unbiased), keepdim))  # fmt: skip
FORMS["std.unbiased"] = FORMS["std.unbiased_dim"] = (
    lambda input, unbiased, dim=None, keepdim=False: std(input, dim, int(unbiased), keepdim))  # fmt: skip
FORMS["var_mean"] = lambda input, dim=None, correction=None, keepdim=False: (
    var(input, dim, correction, keepdim), input.mean(axis=axes(dim), keepdims=keepdim))  # fmt: skip
FORMS["std_mean"] = lambda input, dim=None, correction=None, keepdim=False: (
    std(input, dim, correction, keepdim), input.mean(axis=axes(dim), keepdims=keepdim))  # fmt: skip


@of("linalg::vector_norm", "vector_norm", "norm", "norm.name")
def vector_norm(x=None, ord=2, dim=None, keepdim=False, input=None, p=None):
    a, p = np.abs(x if input is None else input), ord if p is None else p
    p = 2 if p == "fro" else float(p)
    if np.isinf(p):
        return a.max(axis=axes(dim), keepdims=keepdim)
    if p == 0:
        return (a != 0).sum(axis=axes(dim), keepdims=keepdim).astype(a.dtype)
    return (a**p).sum(axis=axes(dim), keepdims=keepdim) ** (1 / p)


FORMS["dist"] = lambda input, other, p=2: vector_norm(input - other, p)


def spread(reduced, shape, dim, keepdim):
    if dim is not None and not keepdim:
        reduced = np.expand_dims(reduced, tuple(d % len(shape) for d in dim))
    return np.broadcast_to(reduced, shape)


FORMS["_::unreduce"] = lambda grad, shape, dim, keepdim: spread(grad, shape, dim, keepdim)


@of("_::unreduce_at")
def unreduce_at(grad, indices, shape, dim, keepdim):
    out = np.zeros(shape, grad.dtype)
    grad, indices = (grad, indices) if keepdim else (np.expand_dims(grad, dim), np.expand_dims(indices, dim))
    np.put_along_axis(out, indices, grad, dim)
    return out


@of("_::sum_to")
def sum_to(grad, shape):
    grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))
    return grad.sum(axis=tuple(i for i, s in enumerate(shape) if s == 1), keepdims=True)


@of("_::share_ties")
def share_ties(grad, input, out, dim, keepdim):
    hit = input == spread(out, input.shape, dim, keepdim)
    return hit * spread(grad / hit.sum(axis=axes(dim), keepdims=keepdim), input.shape, dim, keepdim)


@of("_::var_backward")
def var_backward(grad, input, dim, correction, keepdim):
    count = input.size // grad.size
    free = count - (1 if correction is None else correction)
    return 2 / free * (input - input.mean(axis=axes(dim), keepdims=True)) * spread(grad, input.shape, dim, keepdim)


# Products.
@of("addmm", "baddbmm", "addmv")
def add_product(input, mat1=None, mat2=None, beta=1, alpha=1, **other):
    a, b = mat1 if mat1 is not None else list(other.values())[0], mat2 if mat2 is not None else list(other.values())[1]
    return beta * input + alpha * (a @ b)


FORMS["addbmm"] = lambda input, batch1, batch2, beta=1, alpha=1: beta * input + alpha * (batch1 @ batch2).sum(0)
FORMS["addr"] = lambda input, vec1, vec2, beta=1, alpha=1: beta * input + alpha * np.outer(vec1, vec2)
FORMS["einsum"] = lambda equation, operands: np.einsum(equation, *operands)
FORMS["nn::linear"] = lambda input, weight, bias=0: input @ weight.T + bias
FORMS["nn::bilinear"] = lambda input1, input2, weight, bias=0: np.einsum("bi,oij,bj->bo", input1, weight, input2) + bias
FORMS["_::linear_weight_backward"] = lambda grad, input: (
    (grad[..., None] * input).reshape(-1, input.shape[-1]).sum(0) if grad.ndim < input.ndim  # the weight was a vector
    else grad.reshape(-1, grad.shape[-1]).T @ input.reshape(-1, input.shape[-1]))  # fmt: skip
