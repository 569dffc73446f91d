"""adjoin._symbolic: sizes that a tracer leaves open, by name. Sizes are numbers here: isinstance() says no, the functions compute."""

import math


def _symbol(name, of):
    def refuse(cls, *args, **kwargs):
        raise NotImplementedError(f"{name}: no tracer leaves a size open here; sizes are {of}s")

    return type(
        name, (), {"__new__": refuse, "__module__": __name__, "__doc__": f"A {of} that a tracer leaves open; none is."}
    )


SymInt, SymFloat, SymBool = _symbol("SymInt", "int"), _symbol("SymFloat", "float"), _symbol("SymBool", "bool")


def sym_int(a):
    """The number without its fraction."""
    return math.trunc(a)


def sym_float(a):
    """The number as a float."""
    return float(a)


def sym_not(a):
    """Whether it is false."""
    return not a


def sym_max(a, b):
    """The greater of two numbers, a float if one of them is."""
    return type(a + b)(max(a, b))


def sym_min(a, b):
    """The lesser of two numbers, a float if one of them is."""
    return type(a + b)(min(a, b))


def sym_sum(args):
    """The sum of a list."""
    return sum(args)


def sym_ite(b, t, f):
    """The one or the other."""
    return t if b else f


def sym_sqrt(a):
    """The root of a number."""
    return math.sqrt(a)
