"""adjoin._unstored: dtypes by name that no tensor has here: quantized numbers and those of less than a byte. An op that gets one raises."""


class UnstoredDtype:
    """The name of a dtype: equal to itself alone, so that tables may have it."""

    is_floating_point = is_complex = False

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        from . import __name__ as package

        return f"{package}.{self.name}"

    def __reduce__(self):
        return self.name


NAMES = (
    "qint8",
    "qint32",
    "quint8",
    "quint4x2",
    "quint2x4",
    *(f"{sign}int{n}" for sign in ("", "u") for n in range(1, 8)),
)
globals().update((name, UnstoredDtype(name)) for name in NAMES)
