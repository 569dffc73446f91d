"""adjoin.optim.rprop: Rprop, steps by the signs of whole gradients (Riedmiller and Braun, 1993)."""

import adjoin

from .optimizer import Optimizer, as_float, check_lr, count_tensor


class Rprop(Optimizer):
    """Each element has its own step size: larger by ``etas[1]`` where the gradient keeps its sign,
    smaller by ``etas[0]`` where it turns, which also stops the element once; within
    ``step_sizes``. ``capturable`` counts on the parameter's device; ``foreach`` changes nothing."""

    _group_defaults = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _counts = ("step",)

    def __init__(self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False,
                 foreach=None, maximize=False, differentiable=False):  # fmt: skip
        check_lr(lr)
        shrink, grow = etas
        if not 0 < shrink < 1 < grow:
            raise ValueError(f"Invalid eta values: {shrink}, {grow}")
        super().__init__(params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def step(self, closure=None):
        """Updates every parameter that has a gradient; returns what closure() returned."""
        return self._step_groups(closure)

    @staticmethod
    def _update(param, grad, state, *, lr, etas, step_sizes, maximize, differentiable, capturable=False, **_):
        if not state:
            state["step"] = count_tensor(param, capturable)
            state["prev"] = adjoin.zeros_like(param, requires_grad=False)
            state["step_size"] = adjoin.full_like(param, as_float(lr), requires_grad=False)
        state["step"].add_(1)
        if maximize:
            grad = -grad
        kept = (grad * state["prev"]).sign()
        factor = adjoin.where(kept > 0, etas[1], adjoin.where(kept < 0, etas[0], 1.0)).to(grad.dtype)
        size = state["step_size"].mul_(factor).clamp_(*step_sizes)
        if differentiable:  # the next step writes it again
            size = size.clone()
        grad = grad.masked_fill(kept < 0, 0)
        param.addcmul_(grad.sign(), size, value=-1)
        state["prev"].copy_(grad)
