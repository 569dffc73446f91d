"""adjoin.backends._switches: a with statement over the variables of a module, and variables that a device's libraries follow."""

import contextlib

from .. import _C


@contextlib.contextmanager
def switched(variables, values):
    """Gives variables of a module other values inside a with statement."""
    before = {name: variables[name] for name in values}
    variables.update(values)
    try:
        yield
    finally:
        variables.update(before)


def tell(device, name, on):
    """Sets a switch of the device's libraries; where there is no such plugin there is nothing to tell."""
    with contextlib.suppress(RuntimeError):
        _C.switch_set(device, name, bool(on))
