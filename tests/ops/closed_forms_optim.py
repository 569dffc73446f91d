"""tests/ops/closed_forms_optim.py: one step of the optimizers that are rows, from their papers."""

import numpy as np
from closed_forms import of


@of("fused_sgd_")
def sgd(params, grads, momentum_buffers, lr, momentum, dampening, weight_decay, nesterov, maximize, is_first_step):
    """Sutskever et al. 2013, in the form with the rate outside of the momentum. What is written, in order."""
    new, kept = [], []
    for p, g, b in zip(params, grads, momentum_buffers, strict=True):
        g = (-g if maximize else g) + weight_decay * p
        if momentum:
            b = g if is_first_step else momentum * b + (1 - dampening) * g
            g = g + momentum * b if nesterov else b
        new.append(p - lr * g)
        kept.append(b)
    return new + kept


@of("fused_adam_")
def adam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    state_steps,
    lr,
    beta1,
    beta2,
    eps,
    weight_decay,
    decoupled,
    maximize,
):
    """Kingma and Ba 2015; AMSGrad of Reddi et al. 2018; decoupled decay of Loshchilov and Hutter 2019."""
    out = [[], [], [], [], []]
    for i, (p, g, m, v, n) in enumerate(zip(params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True)):
        n, g = n + 1, -g if maximize else g
        p, g = (p * (1 - lr * weight_decay), g) if decoupled else (p, g + weight_decay * p)
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        top = np.maximum(max_exp_avg_sqs[i], v) if max_exp_avg_sqs else v
        p = p - lr / (1 - beta1**n) * m / (np.sqrt(top) / np.sqrt(1 - beta2**n) + eps)
        for to, x in zip(out, (p, m, v, *([top] if max_exp_avg_sqs else []), n), strict=False):
            to.append(x)
    return [x for group in out for x in group]


@of("fused_scale_")
def scale(tensors, scale):
    return [t * scale for t in tensors]


@of("amp_unscale_")
def unscale(tensors, found_inf, inv_scale):
    bad = any(not np.isfinite(t).all() for t in tensors)
    return [*(t * inv_scale for t in tensors), np.where(bad, 1.0, found_inf)]


@of("amp_update_scale_")
def update_scale(scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval):
    if found_inf != 0:
        return [scale * backoff_factor, 0 * growth_tracker]
    steps = growth_tracker + 1
    return [scale * growth_factor, 0 * steps] if steps == growth_interval else [scale, steps]
