"""adjoin.distributions.utils: what writers of distributions share."""

import numbers

import adjoin

from .distribution import to_tensors


def broadcast_all(*values):
    """Numbers and tensors as tensors of one shape; numbers get the dtype and the device of the first tensor."""
    for value in values:
        if not isinstance(value, (adjoin.Tensor, numbers.Number)):
            raise ValueError(
                "Input arguments must all be instances of Number, Tensor or objects implementing __torch_function__, "
                f"and one is {type(value).__name__}"
            )
    return tuple(to_tensors(*values))


def clamp_probs(probs):
    """Probabilities of which the logarithm is finite, on both sides."""
    eps = adjoin.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits, is_binary=False):
    """Probabilities of log odds, or along the last dimension of logarithms."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs, is_binary=False):
    """The inverse of logits_to_probs."""
    inside = clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


def vec_to_tril_matrix(vec, diag=0):
    """A lower triangular matrix whose elements up to a diagonal, row by row, are vec."""
    size = 1
    while adjoin.tril_indices(size, size, diag).shape[1] < vec.shape[-1]:
        size += 1
    row, column = adjoin.tril_indices(size, size, diag, device=vec.device)
    flat = vec.new_zeros((*vec.shape[:-1], size * size))
    return flat.index_copy(-1, row * size + column, vec).unflatten(-1, (size, size))


def tril_matrix_to_vec(mat, diag=0):
    """The elements up to a diagonal, row by row."""
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise ValueError(f"diag ({diag}) provided is outside [{-size}, {size - 1}].")
    row, column = adjoin.tril_indices(size, size, diag, device=mat.device)
    return mat.flatten(-2).index_select(-1, row * size + column)


def sum_rightmost(value, dim):
    """The sum over so many last dimensions."""
    return value.flatten(value.dim() - dim).sum(-1) if dim > 0 else value


_sum_rightmost = sum_rightmost  # PyTorch's name of it


def _standard_normal(shape, dtype, device):
    """Numbers of the standard normal distribution."""
    return adjoin.randn(shape, dtype=dtype, device=device)


class lazy_property:
    """A property that is computed once and kept in the object."""

    def __init__(self, wrapped):
        self.wrapped, self.__doc__ = wrapped, wrapped.__doc__

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with adjoin.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value
