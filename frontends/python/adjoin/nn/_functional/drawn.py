"""adjoin.nn._functional.drawn: functions that draw random numbers."""

import warnings

import adjoin

from ..._overridden import handed_over, overridden
from . import op

__all__ = ["dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout", "gumbel_softmax", "rrelu", "rrelu_"]


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """Draws from the distribution of softmax(logits) in a way that can be differentiated.

    Gumbel noise is added, then softmax at the temperature ``tau`` (Jang et al., 2017; Maddison et
    al., 2017). ``hard``: one-hot results with the gradients of the soft ones. ``eps`` does nothing.
    """
    if overridden(logits):
        return handed_over(gumbel_softmax, (logits,), locals())
    noise = -adjoin.empty_like(logits).exponential_().log()
    soft = op("softmax")((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    return adjoin.zeros_like(logits).scatter_(dim, index, 1.0) - soft.detach() + soft


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """input where positive, elsewhere times a slope drawn between lower and upper while training,
    else their mean."""
    if overridden(input):
        return handed_over(rrelu, (input,), locals())
    if inplace:  # what the derivative keeps must not be written
        return input.copy_(op("rrelu")(input.clone(), lower, upper, training))
    return op("rrelu")(input, lower, upper, training)


def _drop_channels(name, dims, input, p, training, inplace):
    given = input.dim()
    if given not in (dims, dims + 1):
        means = f"it zeroes whole channels of {dims}-D or {dims + 1}-D input"
        if name == "dropout1d":
            raise RuntimeError(f"{name}: Expected {dims}D or {dims + 1}D input, but received a {given}D input; {means}")
        warnings.warn(
            f"{name}: Received a {given}-D input to {name}, which is deprecated; {means}. Use dropout for single elements.",
            stacklevel=3,
        )
    if name == "dropout2d" and given == 3:
        warnings.warn(
            f"{name}: Received a 3-D input, assuming that channel-wise 1D dropout behavior is desired: its channels are those of "
            "(N, C, L), as dropout1d has them; for (C, H, W) use unsqueeze(0)",
            stacklevel=3,
        )
    alone = given != dims + 1 and name != "dropout2d"
    result = op(name)(input.unsqueeze(0) if alone else input, p, training)
    if alone:
        result = result.squeeze(0)
    return input.copy_(result) if inplace else result


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, L) or (C, L)."""
    if overridden(input):
        return handed_over(dropout1d, (input,), locals())
    return _drop_channels("dropout1d", 2, input, p, training, inplace)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, H, W)."""
    if overridden(input):
        return handed_over(dropout2d, (input,), locals())
    return _drop_channels("dropout2d", 3, input, p, training, inplace)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    if overridden(input):
        return handed_over(dropout3d, (input,), locals())
    return _drop_channels("dropout3d", 4, input, p, training, inplace)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout of whole channels that keeps the mean and variance of SELU networks."""
    if overridden(input):
        return handed_over(feature_alpha_dropout, (input,), locals())
    result = op("feature_alpha_dropout")(input, p, training)
    return input.copy_(result) if inplace else result


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """rrelu() into its input."""
    return rrelu(input, lower, upper, training, True)
