"""adjoin.distributed._composable.replicate: DistributedDataParallel without a module around the module."""

import weakref

import adjoin

from ...nn.parallel.distributed import DistributedDataParallel


class _Inner(adjoin.nn.Module):
    """Has the module's parameters and buffers that are to be reduced, by the names that they have in it."""

    def __init__(self, module, ignored):
        super().__init__()
        for name, part in module.named_modules():
            if part in ignored or any(part in m.modules() for m in ignored):
                continue
            for kind in ("_parameters", "_buffers"):
                for key, t in getattr(part, kind).items():
                    getattr(self, kind)[f"{name}.{key}" if name else key] = t


def replicate(module, ignored_modules=None, device_mesh=None, **options):
    """The module itself, whose backward passes average the gradients of all processes; ``options`` are DistributedDataParallel's.

    Parameters begin as those of rank 0 with the first forward.
    """
    device_id = options.pop("device_id", None)
    if device_id is not None and not isinstance(device_id, (int, adjoin.device)):
        raise RuntimeError(f"Expected device_id to be int or torch.device, but got {type(device_id)}")
    if hasattr(module, "_replicated"):
        raise RuntimeError(f"replicate: the {type(module).__name__} is replicated already; it can be once")
    ignored = set(ignored_modules or ())
    module._replicated = held = _Held(module, ignored, {**options, "device_mesh": device_mesh})
    module.register_forward_pre_hook(held.before, prepend=True)
    module.register_forward_hook(held.after)
    return module


class _Held:
    def __init__(self, module, ignored, options):
        self.module, self.ignored, self.options, self.ddp = weakref.ref(module), ignored, options, None
        self.sync = True

    def __deepcopy__(self, memo):
        raise RuntimeError("a replicated module cannot be copied: copy it before replicate()")

    def before(self, module, inputs):
        if self.ddp is None:
            self.ddp = DistributedDataParallel(_Inner(module, self.ignored), **self.options)
        self.ddp.require_backward_grad_sync = self.sync
        self.ddp._before()

    def after(self, module, inputs, outputs):
        self.ddp._after(outputs)


__all__ = ["replicate"]
