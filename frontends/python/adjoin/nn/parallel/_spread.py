"""adjoin.nn.parallel._spread: data and modules spread over several devices of one process, and results brought together again."""

import threading
import warnings

import adjoin
from adjoin import _C

from ..._accelerator import _accelerator


def _device(given):
    """A device by its index among the accelerators, its name or itself."""
    return _C.device(_accelerator(), given) if isinstance(given, int) else _C.device(given)


def _is_named(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


def scatter(inputs, target_gpus, dim=0):
    """Parts of tensors, one for each device, as even as they can be; other values go to every device.

    Fewer parts than devices come out where a tensor is too small. Derivatives come back.
    """
    devices = [_device(device) for device in target_gpus]

    def spread(value):
        if isinstance(value, adjoin.Tensor):
            return tuple(part.to(device) for part, device in zip(value.chunk(len(devices), dim), devices, strict=False))
        if _is_named(value):
            return [type(value)(*parts) for parts in zip(*map(spread, value), strict=False)]
        if isinstance(value, (tuple, list)) and value:
            return [type(value)(parts) for parts in zip(*map(spread, value), strict=False)]
        if isinstance(value, dict) and value:
            return [type(value)(parts) for parts in zip(*map(spread, value.items()), strict=False)]
        return [value] * len(devices)

    return spread(inputs)


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """scatter() of positional and of named arguments: as many of the one as of the other."""
    parts = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    parts += [()] * (len(named) - len(parts))
    named += [{}] * (len(parts) - len(named))
    return tuple(parts), tuple(named)


def gather(outputs, target_device, dim=0):
    """One value of those of several devices: tensors one after the other along ``dim``, on one device. Derivatives go back."""
    device = _device(target_device)
    first = outputs[0]
    if isinstance(first, adjoin.Tensor):
        if dim == 0 and all(tensor.dim() == 0 for tensor in outputs):
            warnings.warn(
                "Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze and return a vector.",
                stacklevel=2,
            )
            outputs = [tensor.view(1) for tensor in outputs]
        return adjoin.cat([tensor.to(device) for tensor in outputs], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(each) != len(first) for each in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([each[key] for each in outputs], device, dim)) for key in first)
    items = [gather(each, device, dim) for each in zip(*outputs, strict=True)]
    return type(first)._make(items) if _is_named(first) else type(first)(items)


def replicate(network, devices, detach=False):
    """Copies of a module on devices. The derivatives of their parameters add up in those of the module, unless ``detach``; a copy has
    no parameters of its own, and a buffer on the module's own device is the module's."""
    return [_replica(network, _device(device), detach, {}) for device in devices]


def _replica(module, device, detach, made):
    if module is None:
        return None
    if id(module) in made:
        return made[id(module)]
    if hasattr(module, "_replicate_for_data_parallel"):  # a lazy one refuses
        module._replicate_for_data_parallel()
    replica = made[id(module)] = type(module).__new__(type(module))
    replica.__dict__ = {**module.__dict__, "_parameters": {}, "_buffers": {}, "_modules": {}, "_is_replica": True}

    def copied(tensor):
        if tensor is None:
            return None
        if id(tensor) not in made:
            moved = tensor.detach() if detach or not tensor.requires_grad else tensor
            moved = moved.view_as(moved) if moved.device == device else moved.to(device)
            made[id(tensor)] = moved, tensor  # which keeps its id
        return made[id(tensor)][0]

    for name, tensor in module._parameters.items():
        replica.__dict__[name] = copied(tensor)
    replica._buffers.update((name, copied(tensor)) for name, tensor in module._buffers.items())
    replica._modules.update((name, _replica(child, device, detach, made)) for name, child in module._modules.items())
    return replica


def _first_tensor(value):
    if isinstance(value, adjoin.Tensor):
        return value
    within = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return next((found for found in map(_first_tensor, within) if found is not None), None)


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """``module(*inputs, **kwargs)`` of each, at the same time, each in a thread and on its device (or its first tensor's)."""
    count = len(modules)
    kwargs_tup = kwargs_tup if kwargs_tup is not None else [{}] * count
    devices = devices if devices is not None else [None] * count
    for what, given in (("inputs", inputs), ("kwargs_tup", kwargs_tup), ("devices", devices)):
        if len(given) != count:
            raise AssertionError(f"The number of modules {count} is not equal to the number of {what} {len(given)}")
    graded, results = adjoin.is_grad_enabled(), [None] * count
    casts = {}

    def place(i):
        if devices[i] is not None:
            return _device(devices[i])
        found = _first_tensor((inputs[i], kwargs_tup[i]))
        if found is None:
            raise RuntimeError(
                f"parallel_apply: no device was given for module {i} and no tensor is among its inputs; give devices"
            )
        return found.device

    places = [place(i) for i in range(count)]
    for device in places:
        casts[device.type] = _C.autocast_state(device.type)

    def run(i):
        try:
            enabled, dtype, keep, _ = casts[places[i].type]
            given = inputs[i] if isinstance(inputs[i], (list, tuple)) else (inputs[i],)
            cast = adjoin.autocast(places[i].type, dtype=dtype, enabled=enabled, cache_enabled=keep)
            with adjoin.set_grad_enabled(graded), cast:
                results[i] = modules[i](*given, **kwargs_tup[i]), None
        except Exception as error:
            results[i] = None, error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(1, count)]
    for thread in threads:
        thread.start()
    if count:
        run(0)
    for thread in threads:
        thread.join()
    for i, (_, error) in enumerate(results):
        if error is not None:
            error.add_note(f"raised by module {i} of parallel_apply, on {places[i]}")
            raise error
    return [value for value, _ in results]
