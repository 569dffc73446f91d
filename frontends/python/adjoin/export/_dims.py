"""adjoin.export's dimensions that may differ from call to call, and what people write for them."""

import inspect

from .. import Tensor


class _Mark:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"Dim.{self.name}"


class Dim:
    """A dimension with a name: where the name stands twice, the sizes are the same."""

    AUTO = DYNAMIC = _Mark("DYNAMIC")
    STATIC = _Mark("STATIC")

    def __init__(self, name, *, min=None, max=None):
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"Dim: a name is wanted that could be a variable's, not {name!r}")
        self.__name__, self.min, self.max = name, 0 if min is None else min, max
        if max is not None and self.min > max:
            raise ValueError(f"Dim: '{name}' has min {self.min}, which is above max {max}")

    def __repr__(self):
        return f"Dim({self.__name__!r}, min={self.min}, max={self.max})"


def dims(*names, min=None, max=None):
    """Several dimensions of the same bounds."""
    return tuple(Dim(name, min=min, max=max) for name in names)


def of_one(spec, place, found):
    """What stands for one tensor, {dimension: name}; Dim objects go to found."""
    items = spec.items() if isinstance(spec, dict) else enumerate(spec or ())
    made = {}
    for at, dim in items:
        if dim is None or isinstance(dim, int) or dim is Dim.STATIC:
            continue
        if dim is Dim.DYNAMIC:
            dim = Dim(f"s{len(found)}")
        if isinstance(dim, str):
            dim = found.get(dim) or Dim(dim)
        if not isinstance(dim, Dim):
            raise TypeError(
                f"export: dimension {at} of input {place!r} is {dim!r}; a Dim, Dim.DYNAMIC or None is wanted"
            )
        found[dim.__name__] = dim
        made[at] = dim.__name__
    return made


def of_input(spec, value, place, found):
    """The same for an input, which may be nested as the spec is; None: nothing of it differs."""
    if spec is None:
        return None
    if isinstance(value, Tensor):
        return of_one(spec, place, found) or None
    if isinstance(value, dict) and isinstance(spec, dict):
        if unknown := [key for key in spec if key not in value]:
            raise ValueError(f"export: dynamic_shapes names {unknown[0]!r}, which input {place!r} lacks")
        made = {key: of_input(inner, value[key], place, found) for key, inner in spec.items()}
        return made if any(m is not None for m in made.values()) else None
    if isinstance(value, (tuple, list)) and isinstance(spec, (tuple, list)):
        if len(value) != len(spec):
            raise ValueError(
                f"export: dynamic_shapes has {len(spec)} entries for input {place!r}, which has {len(value)}"
            )
        made = [of_input(inner, one, place, found) for inner, one in zip(spec, value, strict=True)]
        return made if any(m is not None for m in made) else None
    raise TypeError(f"export: dynamic_shapes has {spec!r} for input {place!r}, which is a {type(value).__name__}")


def resolve(function, args, kwargs, spec):
    """(what jit.trace takes as dynamic, the dimensions by name) of dynamic_shapes."""
    if not spec:
        return None, {}
    if not isinstance(spec, dict):
        if len(spec) != len(args):
            raise ValueError(f"export: dynamic_shapes has {len(spec)} entries, there are {len(args)} inputs")
        places = list(enumerate(spec))
    else:
        names = list(inspect.signature(function).parameters)
        unknown = [name for name in spec if name not in names and name not in kwargs]
        if unknown:
            raise ValueError(f"export: dynamic_shapes names {unknown[0]!r}; inputs are {', '.join(names)}")
        places = [(name if name in kwargs else names.index(name), dims) for name, dims in spec.items()]
    found, made = {}, {}
    for place, dims in places:
        if place not in kwargs and not (isinstance(place, int) and place < len(args)):
            raise ValueError(f"export: dynamic_shapes has input {place!r}, which is not given")
        named = of_input(dims, kwargs[place] if place in kwargs else args[place], place, found)
        if named is not None:
            made[place] = named
    return made or None, found
