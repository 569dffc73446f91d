"""adjoin.backends._switches: a with statement over the variables of a module."""

import contextlib


@contextlib.contextmanager
def switched(variables, values):
    """Gives variables of a module other values inside a with statement."""
    before = {name: variables[name] for name in values}
    variables.update(values)
    try:
        yield
    finally:
        variables.update(before)
