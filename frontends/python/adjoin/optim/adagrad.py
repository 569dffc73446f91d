"""adjoin.optim.adagrad: Adagrad (Duchi, Hazan and Singer, 2011)."""

import adjoin

from .optimizer import Optimizer, as_float, check_lr, check_settings, check_ways, count_tensor, decayed


class Adagrad(Optimizer):
    """``p -= lr / (1 + (t - 1) lr_decay) * grad / (sqrt(s) + eps)`` with the sum s of all grad^2.

    The sums exist from the start, with ``initial_accumulator_value``. ``foreach`` and ``fused``
    change nothing.
    """

    _group_defaults = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}
    _counts = ("step",)

    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0,
                 eps=1e-10, foreach=None, *, maximize=False, differentiable=False,
                 fused=None):  # fmt: skip
        check_lr(lr)
        check_settings({
            "lr_decay value": (lr_decay, lr_decay >= 0),
            "weight_decay value": (weight_decay, weight_decay >= 0),
            "initial_accumulator_value value": (initial_accumulator_value, initial_accumulator_value >= 0),
            "epsilon value": (eps, eps >= 0),
        })  # fmt: skip
        check_ways(foreach, fused, differentiable)
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "fused": fused,
        })  # fmt: skip
        for group in self.param_groups:
            self._start_group(group)

    def _start_group(self, group):
        value = group["initial_accumulator_value"]
        for param in group["params"]:
            start = complex(value, value) if param.is_complex() else value
            self.state[param] = {
                "step": count_tensor(),
                "sum": adjoin.full_like(param, start, requires_grad=False),
            }

    def add_param_group(self, param_group):
        """As the base's; the new parameters' sums start as those of the first did."""
        super().add_param_group(param_group)
        if self.state:
            self._start_group(self.param_groups[-1])

    def step(self, closure=None):
        """Updates every parameter that has a gradient; returns what closure() returned."""
        return self._step_groups(closure)

    @staticmethod
    def _update(param, grad, state, *, lr, lr_decay, eps, weight_decay, maximize, **_):
        count = state["step"].add_(1).item()
        rate = as_float(lr) / (1 + (count - 1) * lr_decay)
        if grad.is_sparse:
            return _update_rows(param, -grad if maximize else grad, state["sum"], rate, eps, weight_decay)
        grad = decayed(param, grad, weight_decay, maximize)
        root = state["sum"].addcmul_(grad, grad, value=1).sqrt() + eps
        param.addcdiv_(grad, root, value=-rate)


def _update_rows(param, grad, total, rate, eps, weight_decay):
    """The same of the places alone that a sparse gradient has."""
    if weight_decay:
        raise RuntimeError("Adagrad: the weight_decay option is not compatible with sparse gradients; set it to 0")
    grad = grad.coalesce()
    places, values = tuple(grad._indices()), grad._values()
    if values.numel():
        sums = total[places] + values * values
        total[places] = sums
        param[places] = param[places] - rate * values / (sums.sqrt() + eps)
