"""adjoin.optim.adamax: Adamax, Adam with the largest instead of the mean (Kingma and Ba, 2014)."""

import adjoin

from .optimizer import Optimizer, as_float, check_betas, check_lr, check_settings, decayed, start_state


class Adamax(Optimizer):
    """``p -= lr m / (1 - b1^t) / u`` with a running mean m of grad and ``u = max(b2 u, |grad| + eps)``.

    ``foreach`` and ``capturable`` change nothing.
    """

    _group_defaults = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _counts = ("step",)

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *,
                 maximize=False, differentiable=False, capturable=False):  # fmt: skip
        check_lr(lr, foreach, capturable)
        check_settings({"epsilon value": (eps, eps >= 0)})
        check_betas(betas)
        check_settings({"weight_decay value": (weight_decay, weight_decay >= 0)})
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def step(self, closure=None):
        """Updates every parameter that has a gradient; returns what closure() returned."""
        return self._step_groups(closure)

    @staticmethod
    def _update(param, grad, state, *, lr, betas, eps, weight_decay, maximize, differentiable, **_):
        start_state(param, state, "exp_avg", "exp_inf")
        beta1, beta2 = betas
        count = state["step"].add_(1).item()
        grad = decayed(param, grad, weight_decay, maximize)
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        largest = adjoin.maximum(state["exp_inf"] * beta2, grad.abs() + eps)
        state["exp_inf"].copy_(largest)
        if differentiable:  # the next step writes it again
            mean = mean.clone()
        param.addcdiv_(mean, largest, value=-as_float(lr) / (1 - beta1**count))
