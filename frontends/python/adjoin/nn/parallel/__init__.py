"""adjoin.nn.parallel: one module on several devices of one process; what needs processes says so."""

from ..._hints import getattr_of
from ..modules.module import Module
from ._spread import (  # noqa: F401
    gather,
    parallel_apply,
    replicate,
    scatter,
    scatter_kwargs,
)


class DataParallel(Module):
    """Calls the module; with several ``device_ids`` each takes a part of the batch, and the results come together on
    ``output_device``, the first of them unless told. The state dict has ``module.`` before each name."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module, self.dim = module, dim
        self.device_ids = list(device_ids or ())
        self.output_device = output_device if output_device is not None or not self.device_ids else self.device_ids[0]

    def forward(self, *inputs, **kwargs):
        """What the module gives."""
        if len(self.device_ids) < 2:
            return self.module(*inputs, **kwargs)
        parts, named = scatter_kwargs(inputs, kwargs, self.device_ids, self.dim)
        used = self.device_ids[: max(len(parts), 1)]
        replicas = replicate(self.module, used)
        if len(parts) < 2:
            return replicas[0](*(parts[0] if parts else ()), **(named[0] if named else {}))
        return gather(parallel_apply(replicas, parts, named, used), self.output_device, self.dim)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """DataParallel(module)(inputs) at once."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))


_late = getattr_of(__name__)


def __getattr__(name):
    if name != "DistributedDataParallel":
        return _late(name)
    from .distributed import DistributedDataParallel

    return DistributedDataParallel
