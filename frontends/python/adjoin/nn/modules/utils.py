"""adjoin.nn.modules.utils: sizes that may be one number or one per dimension."""


def ntuple(count):
    """A function that makes a tuple of ``count`` out of a number, and a tuple out of anything
    else."""

    def parse(value):
        if isinstance(value, str):
            raise TypeError(
                f"a size (kernel_size, stride, padding, ...) must be an int or a tuple of ints, not {value!r}, a str; use int()"
            )
        if isinstance(value, (int, float)):
            return (value,) * count
        return tuple(value)

    return parse


_ntuple = ntuple
_single, _pair, _triple, _quadruple = (ntuple(count) for count in (1, 2, 3, 4))
