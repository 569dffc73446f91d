"""adjoin.optim.adam: Adam (Kingma and Ba, 2014) and AdamW (Loshchilov and Hutter, 2017)."""

import adjoin

from .. import _C
from .optimizer import (
    Optimizer, as_float, check_kinds, check_settings, check_ways, go_along, number_of, rate_of, root_of,
)  # fmt: skip


class Adam(Optimizer):
    """``p -= lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)`` with running means m of grad and v
    of grad^2.

    ``weight_decay`` adds to the gradient, or, decoupled, shrinks the parameter. ``amsgrad`` divides
    by the largest v so far (Reddi et al., 2018). All parameters are stepped in one
    pass, whatever ``foreach`` and ``fused`` say, unless ``differentiable``. ``capturable`` counts the steps
    on the parameter's device, so that a graph's replays count too.
    """

    _counts = ("step",)

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False,
                 *, foreach=None, maximize=False, capturable=False, differentiable=False,
                 fused=None, decoupled_weight_decay=False):  # fmt: skip
        check_kinds(lr, betas)
        check_settings({
            "learning rate": (lr, as_float(lr) >= 0),
            "epsilon value": (eps, eps >= 0),
            "beta parameter at index 0": (betas[0], 0 <= as_float(betas[0]) < 1),
            "beta parameter at index 1": (betas[1], 0 <= as_float(betas[1]) < 1),
            "weight_decay value": (weight_decay, weight_decay >= 0),
        })  # fmt: skip
        check_ways(foreach, fused, differentiable)
        tensors = [isinstance(b, adjoin.Tensor) for b in betas]
        if any(tensors) and not all(tensors):
            raise ValueError(f"Adam: betas must be either both floats or both Tensors, not {betas}")
        if any(tensors) and foreach and not capturable:
            raise ValueError("betas as Tensors are not supported for capturable=False and foreach=True")
        if isinstance(lr, adjoin.Tensor):
            if lr.numel() != 1:
                raise ValueError("Tensor lr must be 1-element")
            if foreach and not capturable:
                raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("amsgrad", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("capturable", False)
            group.setdefault("differentiable", False)
            group.setdefault("fused", None)
            group.setdefault("decoupled_weight_decay", False)

    def step(self, closure=None):
        """Updates every parameter that has a gradient; returns what closure() returned."""
        return self._step_groups(closure)

    def _begin_state(self, param, state, group):
        _start(param, state, group["amsgrad"], group["capturable"])

    def _step_fused(self, group):
        capturable = group["capturable"]
        if capturable and isinstance(group["lr"], adjoin.Tensor):
            return False  # it may change between replays
        largest = "max_exp_avg_sq" if group["amsgrad"] else None
        names = ("exp_avg", "exp_avg_sq", largest, "step")
        beta1, beta2 = group["betas"]
        numbers = (as_float(group["lr"]), as_float(beta1), as_float(beta2), group["eps"],
                   group["weight_decay"], bool(group["decoupled_weight_decay"]),
                   bool(group["maximize"]))  # fmt: skip
        params, state = group["params"], self.state
        fresh = _C.fused_step("fused_adam_", params, state, names, numbers)
        if isinstance(fresh, list):
            for param in fresh:
                _start(param, state[param], group["amsgrad"], capturable)
            fresh = _C.fused_step("fused_adam_", params, state, names, numbers)
        return fresh is None

    @staticmethod
    def _update(param, grad, state, *, lr, betas, eps, weight_decay, amsgrad, maximize,
                decoupled_weight_decay, differentiable, capturable=False, **_):  # fmt: skip
        _start(param, state, amsgrad, capturable)
        lr, beta1, beta2 = rate_of(lr, capturable), as_float(betas[0]), as_float(betas[1])
        step = number_of(state["step"].add_(1), capturable)
        if maximize:
            grad = -grad
        if weight_decay:
            if decoupled_weight_decay:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if differentiable:  # the next step writes them again
            mean, square = mean.clone(), square.clone()
        if amsgrad:
            largest = state["max_exp_avg_sq"]
            square = largest.copy_(adjoin.maximum(largest.clone(), square))
        root = square.sqrt() / root_of(1 - beta2**step) + eps
        go_along(param, mean, root, lr / (1 - beta1**step))


def _start(param, state, amsgrad, capturable=False):
    """What is not there yet of a parameter's state."""
    if "step" not in state:
        state["step"] = adjoin.zeros((), dtype=adjoin.float32, device=param.device if capturable else None)
    for name in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")[: 3 if amsgrad else 2]:
        if name not in state:
            state[name] = adjoin.zeros_like(param, requires_grad=False)


class AdamW(Adam):
    """Adam with decoupled weight decay: ``p *= 1 - lr weight_decay`` before the update."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2,
                 amsgrad=False, *, maximize=False, foreach=None, capturable=False,
                 differentiable=False, fused=None):  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach,
                         maximize=maximize, capturable=capturable, differentiable=differentiable,
                         fused=fused, decoupled_weight_decay=True)  # fmt: skip

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
