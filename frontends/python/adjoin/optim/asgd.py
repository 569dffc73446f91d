"""adjoin.optim.asgd: averaged stochastic gradient descent (Polyak and Juditsky, 1992)."""

import adjoin

from .optimizer import (
    Optimizer,
    as_float,
    check_lr,
    check_settings,
    count_tensor,
    decayed,
    go_against,
    number_of,
    rate_of,
)


class ASGD(Optimizer):
    """Gradient descent with a rate that falls as ``lr / (1 + lambd lr t)^alpha``; the state's "ax"
    is the mean of the parameter from step ``t0`` on. ``capturable`` counts on the parameter's device;
    ``foreach`` changes nothing."""

    _group_defaults = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _counts = ("step", "eta", "mu")

    def __init__(self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None,
                 maximize=False, differentiable=False, capturable=False):  # fmt: skip
        check_lr(lr, foreach, capturable)
        check_settings({
            "weight_decay value": (weight_decay, weight_decay >= 0),
            "lambd value": (lambd, lambd >= 0),
            "alpha value": (alpha, alpha >= 0),
        })  # fmt: skip
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable,
        })  # fmt: skip

    def step(self, closure=None):
        """Updates every parameter that has a gradient; returns what closure() returned."""
        return self._step_groups(closure)

    @staticmethod
    def _update(param, grad, state, *, lr, lambd, alpha, t0, weight_decay, maximize, capturable=False, **_):
        if not state:
            state["step"] = count_tensor(param, capturable)
            state["eta"] = count_tensor(param, capturable).fill_(as_float(lr))
            state["mu"] = count_tensor(param, capturable).fill_(1)
            state["ax"] = adjoin.zeros_like(param, requires_grad=False)
        lr, count = rate_of(lr, capturable), number_of(state["step"].add_(1), capturable)
        grad = decayed(param, grad, weight_decay, maximize)
        rate, weight, mean = number_of(state["eta"], capturable), number_of(state["mu"], capturable), state["ax"]
        go_against(param.mul_(1 - lambd * rate), grad, rate)
        if capturable:
            mean.copy_(adjoin.where(weight == 1, param, mean + (param - mean) * weight))
            state["eta"].copy_(lr / (1 + lambd * lr * count) ** alpha)
            state["mu"].copy_(1 / (count - t0).clamp(min=1))
            return
        if weight == 1:
            mean.copy_(param)
        else:
            mean.add_(param - mean, alpha=weight)
        state["eta"].fill_(lr / (1 + lambd * lr * count) ** alpha)
        state["mu"].fill_(1 / max(1, count - t0))
