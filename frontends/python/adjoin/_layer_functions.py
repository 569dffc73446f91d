"""adjoin._layer_functions: functions of the top level that layers stand on, as PyTorch has them there: the weight first, a number for
how a loss is reduced, in place with an underscore."""

import builtins
import math
import warnings

import adjoin
from adjoin.nn import functional as F
from adjoin.nn._functional import op

from ._out import put

BAGS = ("sum", "mean", "max")
REDUCTIONS = ("none", "mean", "sum")
SAMPLINGS = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


def _word(name, words, number):
    """What a number stands for; a word may be given too."""
    if number in words:
        return number
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(words):
        raise ValueError(f"{name}: {number!r} is none of {', '.join(f'{i} ({w})' for i, w in enumerate(words))}")
    return words[number]


def _into(input, result):
    return input.copy_(result)


def selu_(input):
    """selu() into its input."""
    return op("selu_")(input)


def celu_(input, alpha=1.0):
    """celu() into its input."""
    return op("celu_")(input, alpha)


def threshold_(input, threshold, value):
    """threshold() into its input."""
    return op("threshold_")(input, threshold, value)


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """rrelu() into its input."""
    return F.rrelu_(input, lower, upper, training)


def dropout_(input, p, train):
    """dropout() into its input."""
    return _into(input, F.dropout(input, p, train))


def alpha_dropout_(input, p, train):
    """alpha_dropout() into its input."""
    return _into(input, F.alpha_dropout(input, p, train))


def feature_alpha_dropout_(input, p, train):
    """feature_alpha_dropout() into its input."""
    return _into(input, F.feature_alpha_dropout(input, p, train))


def feature_dropout(input, p, train):
    """Dropout of whole channels: of (N, C, *), each row of N and C."""
    if not train or p == 0:
        return input * 1
    kept = F.dropout(input.new_ones((*input.shape[:2], *[1] * (input.dim() - 2))), p, True)
    return input * kept


def feature_dropout_(input, p, train):
    """feature_dropout() into its input."""
    return _into(input, feature_dropout(input, p, train))


def native_dropout(input, p, train):
    """dropout() and which elements it kept."""
    if train is False or p == 0:
        return input.clone(), adjoin.ones_like(input, dtype=adjoin.bool)
    kept = adjoin.rand_like(input) >= p
    return input * kept * (1 / (1 - p) if p < 1 else 0.0), kept


def binomial(count, prob, generator=None):
    """How many of count trials succeed, each with probability prob, in count's floating dtype."""
    if not count.dtype.is_floating_point:
        raise ValueError(f"binomial: count must be floating, it is {count.dtype}")
    with adjoin.no_grad():
        most = int(count.max()) if count.numel() else 0
        shape = adjoin.broadcast_shapes(count.shape, prob.shape)
        each = adjoin.rand((builtins.max(most, 0), *shape), generator=generator, dtype=prob.dtype, device=count.device)
        trial = adjoin.arange(each.size(0), device=count.device).reshape(-1, *[1] * len(shape))
        return ((each < prob) & (trial < count)).sum(0).to(count.dtype)


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """Rows of a table; no row is padding if padding_idx is -1."""
    padding_idx = None if padding_idx == -1 else padding_idx
    return F.embedding(indices, weight, padding_idx, None, 2.0, scale_grad_by_freq, sparse)


def embedding_bag(
    weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None,
    include_last_offset=False, padding_idx=None,
):  # fmt: skip
    """F.embedding_bag (mode: 0 sum, 1 mean, 2 max), the bag of each index, how many indices of each bag count, and the rows
    that maxima come from; but for maxima the last is the one before it. Plain sums have no bags and count nothing."""
    kind, indices = _word("embedding_bag", BAGS, mode), indices.flatten()
    rows = F.embedding_bag(indices, weight, offsets, None, 2.0, scale_grad_by_freq, kind, sparse, per_sample_weights,
                           include_last_offset, padding_idx)  # fmt: skip
    of_each, counts = indices.new_empty(0), indices.new_zeros(len(rows))
    if kind != "sum" or padding_idx is not None:
        starts = offsets[:-1] if include_last_offset else offsets
        places = adjoin.arange(len(indices), dtype=offsets.dtype, device=indices.device)
        of_each = (adjoin.searchsorted(starts, places, right=True) - 1).to(indices.dtype)
    if kind == "sum":
        return rows, of_each, counts, counts
    padding = -1 if padding_idx is None else padding_idx % len(weight)
    counts = adjoin.bincount(of_each[indices != padding], minlength=len(rows)).to(indices.dtype)
    if kind == "mean":
        return rows, of_each, counts, counts
    with adjoin.no_grad():  # the first of a bag's indices whose row has the maximum, in each column
        first = adjoin.arange(len(indices), device=indices.device).unsqueeze(1)
        first = first.masked_fill((weight[indices] != rows[of_each]) | (indices == padding).unsqueeze(1), len(indices))
        bag = of_each.long().unsqueeze(1).expand_as(first)
        first = adjoin.full_like(rows, len(indices), dtype=first.dtype).scatter_reduce(0, bag, first, "amin")
        places = adjoin.cat([indices, indices.new_zeros(1)])[first]
    return rows, of_each, counts, places


def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """F.instance_norm with its weights first."""
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """F.batch_norm with its weights first."""
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def kl_div(input, target, reduction=1, *, log_target=False):
    """F.kl_div; reduction: 0 none, 1 mean, 2 sum, here as below."""
    return F.kl_div(input, target, reduction=_word("kl_div", REDUCTIONS, reduction), log_target=log_target)


def hinge_embedding_loss(input, target, margin=1.0, reduction=1):
    """F.hinge_embedding_loss."""
    return F.hinge_embedding_loss(input, target, margin, reduction=_word("hinge_embedding_loss", REDUCTIONS, reduction))


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=1):
    """F.margin_ranking_loss."""
    reduction = _word("margin_ranking_loss", REDUCTIONS, reduction)
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=reduction)


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=1):
    """F.cosine_embedding_loss."""
    reduction = _word("cosine_embedding_loss", REDUCTIONS, reduction)
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=reduction)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=1):
    """F.triplet_margin_loss."""
    reduction = _word("triplet_margin_loss", REDUCTIONS, reduction)
    return F.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=reduction)


def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    """F.poisson_nll_loss."""
    reduction = _word("poisson_nll_loss", REDUCTIONS, reduction)
    return F.poisson_nll_loss(input, target, log_input=log_input, full=full, eps=eps, reduction=reduction)


def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=1):
    """F.binary_cross_entropy_with_logits."""
    reduction = _word("binary_cross_entropy_with_logits", REDUCTIONS, reduction)
    return F.binary_cross_entropy_with_logits(input, target, weight, reduction=reduction, pos_weight=pos_weight)


def max_pool1d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """The largest of each window, and where it stood."""
    return F.max_pool1d(input, kernel_size, stride or None, padding, dilation, ceil_mode, return_indices=True)


def adaptive_max_pool1d(input, output_size):
    """The largest of each of so many windows, and where it stood."""
    return F.adaptive_max_pool1d(input, output_size, return_indices=True)


def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """F.grid_sample; 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection."""
    mode, padding = _word("grid_sampler", SAMPLINGS, interpolation_mode), _word("grid_sampler", PADDINGS, padding_mode)
    return F.grid_sample(input, grid, mode, padding, align_corners)


def grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners):
    """grid_sampler of images (N, C, H, W)."""
    return _sampler_of(4, "grid_sampler_2d", input, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners):
    """grid_sampler of volumes (N, C, D, H, W)."""
    return _sampler_of(5, "grid_sampler_3d", input, grid, interpolation_mode, padding_mode, align_corners)


def _sampler_of(dims, name, input, grid, *options):
    if input.dim() != dims or grid.dim() != dims:
        raise RuntimeError(
            f"{name}: input and grid must have {dims} dimensions, they have {input.dim()} and {grid.dim()}"
        )
    return grid_sampler(input, grid, *options)


def affine_grid_generator(theta, size, align_corners):
    """F.affine_grid."""
    return F.affine_grid(theta, size, align_corners)


def _moments(input, dims, eps):
    """The mean, and 1 over the standard deviation with eps in it."""
    variance, mean = adjoin.var_mean(input, dims, correction=0, keepdim=True)
    return mean, (variance + eps).rsqrt()


def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """F.layer_norm, the mean and 1 over the standard deviation."""
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    out = F.layer_norm(input, shape, weight, bias, eps)
    return out, *_moments(input, tuple(builtins.range(-len(shape), 0)), eps)


def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """F.group_norm of input as (N, C, HxW), the means and 1 over the standard deviations, (N, group)."""
    out = F.group_norm(input.reshape(N, C, HxW), group, weight, bias, eps).reshape(input.shape)
    mean, scale = _moments(input.reshape(N, group, C // group * HxW), (-1,), eps)
    return out, mean.squeeze(-1), scale.squeeze(-1)


def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, *, out=None):
    """F.batch_norm, the mean and 1 over the standard deviation of each channel; both empty if not training."""
    none = input.new_empty(0)
    found = _moments(input, (0, *builtins.range(2, input.dim())), eps) if training else (none, none)
    made = F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    made = (made, *(part.flatten() for part in found))
    return made if out is None else put("native_batch_norm", made, out)


def range(start=0, end=None, step=1, *, out=None, dtype=None, device=None, requires_grad=False):
    """Numbers from start to end, end among them; arange() leaves it out, as Python's range does."""
    start, end = (0, start) if end is None else (start, end)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end) and math.isfinite(step)):
        raise RuntimeError(f"range: start, end and step must be finite: {start}, {end}, {step}")
    if (end - start) * step < 0:
        raise RuntimeError(f"range: {end} cannot be reached from {start} by steps of {step}")
    warnings.warn("range: deprecated: its end is one of its numbers, unlike Python's; use arange()", stacklevel=2)
    count = int((end - start) / step) + 1
    made = adjoin.arange(count, dtype=adjoin.float64, device=device) * step + start
    made = made.to(dtype or (adjoin.get_default_dtype() if out is None else out.dtype))
    return made.requires_grad_(requires_grad) if out is None else put("range", made, out)
