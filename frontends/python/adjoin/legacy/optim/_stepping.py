"""adjoin.legacy.optim._stepping: methods with one step of each call, ``x, fx = method(opfunc, x, config, state)``."""

import math


class _Settings:
    """Numbers of config by their names, and the one dict that is kept between calls."""

    def __init__(self, name, config, state, **defaults):
        if config is None and state is None:
            raise ValueError(
                f"{name}: config is wanted, a dict such as {{'learningRate': 0.01}}, where the state is kept, too"
            )
        self.config = {} if config is None else config
        self.state = self.config if state is None else state
        self.defaults = defaults

    def __getattr__(self, name):
        return self.config.get(name, self.defaults.get(name))

    def kept(self, name, x, value=0.0):
        """A tensor like x that is kept between calls."""
        if name not in self.state:
            self.state[name] = x.new_full(x.shape, value)
        return self.state[name]

    def count(self, name):
        """The number of this call, from 1."""
        self.state[name] = self.state.get(name, 0) + 1
        return self.state[name]

    def decayed(self):
        """The rate of this call: it falls with ``learningRateDecay`` from call to call."""
        before = self.count("evalCounter") - 1
        return self.learningRate / (1 + before * (self.learningRateDecay or 0))


def _evaluated(opfunc, x, weightDecay):
    fx, gradient = opfunc(x)
    return fx, gradient.add(x, alpha=weightDecay) if weightDecay else gradient


def sgd(opfunc, x, config=None, state=None):
    """learningRate 1e-3, learningRateDecay, weightDecay, momentum, dampening (the momentum), nesterov; weightDecays and learningRates
    are tensors like x."""
    s = _Settings("sgd", config, state, learningRate=1e-3, weightDecay=0, momentum=0)
    dampening = s.momentum if s.dampening is None else s.dampening
    if s.nesterov and (s.momentum <= 0 or dampening != 0):
        raise ValueError(f"sgd: nesterov wants momentum above 0 and dampening 0, got {s.momentum} and {dampening}")
    fx, gradient = _evaluated(opfunc, x, s.weightDecay)
    if s.weightDecays is not None:
        gradient = gradient + s.weightDecays * x
    if s.momentum:
        if "dfdx" not in s.state:
            s.state["dfdx"] = gradient.clone()
        else:
            s.state["dfdx"].mul_(s.momentum).add_(gradient, alpha=1 - dampening)
        gradient = gradient.add(s.state["dfdx"], alpha=s.momentum) if s.nesterov else s.state["dfdx"]
    rate = s.decayed()
    x.sub_(gradient * s.learningRates * rate if s.learningRates is not None else gradient * rate)
    return x, fx


def nag(opfunc, x, config=None, state=None):
    """Nesterov's method, whose gradient is taken ahead. learningRate 1e-3, learningRateDecay, weightDecay, momentum 0.9, learningRates."""
    s = _Settings("nag", config, state, learningRate=1e-3, weightDecay=0, momentum=0.9)
    if s.momentum <= 0:
        raise ValueError(f"nag: momentum is {s.momentum}, wanted a number above 0")
    step = s.kept("dfdx", x).mul_(s.momentum)
    x.add_(step)  # ahead, where the step leads without a gradient
    fx, gradient = _evaluated(opfunc, x, s.weightDecay)
    taken = gradient * -s.decayed()
    taken = taken if s.learningRates is None else taken * s.learningRates
    step.add_(taken)
    x.add_(taken)
    return x, fx


def adam(opfunc, x, config=None, state=None):
    """learningRate 1e-3, learningRateDecay, beta1 0.9, beta2 0.999, epsilon 1e-8, weightDecay."""
    s = _Settings("adam", config, state, learningRate=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, weightDecay=0)
    fx, gradient = _evaluated(opfunc, x, s.weightDecay)
    t, rate = s.count("t"), s.decayed()
    m = s.kept("m", x).mul_(s.beta1).add_(gradient, alpha=1 - s.beta1)
    v = s.kept("v", x).mul_(s.beta2).addcmul_(gradient, gradient, value=1 - s.beta2)
    step = rate * math.sqrt(1 - s.beta2**t) / (1 - s.beta1**t)
    x.addcdiv_(m, v.sqrt().add_(s.epsilon), value=-step)
    return x, fx


def adamax(opfunc, x, config=None, state=None):
    """learningRate 2e-3, beta1 0.9, beta2 0.999, epsilon 1e-38, weightDecay."""
    s = _Settings("adamax", config, state, learningRate=2e-3, beta1=0.9, beta2=0.999, epsilon=1e-38, weightDecay=0)
    fx, gradient = _evaluated(opfunc, x, s.weightDecay)
    t = s.count("t")
    m = s.kept("m", x).mul_(s.beta1).add_(gradient, alpha=1 - s.beta1)
    u = s.kept("u", x)
    u.copy_((u * s.beta2).maximum(gradient.abs() + s.epsilon))
    x.addcdiv_(m, u, value=-s.learningRate / (1 - s.beta1**t))
    return x, fx


def adagrad(opfunc, x, config=None, state=None):
    """learningRate 1e-3, learningRateDecay, weightDecay."""
    s = _Settings("adagrad", config, state, learningRate=1e-3, weightDecay=0)
    fx, gradient = _evaluated(opfunc, x, s.weightDecay)
    squares = s.kept("paramVariance", x).addcmul_(gradient, gradient)
    x.addcdiv_(gradient, squares.sqrt().add_(1e-10), value=-s.decayed())
    return x, fx


def adadelta(opfunc, x, config=None, state=None):
    """rho 0.9, eps 1e-6, weightDecay."""
    s = _Settings("adadelta", config, state, rho=0.9, eps=1e-6, weightDecay=0)
    fx, gradient = _evaluated(opfunc, x, s.weightDecay)
    s.count("evalCounter")
    squares = s.kept("paramVariance", x).mul_(s.rho).addcmul_(gradient, gradient, value=1 - s.rho)
    steps = s.kept("accDelta", x)
    step = (steps + s.eps).sqrt() / (squares + s.eps).sqrt() * gradient
    steps.mul_(s.rho).addcmul_(step, step, value=1 - s.rho)
    x.sub_(step)
    return x, fx


def rmsprop(opfunc, x, config=None, state=None):
    """learningRate 1e-2, learningRateDecay, alpha 0.99, epsilon 1e-8, weightDecay, initialMean."""
    s = _Settings("rmsprop", config, state, learningRate=1e-2, alpha=0.99, epsilon=1e-8, weightDecay=0, initialMean=0)
    fx, gradient = _evaluated(opfunc, x, s.weightDecay)
    squares = s.kept("m", x, s.initialMean).mul_(s.alpha).addcmul_(gradient, gradient, value=1 - s.alpha)
    x.addcdiv_(gradient, squares.sqrt().add_(s.epsilon), value=-s.decayed())
    return x, fx


def asgd(opfunc, x, config=None, state=None):
    """Averaged: eta0 1e-4, lambda 1e-4, alpha 0.75, t0 1e6. Gives ``x, fx, ax``, the last one the mean of the ways from step t0 on."""
    s = _Settings("asgd", config, state, eta0=1e-4, alpha=0.75, t0=1e6)
    decay = s.config.get("lambda", 1e-4)
    fx, gradient = opfunc(x)
    t = s.count("t")
    eta = s.state.get("eta_t", s.eta0)
    x.mul_(1 - decay * eta).sub_(gradient * eta)
    mean = s.kept("ax", x)
    mean.add_(x - mean, alpha=s.state.get("mu_t", 1))
    s.state["eta_t"] = s.eta0 / (1 + decay * s.eta0 * t) ** s.alpha
    s.state["mu_t"] = 1 / max(1, t - s.t0)
    return x, fx, mean


def rprop(opfunc, x, config=None, state=None):
    """stepsize 0.1, etaplus 1.2, etaminus 0.5, stepsizemax 50, stepsizemin 1e-6, niter 1. Gives the values of its steps."""
    s = _Settings(
        "rprop", config, state, stepsize=0.1, etaplus=1.2, etaminus=0.5, stepsizemax=50.0, stepsizemin=1e-6, niter=1
    )
    values = []
    for _ in range(s.niter):
        fx, gradient = opfunc(x)
        values.append(fx)
        before, size = s.kept("delta", x), s.kept("stepsize", x, s.stepsize)
        turn = (before * gradient).sign()
        size.mul_(1 + (turn > 0) * (s.etaplus - 1) + (turn < 0) * (s.etaminus - 1))
        size.clamp_(s.stepsizemin, s.stepsizemax)
        gradient = gradient * (turn >= 0)  # after a turn one step is left out
        x.sub_(gradient.sign() * size)
        before.copy_(gradient)
    return x, values
