"""adjoin.functional: PyTorch's path to functions that stand at the top."""

import adjoin


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(adjoin, name)


def __dir__():
    return dir(adjoin)
