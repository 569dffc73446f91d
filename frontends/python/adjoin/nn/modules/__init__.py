"""adjoin.nn.modules: every layer, by family; the names are public in adjoin.nn."""

from ..._hints import getattr_of
from . import (
    activation,
    adaptive,
    attention,
    batchnorm,
    container,
    conv,
    distance,
    dropout,
    flatten,
    images,
    instancenorm,
    lazy,
    linear,
    loss,
    margin,
    normalization,
    padding,
    pooling,
    response,
    rnn,
    sparse,
    transformer,
)
from .module import Module

_FAMILIES = (
    activation, adaptive, attention, batchnorm, container, conv, distance, dropout, flatten, images,
    instancenorm, lazy, linear, loss, margin, normalization, padding, pooling,
    response, rnn, sparse, transformer,
)  # fmt: skip

__all__ = ["Module"]
for _family in _FAMILIES:
    __all__ += _family.__all__
    globals().update((name, getattr(_family, name)) for name in _family.__all__)

__getattr__ = getattr_of(__name__)
