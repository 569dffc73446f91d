"""adjoin.legacy.optim._searching: methods that evaluate several times a call: conjugate gradients and limited-memory BFGS."""

import math

from ._stepping import _Settings


def _slope_search(value, t, f, slope, c1, c2, most):
    """A step that lowers enough (c1) and has left enough of the slope (c2): widened, then halved between two ends by cubics.

    ``value(t)`` gives the value and the slope at a step t. Gives (t, f), the last that was evaluated.
    """
    low, f_low, slope_low = 0.0, f, slope
    high = None
    for _ in range(most):
        f_t, slope_t = value(t)
        if not math.isfinite(f_t) or f_t > f + c1 * t * slope or f_t >= f_low and low > 0:
            high = (t, f_t, slope_t)
        elif abs(slope_t) <= -c2 * slope:
            return t, f_t
        elif slope_t >= 0:
            high = (low, f_low, slope_low)
            low, f_low, slope_low = t, f_t, slope_t
        else:
            low, f_low, slope_low = t, f_t, slope_t
        t = min(3 * t, 1e10) if high is None else _between(low, f_low, slope_low, *high)
    return t, value(t)[0]


def _between(a, fa, ga, b, fb, gb):
    """The minimum of the cubic through two ends, kept off them."""
    low, high = min(a, b), max(a, b)
    wide = high - low
    try:
        d1 = ga + gb - 3 * (fa - fb) / (a - b)
        d2 = math.copysign(math.sqrt(d1 * d1 - ga * gb), b - a)
        t = b - (b - a) * ((gb + d2 - d1) / (gb - ga + 2 * d2))
    except (ValueError, ZeroDivisionError):
        t = math.nan
    return min(max(t, low + 0.1 * wide), high - 0.1 * wide) if math.isfinite(t) else (low + high) / 2


class _Line:
    """The function along one direction; x is moved, and the last gradient is kept."""

    def __init__(self, opfunc, x, direction):
        self.opfunc, self.x, self.direction, self.calls = opfunc, x, direction, 0
        self.start = x.clone()

    def __call__(self, t):
        self.calls += 1
        self.x.copy_(self.start).add_(self.direction, alpha=t)
        f, gradient = self.opfunc(self.x)
        self.gradient = gradient.clone()
        return float(f), self.gradient.flatten().dot(self.direction.flatten()).item()


def cg(opfunc, x, config=None, state=None):
    """Conjugate gradients. maxIter 20 (searches), maxEval 25 for each iteration, sig 0.1, rho 0.01, red 1. Gives ``x``, the values,
    and how many there are."""
    s = _Settings("cg", config, state, maxIter=20, sig=0.1, rho=0.01, red=1, maxEval=25)
    f, gradient = opfunc(x)
    f, gradient, values = float(f), gradient.clone(), [float(f)]
    direction = -gradient
    slope = -gradient.flatten().dot(gradient.flatten()).item()
    t = s.red / (1 - slope)
    for _ in range(s.maxIter):
        if slope == 0:
            break
        line = _Line(opfunc, x, direction)
        t, f_new = _slope_search(line, t, f, slope, s.rho, s.sig, s.maxEval)
        if not f_new < f:
            x.copy_(line.start)
            if direction.equal(-gradient):
                break  # steepest descent leads no further
            direction, slope = -gradient, -gradient.flatten().dot(gradient.flatten()).item()
            t = 1 / (1 - slope)
            continue
        values.append(f_new)
        turn = (line.gradient - gradient).flatten().dot(line.gradient.flatten()) / gradient.flatten().dot(
            gradient.flatten()
        )
        before, f, gradient = slope, f_new, line.gradient
        direction = direction * max(turn.item(), 0.0) - gradient
        slope = gradient.flatten().dot(direction.flatten()).item()
        if slope >= 0:
            direction, slope = -gradient, -gradient.flatten().dot(gradient.flatten()).item()
        t = t * min(100, before / (slope - 1e-300))
    return x, values, len(values) - 1


def lbfgs(opfunc, x, config=None, state=None):
    """maxIter 20, maxEval 1.25 times as many, tolFun 1e-5, tolX 1e-9, nCorrection 100, learningRate 1, lineSearch: a function
    ``(opfunc, x, t, d, f, g, gtd, options) -> (f, g, x, t, calls)``, or True for one of Wolfe's; lineSearchOptions. Gives ``x``, the
    values, and the number of evaluations."""
    s = _Settings("lbfgs", config, state, maxIter=20, tolFun=1e-5, tolX=1e-9, nCorrection=100, learningRate=1.0)
    most = s.maxEval or s.maxIter * 1.25
    memory = s.state.setdefault("memory", [])
    f, gradient = opfunc(x)
    f, gradient, values, calls = float(f), gradient.clone(), [float(f)], 1
    if gradient.abs().sum().item() <= s.tolFun:
        return x, values, calls
    t = s.state.get("t")
    for _ in range(s.maxIter):
        direction = _two_loops(gradient, memory)
        slope = gradient.flatten().dot(direction.flatten()).item()
        if slope > -s.tolX:
            break
        t = s.learningRate if memory else min(1.0, 1 / gradient.abs().sum().item()) * s.learningRate
        start, g_before, f_before = x.clone(), gradient, f
        if callable(s.lineSearch):
            f, gradient, moved, t, used = s.lineSearch(opfunc, x, t, direction, f, gradient, slope, s.lineSearchOptions)
            f, gradient = float(f), gradient.clone()
            x.copy_(moved)
        elif s.lineSearch:
            line = _Line(opfunc, x, direction)
            t, f = _slope_search(line, t, f, slope, 1e-4, 0.9, 25)
            gradient, used = line.gradient, line.calls
        else:
            x.add_(direction, alpha=t)
            f, gradient = opfunc(x)
            f, gradient, used = float(f), gradient.clone(), 1
        calls += used
        values.append(f)
        step, change = (x - start).flatten(), (gradient - g_before).flatten()
        if change.dot(step) > 1e-10:
            memory.append((step, change))
            del memory[: -s.nCorrection]
        s.state["t"] = t
        small = gradient.abs().sum().item() <= s.tolFun or step.abs().sum().item() <= s.tolX
        if small or abs(f - f_before) < s.tolX or calls >= most:
            break
    return x, values, calls


def _two_loops(gradient, memory):
    """The direction: the gradient through the curvature that was seen."""
    q, shares = -gradient.flatten(), []
    for step, change in reversed(memory):
        share = step.dot(q) / change.dot(step)
        q = q - share * change
        shares.append(share)
    if memory:
        step, change = memory[-1]
        q = q * (change.dot(step) / change.dot(change))
    for (step, change), share in zip(memory, reversed(shares)):
        q = q + step * (share - change.dot(q) / change.dot(step))
    return q.reshape(gradient.shape)
