"""recurrence.py: a loop that no op of arrays expresses, compiled by Numba: y[t] = decay * y[t-1] + x[t], along the last dimension."""

import numba
import numpy

import adjoin


@numba.njit(cache=False)
def run(x, decay, y):
    for row in range(x.shape[0]):
        last = 0.0
        for t in range(x.shape[1]):
            last = decay * last + x[row, t]
            y[row, t] = last


class Recurrence(adjoin.autograd.Function):
    """The gradient of x is the same recurrence backwards in time, so it differentiates itself."""

    @staticmethod
    def forward(ctx, x, decay):
        flat = numpy.ascontiguousarray(x.detach().numpy()).reshape(-1, x.shape[-1])
        y = numpy.empty_like(flat)
        run(flat, float(decay), y)
        y = adjoin.from_numpy(y).reshape(x.shape)
        ctx.save_for_backward(decay, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        decay, y = ctx.saved_tensors
        back = recurrence(grad.flip(-1), decay).flip(-1)  # what each y[t] weighs in all later ones
        return back, (back[..., 1:] * y[..., :-1]).sum().reshape(decay.shape)


def recurrence(x, decay):
    """y[t] = decay * y[t-1] + x[t]; decay is a tensor of one element."""
    return Recurrence.apply(x, decay)
