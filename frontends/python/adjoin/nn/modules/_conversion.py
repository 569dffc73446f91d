"""adjoin.nn.modules._conversion: moving a module between devices and dtypes."""

import adjoin

from ... import __future__
from ..._tensor import sees_calls
from ...utils import swap_tensors
from ..parameter import Parameter


class Conversion:
    """The part of Module that changes where its tensors are and what they hold."""

    def _apply(self, fn, recurse=True):
        """Replaces every parameter's, gradient's and buffer's data by ``fn`` of it; parameters
        stay the same objects."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for key, param in self._parameters.items():
            if param is None:
                continue
            with adjoin.no_grad():
                moved, held = fn(param), param.grad
                grad = None if held is None else fn(held)
                if moved is not param:
                    param = self._replace_data(key, param, moved)
                if grad is not None:
                    _replace_grad(param, held, grad)
        for key, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[key] = fn(buffer)
        return self

    def _replace_data(self, key, param, moved):
        if "meta" in (param.device.type, moved.device.type) or sees_calls(type(param)):
            # Data that does not exist, or that a wrapper holds, cannot be swapped under a live tensor.
            param = self._parameters[key] = Parameter(moved, param.requires_grad)
        elif __future__.get_swap_module_params_on_conversion():
            swap_tensors(param, Parameter(moved, param.requires_grad))
        elif __future__.get_overwrite_module_params_on_conversion():
            param = self._parameters[key] = Parameter(moved, param.requires_grad)
        else:
            param.data = moved
        return param

    def to(self, *args, **kwargs):
        """``to(device)``, ``to(dtype)``, ``to(device, dtype)`` or ``to(tensor)``, in place.

        Only floating and complex tensors change dtype. ``non_blocking`` is passed on.
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, "
                f"but got desired dtype={dtype}; cast what needs integers by itself"
            )

        def convert(tensor):
            cast = dtype is not None and (tensor.is_floating_point() or tensor.is_complex())
            kwargs = {"dtype": dtype} if cast else {}
            if device is not None:
                kwargs["device"] = device
            if memory_format is not None and tensor.dim() in (4, 5):
                kwargs["memory_format"] = memory_format
            return tensor.to(non_blocking=non_blocking, **kwargs) if kwargs else tensor

        return self._apply(convert)

    def to_empty(self, *, device, recurse=True):
        """Gives every tensor uninitialised memory on ``device``."""
        return self._apply(lambda t: adjoin.empty_like(t, device=device), recurse=recurse)

    def cuda(self, device=None):
        """Moves everything to a CUDA device, the current one by default."""
        return self._apply(lambda t: t.cuda(device))

    def cpu(self):
        """Moves everything to the CPU."""
        return self._apply(lambda t: t.cpu())

    def type(self, dst_type):
        """Casts every parameter and buffer, the integer ones too."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self):
        """Casts floating tensors to float32."""
        return self._cast_floating(adjoin.float32)

    def double(self):
        """Casts floating tensors to float64."""
        return self._cast_floating(adjoin.float64)

    def half(self):
        """Casts floating tensors to float16."""
        return self._cast_floating(adjoin.float16)

    def bfloat16(self):
        """Casts floating tensors to bfloat16."""
        return self._cast_floating(adjoin.bfloat16)

    def _cast_floating(self, dtype):
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)


def _replace_grad(param, held, grad):
    """Gives a converted parameter its converted gradient: the same object, where the parameter stayed one."""
    if grad is held:
        if param.grad is not held:
            param.grad = held
        return
    wanted = held.requires_grad
    if param.grad is held and not (
        "meta" in (held.device.type, grad.device.type) or __future__.get_swap_module_params_on_conversion()
        or __future__.get_overwrite_module_params_on_conversion()
    ):  # fmt: skip
        held.data = grad
        return
    param.grad = None  # the old one has the wrong dtype or device for the new data
    param.grad = grad.requires_grad_(wanted)


def _parse_to(*args, device=None, dtype=None, tensor=None, non_blocking=False, copy=False,
              memory_format=None):  # fmt: skip
    args = list(args)
    if args and isinstance(args[0], adjoin.Tensor):
        tensor = args.pop(0)
    elif args and isinstance(args[0], adjoin.dtype):
        dtype = args.pop(0)
    elif args:
        device = args.pop(0)
        if args and (args[0] is None or isinstance(args[0], adjoin.dtype)):
            dtype = args.pop(0)
    if args:
        non_blocking = args.pop(0)
        if not isinstance(non_blocking, bool):
            raise TypeError(
                f"to: non_blocking must be a bool, it is {non_blocking!r}; wanted: a device, a dtype, both, or a tensor"
            )
    if len(args) > 1:
        raise TypeError(f"to: {len(args)} arguments too many; wanted: a device, a dtype, both, or a tensor")
    if copy:
        raise RuntimeError(
            "to: a module is changed in place and cannot be copied by it; copy.deepcopy(module) gives another one"
        )
    if tensor is not None:
        device, dtype = tensor.device, tensor.dtype
    return device, dtype, non_blocking, memory_format
