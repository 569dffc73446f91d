"""adjoin.nn.modules._state: state dicts of modules: writing, reading, their hooks and their
messages."""

import warnings
import weakref
from collections import OrderedDict, namedtuple

import adjoin

from ... import __future__
from ...utils import swap_tensors
from ...utils.hooks import RemovableHandle
from ..parameter import Parameter, is_lazy

_EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _LoadPreHook:
    """A load hook, with or without the module as first argument; picklable. It does not keep its module alive."""

    def __init__(self, hook, module=None):
        self.hook, self._module = hook, None if module is None else weakref.ref(module)

    @property
    def module(self):
        """The module that the hook is given, or None."""
        return None if self._module is None else self._module()

    def __call__(self, *args):
        return self.hook(*args) if self._module is None else self.hook(self.module, *args)

    def __getstate__(self):
        return self.hook, self.module

    def __setstate__(self, state):
        self.__init__(*state)


class State:
    """The part of Module that is saved and loaded."""

    # Writing

    def get_extra_state(self):
        """What to save beside parameters and buffers; a subclass that defines it defines
        set_extra_state too."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state):
        """Takes what get_extra_state() returned."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def register_state_dict_pre_hook(self, hook):
        """``hook(module, prefix, keep_vars)`` is called before state_dict() reads the module."""
        handle = RemovableHandle(self._state_dict_pre_hooks)
        self._state_dict_pre_hooks[handle.id] = hook
        return handle

    def register_state_dict_post_hook(self, hook):
        """``hook(module, state_dict, prefix, local_metadata)`` may edit the state dict in place."""
        hook._from_public_api = True
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = hook
        return handle

    def _register_state_dict_hook(self, hook):
        """As the public one, but the hook may return another state dict."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously "
                "registered via register_state_dict_post_hook"
            )
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = hook
        return handle

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Writes this module's own tensors, not its children's, into ``destination``."""
        own = self.__dict__
        for name, param in own["_parameters"].items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        if buffers := own["_buffers"]:
            hidden = own["_non_persistent_buffers_set"]
            for name, buffer in buffers.items():
                if buffer is not None and name not in hidden:
                    destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not State.get_extra_state:
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """An ordered dictionary from dotted names to tensors that share memory with the module's.

        Detached unless ``keep_vars``. Layout versions stand in its ``_metadata`` attribute.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0]
            prefix = args[1] if len(args) > 1 else prefix
            keep_vars = args[2] if len(args) > 2 else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        own = self.__dict__  # read directly: a module's look-up of attributes is a long one
        local_metadata = {"version": self._version}
        metadata = getattr(destination, "_metadata", None)
        if metadata is not None:
            metadata[prefix[:-1]] = local_metadata
        if hooks := own["_state_dict_pre_hooks"]:
            for hook in hooks.values():
                hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in own["_modules"].items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        hooks = own["_state_dict_hooks"]
        for hook in hooks.values() if hooks else ():
            result = hook(self, destination, prefix, local_metadata)
            if not getattr(hook, "_from_public_api", False):
                destination = destination if result is None else result
            elif result is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    # Reading

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        handle = RemovableHandle(self._load_state_dict_pre_hooks)
        self._load_state_dict_pre_hooks[handle.id] = _LoadPreHook(hook, self if with_module else None)
        return handle

    def register_load_state_dict_pre_hook(self, hook):
        """``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs)`` may edit what is about to be loaded."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """``hook(module, incompatible_keys)`` may edit the two lists of keys in place."""
        handle = RemovableHandle(self._load_state_dict_post_hooks)
        self._load_state_dict_post_hooks[handle.id] = hook
        return handle

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys,
                              unexpected_keys, error_msgs):  # fmt: skip
        """Loads this module's own tensors, not its children's; faults go into the three lists."""
        modules, hidden = self._modules, self._non_persistent_buffers_set
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                 error_msgs)  # fmt: skip
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = {name: tensor for name, tensor in self._parameters.items() if tensor is not None}
        for name, tensor in self._buffers.items():
            if tensor is not None and name not in hidden:
                own[name] = tensor
        for name, tensor in own.items():
            key = prefix + name
            if key in state_dict:
                fault = self._load_tensor(name, tensor, key, state_dict[key], assign)
                if fault:
                    error_msgs.append(fault)
            elif strict:
                missing_keys.append(key)

        extra = prefix + _EXTRA_STATE
        if type(self).set_extra_state is not State.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)

        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra and key[len(prefix) :] not in own:
                    head, *rest = key[len(prefix) :].split(".", 1)
                    if head not in (modules if rest else own):
                        unexpected_keys.append(key)

    def _load_tensor(self, name, tensor, key, value, assign):
        """Copies or assigns one tensor; returns None or what is wrong."""
        if not isinstance(value, adjoin.Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or '
                f"Tensor-like object from checkpoint but received {type(value)}"
            )
        if is_lazy(tensor):
            if is_lazy(value):
                return None  # neither has a shape yet
        elif tensor.dim() == 0 and value.dim() == 1 and value.numel() >= 1:
            value = value[0]  # scalars were saved with one dimension long ago
        if tensor.shape != value.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {value.shape} from "
                "checkpoint, "
                f"the shape in current model is {tensor.shape}."
            )
        if tensor.device.type == "meta" and value.device.type != "meta" and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter "
                "in the current model, which is a no-op. (Did you mean to pass `assign=True` to "
                "assign items in the state dictionary to their corresponding key in the module "
                "instead of copying them in place?)",
                stacklevel=2,
            )
        try:
            with adjoin.no_grad():
                if __future__.get_swap_module_params_on_conversion():
                    return self._swap_in(name, tensor, value, assign)
                if not assign:
                    tensor.copy_(value)
                    return None
                if isinstance(tensor, Parameter):
                    if isinstance(value, Parameter):
                        value.requires_grad_(tensor.requires_grad)
                    else:
                        value = Parameter(value, requires_grad=tensor.requires_grad)
                setattr(self, name, value)
        except Exception as error:  # noqa: BLE001  every fault is reported at the end, together
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{tensor.shape} and whose dimensions in the checkpoint are {value.shape}, "
                f"an exception occurred : {error.args}."
            )
        return None

    def _swap_in(self, name, tensor, value, assign):
        """Lets the tensor make what is to stand in its place, and changes places with it."""
        made = tensor.module_load(value, assign=assign)
        if made is tensor or made is value:
            raise RuntimeError("module_load returned one of self or other; return a new tensor, as detach() gives one")
        if isinstance(tensor, Parameter):
            if isinstance(made, Parameter):
                made.requires_grad_(tensor.requires_grad)
            else:
                made = Parameter(made, requires_grad=tensor.requires_grad)
        swap_tensors(tensor, made)

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies a state dict into the module; returns its missing and unexpected keys.

        With ``strict`` such keys are an error. ``assign`` puts the given tensors in place instead
        of copying into the module's own, so their dtype and device come along.
        """
        if not hasattr(state_dict, "keys"):
            way = (
                "give its .state_dict()"
                if isinstance(state_dict, adjoin.nn.Module)
                else "a file's is adjoin.load(path)"
            )
            raise TypeError(f"load_state_dict: Expected state_dict to be dict-like, got {type(state_dict)}; {way}")
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata
        missing, unexpected, errors = [], [], []

        _load(self, state_dict, "", metadata, assign, (missing, unexpected, errors))
        if strict:
            for what, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    names = ", ".join(f'"{key}"' for key in keys)
                    errors.insert(0, f"{what} key(s) in state_dict: {names}. ")
        if errors:
            raise RuntimeError(
                "Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(errors))
            )
        return _IncompatibleKeys(missing, unexpected)


def _load(module, local, prefix, metadata, assign, faults):
    """Loads a module and what is below it; ``faults``: missing keys, unexpected ones, errors."""
    local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local_metadata["assign_to_params_buffers"] = assign
    module._load_from_state_dict(local, prefix, local_metadata, True, *faults)
    for name, child in module._modules.items():
        if child is not None:
            path = f"{prefix}{name}."
            # Only a child's own keys, so that a large model is not scanned once a module.
            _load(child, {k: v for k, v in local.items() if k.startswith(path)}, path, metadata, assign, faults)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, _IncompatibleKeys(*faults[:2])) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, if "
                "incompatible_keys need to be modified, it should be done inplace."
            )
