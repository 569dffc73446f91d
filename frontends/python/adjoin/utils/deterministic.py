"""adjoin.utils.deterministic: what memory holds that nobody wrote, while deterministic algorithms are asked for.

Then ``empty`` and its kin give NaN, or the largest integer, so that a program that reads what it never wrote does the same
every time. Ops inside of the package write all that they allocate and are left as they are.
"""

import functools
import sys
import types

import adjoin

from .. import _C

_FACTORIES = ("empty", "empty_like", "empty_permuted", "empty_strided")
_METHODS = ("new_empty", "new_empty_strided", "resize_")


def _fill(tensor, first=0):
    """Writes what stands for "nobody wrote this", from element ``first`` on."""
    if not tensor.numel() or tensor.is_meta or tensor.layout is not _C.strided:
        return tensor
    kind = tensor.dtype
    value = float("nan") if kind.is_floating_point or kind.is_complex else True
    if kind is not _C.bool and value is True:
        value = adjoin.iinfo(kind).max
    whole = tensor.detach()
    if first:
        whole = whole.reshape(-1)[first:]
    elif not _is_apart(whole):
        whole = whole.as_strided(
            (1 + sum((n - 1) * s for n, s in zip(whole.shape, whole.stride(), strict=True)),), (1,)
        )
    whole.fill_(value)
    return tensor


def _is_apart(tensor):
    """Does each element have a place of its own?"""
    steps = sorted((s, n) for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1)
    return all(a[0] * a[1] <= b[0] for a, b in zip(steps, steps[1:])) and (not steps or steps[0][0] > 0)


def _filling(function, resizes):
    @functools.wraps(function)
    def made(*args, **kwargs):
        kept = args[0].untyped_storage().nbytes() // args[0].itemsize if resizes else 0
        tensor = function(*args, **kwargs)
        if resizes and kept >= tensor.untyped_storage().nbytes() // tensor.itemsize:
            return tensor  # no memory is new, whatever the strides are
        return _fill(tensor, kept)

    return made


class _Module(types.ModuleType):
    _wanted, _kept = True, {}

    @property
    def fill_uninitialized_memory(self):
        """Whether memory is filled while deterministic algorithms are asked for; True at first."""
        return self._wanted

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, wanted):
        if not isinstance(wanted, bool):
            raise TypeError(f"fill_uninitialized_memory: a bool is wanted, not {wanted!r}")
        self._wanted = wanted
        self._follow()

    def _follow(self):
        """Puts the functions in place that the two switches ask for."""
        wanted = self._wanted and adjoin.are_deterministic_algorithms_enabled()
        if wanted == bool(self._kept):
            return
        if wanted:
            for home, names in ((adjoin, _FACTORIES), (_C.Tensor, _METHODS)):
                for name in names:
                    real = getattr(home, name)
                    self._kept[home, name] = real
                    _put(home, name, _filling(real, name == "resize_"))
        else:
            for (home, name), real in self._kept.items():
                _put(home, name, real)
            self._kept.clear()


def _put(home, name, function):
    if home is _C.Tensor:
        _C.set_tensor_attribute(name, function)
    else:
        setattr(home, name, function)


sys.modules[__name__].__class__ = _Module
