"""adjoin.optim.asgd: averaged stochastic gradient descent (Polyak and Juditsky, 1992)."""

import adjoin

from .optimizer import Optimizer, as_float, check_lr, check_settings, count_tensor, decayed


class ASGD(Optimizer):
    """Gradient descent with a rate that falls as ``lr / (1 + lambd lr t)^alpha``; the state's "ax"
    is the mean of the parameter from step ``t0`` on. ``foreach`` and ``capturable`` change
    nothing."""

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
    def _update(param, grad, state, *, lr, lambd, alpha, t0, weight_decay, maximize, **_):
        lr = as_float(lr)
        if not state:
            state["step"] = count_tensor()
            state["eta"] = adjoin.tensor(lr, dtype=state["step"].dtype)
            state["mu"] = adjoin.ones((), dtype=state["step"].dtype)
            state["ax"] = adjoin.zeros_like(param, requires_grad=False)
        count = state["step"].add_(1).item()
        grad = decayed(param, grad, weight_decay, maximize)
        rate, weight = state["eta"].item(), state["mu"].item()
        param.mul_(1 - lambd * rate).add_(grad, alpha=-rate)
        if weight == 1:
            state["ax"].copy_(param)
        else:
            state["ax"].add_(param - state["ax"], alpha=weight)
        state["eta"].fill_(lr / (1 + lambd * lr * count) ** alpha)
        state["mu"].fill_(1 / max(1, count - t0))
