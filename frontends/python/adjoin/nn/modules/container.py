"""adjoin.nn.modules.container: modules that hold modules, or parameters, in order."""

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Mapping

import adjoin

from ... import _C
from ..parameter import Parameter
from .activation import ReLU
from .module import Module, _indented
from .pooling import MaxPool1d, MaxPool2d, MaxPool3d

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _place(index, size):
    """``index`` as a position in [0, size), counted from the end when negative."""
    index = operator.index(index)
    if not -size <= index < size:
        allowed = f"; it must be from {-size} to {size - 1}" if size else ""
        raise IndexError(
            f"index {index} is out of range: there {'is' if size == 1 else 'are'} {size or 'none'} in it{allowed}"
        )
    return index % size


class Container(Module):
    """Modules by name, from when Module itself could not hold any: ``Container(first=a, second=b)``."""

    def __init__(self, **kwargs):
        warnings.warn(
            "nn.Container is deprecated. All of it's functionality is now implemented in nn.Module. Subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


_MAXIMA = {MaxPool1d, MaxPool2d, MaxPool3d}


def _commute(relu, maximum, input):
    """Whether ``maximum`` may run before ``relu`` unseen. ReLU never turns an order around, so value
    and gradient stay what they are, and ReLU works on one number a window and saves as many."""
    return (
        type(input) is adjoin.Tensor
        and not relu.inplace
        and not maximum.return_indices
        and not _C.module_is_watched(relu)
        and not _C.module_is_watched(maximum)
    )


class _Numbered(Module):
    """Children under the names "0", "1", …, without a gap."""

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, index):
        modules = list(self._modules.values())
        if type(index) is int and -len(modules) <= index < len(modules):
            return modules[index]
        if isinstance(index, slice):
            return self._of(modules[index])
        return modules[_place(index, len(modules))]

    def __setitem__(self, index, module):
        if isinstance(index, slice):
            places = range(len(self))[index]
            for place, one in zip(places, module, strict=True):
                setattr(self, str(place), one)
            return
        names = list(self._modules)
        setattr(self, names[_place(index, len(names))], module)

    def __delitem__(self, index):
        names = list(self._modules)
        gone = names[index] if isinstance(index, slice) else [names[_place(index, len(names))]]
        for name in gone:
            delattr(self, name)
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules):
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, module):
        """Adds ``module`` at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        """Adds every module of an iterable at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index, module):
        """Puts ``module`` before the one at ``index``."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)

    def pop(self, key):
        """Takes the module at ``key`` out and returns it."""
        module = self[key]
        del self[key]
        return module


class Sequential(_Numbered):
    """Calls its modules one after the other: ``Sequential(a, b)`` or
    ``Sequential(OrderedDict(first=a))``. A maximum behind a ReLU is taken before it, where nothing
    can tell (no hooks, the same numbers): the ReLU then has a quarter of them or less."""

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input):
        relu = None  # one whose turn has come, but which may follow the maximum behind it
        for module in self._modules.values():
            if relu is not None:
                first, relu = relu, None
                if type(module) in _MAXIMA and _commute(first, module, input):
                    first, module = module, first
                input = first(input)
            if type(module) is ReLU:
                relu = module
            else:
                input = module(input)
        return input if relu is None else relu(input)

    def _of(self, modules):
        chosen = {id(module) for module in modules}
        named = OrderedDict((n, m) for n, m in self._modules.items() if id(m) in chosen)
        if len(named) == len(modules) and list(named.values()) == modules:
            return type(self)(named)
        return type(self)(*modules)

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(  # noqa: TRY004  (PyTorch's class)
                f"add operator supports only objects of Sequential class, but {type(other)!s} is given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(  # noqa: TRY004  (PyTorch's class)
                f"add operator supports only objects of Sequential class, but {type(other)!s} is given."
            )
        return self.extend(other)

    def __mul__(self, other):
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return Sequential(*(list(self) * other))

    __rmul__ = __mul__

    def __imul__(self, other):
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return self.extend(list(self) * (other - 1))

    def insert(self, index, module):
        """Puts ``module`` before the one at ``index``."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")  # noqa: TRY004  (PyTorch's class)
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)
        return self


class ModuleList(_Numbered):
    """A list of modules that a Module knows as its children."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _of(self, modules):
        return type(self)(modules)

    def extend(self, modules):
        """Adds every module of an iterable at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, "
                f"but got {type(modules).__name__}; put it into a list"
            )
        return super().extend(modules)

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        return ModuleList([*self, *other])

    def __repr__(self):
        texts = [repr(module) for module in self]
        if not texts:
            return self._get_name() + "()"
        runs = []  # [first, last, text]: equal neighbours share a line
        for i, text in enumerate(texts):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = []
        for first, last, text in runs:
            count = last - first + 1
            head = f"({first})" if count == 1 else f"({first}-{last})"
            times = "" if count == 1 else f"{count} x "
            lines.append(_indented(f"{head}: {times}{text}"))
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dictionary of modules that a Module knows as its children, in the order of insertion."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Takes every module out."""
        self._modules.clear()

    def pop(self, key):
        """Takes the module at ``key`` out and returns it."""
        return self._modules.pop(key)

    def keys(self):
        """The names."""
        return self._modules.keys()

    def items(self):
        """The (name, module) pairs."""
        return self._modules.items()

    def values(self):
        """The modules."""
        return self._modules.values()

    def update(self, modules):
        """Adds from a mapping, another ModuleDict, or an iterable of pairs."""
        for key, module in _pairs(modules, "ModuleDict"):
            self[key] = module


def _pairs(source, who):
    if isinstance(source, (Mapping, ModuleDict, ParameterDict)):
        return list(source.items())
    if not isinstance(source, Iterable):
        raise TypeError(
            f"{who}.update should be called with an iterable of key/value pairs, but got {type(source).__name__}"
        )
    pairs = []
    for place, pair in enumerate(source):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{who} update sequence element #{place} should be Iterable; "
                f"is {type(pair).__name__}; give a dict, or pairs of a name and a value"
            )
        pair = list(pair)
        if len(pair) != 2:
            raise ValueError(f"{who} update sequence element #{place} has length {len(pair)}; 2 is required")
        pairs.append(pair)
    return pairs


def _as_parameter(value):
    """Tensors become Parameters; anything else stays what it is."""
    if isinstance(value, adjoin.Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _described(value, kind_of):
    if not isinstance(value, adjoin.Tensor):
        return f"Object of type: {type(value).__name__}"
    size = "x".join(str(n) for n in value.shape)
    device = "" if value.device.type == "cpu" else f" ({value.device})"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{kind_of(value)} of size {size}{device}]"


def _listed(name, items, kind_of):
    lines = [f"  ({key}): {_described(value, kind_of)}" for key, value in items]
    if len(lines) > 1:
        return f"{name}(\n" + "".join(f"  {line}\n" for line in lines) + ")"
    return f"{name}({''.join(lines)})"


class ParameterList(Module):
    """A list of parameters that a Module knows; what is not a tensor is kept but not trained."""

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter(self[i] for i in range(len(self)))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(*index.indices(len(self)))])
        return getattr(self, str(_place(index, len(self))))

    def __setitem__(self, index, value):
        setattr(self, str(_place(index, len(self))), _as_parameter(value))

    def append(self, value):
        """Adds ``value`` at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values):
        """Adds every value of an iterable at the end."""
        if not isinstance(values, Iterable) or isinstance(values, adjoin.Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values):
        return self.extend(values)

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def __repr__(self):
        return _listed(self._get_name(), enumerate(self), lambda value: value.dtype)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters that a Module knows, in the order of insertion."""

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key):
        return getattr(self, str(key))

    def __setitem__(self, key, value):
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}'). Open an issue on github if you need "
                "non-string keys."
            )
        self._keys[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, key)

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def copy(self):
        """A new ParameterDict of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key, default=None):
        """The value at ``key``, which is ``default`` if it was absent."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        """Takes everything out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key):
        """Takes the value at ``key`` out and returns it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Takes the last (key, value) out and returns it."""
        key = next(reversed(self))
        return key, self.pop(key)

    def get(self, key, default=None):
        """The value at ``key``, or ``default``."""
        return self[key] if key in self else default  # noqa: SIM401  (get is this function)

    def fromkeys(self, keys, default=None):
        """A new ParameterDict with ``default`` under each key."""
        return ParameterDict((key, default) for key in keys)

    def keys(self):
        """The names."""
        return self._keys.keys()

    def items(self):
        """The (name, value) pairs."""
        return ((key, self[key]) for key in self._keys)

    def values(self):
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters):
        """Adds from a mapping, another ParameterDict, or an iterable of pairs."""
        pairs = _pairs(parameters, "ParameterDict")
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs = sorted(pairs)  # PyTorch sorts a plain dictionary, and optimizers see the order
        for key, value in pairs:
            self[key] = value

    def __repr__(self):
        return _listed(self._get_name(), self.items(), adjoin.typename)

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other):
        copy = self.copy()
        copy.update(other)
        return copy

    def __ror__(self, other):
        copy = ParameterDict(other)
        copy.update(self)
        return copy

    def __ior__(self, other):
        self.update(other)
        return self
