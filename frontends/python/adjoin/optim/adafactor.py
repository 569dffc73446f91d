"""adjoin.optim.adafactor: Adafactor, squares kept by rows and columns (Shazeer and Stern, 2018)."""

import adjoin

from .optimizer import Optimizer, as_float, check_kinds, count_tensor


class Adafactor(Optimizer):
    """Steps of a size relative to the parameter's; of a matrix's mean squares only the means of
    rows and columns are kept, whose weight falls as ``t^beta2_decay``.

    ``eps`` bounds the squares (None: the dtype's epsilon) and the parameter's size from below,
    ``d`` the update's size from above. ``foreach`` changes nothing.
    """

    _group_defaults = {"foreach": None}
    _counts = ("step",)

    def __init__(self, params, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0,
                 *, foreach=None, maximize=False):  # fmt: skip
        if isinstance(lr, adjoin.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check_kinds(lr)
        for name, value, allowed in (
            ("Learning rate", lr, as_float(lr) >= 0),
            ("beta2_decay", beta2_decay, beta2_decay <= 0),
            ("epsilon1", eps[0], eps[0] is None or eps[0] >= 0),
            ("epsilon2", eps[1], eps[1] >= 0),
            ("Clipping threshold d", d, d >= 1),
            ("weight_decay", weight_decay, weight_decay >= 0),
        ):
            if not allowed:
                bound = "<= 0" if name == "beta2_decay" else ">= 1" if name.endswith("d d") else ">= 0"
                raise ValueError(f"{name} should be {bound} but is: {value}")
        super().__init__(params, {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize,
        })  # fmt: skip

    def step(self, closure=None):
        """Updates every parameter that has a gradient; returns what closure() returned."""
        if any(p.is_complex() for group in self.param_groups for p in group["params"]):
            raise RuntimeError("Adafactor does not support complex parameters")
        return self._step_groups(closure)

    @staticmethod
    def _update(param, grad, state, *, lr, beta2_decay, eps, d, weight_decay, maximize, **_):
        if not state:
            _start(grad, state)
        lr, count = as_float(lr), state["step"].add_(1).item()
        least = adjoin.finfo(param.dtype).eps if eps[0] is None else eps[0]
        if maximize:
            grad = -grad
        share, size = count**beta2_decay, param.numel() ** 0.5
        rate = max(eps[1], param.norm(2).item() / size) * min(lr, count**-0.5)
        if weight_decay:
            param.mul_(1 - lr * weight_decay)
        if grad.dim() > 1:
            rows = state["row_var"].lerp_(grad.square().mean(-1, keepdim=True), share)
            columns = state["col_var"].lerp_(grad.square().mean(-2, keepdim=True), share)
            square = (rows @ columns).div_(rows.mean(-2, keepdim=True).clamp_(min=least))
        else:
            square = state["variance"].lerp_(grad.square(), share)
        update = square.clamp(min=least * least).rsqrt_().mul_(grad)
        param.add_(update, alpha=-rate / max(1.0, update.norm(2).item() / (size * d)))


def _start(grad, state):
    state["step"] = count_tensor()
    if grad.dim() > 1:
        *batch, rows, columns = grad.shape
        state["row_var"] = grad.new_zeros((*batch, rows, 1))
        state["col_var"] = grad.new_zeros((*batch, 1, columns))
    else:
        state["variance"] = adjoin.zeros_like(grad)
