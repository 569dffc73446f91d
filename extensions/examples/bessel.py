"""bessel.py: a function of SciPy's with its derivative: Bessel functions of the first kind, as often differentiable as you like."""

import numpy
import scipy.special

import adjoin


class Bessel(adjoin.autograd.Function):
    """J_order(x) for a whole order: the derivative is made of the neighbours, J' = (J_(n-1) - J_(n+1)) / 2."""

    @staticmethod
    def forward(ctx, x, order=0):
        ctx.save_for_backward(x)
        ctx.order = order
        return adjoin.from_numpy(numpy.asarray(scipy.special.jv(order, x.detach().numpy())))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (bessel(x, ctx.order - 1) - bessel(x, ctx.order + 1)) / 2, None


bessel = Bessel.apply
