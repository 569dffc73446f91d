"""adjoin.nn._functional.drawn: functions that draw random numbers."""

import adjoin

from . import op

__all__ = ["feature_alpha_dropout", "gumbel_softmax", "rrelu", "rrelu_"]


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """Draws from the distribution of softmax(logits) in a way that can be differentiated.

    Gumbel noise is added, then softmax at the temperature ``tau`` (Jang et al., 2017; Maddison et
    al., 2017). ``hard``: one-hot results with the gradients of the soft ones. ``eps`` does nothing.
    """
    noise = -adjoin.empty_like(logits).exponential_().log()
    soft = op("softmax")((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    return adjoin.zeros_like(logits).scatter_(dim, index, 1.0) - soft.detach() + soft


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """input where positive, elsewhere times a slope drawn between lower and upper while training,
    else their mean."""
    if inplace:  # what the derivative keeps must not be written
        return input.copy_(op("rrelu")(input.clone(), lower, upper, training))
    return op("rrelu")(input, lower, upper, training)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout of whole channels that keeps the mean and variance of SELU networks."""
    result = op("feature_alpha_dropout")(input, p, training)
    return input.copy_(result) if inplace else result


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """rrelu() into its input."""
    return rrelu(input, lower, upper, training, True)
