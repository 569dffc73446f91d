"""adjoin.utils._renamed_backend: names of tensors and modules for a plugin's device.

A plugin's device has its own name here from the start, so nothing is renamed: the programs' call says which device is meant.
"""

import adjoin

from .. import _C

_renamed = None


def rename_privateuse1_backend(backend_name):
    """Says for which device of a plugin generate_methods_for_privateuse1_backend() makes methods."""
    global _renamed
    if _renamed is not None and _renamed != backend_name:
        raise RuntimeError(f"rename_privateuse1_backend: it is {_renamed!r} already; a process says it once")
    try:
        adjoin.empty(0, device=backend_name)
    except (RuntimeError, ImportError) as error:
        raise RuntimeError(
            f"rename_privateuse1_backend: no plugin brings a device {backend_name!r}; load it before: adjoin.plugin.load(path)"
        ) from error
    _renamed = backend_name


def generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=False,
                                             unsupported_dtype=None):  # fmt: skip
    """`x.NAME()` and `x.is_NAME` for tensors, `m.NAME()` for modules, of the device that was named before."""
    if _renamed is None:
        raise RuntimeError("generate_methods_for_privateuse1_backend: call rename_privateuse1_backend(device) first")
    device = _renamed
    if unsupported_dtype:
        raise NotImplementedError(
            "generate_methods_for_privateuse1_backend: unsupported_dtype is not there: a plugin says which dtypes it has"
        )

    def here(value):
        return value.device.type == device

    def moved(self, number=None, non_blocking=False, **settings):
        """A copy on the device, or the tensor itself if it is there."""
        where = device if number is None else adjoin.device(device, number) if isinstance(number, int) else number
        return self.to(where, non_blocking=non_blocking, **settings)

    def module_moved(self, number=None):
        """Moves parameters and buffers to the device."""
        return self._apply(lambda t: moved(t, number))

    if for_tensor:
        _taken(adjoin.Tensor, device)
        _C.set_tensor_attribute(f"is_{device}", property(here))
        _C.set_tensor_attribute(device, moved)
    if for_module:
        _taken(adjoin.nn.Module, device)
        setattr(adjoin.nn.Module, device, module_moved)
    if for_packed_sequence:
        from ..nn.utils.rnn import PackedSequence

        setattr(PackedSequence, f"is_{device}", property(lambda self: here(self.data)))
        setattr(PackedSequence, device, lambda self, *args, **settings: self.to(device, *args, **settings))
    if for_storage:
        from ..storage import UntypedStorage

        setattr(UntypedStorage, f"is_{device}", property(here))
        setattr(UntypedStorage, device, lambda self, *args, **settings: self.to(device))


def _taken(owner, device):
    if hasattr(owner, device):
        raise RuntimeError(
            f"generate_methods_for_privateuse1_backend: {owner.__name__}.{device} is there already, and means something else"
        )
