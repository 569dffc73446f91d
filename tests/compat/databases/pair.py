"""tests/compat/databases/pair.py: values of PyTorch's as Adjoin's of the same content, and the comparison of the two."""

import dataclasses
import types

import adjoin
import torch

from .table import Differs

# By kind of number: relative and absolute distance that rounding and another order of sums may make.
NEAR = {
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
    torch.float32: (1e-4, 1e-4),
    torch.complex64: (1e-4, 1e-4),
    torch.float16: (5e-3, 5e-3),
    torch.bfloat16: (3e-2, 3e-2),
    torch.complex32: (5e-3, 5e-3),
}


def name(value):
    """The last part of a dtype's, layout's or format's name."""
    return str(value).rpartition(".")[2]


def raw(tensor):
    """An Adjoin tensor with the same storage, sizes and strides as a strided tensor of PyTorch's, without its history."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    whole = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage().clone())
    if not whole.numel():
        return adjoin.empty(tuple(tensor.shape), dtype=getattr(adjoin, name(tensor.dtype)))
    carrier = whole.view(torch.int8 if whole.dtype != torch.bool else torch.bool)
    mine = adjoin.from_dlpack(carrier).view(getattr(adjoin, name(tensor.dtype)))
    return mine.as_strided(tuple(tensor.shape), tensor.stride(), tensor.storage_offset())


class Ours:
    """Makes Adjoin's value of PyTorch's; what PyTorch's call names twice is one value here, too."""

    def __init__(self):
        self.made = {}

    def __call__(self, value):
        if isinstance(value, (torch.Tensor, torch.nn.Module, torch.Generator)):
            if id(value) not in self.made:
                make = self.tensor if isinstance(value, torch.Tensor) else self.thing
                self.made[id(value)] = (make(value), value)
            return self.made[id(value)][0]
        if isinstance(value, torch.Size):
            return adjoin.Size(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self, value))
        if isinstance(value, (list, tuple, set)):
            return type(value)(map(self, value))
        if isinstance(value, dict):
            return type(value)((self(k), self(v)) for k, v in value.items())
        if isinstance(value, slice):
            return slice(self(value.start), self(value.stop), self(value.step))
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return getattr(adjoin, name(value))
        if isinstance(value, torch.device):
            return adjoin.device(str(value))
        if dataclasses.is_dataclass(value) and type(value).__module__.startswith("torch.nn"):
            return found(type(value))(**{f.name: self(getattr(value, f.name)) for f in dataclasses.fields(value)})
        if callable(value) and hasattr(value, "__name__"):
            return function(value)
        return value

    def tensor(self, value):
        if value.layout is torch.sparse_coo:
            made = adjoin.sparse_coo_tensor(raw(value._indices()), raw(value._values()), tuple(value.shape))
            made = made.coalesce() if value.is_coalesced() else made
        elif value.layout is not torch.strided:
            make = getattr(adjoin, f"{name(value.layout)}_tensor")
            rows = name(value.layout) in ("sparse_csr", "sparse_bsr")
            outer, inner = ("crow", "col") if rows else ("ccol", "row")
            parts = (getattr(value, f"{outer}_indices")(), getattr(value, f"{inner}_indices")(), value.values())
            made = make(*map(raw, parts), tuple(value.shape))
        else:
            made = raw(value)
        if isinstance(value, torch.nn.Parameter):
            return adjoin.nn.Parameter(made, requires_grad=value.requires_grad)
        return made.requires_grad_(value.requires_grad) if value.requires_grad else made

    def thing(self, value):
        if isinstance(value, torch.Generator):
            return adjoin.Generator().manual_seed(value.initial_seed())
        args, kwargs = value.made_with
        mine = found(type(value))(*self(args), **self(kwargs))
        mine.load_state_dict(self(dict(value.state_dict())))
        return mine.train(value.training)


def remember_arguments(*classes):
    """Modules of these classes can be made again in Adjoin: each keeps what it was made with."""
    for cls in classes:

        def init(self, *args, real=cls.__init__, **kwargs):
            real(self, *args, **kwargs)
            self.made_with = args, kwargs

        cls.__init__ = init


def found(thing):
    """Adjoin's class or function of the name that PyTorch's has."""
    module = thing.__module__ or "torch"
    if "_C" in module:
        module = "torch.nn.functional" if hasattr(torch.nn.functional, thing.__name__) else "torch"
    parts = module.split(".")[1:]
    for n in range(len(parts), -1, -1):
        place = adjoin
        for part in parts[:n]:
            place = getattr(place, part, None)
        if hasattr(place, thing.__name__):
            return getattr(place, thing.__name__)
    raise Differs(f"there is no {module}.{thing.__name__}")


def function(value):
    """PyTorch's function, or one written over PyTorch's names, over Adjoin's."""
    if isinstance(value, types.FunctionType) and (value.__module__ or "").startswith("torch.testing"):
        return rebound(value)
    if isinstance(value, type) or (getattr(value, "__module__", None) or "").startswith("torch."):
        return found(value) if (value.__module__ or "").startswith("torch") else value
    if getattr(torch, getattr(value, "__name__", ""), None) is value:
        return getattr(adjoin, value.__name__)
    return value


class _Names(dict):
    """The names that a function of PyTorch's sees, with Adjoin's in the place of PyTorch's modules."""

    def __init__(self, real):
        super().__init__(real)
        for key, value in real.items():
            if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] == "torch":
                mine = adjoin
                for part in value.__name__.split(".")[1:]:
                    mine = getattr(mine, part, None)
                if mine is not None:
                    self[key] = mine
            elif isinstance(value, type) and value.__module__.startswith(("torch.nn", "torch.optim")):
                try:
                    self[key] = found(value)
                except Differs:
                    pass  # a name that the function may not use


_names = {}


def rebound(value):
    """A function written over PyTorch, the same code over Adjoin."""
    real = value.__globals__
    if id(real) not in _names:
        _names[id(real)] = _Names(real)
    cells = tuple(types.CellType(Ours()(c.cell_contents)) for c in value.__closure__ or ())
    made = types.FunctionType(value.__code__, _names[id(real)], value.__name__, value.__defaults__, cells)
    made.__kwdefaults__ = value.__kwdefaults__
    return made


def theirs(tensor):
    """A PyTorch tensor with the content and the strides of a strided tensor of Adjoin's."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    kind = getattr(torch, name(tensor.dtype))
    flat = tensor.contiguous().reshape(-1)
    if not flat.numel():
        return torch.empty(tuple(tensor.shape), dtype=kind)
    carrier = flat if kind is torch.bool else flat.view(adjoin.int8)
    return torch.from_dlpack(carrier).view(kind).reshape(tuple(tensor.shape))


def same(mine, yours, *, strides=False, near=None, where="result", values=True):
    """Raises Differs unless Adjoin's value is PyTorch's: kinds, sizes, dtypes, and numbers nearly."""
    if isinstance(yours, torch.Tensor):
        if not isinstance(mine, adjoin.Tensor):
            raise Differs(f"{where} is {type(mine).__name__}, not a tensor")
        same_tensor(mine, yours, strides, near, where, values)
    elif isinstance(yours, (list, tuple)):
        if not isinstance(mine, (list, tuple)) or len(mine) != len(yours):
            raise Differs(
                f"{where} is {type(mine).__name__} of {len(mine) if hasattr(mine, '__len__') else '?'}, not {len(yours)}"
            )
        for i, (a, b) in enumerate(zip(mine, yours, strict=True)):
            same(a, b, strides=strides, near=near, where=f"{where}[{i}]", values=values)
    elif isinstance(yours, dict):
        if set(mine) != set(yours):
            raise Differs(f"{where} has the keys {list(mine)}, not {list(yours)}")
        for key in yours:
            same(mine[key], yours[key], strides=strides, near=near, where=f"{where}[{key!r}]", values=values)
    elif isinstance(yours, (torch.dtype, torch.layout, torch.device)):
        if name(mine) != name(yours):
            raise Differs(f"{where} is {mine}, not {yours}")
    elif isinstance(yours, (int, float, complex)) and values:
        if type(mine) is not type(yours):
            raise Differs(f"{where} is {mine!r}, not {yours!r}")
        if not torch.allclose(torch.tensor(mine), torch.tensor(yours), 1e-5, 1e-7, equal_nan=True):
            raise Differs(f"{where} is {mine!r}, not {yours!r}")
    elif isinstance(yours, (str, type(None))) and mine != yours:
        raise Differs(f"{where} is {mine!r}, not {yours!r}")


def same_tensor(mine, yours, strides, near, where, values):
    for what in ("dtype", "layout"):
        if name(getattr(mine, what)) != name(getattr(yours, what)):
            raise Differs(f"{where} has the {what} {getattr(mine, what)}, not {getattr(yours, what)}")
    if tuple(mine.shape) != tuple(yours.shape):
        raise Differs(f"{where} has the sizes {tuple(mine.shape)}, not {tuple(yours.shape)}")
    if mine.requires_grad != yours.requires_grad and yours.numel():
        raise Differs(f"{where} has requires_grad={mine.requires_grad}, not {yours.requires_grad}")
    if yours.layout is not torch.strided:
        mine, yours = mine.to_dense(), yours.to_dense()
    elif strides and tuple(mine.stride()) != tuple(yours.stride()) and yours.numel():
        raise Differs(f"{where} has the strides {tuple(mine.stride())}, not {tuple(yours.stride())}")
    if not values or yours.device.type == "meta":
        return
    relative, absolute = near or NEAR.get(yours.dtype, (0, 0))
    kind = yours.dtype if yours.dtype not in (torch.complex32,) else torch.complex64
    a, b = theirs(mine).to(kind), yours.detach().resolve_conj().resolve_neg().to(kind)
    if kind.is_floating_point and kind.itemsize < 4:
        a, b = a.float(), b.float()
    close = torch.isclose(a, b, relative, absolute, equal_nan=True)
    if not close.all():
        at = tuple(torch.nonzero(~close)[0].tolist())
        raise Differs(
            f"{where}{list(at)} is {a[at].item()}, not {b[at].item()}; {int((~close).sum())} of {close.numel()} differ"
        )
