"""tests/ops/closed_forms_loss.py: closed forms of losses."""

import numpy as np
from closed_forms import FORMS, of


def reduced(x, reduction):
    return x if reduction == "none" else x.sum() if reduction == "sum" else x.mean()


def elementwise(name, form):
    FORMS[name] = lambda input, target, reduction="mean", **how: reduced(form(input, target, **how), reduction)


def smooth_l1(x, y, beta=1.0):
    d = np.abs(x - y)
    return np.where(d < beta, d**2 / 2 / (beta or 1), d - beta / 2)


def huber(x, y, delta=1.0):
    d = np.abs(x - y)
    return np.where(d < delta, d**2 / 2, delta * (d - delta / 2))


def cross(x, y, weight=1):
    return -weight * (y * np.log(x) + (1 - y) * np.log(1 - x))


def poisson(x, y, log_input=True, full=False, eps=1e-8):
    loss = np.exp(x) - y * x if log_input else x - y * np.log(x + eps)
    return loss + (y > 1) * (y * np.log(y) - y + 0.5 * np.log(2 * np.pi * y)) if full else loss


elementwise("nn::mse_loss", lambda x, y: (x - y) ** 2)
elementwise("nn::l1_loss", lambda x, y: np.abs(x - y))
elementwise("nn::smooth_l1_loss", smooth_l1)
elementwise("nn::huber_loss", huber)
elementwise("nn::binary_cross_entropy", cross)
elementwise("nn::binary_cross_entropy_with_logits", lambda x, y, weight=1: cross(1 / (1 + np.exp(-x)), y, weight))
elementwise("nn::poisson_nll_loss", poisson)
elementwise("nn::soft_margin_loss", lambda x, y: np.log1p(np.exp(-y * x)))
elementwise("nn::hinge_embedding_loss", lambda x, y, margin=1.0: np.where(y == 1, x, np.maximum(0, margin - x)))
FORMS["_::bce_each"] = lambda input, target: cross(input, target)


@of("nn::kl_div")
def kl_div(input, target, reduction="mean", log_target=False):
    loss = np.exp(target) * (target - input) if log_target else target * (np.log(target) - input)
    return loss.sum() / len(input) if reduction == "batchmean" else reduced(loss, reduction)


@of("nn::gaussian_nll_loss")
def gaussian(input, target, var, full=False):
    return 0.5 * (np.log(var) + (input - target) ** 2 / var + full * np.log(2 * np.pi)).mean()


@of("nn::margin_ranking_loss")
def ranking(input1, input2, target, margin=0.0, reduction="mean"):
    return reduced(np.maximum(0, -target * (input1 - input2) + margin), reduction)


@of("nn::cosine_embedding_loss")
def cosine(input1, input2, target, margin=0.0, reduction="mean"):
    c = (input1 * input2).sum(-1) / np.linalg.norm(input1, axis=-1) / np.linalg.norm(input2, axis=-1)
    return reduced(np.where(target == 1, 1 - c, np.maximum(0, c - margin)), reduction)


@of("nn::triplet_margin_loss")
def triplet(anchor, positive, negative, margin=1.0, swap=False, reduction="mean"):
    def far(a, b):
        return np.linalg.norm(a - b + 1e-6, axis=-1)

    negatives = far(anchor, negative)
    if swap:
        negatives = np.minimum(negatives, far(positive, negative))
    return reduced(np.maximum(0, far(anchor, positive) - negatives + margin), reduction)


@of("nn::nll_loss")
def nll_loss(input, target, weight, reduction="mean", smoothing=0.0):
    rows, target = np.moveaxis(input, 1, -1).reshape(-1, input.shape[1]), target.ravel()
    hard = -rows[np.arange(len(rows)), target] * weight[target]
    soft = -(rows * weight).sum(-1) / rows.shape[1]
    loss = hard * (1 - smoothing) + soft * smoothing
    if reduction == "mean":
        return loss.sum() / weight[target].sum()
    shape = (input.shape[0], *input.shape[2:])
    return loss.sum() if reduction == "sum" else loss.reshape(shape)


def scores(x):
    """log_softmax over classes."""
    x = x - x.max(1, keepdims=True)
    return x - np.log(np.exp(x).sum(1, keepdims=True))


@of("_::softmax_nll")
def softmax_nll(input, target, ignore_index, reduction):
    kept = target != ignore_index
    each = -scores(input)[np.arange(len(input)), np.where(kept, target, 0)] * kept
    return each.sum() / kept.sum() if reduction == "mean" else reduced(each, reduction)


@of("_::softmax_nll_backward")
def softmax_nll_backward(grad, input, target, logsumexp, ignore_index, reduction):
    kept = target != ignore_index
    each = kept * grad / (kept.sum() if reduction == "mean" else 1)
    hot = np.eye(input.shape[1])[np.where(kept, target, 0)]
    return (np.exp(scores(input)) - hot) * each[:, None]


@of("nn::cross_entropy")
def cross_entropy(input, target, weight, reduction="mean", label_smoothing=0.0):
    return nll_loss(scores(input), target, weight, reduction, label_smoothing)
