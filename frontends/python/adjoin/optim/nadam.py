"""adjoin.optim.nadam: NAdam, Adam with Nesterov's momentum (Dozat, 2016)."""

from .optimizer import (
    Optimizer, check_betas, check_lr, check_settings, count_tensor, decayed, go_along, number_of, rate_of, start_state,
)  # fmt: skip


class NAdam(Optimizer):
    """Adam whose mean looks one step ahead; its weight grows with
    ``mu(t) = b1 (1 - 0.96^(t momentum_decay) / 2)``.

    ``capturable`` counts on the parameter's device; ``foreach`` changes nothing.
    """

    _group_defaults = {
        "foreach": None, "maximize": False, "differentiable": False, "capturable": False,
        "decoupled_weight_decay": False,
    }  # fmt: skip
    _counts = ("step", "mu_product")

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0,
                 momentum_decay=4e-3, decoupled_weight_decay=False, *, foreach=None, maximize=False,
                 capturable=False, differentiable=False):  # fmt: skip
        check_lr(lr, foreach, capturable)
        check_settings({"epsilon value": (eps, eps >= 0)})
        check_betas(betas)
        check_settings({
            "weight_decay value": (weight_decay, weight_decay >= 0),
            "momentum_decay value": (momentum_decay, momentum_decay >= 0),
        })  # fmt: skip
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable,
        })  # fmt: skip

    def step(self, closure=None):
        """Updates every parameter that has a gradient; returns what closure() returned."""
        return self._step_groups(closure)

    @staticmethod
    def _update(param, grad, state, *, lr, betas, eps, weight_decay, momentum_decay,
                decoupled_weight_decay, maximize, differentiable, capturable=False, **_):  # fmt: skip
        if not state:
            state["step"] = count_tensor(param, capturable)
            state["mu_product"] = count_tensor(param, capturable) + 1
        start_state(param, state, "exp_avg", "exp_avg_sq")
        lr, (beta1, beta2) = rate_of(lr, capturable), betas
        count = number_of(state["step"].add_(1), capturable)
        grad = decayed(param, grad, weight_decay, maximize, decoupled_weight_decay, lr)
        now, ahead = (beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay)) for t in (count, count + 1))
        product = number_of(state["mu_product"].mul_(now), capturable or differentiable)
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if differentiable:  # the next step writes them again
            mean, product = mean.clone(), product.clone()
        root = (square / (1 - beta2**count)).sqrt() + eps
        go_along(param, grad, root, lr * (1 - now) / (1 - product))
        go_along(param, mean, root, lr * ahead / (1 - product * ahead))
