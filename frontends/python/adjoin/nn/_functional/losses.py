"""adjoin.nn._functional.losses: losses whose arguments are more than tensors and numbers."""

import warnings

import adjoin

from ..._overridden import handed_over, overridden
from . import legacy_reduction, op

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "ctc_loss", "gaussian_nll_loss", "huber_loss",
    "kl_div", "l1_loss", "mse_loss", "nll_loss", "smooth_l1_loss", "triplet_margin_with_distance_loss",
]  # fmt: skip


def _of_one_shape(input, target):
    """Both as one shape, with a warning where a shape differs: a column less a row is a matrix."""
    if target.shape == input.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). "
        "This will likely lead to incorrect results due to broadcasting. "
        "Please ensure they have the same size.",
        stacklevel=4,
    )
    return adjoin.broadcast_tensors(input, target)


def _of_difference(name, input, target, weight, reduction, *more):
    """A loss of each element's difference."""
    input, target = _of_one_shape(input, target)
    if weight is None:
        return op(name)(input, target, reduction, *more)
    each = weight * op(name)(input, target, "none", *more)
    if reduction == "none":
        return each
    return each.sum() / weight.sum() if reduction == "mean" else each.sum()


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The squared difference."""
    if overridden(input, target, weight):
        return handed_over(mse_loss, (input, target, weight), locals())
    return _of_difference("mse_loss", input, target, weight, legacy_reduction(size_average, reduce, reduction))


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The absolute difference."""
    if overridden(input, target, weight):
        return handed_over(l1_loss, (input, target, weight), locals())
    return _of_difference("l1_loss", input, target, weight, legacy_reduction(size_average, reduce, reduction))


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """The squared difference over 2 beta where it is below beta, else the absolute one less beta / 2."""
    if overridden(input, target):
        return handed_over(smooth_l1_loss, (input, target), locals())
    reduction = legacy_reduction(size_average, reduce, reduction)
    return _of_difference("smooth_l1_loss", input, target, None, reduction, beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Half the squared difference where it is below delta, else delta times the absolute one less delta / 2."""
    if overridden(input, target, weight):
        return handed_over(huber_loss, (input, target, weight), locals())
    return _of_difference("huber_loss", input, target, weight, reduction, delta)


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                  label_smoothing=0.0):  # fmt: skip
    """The negative logarithm of softmax(input) at the classes or probabilities of target."""
    if overridden(input, target, weight):
        return handed_over(cross_entropy, (input, target, weight), locals())
    reduction = legacy_reduction(size_average, reduce, reduction)
    if ignore_index >= 0 and target.is_floating_point():
        raise RuntimeError(
            f"cross_entropy: ignore_index is not supported for floating point targets, which are probabilities; it is {ignore_index}"
        )
    return op("cross_entropy")(input, target, weight, ignore_index, reduction, label_smoothing)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """What stands in input at the classes of target, negated."""
    if overridden(input, target, weight):
        return handed_over(nll_loss, (input, target, weight), locals())
    reduction = legacy_reduction(size_average, reduce, reduction)
    return op("nll_loss")(input, target, weight, ignore_index, reduction)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """-target log(input) - (1 - target) log(1 - input)."""
    if overridden(input, target, weight):
        return handed_over(binary_cross_entropy, (input, target, weight), locals())
    reduction = legacy_reduction(size_average, reduce, reduction)
    return op("binary_cross_entropy")(input, target, weight, reduction)


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean",
                                     pos_weight=None):  # fmt: skip
    """binary_cross_entropy of sigmoid(input), without overflow."""
    if overridden(input, target, weight, pos_weight):
        return handed_over(binary_cross_entropy_with_logits, (input, target, weight, pos_weight), locals())
    reduction = legacy_reduction(size_average, reduce, reduction)
    return op("binary_cross_entropy_with_logits")(input, target, weight, reduction, pos_weight)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target (log target - input): how far probabilities are from those whose logarithm is input."""
    if overridden(input, target):
        return handed_over(kl_div, (input, target), locals())
    reduction = legacy_reduction(size_average, reduce, reduction)
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. "
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition. "
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    if reduction == "batchmean" and input.dim() == 0:
        reduction = "sum"  # a number is a batch of one
    return op("kl_div")(input, target, reduction, log_target)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean",
             zero_infinity=False):  # fmt: skip
    """The negative log-probability of labellings without alignment (Graves et al., 2006).

    log_probs (T, N, C) or (T, C); targets (N, S), or all of them one after the other; the lengths
    are tensors, tuples or numbers.
    """
    if overridden(log_probs, targets, input_lengths, target_lengths):
        return handed_over(ctc_loss, (log_probs, targets, input_lengths, target_lengths), locals())
    lengths = (
        n if isinstance(n, adjoin.Tensor) else adjoin.tensor(n, dtype=adjoin.int64, device=log_probs.device)
        for n in (input_lengths, target_lengths)
    )
    return op("ctc_loss")(log_probs, targets, *lengths, blank, reduction, zero_infinity)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """The negative log-likelihood of targets under normal distributions of mean ``input``."""
    if overridden(input, target, var):
        return handed_over(gaussian_nll_loss, (input, target, var), locals())
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * adjoin.ones_like(input)
    fits = var.dim() + 1 == input.dim() or var.dim() == input.dim()
    if not fits or any(n not in (1, of) for n, of in zip(var.shape, input.shape, strict=False)):
        raise ValueError(
            f"gaussian_nll_loss: var is of incorrect size {list(var.shape)} for input of {list(input.shape)}"
        )
    return op("gaussian_nll_loss")(input, target, var, full, eps, reduction)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None,
                                      margin=1.0, swap=False, reduction="mean"):  # fmt: skip
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) for any distance d."""
    if overridden(anchor, positive, negative):
        return handed_over(triplet_margin_with_distance_loss, (anchor, positive, negative), locals())
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = op("pairwise_distance") if distance_function is None else distance_function
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and "
            f"negative {negative.dim()}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = adjoin.minimum(far, distance(positive, negative))
    each = adjoin.clamp_min(margin + near - far, 0)
    return each if reduction == "none" else each.mean() if reduction == "mean" else each.sum()
