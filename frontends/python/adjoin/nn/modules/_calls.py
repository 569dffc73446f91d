"""adjoin.nn.modules._calls: calling a module: the short path, and the long one with its hooks."""

import sys
import types
import warnings
from collections import OrderedDict

import adjoin

from ... import _C
from ...utils.hooks import RemovableHandle
from ._backward import BackwardGates, hook_first_node

_global_forward_pre = OrderedDict()
_global_forward = OrderedDict()
_global_forward_with_kwargs = OrderedDict()
_global_forward_always = OrderedDict()
_global_backward_pre = OrderedDict()
_global_backward = OrderedDict()
_global_backward_full = None  # None until the first is registered: the two kinds do not mix
_registration = {"buffer": OrderedDict(), "module": OrderedDict(), "parameter": OrderedDict()}
# By PyTorch's names, for libraries that register by hand.
_global_buffer_registration_hooks = _registration["buffer"]
_global_module_registration_hooks = _registration["module"]
_global_parameter_registration_hooks = _registration["parameter"]

_GLOBAL_MIX = (
    "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
    "Please use only one of them."
)
_MODULE_MIX = (
    "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
)


def name_module(error, module):
    """Puts the module that was called into an error's words; by its name in the outermost one, which asks last."""
    if not hasattr(error, "module"):
        error.module, error.words = module, error.args[0]
    name = next((name for name, part in module.named_modules() if part is error.module), "")
    place = f"module '{name}' ({type(error.module).__name__})" if name else f"module {type(module).__name__}"
    error.args = (f"{error.words}; in {place}",)


def _register(hooks, hook, *, prepend=False, **flags):
    """Adds a hook; ``flags`` are dictionaries that note, by its id, what the hook wants."""
    extras = [flag for flag in flags.values() if flag is not None]
    handle = RemovableHandle(hooks, extra_dict=extras or None)
    hooks[handle.id] = hook
    for flag in extras:
        flag[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _run_registration_hooks(kind, module, name, value):
    """Lets the global registration hooks replace what is about to become a part of ``module``."""
    for hook in _registration[kind].values():
        result = hook(module, name, value)
        if result is not None:
            value = result
    return value


def register_module_buffer_registration_hook(hook):
    """``hook(module, name, buffer)`` runs when any module registers a buffer, and may replace
    it."""
    return _register(_registration["buffer"], hook)


def register_module_module_registration_hook(hook):
    """``hook(module, name, submodule)`` runs when any module registers a child, and may replace
    it."""
    return _register(_registration["module"], hook)


def register_module_parameter_registration_hook(hook):
    """``hook(module, name, param)`` runs when any module registers a parameter, and may replace
    it."""
    return _register(_registration["parameter"], hook)


def register_module_forward_pre_hook(hook):
    """``hook(module, args)`` runs before every module's forward; debugging only."""
    return _register(_global_forward_pre, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """``hook(module, args, output)`` runs after every module's forward; debugging only."""
    return _register(
        _global_forward,
        hook,
        with_kwargs=_global_forward_with_kwargs if with_kwargs else None,
        always=_global_forward_always if always_call else None,
    )


def register_module_backward_hook(hook):
    """``hook(module, grad_input, grad_output)`` of one node only; the full hook is the sound
    one."""
    global _global_backward_full
    if _global_backward_full is True:
        raise RuntimeError(_GLOBAL_MIX)
    _global_backward_full = False
    return _register(_global_backward, hook)


def register_module_full_backward_pre_hook(hook):
    """``hook(module, grad_output)`` runs before every module's gradients are computed."""
    return _register(_global_backward_pre, hook)


def register_module_full_backward_hook(hook):
    """``hook(module, grad_input, grad_output)`` runs when every module's input gradients are
    ready."""
    global _global_backward_full
    if _global_backward_full is False:
        raise RuntimeError(_GLOBAL_MIX)
    _global_backward_full = True
    return _register(_global_backward, hook)


# By PyTorch's names, for programs that look at all hooks, clear them, or put other tables in their places.
_TABLES = {
    "_global_backward_hooks": _global_backward,
    "_global_backward_pre_hooks": _global_backward_pre,
    "_global_forward_hooks": _global_forward,
    "_global_forward_hooks_always_called": _global_forward_always,
    "_global_forward_hooks_with_kwargs": _global_forward_with_kwargs,
    "_global_forward_pre_hooks": _global_forward_pre,
}


class _HookTables(types.ModuleType):
    """A module with those names: what is assigned to one becomes the content of the table that calls look at."""

    def __getattr__(self, name):
        if name == "_global_is_full_backward_hook":
            return _global_backward_full
        if name in _TABLES:
            return _TABLES[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name, value):
        global _global_backward_full
        if name == "_global_is_full_backward_hook":
            _global_backward_full = value
        elif name in _TABLES:
            told = dict(value)
            _TABLES[name].clear()
            _TABLES[name].update(told)
        else:
            super().__setattr__(name, value)


def offer_hook_tables(module):
    """Gives the module of that name PyTorch's names of the tables of global hooks."""
    sys.modules[module].__class__ = _HookTables


# ModuleBase calls forward at once unless one of these, or of the module's own, has a hook.
_C.watch_global_module_hooks((_global_forward, _global_forward_pre, _global_backward, _global_backward_pre))


class Calls(_C.ModuleBase):
    """The part of Module that runs ``forward`` and what is hooked to it."""

    def _call_impl(self, *args, **kwargs):
        called = set()
        try:
            return self._call_hooked(args, kwargs, called)
        except Exception:
            self._call_remaining(args, kwargs, called)
            raise

    def _call_hooked(self, args, kwargs, called):
        full, pre, plain = self._all_backward_hooks()
        for hook in _global_forward_pre.values():
            args = _as_args(hook(self, args), args)
        for key, hook in list(self._forward_pre_hooks.items()):
            if key in self._forward_pre_hooks_with_kwargs:
                args, kwargs = _as_args_and_kwargs(hook(self, args, kwargs), args, kwargs)
            else:
                args = _as_args(hook(self, args), args)

        gates = None
        if full or pre:
            gates = BackwardGates(self, full, pre)
            args = gates.take_inputs(args)
        result = self.forward(*args, **kwargs)
        for hooks, with_kwargs in (
            (_global_forward, _global_forward_with_kwargs),
            (self._forward_hooks, self._forward_hooks_with_kwargs),
        ):
            for key, hook in list(hooks.items()) if hooks else ():
                called.add(key)
                replaced = hook(self, args, kwargs, result) if key in with_kwargs else hook(self, args, result)
                if replaced is not None:
                    result = replaced
        if gates:
            if not isinstance(result, (adjoin.Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a "
                    "tuple of "
                    f"Tensors but received {type(result)}",
                    stacklevel=4,
                )
            result = gates.take_outputs(result)
        if plain:
            hook_first_node(self, plain, args, result)
        return result

    def _call_remaining(self, args, kwargs, called):
        """After a failure: hooks registered with always_call still run, each once."""
        for hooks, always, with_kwargs in (
            (_global_forward, _global_forward_always, _global_forward_with_kwargs),
            (
                self._forward_hooks,
                self._forward_hooks_always_called,
                self._forward_hooks_with_kwargs,
            ),
        ):
            for key, hook in list(hooks.items()):
                if key not in always or key in called:
                    continue
                called.add(key)
                more = (kwargs,) if key in with_kwargs else ()
                try:
                    hook(self, args, *more, None)
                except Exception as error:  # noqa: BLE001  the first failure is the one to report
                    warnings.warn(
                        "module forward hook with ``always_call=True`` raised an exception "
                        "that was "
                        f"silenced as another error was raised in forward: {error}",
                        stacklevel=4,
                    )

    # Registering

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """``hook(module, args)``, or ``hook(module, args, kwargs)``, runs before forward; may
        replace them."""
        flag = self._forward_pre_hooks_with_kwargs if with_kwargs else None
        return _register(self._forward_pre_hooks, hook, prepend=prepend, with_kwargs=flag)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """``hook(module, args[, kwargs], output)`` runs after forward and may replace the
        output."""
        return _register(
            self._forward_hooks,
            hook,
            prepend=prepend,
            with_kwargs=self._forward_hooks_with_kwargs if with_kwargs else None,
            always=self._forward_hooks_always_called if always_call else None,
        )

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """``hook(module, grad_output)`` runs before the module's gradients are computed; may
        replace them."""
        return _register(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """``hook(module, grad_input, grad_output)`` runs when the input gradients are ready; may
        replace them."""
        if self._is_full_backward_hook is False:
            raise RuntimeError(_MODULE_MIX)
        self._is_full_backward_hook = True
        return _register(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook):
        """The old kind, which sees the gradients of the last op only; use
        register_full_backward_hook()."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(_MODULE_MIX)
        self._is_full_backward_hook = False
        return _register(self._backward_hooks, hook)

    def _all_backward_hooks(self):
        """(full hooks, full pre hooks, hooks of the old kind) that apply to this call."""
        if not (_global_backward or _global_backward_pre or self._backward_hooks or self._backward_pre_hooks):
            return (), (), ()
        full, plain = [], []
        (full if _global_backward_full else plain).extend(_global_backward.values())
        (full if self._is_full_backward_hook else plain).extend(self._backward_hooks.values())
        pre = [*_global_backward_pre.values(), *self._backward_pre_hooks.values()]
        return full, pre, plain


def _as_args(result, args):
    if result is None:
        return args
    return result if isinstance(result, tuple) else (result,)


def _as_args_and_kwargs(result, args, kwargs):
    if result is None:
        return args, kwargs
    if isinstance(result, tuple) and len(result) == 2:
        return result
    raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {result}.")
