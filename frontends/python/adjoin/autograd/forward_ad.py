"""adjoin.autograd.forward_ad: forward mode: tensors that carry a tangent through every op.

Inside of a level ``make_dual`` gives a tensor its tangent, ``unpack_dual`` takes value and tangent apart. Levels nest.
What requires grad is recorded as ever: gradients are asked of the value or the tangent that ``unpack_dual`` gives.
``no_grad`` does not stop tangents; ``detach`` of the value does.
"""

from collections import namedtuple

from .. import _C

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

_DUAL_KEPT = 2  # AJ_LEVEL_DUAL_KEPT

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])
UnpackedDualTensor.__doc__ = "The value of a dual tensor, and its tangent, or None."


def __getattr__(name):
    if name == "_current_level":  # as programs ask whether a level is open
        return _open[-1] if _open else -1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_open = []  # levels of enter_dual_level, the innermost one last: (level, thread)


def enter_dual_level():
    """Opens a level on this thread and gives its number."""
    level = _C.transform_enter(_DUAL_KEPT, 1, 0)
    _open.append(level)
    return level


def exit_dual_level(*, level=None):
    """Ends the innermost level: what is a dual of it loses its tangent."""
    if not _open:
        raise RuntimeError("exit_dual_level: no level is open")
    if level is not None and level != _open[-1]:
        raise RuntimeError(f"exit_dual_level: level {level} is not the innermost one, which is {_open[-1]}")
    _C.transform_leave(_open[-1])
    _open.pop()


class dual_level:
    """A level for a ``with`` block."""

    def __enter__(self):
        self._level = enter_dual_level()
        return self._level

    def __exit__(self, *_):
        exit_dual_level(level=self._level)


def make_dual(tensor, tangent, *, level=None):
    """``tensor`` with a tangent, of its shape, dtype and device: a view of both."""
    if level is None:
        if not _open:
            raise RuntimeError("make_dual: no level is open; use it inside of `with dual_level():`")
        level = _open[-1]
    for name, given in (("tensor", tensor), ("tangent", tangent)):
        if not (given.is_floating_point() or given.is_complex()):
            raise ValueError(f"make_dual: the {name} is {given.dtype}; a floating or complex one is wanted")
    return _C.transform_dual(tensor, tangent, level)


def unpack_dual(tensor, *, level=None):
    """(value, tangent): the tangent is None where there is none."""
    if level is None:
        if not _open:
            return UnpackedDualTensor(tensor, None)
        level = _open[-1]
    return UnpackedDualTensor(*_C.transform_undual(tensor, level))
