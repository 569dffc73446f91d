"""adjoin.nn.modules: every layer, by family; the names are public in adjoin.nn."""

from . import (
    activation,
    attention,
    batchnorm,
    container,
    conv,
    dropout,
    flatten,
    instancenorm,
    linear,
    loss,
    normalization,
    padding,
    pooling,
    rnn,
    sparse,
    transformer,
)
from .module import Module

_FAMILIES = (
    activation, attention, batchnorm, container, conv, dropout, flatten, instancenorm, linear, loss,
    normalization, padding, pooling, rnn, sparse, transformer,
)  # fmt: skip

__all__ = ["Module"]
for _family in _FAMILIES:
    __all__ += _family.__all__
    globals().update((name, getattr(_family, name)) for name in _family.__all__)
