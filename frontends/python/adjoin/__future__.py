"""adjoin.__future__: what Module.to, float, cuda and their like do with parameters."""

_overwrite = _swap = False


def set_overwrite_module_params_on_conversion(value):
    """True: a parameter that is converted becomes another object; else it stays one and gets other data."""
    global _overwrite
    _overwrite = bool(value)


def get_overwrite_module_params_on_conversion():
    """What was set last; False at first."""
    return _overwrite


def set_swap_module_params_on_conversion(value):
    """True: a parameter that is converted changes places with the new one, as ``utils.swap_tensors`` does."""
    global _swap
    _swap = bool(value)


def get_swap_module_params_on_conversion():
    """What was set last; False at first."""
    return _swap
