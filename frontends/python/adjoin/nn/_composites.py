"""adjoin.nn._composites: functions of nn.functional that are made of other ops and have no row
of their own."""

import adjoin

from . import functional as F

__all__ = [
    "bilinear", "celu", "celu_", "cosine_embedding_loss", "cosine_similarity", "dropout1d",
    "dropout2d", "dropout3d", "glu", "hardshrink", "hardsigmoid", "hardsigmoid_", "hardswish",
    "hardswish_", "huber_loss", "kl_div", "margin_ranking_loss", "normalize", "one_hot",
    "pairwise_distance", "prelu", "relu6", "selu", "selu_", "softmin", "softshrink", "softsign",
    "tanhshrink", "threshold", "threshold_", "triplet_margin_loss",
]  # fmt: skip


def reduced(loss, reduction):
    """``loss`` reduced as asked: "mean", "sum" or "none"."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"{reduction} is not a valid value for reduction")


# Activations


def relu6(input, inplace=False):
    """min(max(0, x), 6)."""
    return F.hardtanh_(input, 0.0, 6.0) if inplace else F.hardtanh(input, 0.0, 6.0)


def celu(input, alpha=1.0, inplace=False):
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1)) (Barron, 2017)."""
    out = adjoin.where(input > 0, input, alpha * adjoin.expm1(input.clamp(max=0) / alpha))
    return input.copy_(out) if inplace else out


def selu(input, inplace=False):
    """Scaled ELU with the constants of Klambauer et al., 2017."""
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    out = scale * adjoin.where(input > 0, input, alpha * adjoin.expm1(input.clamp(max=0)))
    return input.copy_(out) if inplace else out


def hardsigmoid(input, inplace=False):
    """relu6(x + 3) / 6."""
    out = F.hardtanh(input + 3.0, 0.0, 6.0) / 6.0
    return input.copy_(out) if inplace else out


def hardswish(input, inplace=False):
    """x relu6(x + 3) / 6 (Howard et al., 2019)."""
    out = input * F.hardtanh(input + 3.0, 0.0, 6.0) / 6.0
    return input.copy_(out) if inplace else out


def threshold(input, threshold, value, inplace=False):
    """x where above the threshold, ``value`` elsewhere."""
    out = input.masked_fill(input <= threshold, value)
    return input.copy_(out) if inplace else out


def celu_(input, alpha=1.0):
    """celu() in place."""
    return celu(input, alpha, inplace=True)


def selu_(input):
    """selu() in place."""
    return selu(input, inplace=True)


def hardsigmoid_(input):
    """hardsigmoid() in place."""
    return hardsigmoid(input, inplace=True)


def hardswish_(input):
    """hardswish() in place."""
    return hardswish(input, inplace=True)


def threshold_(input, threshold_, value):
    """threshold() in place."""
    return threshold(input, threshold_, value, inplace=True)


def softsign(input):
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanhshrink(input):
    """x - tanh(x)."""
    return input - input.tanh()


def hardshrink(input, lambd=0.5):
    """x, but zero in [-lambd, lambd]."""
    return input.masked_fill(input.abs() <= lambd, 0.0)


def softshrink(input, lambd=0.5):
    """x moved towards zero by lambd, and zero in between."""
    if lambd < 0:
        raise RuntimeError(f"softshrink: lambd is {lambd}, a number >= 0 is wanted")
    return input - input.clamp(-lambd, lambd)


def glu(input, dim=-1):
    """a sigmoid(b), where a and b are the halves of x along ``dim``."""
    size = input.size(dim)
    if size % 2:
        raise RuntimeError(
            f"glu: dimension {dim} has the size {size}, an even one is wanted to halve it"
        )
    a, b = input.narrow(dim, 0, size // 2), input.narrow(dim, size // 2, size // 2)
    return a * b.sigmoid()


def prelu(input, weight):
    """x where positive, weight x elsewhere; weight has one element, or one per channel
    (dimension 1)."""
    if weight.numel() != 1:
        channels = input.size(1) if input.dim() > 1 else input.size(0)
        if weight.numel() != channels:
            raise RuntimeError(
                f"prelu: weight has {weight.numel()} elements and the input {channels} channels; "
                "give one weight, or one per channel"
            )
        if input.dim() > 1:
            weight = weight.view((-1,) + (1,) * (input.dim() - 2))
    return adjoin.where(input > 0, input, weight * input)


def softmin(input, dim=None, dtype=None):
    """softmax(-x)."""
    return F.softmax(-input, dim, dtype=dtype)


# Dropout of whole channels


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels of (N, C, L) or (C, L)."""
    return _channel_dropout(input, p, training, inplace, 2)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels of (N, C, H, W) or (C, H, W)."""
    # Three dimensions are taken as (N, C, L), as PyTorch still does.
    return _channel_dropout(input, p, training, inplace, None)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    return _channel_dropout(input, p, training, inplace, 4)


def _channel_dropout(input, p, training, inplace, unbatched_dim):
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training:
        return input
    kept = 1 if input.dim() == unbatched_dim else 2
    shape = tuple(input.shape[:kept]) + (1,) * (input.dim() - kept)
    mask = F.dropout(adjoin.ones(shape, dtype=input.dtype, device=input.device), p, True)
    return input.mul_(mask) if inplace else input * mask


# Distances and products


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """x / max(||x||_p, eps) along ``dim``."""
    result = input / input.norm(p, dim, keepdim=True).clamp(min=eps)
    return result if out is None else out.copy_(result)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """x1.x2 / (||x1|| ||x2||) along ``dim``, each norm at least eps."""
    norms = [x.norm(2, dim, keepdim=True).clamp(min=eps) for x in (x1, x2)]
    return (x1 / norms[0] * (x2 / norms[1])).sum(dim)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """||x1 - x2 + eps||_p along the last dimension."""
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)


def bilinear(input1, input2, weight, bias=None):
    """x1 (*, n), x2 (*, m), weight (k, n, m) -> (*, k)."""
    out, n, m = weight.shape
    lead = tuple(input1.shape[:-1])
    # (b, n) @ (n, k m) -> (b, k, m), then the inner product with x2.
    mixed = input1.reshape(-1, n) @ weight.permute(1, 0, 2).reshape(n, out * m)
    result = (mixed.view(-1, out, m) * input2.reshape(-1, 1, m)).sum(-1)
    result = result.view(lead + (out,))
    return result if bias is None else result + bias


def one_hot(tensor, num_classes=-1):
    """Integers (*) -> int64 (*, num_classes) with a 1 at each index; -1 takes the largest plus
    one."""
    if tensor.dtype != adjoin.int64:
        raise RuntimeError(
            f"one_hot: the indices are {tensor.dtype}, int64 is wanted; cast with .long()"
        )
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("one_hot: no elements to infer num_classes from; give num_classes")
        return adjoin.zeros((*tensor.shape, num_classes), dtype=adjoin.int64, device=tensor.device)
    low, high = int(tensor.min()), int(tensor.max())
    if num_classes == -1:
        num_classes = high + 1
    if low < 0 or high >= num_classes:
        raise RuntimeError(
            f"one_hot: class values go from {low} to {high}, [0, {num_classes}) is wanted"
        )
    classes = adjoin.arange(num_classes, device=tensor.device)
    return (tensor.unsqueeze(-1) == classes).to(adjoin.int64)


# Losses


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Half the squared error below delta, delta (|error| - delta/2) beyond (Huber, 1964)."""
    if delta <= 0:
        raise RuntimeError(f"huber_loss: delta is {delta}, a number > 0 is wanted")
    error = (input - target).abs()
    loss = adjoin.where(error < delta, 0.5 * error * error, delta * (error - 0.5 * delta))
    if weight is None:
        return reduced(loss, reduction)
    loss = loss * weight
    return (
        loss.sum() / weight.expand_as(loss).sum()
        if reduction == "mean"
        else reduced(loss, reduction)
    )


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target (log target - input), input in logarithms; "batchmean" sums and divides by the
    first size."""
    if log_target:
        loss = target.exp() * (target - input)
    else:
        # 0 log 0 is 0; the inner value is replaced too, so that no gradient is NaN.
        positive = target > 0
        loss = target * (target.masked_fill(positive.logical_not(), 1.0).log() - input)
    if reduction == "batchmean":
        return loss.sum() / input.size(0) if input.dim() else loss.sum()
    return reduced(loss, reduction)


def margin_ranking_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None,
                        reduction="mean"):  # fmt: skip
    """max(0, -target (input1 - input2) + margin)."""
    return reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


def cosine_embedding_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None,
                          reduction="mean"):  # fmt: skip
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    cos = cosine_similarity(input1, input2, dim=-1)
    apart = (cos - margin).clamp(min=0)
    zero = adjoin.zeros_like(cos)
    loss = adjoin.where(target == 1, 1 - cos, zero) + adjoin.where(target == -1, apart, zero)
    return reduced(loss, reduction)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False,
                        size_average=None, reduce=None, reduction="mean"):  # fmt: skip
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) (Balntas et al., 2016)."""
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = adjoin.minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced((near - far + margin).clamp(min=0), reduction)
