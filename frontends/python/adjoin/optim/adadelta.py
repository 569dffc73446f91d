"""adjoin.optim.adadelta: Adadelta (Zeiler, 2012)."""

from .optimizer import Optimizer, check_lr, check_settings, decayed, go_against, rate_of, start_state


class Adadelta(Optimizer):
    """``p -= lr d`` with ``d = sqrt(u + eps) / sqrt(v + eps) * grad``; v and u are running means of
    grad^2 and of d^2. ``capturable`` counts on the parameter's device; ``foreach`` changes nothing."""

    _group_defaults = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _counts = ("step",)

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *,
                 capturable=False, maximize=False, differentiable=False):  # fmt: skip
        check_lr(lr)
        check_settings({
            "rho value": (rho, 0 <= rho <= 1),
            "epsilon value": (eps, eps >= 0),
            "weight_decay value": (weight_decay, weight_decay >= 0),
        })  # fmt: skip
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        })  # fmt: skip

    def step(self, closure=None):
        """Updates every parameter that has a gradient; returns what closure() returned."""
        return self._step_groups(closure)

    @staticmethod
    def _update(param, grad, state, *, lr, rho, eps, weight_decay, maximize, differentiable,
                capturable=False, **_):  # fmt: skip
        start_state(param, state, "square_avg", "acc_delta", capturable=capturable)
        state["step"].add_(1)
        grad = decayed(param, grad, weight_decay, maximize)
        square = state["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho)
        moved = state["acc_delta"]
        delta = (moved + eps).sqrt() / (square + eps).sqrt() * grad
        moved.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        go_against(param, delta, rate_of(lr, capturable))
