"""adjoin.legacy.optim: methods that are functions: ``x, fx = sgd(opfunc, x, config, state)`` takes a step.

``opfunc(x)`` gives the value and the gradient at ``x``, a tensor, which is changed in place. ``config`` is a dict of settings, by their
names of 2016 (``learningRate``); ``state`` is one for what a method keeps between steps, by default the same as config.
"""

from ..._hints import getattr_of
from ._searching import cg, lbfgs  # noqa: F401
from ._stepping import adadelta, adagrad, adam, adamax, asgd, nag, rmsprop, rprop, sgd  # noqa: F401

__getattr__ = getattr_of(__name__)
