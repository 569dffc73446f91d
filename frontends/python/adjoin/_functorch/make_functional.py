"""adjoin._functorch.make_functional: modules as functions of tuples of their tensors, the older way: functional_call takes names."""

import copy
import warnings

import adjoin
from adjoin import nn
from adjoin.func import functional_call, stack_module_state

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "make_functional", "make_functional_with_buffers",
]  # fmt: skip


class FunctionalModuleWithBuffers(nn.Module):
    """``f(params, buffers, *args)``: a module called with these tensors; ``stateless_model`` has its structure and no memory."""

    def __init__(self, stateless_model, param_names, buffer_names):
        super().__init__()
        self.stateless_model, self.param_names, self.buffer_names = stateless_model, param_names, buffer_names

    def forward(self, params, buffers, *args, **kwargs):
        """The module's result."""
        given = {**_named(self.param_names, params), **_named(self.buffer_names, buffers)}
        return functional_call(self.stateless_model, given, args, kwargs)


class FunctionalModule(nn.Module):
    """``f(params, *args)``: the same of a module without buffers."""

    def __init__(self, stateless_model, param_names):
        super().__init__()
        self.stateless_model, self.param_names = stateless_model, param_names

    def forward(self, params, *args, **kwargs):
        """The module's result."""
        return functional_call(self.stateless_model, _named(self.param_names, params), args, kwargs)


def _named(names, tensors):
    tensors = tuple(tensors)
    if len(tensors) != len(names):
        raise RuntimeError(
            f"make_functional: the module has {len(names)} tensors {list(names)}, {len(tensors)} were given"
        )
    return dict(zip(names, tensors, strict=True))


def _told(name, instead):
    warnings.warn(
        f"We've integrated functorch into PyTorch. `functorch.{name}` is deprecated: use `{instead}`",
        FutureWarning,
        stacklevel=3,
    )


def _taken_apart(model, disable_autograd_tracking):
    """A copy of the model without memory, and the copy's parameters and buffers by name."""
    copied = copy.deepcopy(model)
    params, buffers = dict(copied.named_parameters()), dict(copied.named_buffers())
    if disable_autograd_tracking:
        for param in params.values():
            param.requires_grad_(False)
    # What one copy shares, the other does, too: each tensor is copied as one without memory.
    bare = {id(b): adjoin.empty_like(b, device="meta") for b in buffers.values()}
    bare |= {id(p): nn.Parameter(adjoin.empty_like(p, device="meta"), p.requires_grad) for p in params.values()}
    return copy.deepcopy(copied, bare), params, buffers


def make_functional(model, disable_autograd_tracking=False):
    """(f, params): a module without buffers as a function, and a copy of its parameters."""
    _told("make_functional", "torch.func.functional_call")
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    stateless, params, _ = _taken_apart(model, disable_autograd_tracking)
    return FunctionalModule(stateless, tuple(params)), tuple(params.values())


def make_functional_with_buffers(model, disable_autograd_tracking=False):
    """(f, params, buffers): a module as a function, and copies of its parameters and buffers."""
    _told("make_functional_with_buffers", "torch.func.functional_call")
    stateless, params, buffers = _taken_apart(model, disable_autograd_tracking)
    made = FunctionalModuleWithBuffers(stateless, tuple(params), tuple(buffers))
    return made, tuple(params.values()), tuple(buffers.values())


def combine_state_for_ensemble(models):
    """(f, params, buffers) of several modules of one class: their tensors stacked, to be called under vmap."""
    _told("combine_state_for_ensemble", "torch.func.stack_module_state")
    models = list(models)
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    if not all(m.training == models[0].training for m in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    with adjoin.no_grad():
        params, buffers = stack_module_state(models)
    stateless = _taken_apart(models[0], False)[0]
    made = FunctionalModuleWithBuffers(stateless, tuple(params), tuple(buffers))
    return made, tuple(x.detach() for x in params.values()), tuple(buffers.values())
