"""adjoin.optim.muon: Muon, momentum whose singular values are made equal (Jordan et al., 2024)."""

import math

import adjoin

from .optimizer import Optimizer, as_float, check_kinds

# Of the quintic that pulls singular values towards 1.
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


class Muon(Optimizer):
    """For matrices only: ``p -= lr U`` where U is the momentum, orthogonalised by ``ns_steps`` of
    Newton and Schulz's iteration in bfloat16. Other parameters belong to AdamW.

    ``adjust_lr_fn``: "original" (None) scales lr by ``sqrt(max(1, rows / columns))``,
    "match_rms_adamw" by ``0.2 sqrt(max(rows, columns))``, "spectral_unclamped" by ``sqrt(rows / columns)``.
    """

    def __init__(self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True,
                 ns_coefficients=_COEFFICIENTS, eps=1e-7, ns_steps=5, adjust_lr_fn=None):  # fmt: skip
        if isinstance(lr, adjoin.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check_kinds(lr)
        for name, value in (("Learning rate", as_float(lr)), ("momentum", momentum), ("weight decay", weight_decay)):
            if value < 0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw", "spectral_unclamped"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        })  # fmt: skip
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
                    )

    def step(self, closure=None):
        """Updates every parameter that has a gradient; returns what closure() returned."""
        return self._step_groups(closure)

    @staticmethod
    def _update(param, grad, state, *, lr, weight_decay, momentum, nesterov, ns_coefficients, eps,
                ns_steps, adjust_lr_fn, **_):  # fmt: skip
        if param.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = adjoin.zeros_like(grad)
        lr, buffer = as_float(lr), state["momentum_buffer"].lerp_(grad, 1 - momentum)
        update = grad.lerp(buffer, momentum) if nesterov else buffer
        update = _orthogonal(update, ns_coefficients, ns_steps, eps)
        rows, columns = param.shape
        if adjust_lr_fn == "match_rms_adamw":
            rate = lr * 0.2 * math.sqrt(max(rows, columns))
        elif adjust_lr_fn == "spectral_unclamped":
            rate = lr * math.sqrt(rows / columns)
        else:
            rate = lr * math.sqrt(max(1, rows / columns))
        param.mul_(1 - lr * weight_decay).add_(update.to(param.dtype), alpha=-rate)


def _orthogonal(matrix, coefficients, steps, eps):
    """Nearly U V' of the singular value decomposition U S V'."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = matrix.bfloat16()
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        square = x @ x.T
        x = adjoin.addmm(x, adjoin.addmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x
