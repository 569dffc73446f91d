"""adjoin.distributed.fsdp.wrap: which parts of a module are groups of their own."""

import contextlib


class ModuleWrapPolicy:
    """Those of some classes."""

    def __init__(self, module_classes):
        self._module_classes = set(module_classes)

    def __call__(self, module, recurse=False, *args, **kwargs):
        return recurse or isinstance(module, tuple(self._module_classes))


class CustomPolicy:
    """Those of which ``lambda_fn(module)`` says True, or gives keywords of their own."""

    def __init__(self, lambda_fn):
        self._lambda_fn = lambda_fn

    def __call__(self, module, recurse=False, *args, **kwargs):
        return recurse or bool(self._lambda_fn(module))

    def keywords(self, module):
        """What the module is wrapped with besides."""
        said = self._lambda_fn(module)
        if not isinstance(said, (bool, dict)):
            raise ValueError(f"CustomPolicy: lambda_fn gave {said!r}; wanted is True, False, or a dict of keywords")
        return said if isinstance(said, dict) else {}


_wrapping = []  # (class, keywords) of each enable_wrap that is open


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls, **wrapper_kwargs):
    """Inside, ``wrap(module)`` puts the class around a module."""
    _wrapping.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _wrapping.pop()


def wrap(module, **wrap_overrides):
    """The module in the class of the enable_wrap around; outside of one, the module."""
    if not _wrapping:
        return module
    cls, keywords = _wrapping[-1]
    return cls(module, **{**keywords, **wrap_overrides})


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
