"""adjoin.nn.parallel: DataParallel on the one device that there is; what needs processes says so."""

from ..modules.module import Module


class DataParallel(Module):
    """Calls the module: one device takes the whole batch. The state dict has ``module.`` before each name."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        if len(device_ids or ()) > 1:
            raise NotImplementedError(f"DataParallel: one device serves, not {list(device_ids)}; leave device_ids out")
        self.module = module

    def forward(self, *inputs, **kwargs):
        """What the module gives."""
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(Module):
    """Needs process groups, which are not there yet."""

    def __init__(self, module, *args, **kwargs):
        super().__init__()
        raise NotImplementedError(
            "DistributedDataParallel: there are no process groups; test adjoin.distributed.is_available() first"
        )


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """DataParallel(module)(inputs) at once."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids)(*inputs, **(module_kwargs or {}))
