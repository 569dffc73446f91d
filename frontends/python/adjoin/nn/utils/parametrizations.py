"""adjoin.nn.utils.parametrizations: weights of a given length, spectral norm or orthogonal ones."""

import adjoin

from .. import functional as F
from ..init import _orthonormal_columns
from ..modules.module import Module
from .parametrize import register_parametrization
from .spectral_norm import as_matrix, default_dim, power_iterations
from .weight_norm import norm_except, weight_of

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return weight_of(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return norm_except(weight, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """A weight as length along ``dim`` (original0) times direction (original1) (Salimans and
    Kingma, 2016)."""
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def from_hooks(state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        """Takes what the older, hooked form has saved."""
        keys = [f"{prefix}{name}_{part}" for part in "gv"]
        if all(key in state_dict for key in keys):
            for i, key in enumerate(keys):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(from_hooks)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        if dim >= weight.dim() or dim < -weight.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.dim()}, "
                f"{weight.dim() - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % weight.dim()
        self.eps = eps
        if weight.dim() > 1:
            self.n_power_iterations = n_power_iterations
            with adjoin.no_grad():
                matrix = as_matrix(weight, self.dim)
                u, v = adjoin.empty_like(matrix[:, 0]), adjoin.empty_like(matrix[0])
                self.register_buffer("_u", F.normalize(u.normal_(), dim=0, eps=eps))
                self.register_buffer("_v", F.normalize(v.normal_(), dim=0, eps=eps))
                power_iterations(matrix, self._u, self._v, 15, eps, True)

    def forward(self, weight):
        if weight.dim() == 1:  # its own singular value is its length
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            power_iterations(matrix, self._u, self._v, self.n_power_iterations, self.eps,
                             True)  # fmt: skip
        u, v = self._u.clone(), self._v.clone()
        return weight / u.vdot(matrix @ v)

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """A weight over its largest singular value, found by power iterations (Miyato et al., 2018)."""
    weight = getattr(module, name, None)
    if not isinstance(weight, adjoin.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    dim = default_dim(module) if dim is None else dim
    part = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return register_parametrization(module, name, part)


_MAPS = ("matrix_exp", "cayley", "householder")


class _Orthogonal(Module):
    """A matrix with orthonormal columns (or rows, if they are fewer) of any matrix.

    Skew matrices by exponential or Cayley transform, or products of reflections; times ``base``,
    so that the start is near the identity (Lezcano-Casado and Martinez-Rubio, 2019).
    """

    def __init__(self, weight, orthogonal_map, use_trivialization):
        super().__init__()
        if orthogonal_map == "householder" and weight.is_complex():
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, original):
        n, k = original.size(-2), original.size(-1)
        wide = n < k
        x = original.mT if wide else original
        n, k = max(n, k), min(n, k)
        if self.orthogonal_map == "householder":
            q = _reflections(x)
        else:
            a = x.tril()
            if n != k:
                a = adjoin.cat([a, a.new_zeros((*a.shape[:-2], n, n - k))], -1)
            a = a - a.mH
            eye = adjoin.eye(n, dtype=a.dtype, device=a.device)
            if self.orthogonal_map == "matrix_exp":
                q = _exponential(a, eye)
            else:
                q = _solve(eye - a * 0.5, eye + a * 0.5, eye)
            q = q[..., :k]
        if getattr(self, "base", None) is not None:
            q = self.base @ q
        return q.mT if wide else q

    def right_inverse(self, matrix):
        if matrix.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {matrix.shape}."
            )
        wide = matrix.size(-2) < matrix.size(-1)
        x = matrix.mT if wide else matrix
        if "base" not in self._buffers and self.orthogonal_map == "householder":
            return _as_reflections(x).mT if wide else _as_reflections(x)
        if "base" not in self._buffers:
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        n, k = x.size(-2), x.size(-1)
        if self.orthogonal_map == "householder" or n == k:
            full = x
        else:
            full = adjoin.cat([x, adjoin.randn(*x.shape[:-2], n, n - k, dtype=x.dtype)], -1)
        flat = full.reshape(-1, *full.shape[-2:])
        base = adjoin.stack([_columns(m) for m in flat])
        base = base.reshape(full.shape).to(x.dtype)
        if self.orthogonal_map == "householder" and n != k:
            rest = adjoin.randn(*x.shape[:-2], n, n - k, dtype=x.dtype)
            flat = adjoin.cat([base, rest], -1).reshape(-1, n, n)
            base = adjoin.stack([_columns(m) for m in flat])
            base = base.reshape(*x.shape[:-2], n, n).to(x.dtype)
        self.base = base.contiguous()
        start = adjoin.zeros_like(x)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start.mT if wide else start


def _columns(matrix):
    """Orthonormal columns with the span of the matrix's, in double precision."""
    if matrix.is_complex():
        q, r = adjoin.linalg.qr(matrix.to(adjoin.complex128))
        return q * r.diagonal().sgn()  # what is orthonormal already stays
    return _orthonormal_columns(matrix.to(adjoin.float64))


def _as_reflections(q):
    """What _reflections() makes the matrix of orthonormal columns from, or that of the matrix's QR factors."""
    x, tau = adjoin.geqrf(q)
    diagonal = x.diagonal(dim1=-2, dim2=-1)
    sign = adjoin.where(diagonal < 0, -1.0, 1.0).to(x.dtype)
    diagonal.copy_(adjoin.where(tau == 0, -sign, sign))  # without a reflection the column is as it was
    return x


def _reflections(x):
    """The first columns of a product of Householder's reflections, one for each column of x."""
    n, k = x.size(-2), x.size(-1)
    v = x.tril(-1) + adjoin.eye(n, k, dtype=x.dtype, device=x.device)
    tau = 2 / (v * v).sum(-2)
    q = adjoin.eye(n, k, dtype=x.dtype, device=x.device).expand(x.shape)
    for i in range(k - 1, -1, -1):
        column = v[..., i : i + 1]
        q = q - (tau[..., i, None, None] * column) @ (column.mT @ q)
    sign = x.diagonal(dim1=-2, dim2=-1).detach().sign()
    return q * adjoin.where(sign == 0, adjoin.ones_like(sign), sign).unsqueeze(-2)


def _solve(a, b, eye):
    """a^-1 b by elimination. Without pivots, for the symmetric part of ``a`` is the identity."""
    n = a.size(-1)
    both = adjoin.cat([a, b], -1)
    for i in range(n):
        row = both[..., i : i + 1, :] / both[..., i : i + 1, i : i + 1]
        both = both - (both[..., :, i : i + 1] - eye[:, i : i + 1]) @ row
    return both[..., n:]


def _exponential(a, eye):
    """exp(a) by its series for a / 2^s, squared s times."""
    size = float(a.detach().abs().sum(-1).max()) if a.numel() else 0.0
    squarings = 0
    while size > 0.5:
        size, squarings = size / 2, squarings + 1
    a = a / 2.0**squarings
    out = eye + a / 18
    for i in range(17, 0, -1):  # 0.5^19 / 19! is far below what a double shows
        out = eye + (a @ out) / i
    for _ in range(squarings):
        out = out @ out
    return out


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """A weight with orthonormal columns, or rows, if they are fewer."""
    weight = getattr(module, name, None)
    if not isinstance(weight, adjoin.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.dim() < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    part = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, part, unsafe=True)
