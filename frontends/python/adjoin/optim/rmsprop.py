"""adjoin.optim.rmsprop: RMSprop (Hinton, lecture 6e of 2012), also centered (Graves, 2013)."""

from .optimizer import Optimizer, check_lr, check_settings, decayed, go_against, go_along, rate_of, start_state


class RMSprop(Optimizer):
    """``p -= lr grad / (sqrt(v) + eps)`` with a running mean v of grad^2.

    ``centered`` subtracts the square of a running mean of grad from v; ``momentum`` steps along a
    running sum of the quotients. ``capturable`` counts on the parameter's device; ``foreach`` changes nothing.
    """

    _group_defaults = {
        "momentum": 0, "centered": False, "foreach": None, "maximize": False,
        "differentiable": False, "capturable": False,
    }  # fmt: skip
    _counts = ("step",)

    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0,
                 centered=False, capturable=False, foreach=None, maximize=False,
                 differentiable=False):  # fmt: skip
        check_lr(lr, foreach, capturable)
        check_settings({
            "epsilon value": (eps, eps >= 0),
            "momentum value": (momentum, momentum >= 0),
            "weight_decay value": (weight_decay, weight_decay >= 0),
            "alpha value": (alpha, alpha >= 0),
        })  # fmt: skip
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable,
        })  # fmt: skip

    def step(self, closure=None):
        """Updates every parameter that has a gradient; returns what closure() returned."""
        return self._step_groups(closure)

    @staticmethod
    def _update(param, grad, state, *, lr, alpha, eps, weight_decay, momentum, centered, maximize,
                differentiable, capturable=False, **_):  # fmt: skip
        names = ["square_avg", *["momentum_buffer"] * (momentum > 0), *["grad_avg"] * centered]
        start_state(param, state, *names, capturable=capturable)
        state["step"].add_(1)
        lr = rate_of(lr, capturable)
        grad = decayed(param, grad, weight_decay, maximize)
        square = state["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if centered:
            mean = state["grad_avg"].lerp_(grad, 1 - alpha)
            mean = mean.clone() if differentiable else mean  # the next step writes it again
            square = square.addcmul(mean, mean, value=-1)
        root = square.sqrt() + eps
        if momentum > 0:
            go_against(param, state["momentum_buffer"].mul_(momentum).addcdiv_(grad, root), lr)
        else:
            go_along(param, grad, root, lr)
