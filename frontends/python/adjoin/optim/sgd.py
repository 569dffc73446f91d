"""adjoin.optim.sgd: stochastic gradient descent, with momentum as in Sutskever et al., 2013."""

import adjoin

from .. import _C
from .optimizer import Optimizer, as_float, check_kinds, check_settings, check_ways


class SGD(Optimizer):
    """``p -= lr v`` with ``v = momentum v + (1 - dampening) (grad + weight_decay p)``.

    The first step is not dampened; Nesterov's form uses ``grad + momentum v``. All parameters are
    stepped in one pass, whatever ``foreach`` and ``fused`` say, unless ``differentiable``.
    """

    def __init__(self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *,
                 maximize=False, foreach=None, differentiable=False, fused=None):  # fmt: skip
        check_kinds(lr)
        check_settings({
            "learning rate": (lr, as_float(lr) >= 0),
            "momentum value": (momentum, momentum >= 0),
            "weight_decay value": (weight_decay, weight_decay >= 0),
        })  # fmt: skip
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_ways(foreach, fused, differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("differentiable", False)
            group.setdefault("fused", None)

    def step(self, closure=None):
        """Updates every parameter that has a gradient; returns what closure() returned."""
        return self._step_groups(closure)

    def _begin_state(self, param, state, group):
        if group["momentum"] and state.get("momentum_buffer") is None:
            state["momentum_buffer"] = adjoin.zeros_like(param, requires_grad=False)

    def _step_fused(self, group):
        momentum = group["momentum"]
        names = ("momentum_buffer",) if momentum else (None,)
        numbers = (as_float(group["lr"]), momentum, group["dampening"], group["weight_decay"],
                   bool(group["nesterov"]), bool(group["maximize"]))  # fmt: skip
        params = group["params"]
        fresh = _C.fused_step("fused_sgd_", params, self.state, names, (*numbers, False))
        if fresh is None or fresh is NotImplemented:
            return fresh is None
        for param in fresh:
            self.state[param]["momentum_buffer"] = adjoin.empty_like(param, requires_grad=False)
        started = {id(param) for param in fresh}
        rest = [param for param in params if id(param) not in started]
        for some, first in ((fresh, True), (rest, False)):
            _C.fused_step("fused_sgd_", some, self.state, names, (*numbers, first))
        return True

    @staticmethod
    def _update(param, grad, state, *, lr, momentum, dampening, weight_decay, nesterov, maximize,
                differentiable, **_):  # fmt: skip
        if maximize:
            grad = -grad
        if weight_decay:
            grad = grad.add(param, alpha=weight_decay)
        if momentum:
            buf = state.get("momentum_buffer")
            if buf is None:
                buf = state["momentum_buffer"] = grad.clone()
            else:
                buf.mul_(momentum).add_(grad, alpha=1 - dampening)
            buf = buf.clone() if differentiable else buf  # the next step writes it again
            grad = grad.add(buf, alpha=momentum) if nesterov else buf
        param.add_(grad, alpha=-as_float(lr))
