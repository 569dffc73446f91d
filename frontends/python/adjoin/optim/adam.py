"""adjoin.optim.adam: Adam (Kingma and Ba, 2014) and AdamW (Loshchilov and Hutter, 2017)."""

import math

import adjoin

from .optimizer import Optimizer, as_float, check_settings


class Adam(Optimizer):
    """``p -= lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)`` with running means m of grad and v
    of grad^2.

    ``weight_decay`` adds to the gradient, or, decoupled, shrinks the parameter. ``amsgrad`` divides
    by the largest v so far (Reddi et al., 2018). ``foreach``, ``fused`` and ``capturable`` are
    accepted and change nothing.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False,
                 *, foreach=None, maximize=False, capturable=False, differentiable=False,
                 fused=None, decoupled_weight_decay=False):  # fmt: skip
        check_settings({
            "learning rate": (lr, as_float(lr) >= 0),
            "epsilon value": (eps, eps >= 0),
            "beta parameter at index 0": (betas[0], 0 <= as_float(betas[0]) < 1),
            "beta parameter at index 1": (betas[1], 0 <= as_float(betas[1]) < 1),
            "weight_decay value": (weight_decay, weight_decay >= 0),
        })  # fmt: skip
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
        for own in self.state.values():  # the count was a plain number long ago
            if "step" in own and not isinstance(own["step"], adjoin.Tensor):
                own["step"] = adjoin.tensor(float(own["step"]), dtype=adjoin.float32)

    def step(self, closure=None):
        """Updates every parameter that has a gradient; returns what closure() returned."""
        return self._step_groups(closure)

    @staticmethod
    def _update(param, grad, state, *, lr, betas, eps, weight_decay, amsgrad, maximize,
                decoupled_weight_decay, **_):  # fmt: skip
        if not state:
            state["step"] = adjoin.tensor(0.0, dtype=adjoin.float32)
            state["exp_avg"] = adjoin.zeros_like(param)
            state["exp_avg_sq"] = adjoin.zeros_like(param)
            if amsgrad:
                state["max_exp_avg_sq"] = adjoin.zeros_like(param)
        lr, beta1, beta2 = as_float(lr), as_float(betas[0]), as_float(betas[1])
        step = state["step"].add_(1).item()
        if maximize:
            grad = -grad
        if weight_decay:
            if decoupled_weight_decay:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if amsgrad:
            largest = state["max_exp_avg_sq"]
            square = largest.copy_(adjoin.maximum(largest, square))
        root = square.sqrt().div_(math.sqrt(1 - beta2**step)).add_(eps)
        param.addcdiv_(mean, root, value=-lr / (1 - beta1**step))


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
