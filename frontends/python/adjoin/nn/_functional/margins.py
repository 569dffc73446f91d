"""adjoin.nn._functional.margins: losses by margins and counts, with the two flags that stood in front of reduction."""

from ..._overridden import handed_over, overridden
from . import legacy_reduction, op

__all__ = [
    "cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "poisson_nll_loss", "soft_margin_loss", "triplet_margin_loss",
]  # fmt: skip


def cosine_embedding_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos where the target is 1, what the cosine has above the margin where that is -1."""
    if overridden(input1, input2, target):
        return handed_over(cosine_embedding_loss, (input1, input2, target), locals())
    if target.dim() > 1 or not input1.dim() == input2.dim() == target.dim() + 1:
        raise RuntimeError(
            f"cosine_embedding_loss: a {'0D or 1D' if target.dim() > 1 else f'{target.dim()}D'} target tensor "
            f"{'expected' if target.dim() > 1 else f'expects {target.dim() + 1}D input tensors'}: input1 is {list(input1.shape)}, "
            f"input2 is {list(input2.shape)}, target is {list(target.shape)}"
        )
    return op("cosine_embedding_loss")(
        input1, input2, target, margin, legacy_reduction(size_average, reduce, reduction)
    )


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """The input where the target is 1, what it lacks to the margin where that is -1."""
    if overridden(input, target):
        return handed_over(hinge_embedding_loss, (input, target), locals())
    return op("hinge_embedding_loss")(input, target, margin, legacy_reduction(size_average, reduce, reduction))


def margin_ranking_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None, reduction="mean"):
    """What the first input lacks to be greater than the second by a margin; the reverse where the target is -1."""
    if overridden(input1, input2, target):
        return handed_over(margin_ranking_loss, (input1, input2, target), locals())
    return op("margin_ranking_loss")(input1, input2, target, margin, legacy_reduction(size_average, reduce, reduction))


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, size_average=None, reduce=None,
                        reduction="mean"):  # fmt: skip
    """What the negative one lacks to be farther from the anchor than the positive one, by a margin."""
    if overridden(anchor, positive, negative):
        return handed_over(triplet_margin_loss, (anchor, positive, negative), locals())
    reduction = legacy_reduction(size_average, reduce, reduction)
    return op("triplet_margin_loss")(anchor, positive, negative, margin, p, eps, swap, reduction)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """What classes of the target lack to be above the others by one."""
    if overridden(input, target):
        return handed_over(multilabel_margin_loss, (input, target), locals())
    return op("multilabel_margin_loss")(input, target, legacy_reduction(size_average, reduce, reduction))


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target input))."""
    if overridden(input, target):
        return handed_over(soft_margin_loss, (input, target), locals())
    return op("soft_margin_loss")(input, target, legacy_reduction(size_average, reduce, reduction))


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Cross entropy of each class by itself."""
    if overridden(input, target, weight):
        return handed_over(multilabel_soft_margin_loss, (input, target, weight), locals())
    return op("multilabel_soft_margin_loss")(input, target, weight, legacy_reduction(size_average, reduce, reduction))


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """What the class of the target lacks to be above the others by a margin."""
    if overridden(input, target, weight):
        return handed_over(multi_margin_loss, (input, target, weight), locals())
    reduction = legacy_reduction(size_average, reduce, reduction)
    return op("multi_margin_loss")(input, target, p, margin, weight, reduction)


def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    """Of counts with a rate, or its logarithm."""
    if overridden(input, target):
        return handed_over(poisson_nll_loss, (input, target), locals())
    reduction = legacy_reduction(size_average, reduce, reduction)
    return op("poisson_nll_loss")(input, target, log_input, full, eps, reduction)
