"""adjoin.optim.optimizer: what all optimizers share: groups, state, hooks, saving and loading."""

import functools
import math
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from copy import deepcopy
from operator import attrgetter

import adjoin

from .. import _C
from .._accelerator import captures, is_captured
from .._hints import Hinting
from ..utils.hooks import RemovableHandle
from ._helpers import (  # noqa: F401
    DeviceDict,
    DeviceDtypeDict,
    _capturable_doc,
    _default_to_fused_or_foreach,
    _device_dtype_check_for_fused,
    _differentiable_doc,
    _disable_dynamo_if_unsupported,
    _dispatch_sqrt,
    _foreach_doc,
    _fused_doc,
    _get_capturable_supported_devices,
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _get_scalar_dtype,
    _get_value,
    _maximize_doc,
    _params_doc,
    _stack_if_compiling,
    _to_scalar,
    _use_grad_for_differentiable,
    _view_as_real,
)

_global_pre_hooks = OrderedDict()
_global_post_hooks = OrderedDict()


_HOOKS = (
    "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks", "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks", "_optimizer_load_state_dict_post_hooks",
)  # fmt: skip


class _Hooks:
    """A dictionary of hooks of an optimizer whose __init__ did not call ours, made when it is asked for."""

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, optimizer, owner=None):
        return self if optimizer is None else optimizer.__dict__.setdefault(self.name, OrderedDict())


_is_leaf = attrgetter("is_leaf")


class _Required:
    """The default of a setting that every group has to give."""

    def __repr__(self):
        return "<required parameter>"


required = _Required()
_RequiredParameter = _Required
# For annotations.
ParamsT = Iterable[adjoin.Tensor] | Iterable[dict] | Iterable[tuple[str, adjoin.Tensor]]
_params_t = ParamsT


def register_optimizer_step_pre_hook(hook):
    """``hook(optimizer, args, kwargs)`` runs before every optimizer's step."""
    handle = RemovableHandle(_global_pre_hooks)
    _global_pre_hooks[handle.id] = hook
    return handle


def register_optimizer_step_post_hook(hook):
    """``hook(optimizer, args, kwargs)`` runs after every optimizer's step."""
    handle = RemovableHandle(_global_post_hooks)
    _global_post_hooks[handle.id] = hook
    return handle


def _with_hooks(step):
    """Wraps a step so that hooks run around it and schedules see that it was called."""

    @functools.wraps(step)
    def hooked(self, *args, **kwargs):
        if not (_global_pre_hooks or _global_post_hooks or self._optimizer_step_pre_hooks
                or self._optimizer_step_post_hooks):  # fmt: skip
            outcome = step(self, *args, **kwargs)
            self._opt_called = True
            return outcome
        args = self, *args
        for hook in (*_global_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
            result = hook(self, args, kwargs)
            if result is not None:
                if not isinstance(result, tuple) or len(result) != 2:
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
        outcome = step(*args, **kwargs)
        self._opt_called = True
        for hook in (*self._optimizer_step_post_hooks.values(), *_global_post_hooks.values()):
            hook(self, args, kwargs)
        return outcome

    hooked.hooked = True
    return hooked


class Optimizer(Hinting):
    """Base of optimizers: parameters in groups, each with its settings, and a state per parameter.

    ``params`` is an iterable of tensors, of (name, tensor) pairs, or of dictionaries with the key
    "params" and settings that differ from ``defaults``. A subclass defines ``step``.
    """

    _group_defaults = {}  # settings that state dicts of older versions lack
    _counts = ()  # numbers of the state that are 0-dim tensors
    _optimizer_step_pre_hooks, _optimizer_step_post_hooks = _Hooks(), _Hooks()
    _optimizer_state_dict_pre_hooks, _optimizer_state_dict_post_hooks = _Hooks(), _Hooks()
    _optimizer_load_state_dict_pre_hooks, _optimizer_load_state_dict_post_hooks = _Hooks(), _Hooks()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if step is not None and not getattr(step, "hooked", False):
            cls.step = _with_hooks(step)

    def _patch_step_function(self):
        """Nothing is left to do: the step of a class is hooked when the class is made. Wrappers that skip __init__ ask for it."""

    def __init__(self, params, defaults):
        self.defaults = defaults
        self._init_hooks()
        if isinstance(params, adjoin.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {type(params).__name__}"
            )
        if isinstance(params, adjoin.nn.Module) and not isinstance(params, adjoin.nn.ParameterList):
            raise TypeError(
                f"{type(self).__name__}: params must be an iterable of tensors or dicts, not a {type(params).__name__}; "
                "use its .parameters()"
            )
        if isinstance(params, set):
            warnings.warn(
                "optimizer parameters need to be organized in ordered collections: the order of tensors in a set changes "
                "between runs, and with it what a saved state belongs to; give a list instead",
                FutureWarning,
                stacklevel=3,
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError(
                f"{type(self).__name__}: optimizer got an empty parameter list; give a module's .parameters(), "
                "afresh each time if it is a generator"
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _init_hooks(self):
        own = self.__dict__
        for name in _HOOKS:
            if name not in own:
                own[name] = OrderedDict()

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._init_hooks()
        self.defaults.setdefault("differentiable", False)
        for group in self.param_groups:
            for name, value in self._group_defaults.items():
                group.setdefault(name, value)
        for own in self.state.values():  # counts were plain numbers long ago
            for name in self._counts:
                if isinstance(own.get(name), (int, float)):
                    own[name] = adjoin.tensor(float(own[name]), dtype=count_tensor().dtype)
        for group in self.param_groups:
            for param in group["params"] if group.get("capturable") else ():
                for name in self._counts:
                    if param in self.state and name in self.state[param]:
                        self.state[param][name] = self.state[param][name].to(param.device)

    def __repr__(self):
        lines = []
        for i, group in enumerate(self.param_groups):
            lines.append(f"\nParameter Group {i}\n")
            lines += [f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"]
        return f"{type(self).__name__} ({''.join(lines)})"

    def add_param_group(self, param_group):
        """Adds a group: a dictionary with "params" and any settings; the defaults fill in the
        rest."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, adjoin.Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering "
                "of tensors in sets will change between runs. Please use a list instead."
            )
        params = list(params)
        # Asked of the few types, not of each parameter.
        plain = all(issubclass(kind, adjoin.Tensor) for kind in set(map(type, params)))
        if not plain and any(isinstance(param, tuple) for param in params):
            if not all(isinstance(param, tuple) for param in params):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group["param_names"] = [name for name, _ in params]
            params = [param for _, param in params]
        param_group["params"] = params
        for param in () if plain and all(map(_is_leaf, params)) else params:
            if not isinstance(param, adjoin.Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {type(param).__name__}; make it an nn.Parameter"
                )
            if not (param.is_leaf or param.retains_grad or self.defaults.get("differentiable")):
                raise ValueError(
                    f"{type(self).__name__}: can't optimize a non-leaf Tensor, here of shape {list(param.shape)}, which ops computed; "
                    "give what it was computed from, or its .detach().requires_grad_()"
                )
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        if len(set(map(id, params))) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
                stacklevel=3,
            )
        others = self.param_groups
        known = {id(param) for group in others for param in group["params"]} if others else ()
        if known and any(id(param) in known for param in params):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in param_group) != ("param_names" in self.param_groups[0]):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                "with names to the optimizer without names, or the other way round"
            )
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none=True):
        """Drops every parameter's gradient, or zeroes it in place."""
        for group in self.param_groups:
            if set_to_none:
                _C.drop_grads(group["params"])
                continue
            for param in group["params"]:
                if param.grad is not None:
                    if param.grad.grad_fn is not None:
                        param.grad.detach_()
                    else:
                        param.grad.requires_grad_(False)
                    param.grad.zero_()

    def step(self, closure=None):
        """Updates the parameters once; ``closure`` computes the loss again where that is needed."""
        raise NotImplementedError

    def _step_groups(self, closure):
        """What nearly every step is: the loss, then each group in one pass, or a parameter at a
        time."""
        if captures:
            return self._step_captured(closure)
        return self._step_all(closure)

    def _step_captured(self, closure):
        """A step that may become part of a graph: it counts on the device, and its state is there before."""
        for group in self.param_groups:
            where = next((param.device for param in group["params"] if is_captured(param.device)), None)
            if where is not None and not group.get("capturable", True):
                raise RuntimeError(
                    f"{type(self).__name__}.step: a graph is captured on {where}, and its replays would not count "
                    "their steps; make the optimizer with capturable=True"
                )
        held = {param: len(own) for param, own in self.state.items()}
        loss = self._step_all(closure)
        begun = [param for param, own in self.state.items() if len(own) > held.get(param, 0)]
        if any(isinstance(param, adjoin.Tensor) and is_captured(param.device) for param in begun):
            for param in begun:
                del self.state[param]
            raise RuntimeError(
                f"{type(self).__name__}.step: its state was begun within a capture, and each replay would begin it "
                "again; take a step before the capture"
            )
        return loss

    def _step_all(self, closure):
        loss = None
        if closure is not None:
            with adjoin.enable_grad():
                loss = closure()
        for group in self.param_groups:
            if group.get("differentiable") or not self._step_fused(group):
                self._step_one_by_one(group)
        return loss

    def _step_fused(self, group):
        """Steps all parameters of a group in one call; False if that cannot be done."""
        return False

    def _step_one_by_one(self, group):
        settings = {k: v for k, v in group.items() if k not in ("params", "param_names")}
        with adjoin.set_grad_enabled(bool(group.get("differentiable"))):
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if param.is_complex():
                    self._update_complex(param, grad, settings)
                else:
                    self._update(param, grad, self.state[param], **settings)
                if not self.state[param]:
                    del self.state[param]  # what needs no state has none

    def _update_complex(self, param, grad, settings):
        """A complex parameter is two real ones; its state is kept complex."""
        own, real = self.state[param], adjoin.view_as_real
        seen = {k: real(v) if _is_complex(v) else v for k, v in own.items()}
        self._update(real(param), real(grad), seen, **settings)
        for key, value in seen.items():
            if key not in own:
                alike = isinstance(value, adjoin.Tensor) and value.ndim == param.ndim + 1
                own[key] = adjoin.view_as_complex(value) if alike else value

    # Saving and loading

    def state_dict(self):
        """{"state": {number: state}, "param_groups": [settings and numbers]}; numbers count
        parameters over all groups."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers = {}
        groups = []
        for group in self.param_groups:
            keys = list(map(id, group["params"]))
            for key in keys:
                if key not in numbers:
                    numbers[key] = len(numbers)
            packed = dict(group)
            del packed["params"]
            packed["params"] = [numbers[key] for key in keys]  # the last one, as in PyTorch
            groups.append(packed)
        state = {
            (numbers[id(key)] if isinstance(key, adjoin.Tensor) else key): value for key, value in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, result)
            result = result if replaced is None else replaced
        return result

    def load_state_dict(self, state_dict):
        """Takes what state_dict() returned, here or in PyTorch; state goes to its parameter's
        device and dtype."""
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, saved, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        params = {}
        for group, old in zip(groups, saved, strict=True):
            params.update(zip(old["params"], group["params"], strict=True))
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = _cast(params[key], value)
            else:
                state[key] = value
        for group, old in zip(groups, saved, strict=True):
            old["params"] = group["params"]
            if "param_names" in group and "param_names" not in old:
                old["param_names"] = group["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _begin_state(self, param, state, group):
        """Makes what is not there yet of a parameter's state; for share_memory, before the first step."""
        if not state:
            raise RuntimeError(
                f"share_memory: {type(self).__name__} makes its state in its first step; take one before"
            )

    def share_memory(self):
        """Moves the state, made now where it is not there yet, to memory that other processes see.

        With parameters shared too (``model.share_memory()``), processes that are given the optimizer
        train together, as in Hogwild (Niu et al., 2011).
        """
        from .._shared import share

        for group in self.param_groups:
            for param in group["params"]:
                self._begin_state(param, self.state[param], group)
        for state in self.state.values():
            for value in state.values():
                if isinstance(value, adjoin.Tensor):
                    share(value, warn=False)

    # Hooks

    def _hook(self, name, hook, prepend=False):
        hooks = getattr(self, name)
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def register_step_pre_hook(self, hook):
        """``hook(optimizer, args, kwargs)`` runs before step and may return new ones; args begin with the optimizer."""
        return self._hook("_optimizer_step_pre_hooks", hook)

    def register_step_post_hook(self, hook):
        """``hook(optimizer, args, kwargs)`` runs after step."""
        return self._hook("_optimizer_step_post_hooks", hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """``hook(optimizer)`` runs before state_dict()."""
        return self._hook("_optimizer_state_dict_pre_hooks", hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """``hook(optimizer, state_dict)`` may edit or replace what state_dict() returns."""
        return self._hook("_optimizer_state_dict_post_hooks", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """``hook(optimizer, state_dict)`` may edit or replace what is loaded."""
        return self._hook("_optimizer_load_state_dict_pre_hooks", hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """``hook(optimizer)`` runs after load_state_dict()."""
        return self._hook("_optimizer_load_state_dict_post_hooks", hook, prepend)


def _is_complex(value):
    return isinstance(value, adjoin.Tensor) and value.is_complex()


def _cast(param, value, key=None):
    """Loaded state as its parameter wants it; "step" stays as it is, for it counts."""
    if isinstance(value, adjoin.Tensor):
        if key == "step":
            return value.clone()
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device, copy=True)
        return value.to(device=param.device, copy=True)
    if isinstance(value, dict):
        return {k: _cast(param, v, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(param, v) for v in value)
    return value


def check_kinds(lr, betas=()):
    """Refuses what is no number at all, before it is compared with one."""
    if isinstance(lr, str):
        raise TypeError(f"optim: lr must be a number, not {lr!r}, a str; use float()")
    if isinstance(betas, (int, float)):
        raise TypeError(f"optim: betas must be a tuple of 2 numbers, not {betas!r}, a {type(betas).__name__}")


def check_settings(settings):
    """Raises for the first {name: (value, whether it is allowed)} that is not allowed."""
    for name, (value, allowed) in settings.items():
        if not allowed:
            wanted = (
                "from 0 to below 1"
                if name.startswith("beta")
                else "from 0 to 1"
                if name.startswith("rho")
                else "0 or more"
            )
            raise ValueError(f"Invalid {name}: {value}; it must be {wanted}")


def check_ways(foreach, fused, differentiable):
    """The ways of stepping that exclude each other in PyTorch do so here, though one pass serves
    them all."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def as_float(value):
    """A learning rate or the like that may be a 0-dim tensor, as a float."""
    if not isinstance(value, adjoin.Tensor):
        return value
    if value.numel() != 1:
        raise ValueError(f"optim: a setting such as a Tensor lr must be 1-element, it has shape {tuple(value.shape)}")
    return value.item()


def count_tensor(param=None, capturable=False):
    """A step count of 0: a host tensor, as PyTorch's state dicts have it, unless a graph is to count on the device."""
    wide = adjoin.get_default_dtype() == adjoin.float64
    return adjoin.zeros(
        (), dtype=adjoin.float64 if wide else adjoin.float32, device=param.device if capturable else None
    )


def start_state(param, state, *names, capturable=False):
    """Gives a parameter's state what is not there yet: the count "step" and zeros like the
    parameter."""
    if "step" not in state:
        state["step"] = count_tensor(param, capturable)
    for name in names:
        if name not in state:
            state[name] = adjoin.zeros_like(param, requires_grad=False)


def number_of(count, capturable):
    """A count of the state to compute with: a number, or a tensor of the device, which a graph reads at each replay."""
    return count.double() if capturable else count.item()


def rate_of(lr, capturable):
    """A learning rate: a number, or the tensor itself, which a graph reads at each replay."""
    return lr if capturable and isinstance(lr, adjoin.Tensor) else as_float(lr)


def root_of(x):
    """Of a number or a tensor."""
    return x.sqrt() if isinstance(x, adjoin.Tensor) else math.sqrt(x)


def go_along(param, mean, root, size):
    """``param -= size mean / root``."""
    if isinstance(size, adjoin.Tensor):
        param.sub_(mean / root * size)
    else:
        param.addcdiv_(mean, root, value=-size)


def go_against(param, grad, size):
    """``param -= size grad``."""
    if isinstance(size, adjoin.Tensor):
        param.sub_(grad * size)
    else:
        param.add_(grad, alpha=-size)


def decayed(param, grad, weight_decay, maximize, decoupled=False, lr=0.0):
    """The gradient to go against: turned round to maximize, with the weight decay in it. Decoupled decay
    (Loshchilov and Hutter, 2019) shrinks the parameter itself instead."""
    if maximize:
        grad = -grad
    if weight_decay and decoupled:
        param.mul_(1 - lr * weight_decay)
    elif weight_decay:
        grad = grad.add(param, alpha=weight_decay)
    return grad


def check_lr(lr, foreach=None, capturable=False):
    """Raises unless lr is a number, or a tensor of one, that is not negative."""
    if isinstance(lr, adjoin.Tensor):
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
    check_kinds(lr)
    check_settings({"learning rate": (lr, as_float(lr) >= 0)})


def check_betas(betas):
    """Raises unless both are in [0, 1)."""
    check_kinds(0, betas)
    check_settings({f"beta parameter at index {i}": (b, 0 <= as_float(b) < 1) for i, b in enumerate(betas)})
