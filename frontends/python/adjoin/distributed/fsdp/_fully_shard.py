"""adjoin.distributed.fsdp._fully_shard: fully_shard: a module gathers its parameters for forward, and again for backward."""

import dataclasses

import adjoin

from ...autograd.graph import saved_tensors_hooks
from ...utils._pytree import tree_map
from ..tensor._api import _the_mesh
from ._params import Params, managed


@dataclasses.dataclass(frozen=True)
class MixedPrecisionPolicy:
    """``param_dtype``: of parameters in use; ``reduce_dtype``: of gradients that are reduced; ``output_dtype``: of results."""

    param_dtype: adjoin.dtype | None = None
    reduce_dtype: adjoin.dtype | None = None
    output_dtype: adjoin.dtype | None = None
    cast_forward_inputs: bool = True


@dataclasses.dataclass
class OffloadPolicy:
    """Parts stay on the device."""


@dataclasses.dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parts lie on the processor: parameters there are there already."""

    pin_memory: bool = True


def _cast(tree, dtype):
    return tree_map(lambda x: x.to(dtype) if isinstance(x, adjoin.Tensor) and x.is_floating_point() else x, tree)


class _State:
    """What fully_shard keeps of a module."""

    def __init__(self, params, policy):
        self.params, self.policy, self.saved, self.depth = params, policy, [], 0

    def before(self, module, args, kwargs):
        self.depth += 1
        if self.params.slots:
            self.params.enter()
        if self.policy.param_dtype is not None and self.policy.cast_forward_inputs:
            args, kwargs = _cast(args, self.policy.param_dtype), _cast(kwargs, self.policy.param_dtype)
        hooks = None
        if self.params.storages:
            hooks = saved_tensors_hooks(self.params.pack, self.params.unpack)
            hooks.__enter__()
        self.saved.append(hooks)
        return args, kwargs

    def after(self, module, args, output):
        if not self.saved:  # forward did not begin
            return None
        hooks = self.saved.pop()
        if hooks is not None:
            hooks.__exit__(None, None, None)
        self.depth -= 1
        if self.depth == 0:
            self.params.leave()
        return None if self.policy.output_dtype is None else _cast(output, self.policy.output_dtype)


class UnshardHandle:
    """What unshard(async_op=True) gives."""

    def wait(self):
        """The parameters are whole."""


class FSDPModule:
    """What a module is besides, after fully_shard."""

    def unshard(self, async_op=False):
        """The module has whole parameters until reshard(); for code that uses them outside of forward."""
        self._fsdp.params.enter()
        return UnshardHandle() if async_op else None

    def reshard(self):
        """The module has its parts again."""
        self._fsdp.params.leave()

    def _each(self, recurse):
        return [m._fsdp.params for m in self.modules() if isinstance(m, FSDPModule)] if recurse else [self._fsdp.params]

    def set_requires_gradient_sync(self, requires_gradient_sync, *, recurse=True):
        """False: gradients of backward passes are kept, and reduced with those of the next pass that is to."""
        for params in self._each(recurse):
            params.sync = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce, *, recurse=True):
        """Whether gradients are summed over the copies, too, where the mesh has two dimensions."""
        for params in self._each(recurse):
            params.all_reduce = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward, recurse=True):
        """Whether whole parameters are let go after forward."""
        for params in self._each(recurse):
            params.reshard = bool(reshard_after_forward)

    def set_reshard_after_backward(self, reshard_after_backward, *, recurse=True):
        """Whether whole parameters are let go after backward; they always are."""
        if not reshard_after_backward:
            raise NotImplementedError(
                "set_reshard_after_backward(False) is not served: whole parameters are let go; unshard() gathers them again"
            )

    def set_is_last_backward(self, is_last_backward):
        """Nothing waits for a last one: each backward pass ends its own work."""

    def set_unshard_in_backward(self, unshard_in_backward):
        """Parameters are gathered when backward wants them, and no sooner."""

    def set_modules_to_forward_prefetch(self, modules):
        """Modules to be gathered early; each is gathered when its turn comes, which gives the same numbers."""
        _check_modules("set_modules_to_forward_prefetch", modules)

    def set_modules_to_backward_prefetch(self, modules):
        """The same for backward."""
        _check_modules("set_modules_to_backward_prefetch", modules)

    def set_gradient_divide_factor(self, factor):
        """What sums of gradients are divided by, in place of the number of processes."""
        self._fsdp.params.factor = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor


def _check_modules(who, modules):
    for m in modules:
        if not isinstance(m, FSDPModule):
            raise ValueError(f"{who}: {type(m).__name__} is no FSDPModule; call fully_shard for it first")


def fully_shard(module, *, mesh=None, reshard_after_forward=None, shard_placement_fn=None, mp_policy=None, offload_policy=None,
                ignored_params=None):  # fmt: skip
    """Cuts a module's parameters over the processes, in place; returns the module.

    First its parts, each a group that is gathered at once, then the whole. Optimizers are made afterwards, of the parts. Gradients are
    the mean over processes. ``reshard_after_forward``: whole parameters are let go after forward and gathered again for backward;
    by default in all modules but the outermost.
    """
    if isinstance(module, (list, tuple)):
        raise NotImplementedError(
            "fully_shard: a list of modules as one group is not served; call it for each, or for the module around"
        )
    if isinstance(module, (adjoin.nn.ModuleList, adjoin.nn.ModuleDict)):
        raise ValueError(f"fully_shard: a {type(module).__name__} has no forward; call it for each of its modules")
    mesh = mesh or _the_mesh("fully_shard")
    policy = mp_policy or MixedPrecisionPolicy()
    if isinstance(offload_policy, CPUOffloadPolicy) and any(p.device.type != "cpu" for p in module.parameters()):
        raise NotImplementedError(
            "fully_shard: parts are not taken from a device to the processor; leave CPUOffloadPolicy out"
        )
    slots = managed(module, mesh, ignored_params or set(), shard_placement_fn)
    inner = [m for m in module.modules() if isinstance(m, FSDPModule)]
    reshard = not inner if reshard_after_forward is None else bool(reshard_after_forward)
    state = _State(Params(slots, mesh, policy, reshard), policy)
    cls = type(module)
    module.__class__ = type(
        f"FSDP{cls.__name__}", (FSDPModule, cls), {"__module__": cls.__module__, "__deepcopy__": _no_copy}
    )
    module._fsdp = state
    module.register_forward_pre_hook(state.before, prepend=True, with_kwargs=True)
    module.register_forward_hook(state.after, always_call=True)
    return module


def _no_copy(self, memo):
    raise RuntimeError(
        "a module that fully_shard has cut cannot be copied: build another one, and load this one's state"
    )


def register_fsdp_forward_method(module, method_name):
    """Another method of the module's that uses its parameters, as forward does."""
    if not isinstance(module, FSDPModule):
        return
    method = getattr(module, method_name)

    def run(*args, **kwargs):
        args, kwargs = module._fsdp.before(module, args, kwargs)
        try:
            output = method(*args, **kwargs)
        except BaseException:
            module._fsdp.after(module, args, None)
            raise
        changed = module._fsdp.after(module, args, output)
        return output if changed is None else changed

    setattr(module, method_name, run)
