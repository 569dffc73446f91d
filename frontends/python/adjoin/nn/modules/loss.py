"""adjoin.nn.modules.loss: how far predictions are from targets.

``reduction`` is "mean", "sum" or "none". Shapes: input and target alike (*) unless said otherwise.
"""

import math

from .. import functional as F
from .._functional import legacy_reduction
from ._settings import no_data
from .linear import Linear
from .module import Module

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "HuberLoss",
    "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss", "MSELoss", "MarginRankingLoss", "NLLLoss", "SmoothL1Loss",
    "TripletMarginLoss",
]  # fmt: skip


class _Loss(Module):
    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        no_data(self, size_average)
        self.reduction = legacy_reduction(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """|input - target|."""

    def forward(self, input, target):
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """(input - target)^2."""

    def forward(self, input, target):
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Half the squared error over beta where that is below beta, the absolute one less beta/2
    beyond."""

    def __init__(self, size_average=None, reduce=None, reduction="mean", beta=1.0):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input, target):
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Half the squared error below delta, delta (|error| - delta/2) beyond (Huber, 1964)."""

    def __init__(self, reduction="mean", delta=1.0):
        super().__init__(reduction=reduction)
        if not isinstance(delta, (int, float)):
            raise TypeError(f"HuberLoss: delta must be a float or int, not {delta!r}, a {type(delta).__name__}")
        self.delta = delta

    def forward(self, input, target):
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(_Loss):
    """target (log target - input), where input holds log probabilities; "batchmean" divides by
    N."""

    def __init__(self, size_average=None, reduce=None, reduction="mean", log_target=False):
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input, target):
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class NLLLoss(_WeightedLoss):
    """-weight[target] input[target]: log probabilities (N, C, *) and classes (N, *)."""

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None,
                 reduction="mean"):  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input, target):
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index,
                          reduction=self.reduction)  # fmt: skip


class CrossEntropyLoss(_WeightedLoss):
    """Negative log likelihood of softmax(input): logits (N, C, *), targets (N, *) of classes or
    (N, C, *) of probabilities."""

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None,
                 reduction="mean", label_smoothing=0.0):  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input, target):
        return F.cross_entropy(input, target, weight=self.weight, ignore_index=self.ignore_index,
                               reduction=self.reduction,
                               label_smoothing=self.label_smoothing)  # fmt: skip


class LinearCrossEntropyLoss(_WeightedLoss):
    """CrossEntropyLoss of a linear layer of its own: inputs (N, in_features), targets (N, *out_features) of classes or
    (N, num_classes, *out_features) of probabilities. ``options`` as linear_cross_entropy takes them."""

    def __init__(self, in_features, num_classes, *, out_features=(), bias=False, device=None, dtype=None, reduction="mean", weight=None,
                 ignore_index=None, label_smoothing=0.0, options=None):  # fmt: skip
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features, self.ignore_index = num_classes, tuple(out_features), ignore_index
        self.label_smoothing, self.options = label_smoothing, options
        self.linear = Linear(in_features, num_classes * math.prod(out_features), bias, device, dtype)

    def forward(self, input, target):
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return F.linear_cross_entropy(
            input, self.linear.weight.reshape((*shape, -1)), target, linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight, reduction=self.reduction, ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
            options=self.options,
        )  # fmt: skip

    def extra_repr(self):
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities; the logarithms are clamped at -100."""

    def forward(self, input, target):
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of sigmoid(input), without overflow; pos_weight multiplies the
    positive part."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean",
                 pos_weight=None):  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input, target):
        return F.binary_cross_entropy_with_logits(
            input, target, weight=self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class MarginRankingLoss(_Loss):
    """max(0, -target (input1 - input2) + margin), target 1 or -1."""

    def __init__(self, margin=0.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1, input2, target):
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin,
                                     reduction=self.reduction)  # fmt: skip


class CosineEmbeddingLoss(_Loss):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1: inputs (N, D), target (N)."""

    def __init__(self, margin=0.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1, input2, target):
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin,
                                       reduction=self.reduction)  # fmt: skip


class TripletMarginLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d the p-norm of the
    difference."""

    def __init__(self, margin=1.0, p=2.0, eps=1e-6, swap=False, size_average=None, reduce=None,
                 reduction="mean"):  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_loss(anchor, positive, negative, margin=self.margin, p=self.p,
                                     eps=self.eps, swap=self.swap,
                                     reduction=self.reduction)  # fmt: skip
