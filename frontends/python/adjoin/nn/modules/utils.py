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


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Takes ``prefix`` ("module." of DataParallel, say) from the keys of a state dict, in place."""
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    notes = getattr(state_dict, "_metadata", {})
    for key in [key for key in notes if key and (key.startswith(prefix) or key == prefix.rstrip("."))]:
        notes[key[len(prefix) :]] = notes.pop(key)
