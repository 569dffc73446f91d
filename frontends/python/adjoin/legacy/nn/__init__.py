"""adjoin.legacy.nn: the modules and criterions of 2016, on today's tensors.

``net.forward(input)`` keeps ``net.output``, ``net.backward(input, gradOutput)`` gives the gradient of the input and adds to those of
the parameters, ``net.updateParameters(rate)`` takes a step. Dimensions and classes are counted from 0; the samples of a batch come
first. Inside, a module is a function of today, and its derivatives come from the tape.
"""

from ..._hints import getattr_of
from . import _containers, _criterions, _linear, _normal, _pointwise, _pooling, _shapes, _spatial, _tables
from ._module import Module

for _part in (_containers, _criterions, _linear, _normal, _pointwise, _pooling, _shapes, _spatial, _tables):
    for _name, _kind in vars(_part).items():
        if (
            isinstance(_kind, type)
            and issubclass(_kind, Module)
            and _kind.__module__ == _part.__name__
            and _name[0] != "_"
        ):
            _kind.__module__ = __name__
            globals()[_name] = _kind
Module.__module__ = __name__
del _part, _name, _kind
__all__ = sorted(name for name, kind in globals().items() if isinstance(kind, type) and issubclass(kind, Module))

__getattr__ = getattr_of(__name__)
