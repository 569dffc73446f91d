"""adjoin.distributions._gamma_samples: gamma variables, as functions of their concentration."""

import adjoin
from adjoin.autograd import Function


def draw_log_gamma(shape, concentration, generator=None):
    """Logarithms of values of the gamma distribution of rate 1, by rejection (Marsaglia and Tsang, 2000); the values themselves may be
    too small for a number."""

    def draw(source, like):
        return source(like.shape, dtype=like.dtype, device=like.device, generator=generator)

    alpha = concentration.expand(shape)
    raised = adjoin.where(alpha < 1, alpha + 1, alpha)  # and U^(1 / alpha) brings it back
    d = raised - 1 / 3
    c = 1 / (9 * d).sqrt()
    made, open_ = adjoin.zeros_like(alpha), adjoin.ones_like(alpha, dtype=adjoin.bool)
    while open_.any():
        x, u = draw(adjoin.randn, d), draw(adjoin.rand, d)
        v = (1 + c * x) ** 3
        good = open_ & (v > 0) & (u.log() < 0.5 * x * x + d - d * v + d * v.clamp(min=1e-30).log())
        made = adjoin.where(good, d * v, made)
        open_ = open_ & ~good
    share = draw(adjoin.rand, alpha).clamp(min=adjoin.finfo(alpha.dtype).tiny)
    return made.log() + adjoin.where(alpha < 1, share.log() / alpha, adjoin.zeros_like(alpha))


def slope(concentration, value):
    """How a gamma variable moves with its concentration while its share of the probability stays: -(dP / da) / p, in float64.

    P is differenced to fourth order on the side where it is small, and so exact; the step follows the scale on which P changes.
    """
    a, x = concentration.double(), value.double()
    low, step = x < a, 1e-3 * adjoin.minimum(a, a.sqrt())

    def share(a):
        return adjoin.where(low, adjoin.special.gammainc(a, x), -adjoin.special.gammaincc(a, x))

    near, far = share(a + step) - share(a - step), share(a + 2 * step) - share(a - 2 * step)
    log_density = (a - 1) * x.log() - x - adjoin.lgamma(a)
    return -(8 * near - far) / (12 * step) * (-log_density).exp()


def slope_of_log(concentration, log_value):
    """The same of the logarithm: by the first term of P's series, x^a / Gamma(a + 1), where x is so small that it stands alone."""
    a, log = concentration.double(), log_value.double()
    small = log < -20
    value = adjoin.where(small, 1.0, log.exp())
    return adjoin.where(small, (adjoin.digamma(a + 1) - log) / a, slope(a, value) / value)


class _Slope(Function):
    @staticmethod
    def forward(ctx, concentration, log_value):
        return slope_of_log(concentration, log_value).to(log_value.dtype)

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError(
            "rsample: samples of gamma variables have first derivatives by their parameters, not second ones"
        )


class _Drawn(Function):
    @staticmethod
    def forward(ctx, concentration):
        made = draw_log_gamma(concentration.shape, concentration)
        ctx.save_for_backward(concentration, made)
        return made

    @staticmethod
    def backward(ctx, grad):
        return grad * _Slope.apply(*ctx.saved_tensors)


def _log_samples(shape, concentration, generator=None):
    """draw_log_gamma(), with derivatives where they are recorded."""
    if not (adjoin.is_grad_enabled() and concentration.requires_grad):
        return draw_log_gamma(shape, concentration, generator)
    if generator is not None:
        raise NotImplementedError("gamma variables: generator= is for samples without derivatives; use detach()")
    return _Drawn.apply(concentration.expand(shape).contiguous())


def _values(logs):
    return logs.exp().clamp(min=adjoin.finfo(logs.dtype).tiny)


def draw_gamma(shape, concentration, generator=None):
    """Values of the gamma distribution of rate 1, without derivatives."""
    return _values(draw_log_gamma(shape, concentration, generator))


def gamma_samples(shape, concentration, generator=None):
    """draw_gamma(), with derivatives where they are recorded."""
    return _values(_log_samples(shape, concentration, generator))


def dirichlet_samples(shape, concentration, generator=None):
    """Shares that add to 1 along the last dimension, inside of (0, 1), with derivatives where they are recorded."""
    logs = _log_samples(shape, concentration, generator)
    kind = adjoin.finfo(logs.dtype)
    return logs.softmax(-1).clamp(kind.tiny, 1 - kind.eps / 2)


def _standard_gamma(concentration, generator=None):
    """PyTorch's path: a gamma variable of rate 1 for each concentration."""
    return gamma_samples(concentration.shape, concentration, generator)


def _sample_dirichlet(concentration, generator=None):
    """PyTorch's path: shares that add to 1 along the last dimension."""
    return dirichlet_samples(concentration.shape, concentration, generator)
