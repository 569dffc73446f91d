"""adjoin.nn.utils.parametrize: parameters and buffers as functions of others."""

import copy
from contextlib import contextmanager

import adjoin

from ..modules.container import ModuleDict, ModuleList
from ..parameter import Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization",
    "remove_parametrizations", "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]  # fmt: skip

_caching = 0
_cache = {}


@contextmanager
def cached():
    """While it lasts, a parametrized tensor is computed once."""
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and the tensors that they start from: ``original``, or
    ``original0`` and so on where ``right_inverse`` gives several."""

    def __init__(self, modules, original, unsafe=False):
        modules = list(modules)
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        given = original
        with adjoin.no_grad():
            new = original
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass
        self.is_tensor = isinstance(new, adjoin.Tensor)
        if not self.is_tensor and not isinstance(new, (list, tuple)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        for i, part in enumerate(() if self.is_tensor else new):
            if not isinstance(part, adjoin.Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                    f"Got element {i} of the sequence with type {type(part).__name__}."
                )
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor and new.dtype != original.dtype:
            raise ValueError(
                "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                f"original: {original.dtype}\nright_inverse(original): {new.dtype}"
            )
        if self.is_tensor:
            self._keep("original", given, new)
        else:
            for i, tensor in enumerate(new):
                self._keep(f"original{i}", given, tensor)
        if not unsafe:
            self._check(given)

    def _keep(self, name, given, tensor):
        if isinstance(given, Parameter):
            # The parameter stays the same object where it can: optimizers hold it.
            if name == "original" and tensor.shape == given.shape and tensor.dtype == given.dtype:
                if tensor is not given:
                    given.data = tensor.detach()
                self.register_parameter(name, given)
            else:
                self.register_parameter(name, Parameter(tensor.detach(), given.requires_grad))
        else:
            self.register_buffer(name, tensor)

    def _check(self, given):
        made = self()
        if not isinstance(made, adjoin.Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
        _keeps(made, given, "Registering a parametrization may not change the {} of the tensor", "unparametrized")

    def right_inverse(self, value):
        """Sets the originals to what gives ``value``; the parametrizations backwards."""
        with adjoin.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, adjoin.Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                self.original.copy_(value)
            else:
                if len(value) != self.ntensors:
                    raise ValueError(
                        "'right_inverse' must return a sequence of tensors of length "
                        f"{self.ntensors}. Got a sequence of length {len(value)}."
                    )
                for i, tensor in enumerate(value):
                    getattr(self, f"original{i}").copy_(tensor)

    def forward(self):
        if self.is_tensor:
            value = self[0](self.original)
        else:
            value = self[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for i in range(1, len(self)):
            value = self[i](value)
        return value


def is_parametrized(module, tensor_name=None):
    """Whether any tensor of ``module``, or that one, has a parametrization."""
    parts = getattr(module, "parametrizations", None)
    if not isinstance(parts, ModuleDict):
        return False
    return len(parts) > 0 if tensor_name is None else tensor_name in parts


def type_before_parametrizations(module):
    """The class that a module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def _parametrized_class(module):
    """A class of the module's own, so that its properties are no other module's."""
    before = type(module)

    def state(self):
        raise RuntimeError("Serialization of parametrized modules is only supported through state_dict().")

    def deepcopy(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        made = self.__new__(type(self))
        memo[id(self)] = made
        made.__dict__ = copy.deepcopy(self.__dict__, memo)
        made.__class__ = _fresh_class(self)
        return made

    return type("Parametrized" + before.__name__, (before,),
                {"__getstate__": state, "__deepcopy__": deepcopy})  # fmt: skip


def _fresh_class(module):
    old = type(module)
    return type(old.__name__, old.__bases__, dict(old.__dict__))


def _add_property(module, name):
    def get(self):
        parts = self.parametrizations[name]
        if not _caching:
            return parts()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parts()
        return _cache[key]

    def put(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """From now on ``module.tensor_name`` is ``parametrization`` of the tensor that stood there.

    ``parametrization.right_inverse``, if there is one, gives the start. ``unsafe``: shape and dtype
    may change.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_again(module, tensor_name, parametrization)
        parts = module.parametrizations[tensor_name]
        parts.append(parametrization)
        parts.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        parts = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.__class__ = _parametrized_class(module)
            module.parametrizations = ModuleDict()
        _add_property(module, tensor_name)
        module.parametrizations[tensor_name] = parts
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def _keeps(made, was, what, asked):
    """Raises unless ``made`` is a tensor of the dtype and the shape of ``was``."""
    for name in ("dtype", "shape"):
        if getattr(made, name) != getattr(was, name):
            raise ValueError(
                f"{what.format(name)}, unless the `unsafe` flag is enabled.\n{asked}: {getattr(was, name)}\n"
                f"there: {getattr(made, name)}"
            )


def _check_again(module, tensor_name, parametrization):
    """A further parametrization, and its inverse, must keep dtype and shape of what the earlier ones gave."""
    asked = f"module.{tensor_name}"
    with adjoin.no_grad():
        value = getattr(module, tensor_name)
        made = parametrization(value)
        if not isinstance(made, adjoin.Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
        _keeps(made, value, "Registering a parametrization may not change the {} of the tensor", asked)
        if not hasattr(parametrization, "right_inverse"):
            return
        try:
            back = parametrization.right_inverse(made)
        except NotImplementedError:
            return
        if not isinstance(back, adjoin.Tensor):
            raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
        what = f"The tensor returned by parametrization.right_inverse must have the same {{}} as {asked}"
        _keeps(back, value, what, asked)


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Makes the tensor an ordinary one: of its present value, or, with ``leave_parametrized``
    False, the original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parts = module.parametrizations[tensor_name]
    original = parts.original if parts.is_tensor else None
    if leave_parametrized:
        with adjoin.no_grad():
            value = getattr(module, tensor_name)
        if original is None:
            trained = any(p.requires_grad for p in parts.parameters(recurse=False))
            is_parameter = bool(parts._parameters)
            original = Parameter(value.detach(), trained) if is_parameter else value.detach()
        else:
            with adjoin.no_grad():
                original.data = value.detach().clone()
    elif original is None:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    if isinstance(original, Parameter):
        module.register_parameter(tensor_name, original)
    else:
        module.register_buffer(tensor_name, original)
    return module


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Gives ``to_module`` the parametrizations of ``from_module`` and their tensors."""
    if not is_parametrized(from_module):
        return to_module
    if tensor_name is not None and not is_parametrized(from_module, tensor_name):
        return to_module
    names = [tensor_name] if tensor_name is not None else list(from_module.parametrizations)
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, copy.deepcopy(getattr(from_module, name).detach()))
        for part in from_module.parametrizations[name]:
            register_parametrization(to_module, name, copy.deepcopy(part), unsafe=True)
        source, target = from_module.parametrizations[name], to_module.parametrizations[name]
        with adjoin.no_grad():
            for key, tensor in (*source._parameters.items(), *source._buffers.items()):
                getattr(target, key).copy_(tensor)
    return to_module
