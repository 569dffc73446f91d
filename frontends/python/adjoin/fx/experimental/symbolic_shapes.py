"""adjoin.fx.experimental.symbolic_shapes: questions about sizes; a size is always a number here, so each has its answer."""

__all__ = [
    "GuardOnDataDependentSymNode", "ShapeEnv", "definitely_false", "definitely_true", "free_symbols",
    "free_unbacked_symbols", "guard_bool", "guard_float", "guard_int", "guard_or_false", "guard_or_true",
    "guard_size_oblivious", "has_free_symbols", "has_free_unbacked_symbols", "has_static_value", "hint_int",
    "is_concrete_bool", "is_concrete_float", "is_concrete_int", "is_symbolic", "parallel_and", "parallel_or",
    "statically_known_false", "statically_known_true", "sym_and", "sym_eq", "sym_or",
]  # fmt: skip


class GuardOnDataDependentSymNode(RuntimeError):
    """Of sizes that are not known; never raised."""


class ShapeEnv:
    """Raises: there are no sizes that are not known."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            "ShapeEnv: sizes are numbers in Adjoin; trace with adjoin.fx.symbolic_trace, whose graphs fit any size"
        )


def guard_bool(a):
    """The truth of a."""
    return bool(a)


guard_or_false = guard_or_true = guard_size_oblivious = statically_known_true = definitely_true = guard_bool


def statically_known_false(x):
    """Whether x is false."""
    return not x


definitely_false = statically_known_false


def guard_int(a):
    """The whole number a."""
    return int(a)


def hint_int(a, fallback=None):
    """The whole number a."""
    return int(a)


def guard_float(a):
    """The number a."""
    return float(a)


def has_static_value(a):
    """Whether a has a value: it has."""
    return True


is_concrete_bool = is_concrete_float = is_concrete_int = has_static_value


def is_symbolic(val):
    """Whether val is no number yet: never."""
    return False


has_free_symbols = has_free_unbacked_symbols = is_symbolic


def free_symbols(val):
    """The unknown sizes in val: none."""
    return set()


free_unbacked_symbols = free_symbols


def sym_and(*conditions):
    """Whether all are true."""
    return all(conditions)


def sym_or(*conditions):
    """Whether one is true."""
    return any(conditions)


parallel_and, parallel_or = sym_and, sym_or


def sym_eq(x, y):
    """Whether two sizes, or two structures of them, are the same."""
    if isinstance(x, list | tuple) and isinstance(y, list | tuple):
        return len(x) == len(y) and all(map(sym_eq, x, y))
    return x == y
