"""adjoin.export's dimensions that may differ from call to call, and what people write for them."""

import inspect


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
        if named := of_one(dims, place, found):
            made[place] = named
    return made or None, found
