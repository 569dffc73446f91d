"""adjoin._op_overload: an op under the name of one overload, as programs for PyTorch name it: ``torch.ops.aten.add.Tensor``."""

import enum

stands_for = None  # of fx, once it is loaded: a call with a proxy is a step of its graph

Tag = enum.Enum(
    "Tag",
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace_view maybe_aliasing_or_mutating "
    "needs_contiguous_strides needs_exact_strides needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded pointwise "
    "pt2_compliant_tag reduction view_copy",
    module="torch",
)
Tag.__doc__ = """What somebody says of an op that he defines; ``torch.ops.space.name.default.tags`` tells it."""


class OpOverload:
    """One overload: callable, with the names and the schema that programs ask for."""

    def __init__(self, op, qualname, overload="default", packet=None):
        self._op, self._qualified, self._overloadname = op, qualname, overload
        self.overloadpacket = op if packet is None else packet
        self.namespace, _, short = qualname.rpartition("::")
        self._opname = short
        self.__name__ = f"{short}.{overload}"
        self.__qualname__, self.__module__ = self.__name__, f"torch._ops.{self.namespace}"
        self.__doc__ = getattr(op, "__doc__", None)

    def __call__(self, *args, **kwargs):
        if stands_for is not None and (made := stands_for(self, args, kwargs)) is not None:
            return made
        return self._op(*args, **kwargs)

    def _arguments(self):
        """The parameters of its schema."""
        from .testing._samples import Op

        return Op(self._rows()[0]["name"]).params

    def _results(self):
        from .testing._samples import Op

        return Op(self._rows()[0]["name"]).results

    def _words(self):
        return [p.name for p in self._arguments()]

    def _rows(self):
        from . import _C

        module = (getattr(self._op, "__module__", None) or "").rpartition(".")[2]
        spaces = (self.namespace, module, "", "nn", "_")
        name = getattr(self._op, "__name__", self._opname)
        for space in dict.fromkeys(spaces):
            for ending in dict.fromkeys((name, name.removesuffix("_"))):
                if rows := _C.op_info(f"{space}::{ending}" if space not in ("", "aten", "adjoin") else ending):
                    return rows
        raise AttributeError(f"{self}: no row says its schema")

    @property
    def _schema(self):
        return Schema(self, self._rows()[0]["schema"])

    @property
    def tags(self):
        """What was said of an op that was defined in Python."""
        from .library import _definitions

        found = _definitions.get(self._qualified)
        return list(found.tags) if found else []

    def name(self):
        """Space, name and overload: ``aten::add.Tensor``."""
        return self._qualified + ("" if self._overloadname == "default" else f".{self._overloadname}")

    @property
    def _name(self):
        return self.name()

    @property
    def _defined_in_python(self):
        from .library import _definitions

        return self._qualified in _definitions

    def __repr__(self):
        return f"<OpOverload(op='{self._qualified.replace('::', '.')}', overload='{self._overloadname}')>"

    def __str__(self):
        return f"{self.namespace}.{self.__name__}"

    def __hash__(self):
        return hash((self._qualified, self._overloadname))

    def __eq__(self, other):
        return isinstance(other, OpOverload) and self.name() == other.name()

    def __reduce__(self):
        return _found, (self._qualified, self._overloadname)

    def __deepcopy__(self, memo):
        return self


def _found(qualname, overload):
    from . import ops

    space, _, name = qualname.rpartition("::")
    return getattr(getattr(getattr(ops, space), name), overload)


class Schema:
    """What ``func._schema`` is asked for: its name, its arguments, whether it writes to one; as text the row's signature."""

    def __init__(self, overload, text):
        self.name, self.overload_name = overload._qualified, overload._overloadname.replace("default", "")
        self.returns = overload._results()
        self.arguments, self._text = overload._arguments(), f"{overload.name()}{text[text.index('(') :]}"

    @property
    def is_mutable(self):
        """Does the op write to an argument?"""
        return self.name.endswith("_") or any(p.written for p in self.arguments)

    def __str__(self):
        return self._text

    __repr__ = __str__
