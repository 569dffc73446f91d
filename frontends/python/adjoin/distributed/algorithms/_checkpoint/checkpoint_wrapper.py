"""adjoin.distributed.algorithms._checkpoint.checkpoint_wrapper: modules that keep their inputs alone, and compute the rest again in
backward; names of parameters and of states stay those of the module."""

import enum
import functools

from .... import autograd, nn
from ....utils.checkpoint import checkpoint
from ...fsdp.wrap import _chosen

_NAME = "_checkpoint_wrapped_module"
_PREFIX = f"{_NAME}."


class CheckpointImpl(enum.Enum):
    """How backward computes again."""

    REENTRANT = enum.auto()
    NO_REENTRANT = enum.auto()


class ActivationWrapper(nn.Module):
    """A module around another one that nobody sees in names."""

    def __init__(self, mod):
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self.register_state_dict_post_hook(_without_prefix)
        self.register_load_state_dict_pre_hook(_with_prefix)

    def forward(self, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__}: a class over ActivationWrapper defines forward()")

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(_NAME), name)

    def __getitem__(self, key):
        return self._checkpoint_wrapped_module[key]

    def named_parameters(self, *args, **kwargs):
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), parameter


def _without_prefix(module, state, prefix, metadata):
    for key in list(state):
        if key.startswith(prefix + _PREFIX):
            state[prefix + key[len(prefix + _PREFIX) :]] = state.pop(key)


def _with_prefix(module, state, prefix, *rest):
    for key in list(state):
        if key.startswith(prefix) and not key.startswith(prefix + _PREFIX):
            state[prefix + _PREFIX + key[len(prefix) :]] = state.pop(key)


class CheckpointWrapper(ActivationWrapper):
    """The module, whose inner results are computed again in backward."""

    def __init__(self, mod, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs):
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        self.checkpoint_fn = (
            checkpoint_fn
            and functools.partial(checkpoint_fn, **checkpoint_fn_kwargs)
            or functools.partial(
                checkpoint, use_reentrant=checkpoint_impl is CheckpointImpl.REENTRANT, **checkpoint_fn_kwargs
            )
        )

    def forward(self, *args, **kwargs):
        module = self._checkpoint_wrapped_module
        if kwargs and self.checkpoint_impl is CheckpointImpl.REENTRANT:  # which passes places alone
            return self.checkpoint_fn(lambda *places: module(*places[: len(args)], **dict(zip(kwargs, places[len(args) :]))), *args, *kwargs.values())  # fmt: skip
        return self.checkpoint_fn(module, *args, **kwargs)


class OffloadWrapper(ActivationWrapper):
    """The module, whose inner results wait for backward in the processor's memory."""

    def forward(self, *args, **kwargs):
        with autograd.graph.save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


def offload_wrapper(module):
    """The module in an OffloadWrapper."""
    return OffloadWrapper(module)


def checkpoint_wrapper(module, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs):
    """The module in a CheckpointWrapper."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model, checkpoint_wrapper_fn=checkpoint_wrapper, check_fn=lambda _: True, auto_wrap_policy=None
):
    """Puts each inner module that ``auto_wrap_policy`` or else ``check_fn`` takes into a wrapper, the innermost first."""
    if auto_wrap_policy is not None:
        chosen = set(_chosen(model, auto_wrap_policy))
        check_fn = chosen.__contains__
    for parent in [m for m in model.modules() if not isinstance(m, ActivationWrapper)][::-1]:
        for name, child in list(parent.named_children()):
            if not isinstance(child, ActivationWrapper) and check_fn(child):
                setattr(parent, name, checkpoint_wrapper_fn(child))
