"""adjoin.distributed.fsdp.wrap: which parts of a module are groups of their own."""

import contextlib

from ... import nn


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


def size_based_auto_wrap_policy(
    module,
    recurse,
    nonwrapped_numel,
    min_num_params=int(1e8),
    force_leaf_modules=None,
    exclude_wrap_modules=None,
):
    """Those with so many parameters outside of their own groups; nothing inside of ``force_leaf_modules``, which are attentions, and
    none of ``exclude_wrap_modules``, which are lists and dicts, but what is in them."""
    policy = size_based_auto_wrap_policy
    leaves = policy.FORCE_LEAF_MODULES if force_leaf_modules is None else force_leaf_modules
    excluded = policy.EXCLUDE_WRAP_MODULES if exclude_wrap_modules is None else exclude_wrap_modules
    return nonwrapped_numel >= min_num_params and not isinstance(module, tuple(leaves if recurse else excluded))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {nn.ModuleList, nn.ModuleDict}
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {nn.MultiheadAttention}


def always_wrap_policy(*args, **kwargs):
    """Each."""
    return True


def lambda_auto_wrap_policy(module, recurse, nonwrapped_numel, lambda_fn):
    """Those of which a function says so."""
    return recurse or lambda_fn(module)


def _or_policy(module, recurse, nonwrapped_numel, policies):
    """Those that one of some policies names."""
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


def _chosen(root, policy, ignored_modules=(), ignored_params=()):
    """The parts of a module that a policy names, the innermost first; the module itself is none."""
    if isinstance(policy, (set, frozenset)):
        policy = ModuleWrapPolicy(policy)
    whole = isinstance(policy, (ModuleWrapPolicy, CustomPolicy))  # these ask of each module alone
    ignored, params, found, seen = set(ignored_modules), set(ignored_params), [], set()

    def visit(module):
        """How many elements of the module are in groups."""
        size = sum(p.numel() for p in module.parameters() if p not in params)
        if module in seen or not (whole or policy(module=module, recurse=True, nonwrapped_numel=size)):
            return 0
        seen.add(module)
        inner = sum(visit(child) for child in module.children() if child not in ignored)
        if module is root or not policy(module=module, recurse=False, nonwrapped_numel=size - inner):
            return inner
        found.append(module)
        return size

    visit(root)
    return found
