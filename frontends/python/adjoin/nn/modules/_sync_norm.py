"""adjoin.nn.modules._sync_norm: what SyncBatchNorm does with the batches of several processes."""

import adjoin

from ... import distributed


class _Sum(adjoin.autograd.Function):
    """The sum of all processes' tensors; each one's gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx, t, group):
        ctx.group = group
        total = t.clone()
        distributed.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx, g):
        total = g.clone()
        distributed.all_reduce(total, group=ctx.group)
        return total, None


def normalized(layer, input):
    """``input`` by the mean and variance of all processes' batches together; running statistics are moved."""
    group, channels = layer.process_group, input.shape[1]
    x = input.float() if input.dtype in (adjoin.float16, adjoin.bfloat16) else input
    dims = [d for d in range(x.dim()) if d != 1]
    shape = [1, channels] + [1] * (x.dim() - 2)
    mine = x.new_full((1,), x.numel() // channels)
    total = _Sum.apply(adjoin.cat([x.sum(dims), mine]), group)
    count = total[-1].detach()
    mean = total[:-1] / count
    centered = x - mean.reshape(shape)
    variance = _Sum.apply((centered * centered).sum(dims), group) / count
    out = centered * (variance + layer.eps).rsqrt().reshape(shape)
    if layer.weight is not None:
        out = out * layer.weight.reshape(shape)
    if layer.bias is not None:
        out = out + layer.bias.reshape(shape)
    if layer.track_running_stats:
        _move(layer, mean.detach(), variance.detach(), count)
    return out.to(input.dtype)


def _move(layer, mean, variance, count):
    layer.num_batches_tracked.add_(1)
    momentum = 1.0 / float(layer.num_batches_tracked) if layer.momentum is None else layer.momentum
    with adjoin.no_grad():
        unbiased = variance * (count / (count - 1))
        layer.running_mean.lerp_(mean.to(layer.running_mean.dtype), momentum)
        layer.running_var.lerp_(unbiased.to(layer.running_var.dtype), momentum)
