"""adjoin.nn.modules.sparse: tables that are looked up."""

import adjoin

from .. import functional as F
from .. import init
from ..parameter import Parameter
from ._settings import sizes
from .module import Module

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """Rows of a ``weight``; the row ``padding_idx`` starts at zero and gets no gradient."""

    _padding_name = "padding_idx"  # in the error about it

    def __init__(self, num_embeddings, embedding_dim, padding_idx, max_norm, norm_type,
                 scale_grad_by_freq, sparse, weight, requires_grad, device, dtype):  # fmt: skip
        super().__init__()
        sizes(self, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError(
                    f"{type(self).__name__}: {self._padding_name} must be within num_embeddings: {padding_idx} is none of "
                    f"its {num_embeddings} rows; give a row more, or one of them"
                )
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if weight is None:
            shape = (num_embeddings, embedding_dim)
            self.weight = Parameter(adjoin.empty(shape, device=device, dtype=dtype), requires_grad=requires_grad)
            self.reset_parameters()
        elif list(weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        else:
            self.weight = Parameter(weight, requires_grad=requires_grad)

    def reset_parameters(self):
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with adjoin.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def _norm_repr(self):
        text = ""
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return text

    @staticmethod
    def _rows_and_columns(embeddings):
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        return embeddings.shape


class Embedding(_Table):
    """Rows of a table by integer index: input (*) of ints, output (*, embedding_dim).

    The row ``padding_idx`` starts at zero and gets no gradient.
    """

    _padding_name = "Padding_idx"

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None,
                 norm_type=2.0, scale_grad_by_freq=False, sparse=False, _weight=None,
                 _freeze=False, device=None, dtype=None):  # fmt: skip
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type,
                         scale_grad_by_freq, sparse, _weight, not _freeze, device, dtype)  # fmt: skip

    def forward(self, input):
        if self.max_norm is not None:
            self._renormalize(input)
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            scale_grad_by_freq=self.scale_grad_by_freq,
            sparse=self.sparse,
        )

    def _renormalize(self, input):
        """Shrinks, in place, the rows that are about to be used and are longer than max_norm."""
        with adjoin.no_grad():
            rows = sorted(set(input.flatten().tolist()))
            index = adjoin.tensor(rows, device=self.weight.device)
            used = self.weight[index]
            norms = used.abs().pow(self.norm_type).sum(1, keepdim=True).pow(1 / self.norm_type)
            scale = (self.max_norm / (norms + 1e-7)).clamp(max=1.0)
            self.weight[index] = used * scale

    def extra_repr(self):
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        text += self._norm_repr()
        if self.sparse:
            text += ", sparse=True"
        return text

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, padding_idx=None, max_norm=None,
                        norm_type=2.0, scale_grad_by_freq=False, sparse=False):  # fmt: skip
        """An Embedding over a given (rows, dim) tensor, frozen by default."""
        rows, columns = cls._rows_and_columns(embeddings)
        return cls(rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                   _weight=embeddings, _freeze=freeze)  # fmt: skip


class EmbeddingBag(_Table):
    """Sums, means or maxima of a table's rows over bags of indices: input (B, N), or (N) with
    offsets where bags begin; output (B, embedding_dim). An empty bag gives zeros."""

    def __init__(self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0,
                 scale_grad_by_freq=False, mode="mean", sparse=False, _weight=None,
                 include_last_offset=False, padding_idx=None, device=None, dtype=None):  # fmt: skip
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type,
                         scale_grad_by_freq, sparse, _weight, True, device, dtype)  # fmt: skip
        self.mode = mode
        self.include_last_offset = include_last_offset

    def forward(self, input, offsets=None, per_sample_weights=None):
        if isinstance(input, adjoin.Tensor):
            self._check(input, per_sample_weights)
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type,
                               self.scale_grad_by_freq, self.mode, self.sparse, per_sample_weights,
                               self.include_last_offset, self.padding_idx)  # fmt: skip

    def _check(self, input, per_sample_weights):
        if per_sample_weights is not None:
            if self.mode != "sum":
                raise NotImplementedError(
                    f"EmbeddingBag: per_sample_weights is only supported for mode='sum', not {self.mode!r}"
                )
            if per_sample_weights.shape != input.shape:
                raise ValueError(
                    f"EmbeddingBag: per_sample_weights must have the same shape as the input, {tuple(input.shape)}; it has "
                    f"{tuple(per_sample_weights.shape)}"
                )
        if input.dim() not in (1, 2):
            raise ValueError(f"EmbeddingBag: input has to be 1D or 2D, but it has {input.dim()} dimensions")

    def extra_repr(self):
        text = f"{self.num_embeddings}, {self.embedding_dim}{self._norm_repr()}, mode={self.mode!r}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        return text

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, max_norm=None, norm_type=2.0,
                        scale_grad_by_freq=False, mode="mean", sparse=False,
                        include_last_offset=False, padding_idx=None):  # fmt: skip
        """An EmbeddingBag over a given (rows, dim) tensor, frozen by default."""
        rows, columns = cls._rows_and_columns(embeddings)
        bag = cls(rows, columns, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings,
                  include_last_offset, padding_idx)  # fmt: skip
        bag.weight.requires_grad = not freeze
        return bag
