"""adjoin.nn.modules.module: Module, the base of every network: its parts and how they are set."""

from collections import OrderedDict

import adjoin

from ... import _C
from ..parameter import Buffer, Parameter
from ._advice import init_first, like_forward, module_wanted
from ._calls import (  # noqa: F401  (public here, as in PyTorch)
    Calls,
    _global_buffer_registration_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    _run_registration_hooks,
    offer_hook_tables,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._conversion import Conversion
from ._state import State, _IncompatibleKeys  # noqa: F401
from ._state import _EXTRA_STATE as _EXTRA_STATE_KEY_SUFFIX  # noqa: F401  (the name that other libraries know)
from ._tree import Tree

_ORDERED = (
    "_parameters", "_buffers", "_backward_pre_hooks", "_backward_hooks", "_forward_hooks",
    "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs", "_state_dict_hooks", "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_modules",
)  # fmt: skip


class _Signature:
    """inspect.signature(module): that of any call; of a class, inspect finds __init__'s by itself."""

    def __get__(self, module, owner=None):
        if module is None:
            raise AttributeError("__signature__")
        import inspect

        kinds = (("args", inspect.Parameter.VAR_POSITIONAL), ("kwargs", inspect.Parameter.VAR_KEYWORD))
        return inspect.Signature([inspect.Parameter(name, kind) for name, kind in kinds])


class Module(Calls, State, Conversion, Tree):
    """A network or a part of one: parameters, buffers, child modules and a ``forward``.

    Tensors of class ``Parameter``, modules and buffers that are set as attributes are registered;
    everything else is an ordinary attribute. Subclasses call ``super().__init__()`` first and
    define ``forward``.
    """

    dump_patches: bool = False
    _version: int = 1  # of the layout of the state dict; subclasses raise it and convert when loading
    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, adjoin.Tensor | None]
    _modules: dict[str, "Module | None"]
    call_super_init: bool = False
    __signature__ = _Signature()

    def __init__(self, *args, **kwargs):
        own = type(self).__name__
        if not self.call_super_init:
            if kwargs:
                raise TypeError(f"{own}.__init__() got an unexpected keyword argument {next(iter(kwargs))!r}")
            if args:
                raise TypeError(f"{own}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        state = self.__dict__  # filled directly: __setattr__ would look for parts that do not exist yet
        state["training"] = True
        state["_non_persistent_buffers_set"] = set()
        state["_is_full_backward_hook"] = None
        for name in _ORDERED:
            state[name] = OrderedDict()
        # These are read on every access to a part, and a plain dict is the faster one.
        state["_parameters"], state["_buffers"], state["_modules"] = {}, {}, {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args, **kwargs):
        """What the module computes; every subclass defines it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function; {like_forward(self)}'
        )

    def compile(self, *args, **kwargs):
        """From now on ``forward`` is what ``adjoin.compile`` makes of it, with these arguments. A copy or a file of the module has
        the forward of its class again."""
        self.__dict__.pop("forward", None)
        self.forward = adjoin.compile(self.forward, *args, **kwargs)

    def __getstate__(self):
        state = self.__dict__.copy()
        if hasattr(state.get("forward"), "_state"):
            del state["forward"]
        return state

    def _replicate_for_data_parallel(self):
        """This module without parameters, and with room for others: what runs beside it on another device."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__, _parameters={}, _buffers=dict(self._buffers), _modules=dict(self._modules))
        made._is_replica = True
        return made

    # Registering parts

    def register_buffer(self, name, tensor, persistent=True):
        """Adds a tensor that is state but not trained; ``persistent=False`` keeps it out of the
        state dict."""
        self._check_new_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, adjoin.Tensor):
            raise TypeError(
                f"cannot assign '{adjoin_typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        tensor = _run_registration_hooks("buffer", self, name, tensor)
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name, param):
        """Adds a Parameter, or None for one that is absent, under ``name``."""
        self._check_new_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{adjoin_typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must "
                "be created "
                f"explicitly. To express '{name}' as a function of another Tensor, compute the "
                "value in "
                "the forward() method."
            )
        self._parameters[name] = _run_registration_hooks("parameter", self, name, param)

    def add_module(self, name, module):
        """Adds a child module, or None for one that is absent, under ``name``."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(
                f"{type(self).__name__}: child {name!r}: {adjoin_typename(module)} is not a Module subclass; {module_wanted(module)}"
            )
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {adjoin_typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = _run_registration_hooks("module", self, name, module)

    def register_module(self, name, module):
        """The same as add_module()."""
        self.add_module(name, module)

    def _check_new_name(self, kind, name, known):
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call; {init_first(self)}")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {adjoin_typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in known:
            raise KeyError(f"attribute '{name}' already exists")

    # Attributes; that parts are found as attributes is ModuleBase's doing

    def __setattr__(self, name, value):
        state = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in state:
                raise AttributeError(f"cannot assign parameters before Module.__init__() call; {init_first(self)}")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if "_modules" not in state:
                raise AttributeError(f"cannot assign module before Module.__init__() call; {init_first(self)}")
            self._forget(name, "_modules")
            state["_modules"][name] = _run_registration_hooks("module", self, name, value)
        elif name in state.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{adjoin_typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected); give nn.Parameter(tensor)"
                )
            self.register_parameter(name, value)
        elif name in state.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{adjoin_typename(value)}' as child module '{name}' "
                    f"(torch.nn.Module or None expected); {module_wanted(value)}"
                )
            state["_modules"][name] = _run_registration_hooks("module", self, name, value)
        elif name in state.get("_buffers", ()) or isinstance(value, Buffer):
            self._set_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def _set_buffer(self, name, value):
        if "_buffers" not in self.__dict__:
            raise AttributeError(f"cannot assign buffer before Module.__init__() call; {init_first(self)}")
        if value is not None and not isinstance(value, adjoin.Tensor):
            raise TypeError(
                f"cannot assign '{adjoin_typename(value)}' as buffer '{name}' "
                "(torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if name in self._buffers:
            self._buffers[name] = _run_registration_hooks("buffer", self, name, value)
            if isinstance(value, Buffer):
                self._non_persistent_buffers_set.discard(name)
                if not value.persistent:
                    self._non_persistent_buffers_set.add(name)
        else:
            if name in self.__dict__ or name in self._parameters or name in self._modules:
                raise KeyError(f"attribute '{name}' already exists")
            # A class may have a register_buffer from before there was persistent.
            self.register_buffer(name, value, *(() if value.persistent else (False,)))

    def _forget(self, name, keep):
        """Takes ``name`` out of every place but ``keep``, which is about to get it."""
        self.__dict__.pop(name, None)
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind != keep:
                self.__dict__.get(kind, {}).pop(name, None)
        if keep != "_buffers":
            self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name):
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __setstate__(self, state):
        self.__dict__.update(state)
        for name in _ORDERED:  # absent from what an older version pickled
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def __dir__(self):
        names = [
            *dir(type(self)),
            *self.__dict__,
            *self._parameters,
            *self._modules,
            *self._buffers,
        ]
        return sorted(name for name in names if not name[:1].isdigit())

    # Text

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """What stands between the brackets of the module's text: its settings, on one line or
        several."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indented(repr(module))}" for name, module in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


_C.watch_module_tree(Module)


def adjoin_typename(value):
    """The name of a value's class as the messages show it: tensors by kind, others by module."""
    if isinstance(value, adjoin.Tensor):
        kind = type(value)
        return f"{kind.__module__}.{kind.__qualname__}"
    kind = type(value)
    prefix = "" if kind.__module__ == "builtins" else kind.__module__ + "."
    return prefix + kind.__qualname__


def _indented(text, spaces=2):
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


offer_hook_tables(__name__)
