"""adjoin.utils._states: tools of programs that write their own checkpoints: arguments without history, devices' random states."""

import warnings

from adjoin import _C


def detach_variable(inputs):
    """A tuple of the same values without history; tensors that required grad do again."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"detach_variable: a tuple of tensors is wanted, not {type(inputs).__name__}")
    return tuple(i._alias().requires_grad_(i.requires_grad) if isinstance(i, _C.Tensor) else i for i in inputs)


def check_backward_validity(inputs):
    """Warns if no tensor among the inputs requires grad."""
    if not any(i.requires_grad for i in inputs if isinstance(i, _C.Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


class DefaultDeviceType:
    """The kind of device that set_device_states takes unless it is told one."""

    _kind = "cuda"

    @staticmethod
    def set_device_type(device="cuda"):
        """Sets the kind."""
        DefaultDeviceType._kind = device

    @staticmethod
    def get_device_type():
        """The kind."""
        return DefaultDeviceType._kind


def _found(args):
    """The devices of tensors among (nested) arguments, the host and meta left out."""
    from ._pytree import tree_flatten

    tensors = [a for a in tree_flatten(args)[0] if isinstance(a, _C.Tensor)]
    return sorted({t.device for t in tensors if not (t.is_cpu or t.is_meta)}, key=str)


def get_device_states(*args):
    """(indices, states): of the devices on which tensors among the arguments are, and of their random generators."""
    found = _found(args)
    kinds = {device.type for device in found}
    if len(kinds) > 1:
        raise ValueError(
            f"get_device_states: tensors of one kind of device are wanted, not of {', '.join(sorted(kinds))}"
        )
    return [device.index or 0 for device in found], [_C.default_generator(device).get_state() for device in found]


def set_device_states(devices, states, *, device_type=None):
    """Sets the random generators of devices, given by their indices, to what get_device_states() told."""
    kind = device_type or DefaultDeviceType.get_device_type()
    for index, state in zip(devices, states, strict=True):
        _C.default_generator(_C.device(kind, index)).set_state(state)
