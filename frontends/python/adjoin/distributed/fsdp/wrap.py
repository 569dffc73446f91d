"""adjoin.distributed.fsdp.wrap: which parts of a module are groups of their own."""


class ModuleWrapPolicy:
    """Those of some classes."""

    def __init__(self, module_classes):
        self._module_classes = set(module_classes)

    def __call__(self, module, recurse=False, *args, **kwargs):
        return recurse or isinstance(module, tuple(self._module_classes))


def transformer_auto_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls):
    """Those of some classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(module, recurse, nonwrapped_numel, min_num_params=int(1e8), **more):
    """Those with so many parameters."""
    return nonwrapped_numel >= min_num_params


def always_wrap_policy(*args, **kwargs):
    """Each."""
    return True


def lambda_auto_wrap_policy(module, recurse, nonwrapped_numel, lambda_fn):
    """Those of which a function says so."""
    return recurse or lambda_fn(module)
