"""adjoin.optim.radam: RAdam, Adam that trusts its variance only when it is known (Liu et al., 2019)."""

import math

import adjoin

from .optimizer import (
    Optimizer, check_betas, check_lr, check_settings, decayed, go_against, number_of, rate_of, start_state,
)  # fmt: skip


class RAdam(Optimizer):
    """Adam whose step is rectified by how many gradients its mean of squares rests on; while they
    are few, the mean of the gradients alone. ``capturable`` counts on the parameter's device;
    ``foreach`` changes nothing."""

    _group_defaults = {
        "foreach": None, "maximize": False, "differentiable": False, "capturable": False,
        "decoupled_weight_decay": False,
    }  # fmt: skip
    _counts = ("step",)

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0,
                 decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False,
                 differentiable=False):  # fmt: skip
        check_lr(lr, foreach, capturable)
        check_settings({"epsilon value": (eps, eps >= 0)})
        check_betas(betas)
        check_settings({"weight_decay value": (weight_decay, weight_decay >= 0)})
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable,
        })  # fmt: skip

    def step(self, closure=None):
        """Updates every parameter that has a gradient; returns what closure() returned."""
        return self._step_groups(closure)

    @staticmethod
    def _update(param, grad, state, *, lr, betas, eps, weight_decay, decoupled_weight_decay, maximize,
                capturable=False, **_):  # fmt: skip
        start_state(param, state, "exp_avg", "exp_avg_sq", capturable=capturable)
        lr, (beta1, beta2) = rate_of(lr, capturable), betas
        count = number_of(state["step"].add_(1), capturable)
        grad = decayed(param, grad, weight_decay, maximize, decoupled_weight_decay, lr)
        mean = state["exp_avg"].lerp_(grad, 1 - beta1) / (1 - beta1**count)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        scale, limit = 1 - beta2**count, 2 / (1 - beta2) - 1
        length = limit - 2 * count * beta2**count / scale
        if not capturable and length <= 5:
            param.add_(mean, alpha=-lr)
            return
        known = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
        if capturable:
            rectified = mean / (square.sqrt() + eps) * (known * scale).sqrt()
            go_against(param, adjoin.where(length > 5, rectified, mean), lr)
        else:
            param.addcdiv_(mean, square.sqrt() + eps, value=-lr * math.sqrt(known * scale))
