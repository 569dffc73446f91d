"""adjoin.nn.modules._settings: settings of layers that are a beginner's mistake, told where the layer is made."""

import operator

import adjoin


def sizes(layer, **given):
    """Refuses what is no int."""
    for name, value in given.items():
        try:
            operator.index(value)
        except TypeError:
            found = f"{value!r}, a {type(value).__name__}" if not isinstance(value, adjoin.Tensor) else "a Tensor"
            raise TypeError(f"{type(layer).__name__}: {name} must be an int, not {found}; use int()") from None


def no_data(layer, value):
    """Refuses a tensor where a setting stands: somebody calls the class as if it were the layer."""
    if isinstance(value, adjoin.Tensor):
        name = type(layer).__name__
        raise TypeError(
            f"{name}: a tensor was given where a setting stands; make the layer first and call that: {name}()(...)"
        )
