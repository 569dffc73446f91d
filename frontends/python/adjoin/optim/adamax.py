"""adjoin.optim.adamax: Adamax, Adam with the largest instead of the mean (Kingma and Ba, 2014)."""

import adjoin

from .optimizer import (
    Optimizer, check_betas, check_lr, check_settings, decayed, go_along, number_of, rate_of, start_state,
)  # fmt: skip


class Adamax(Optimizer):
    """``p -= lr m / (1 - b1^t) / u`` with a running mean m of grad and ``u = max(b2 u, |grad| + eps)``.

    ``capturable`` counts on the parameter's device; ``foreach`` changes nothing.
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
    def _update(param, grad, state, *, lr, betas, eps, weight_decay, maximize, differentiable,
                capturable=False, **_):  # fmt: skip
        start_state(param, state, "exp_avg", "exp_inf", capturable=capturable)
        beta1, beta2 = betas
        count = number_of(state["step"].add_(1), capturable)
        grad = decayed(param, grad, weight_decay, maximize)
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        largest = adjoin.maximum(state["exp_inf"] * beta2, grad.abs() + eps)
        state["exp_inf"].copy_(largest)
        if differentiable:  # the next step writes it again
            mean = mean.clone()
        go_along(param, mean, largest, rate_of(lr, capturable) / (1 - beta1**count))
