"""adjoin.nn._functional.linear_loss: the cross entropy of a last linear layer, in parts of the batch where its logits are too many."""

import math
from typing import NamedTuple

import adjoin

from . import op

__all__ = ["linear_cross_entropy"]


class _Options(NamedTuple):
    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: object = None


class LinearCrossEntropyOptions(_Options):
    """That linear_cross_entropy works on parts of the batch: the logits of one part are there at a time, in backward again.

    ``batch_chunk_size`` rows make a part; ``chunking_method`` chooses: "aspect_ratio" so that a part's logits take about the memory
    of the input, "aspect_ratio:N" a part that is N times smaller, "auto" what "aspect_ratio" does, None all rows unless a size is
    given. ``allow_retain_graph``, ``acc_policy`` and ``acc_dtype`` are taken and change nothing: a graph may always be kept, and sums
    over parts are made in the losses' dtype.
    """

    __slots__ = ()

    def __new__(cls, *args, **kwargs):
        made = super().__new__(cls, *args, **kwargs)
        if made.batch_chunk_size is not None and made.batch_chunk_size < 1:
            raise ValueError(
                f"LinearCrossEntropyOptions: batch_chunk_size is {made.batch_chunk_size}, at least 1 is wanted"
            )
        if made.acc_policy not in ("auto", "accurate", "compact"):
            raise ValueError(
                f"LinearCrossEntropyOptions: acc_policy is {made.acc_policy!r}; 'auto', 'accurate' or 'compact' is wanted"
            )
        made._finer()
        return made

    def _finer(self):
        """The N of "aspect_ratio:N", or None."""
        if self.chunking_method is None:
            return None
        name, _, factor = self.chunking_method.partition(":")
        if (
            name == "aspect_ratio" and (not factor or factor.isdigit() and int(factor) > 0)
        ) or self.chunking_method == "auto":
            return int(factor or 1)
        raise ValueError(
            f"LinearCrossEntropyOptions: chunking_method is {self.chunking_method!r}; 'auto', 'aspect_ratio', 'aspect_ratio:N' "
            "or None is wanted"
        )

    def rows(self, rows, in_features, num_classes):
        """How many rows make a part."""
        if self.batch_chunk_size is not None:
            return self.batch_chunk_size
        finer = self._finer()
        if finer is None:
            return max(rows, 1)
        wide = math.ceil(rows / math.ceil(num_classes / max(in_features, 1)))
        power = 1 << (max(wide, 1) - 1).bit_length()
        return max(min(power, rows) // finer, 1)


def linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean", ignore_index=None,
                         label_smoothing=0.0, options=None):  # fmt: skip
    """cross_entropy(linear(input, linear_weight, linear_bias), target), and its options.

    ``linear_weight`` is (C, in_features), or (C, d1, ..., in_features) for targets (N, d1, ...). ``options``, a
    LinearCrossEntropyOptions, keeps the logits of a part of the batch at a time.
    """
    shape = tuple(linear_weight.shape)
    if input.dim() not in (1, 2):
        raise RuntimeError(f"linear_cross_entropy: expected input with dimensionality 1 or 2, got {input.dim()}")
    if len(shape) < 2:
        raise RuntimeError(
            f"linear_cross_entropy: expected linear_weight with dimensionality at least 2, got {len(shape)}"
        )
    if input.shape[-1] != shape[-1]:
        raise RuntimeError(
            "linear_cross_entropy: expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {shape[-1]}"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != shape[:-1]:
        raise RuntimeError(
            f"linear_cross_entropy: expected linear_bias shape {shape[:-1]}, got {tuple(linear_bias.shape)}"
        )
    if len(shape) > 2 and input.dim() == 1:
        raise RuntimeError(
            f"linear_cross_entropy: linear_weight of shape {shape} requires batched input, got {tuple(input.shape)}"
        )
    if input.dim() == 2 and target.dim() and len(target) != len(input):
        raise ValueError(
            f"linear_cross_entropy: expected input batch_size ({len(input)}) to match target batch_size ({len(target)})"
        )
    of_classes = tuple(target.shape) != (*input.shape[:-1], *shape[:-1])
    if not of_classes and ignore_index is not None:
        raise RuntimeError("linear_cross_entropy: ignore_index cannot be specified when target contains probabilities")
    flat, bias = linear_weight.reshape(-1, shape[-1]), None if linear_bias is None else linear_bias.reshape(-1)
    ignored = -100 if ignore_index is None else ignore_index

    def loss(input, target, reduction):
        logits = op("linear")(input, flat, bias).reshape((*input.shape[:-1], *shape[:-1]))
        return op("cross_entropy")(logits, target, weight, ignored, reduction, label_smoothing)

    if options is None or input.dim() == 1:
        return loss(input, target, reduction)
    return _by_parts(loss, input, target, reduction, options.rows(len(input), shape[-1], math.prod(shape[:-1])),
                     lambda: _count(target, of_classes, weight, ignored))  # fmt: skip


def _by_parts(loss, input, target, reduction, rows, count):
    from ...utils.checkpoint import checkpoint  # late: layers may be imported while the package still is

    of_part = "none" if reduction == "none" else "sum"
    parts = zip(input.split(rows), target.split(rows), strict=True)
    losses = [checkpoint(loss, some, wanted, of_part, preserve_rng_state=False) for some, wanted in parts]
    if reduction == "none":
        return adjoin.cat(losses)
    total = adjoin.stack(losses).sum()
    return total / count() if reduction == "mean" else total


def _count(target, of_classes, weight, ignored):
    """By what the mean divides: the weights of the targets, or how many there are."""
    if not of_classes:
        return target.numel() // target.shape[1]
    counted = target != ignored
    if weight is None:
        return counted.sum()
    return adjoin.where(
        counted, weight[adjoin.where(counted, target, 0)], adjoin.zeros((), dtype=weight.dtype, device=weight.device)
    ).sum()
