"""adjoin.jit._type_names: the types of scripted values as objects, as programs look at annotations through them."""

import types
import typing

from .. import _C


class Type:
    """A type: its text is what an annotation would say."""

    def __init__(self, *parts):
        for part in parts:
            if not isinstance(part, Type):
                raise TypeError(f"{type(self).__name__}: its parts are types like IntType.get(), not {part!r}")
        self._parts = parts

    @classmethod
    def get(cls):
        """The type: all of a kind without parts are equal."""
        return cls()

    def kind(self):
        """The name of the class."""
        return type(self).__name__.removeprefix("_")

    def containedTypes(self):
        """The types that it is made of."""
        return list(self._parts)

    @property
    def annotation_str(self):
        """What an annotation says."""
        return f"{self._word}[{', '.join(map(str, self._parts))}]" if self._parts else self._word

    def str(self):
        """The text."""
        return self.annotation_str

    def isSubtypeOf(self, other):
        """Is every value of this type one of the other?"""
        if self == other or isinstance(other, AnyType):
            return True
        if isinstance(self, UnionType):
            return all(part.isSubtypeOf(other) for part in self._options())
        if isinstance(other, UnionType):
            return any(self.isSubtypeOf(part) for part in other._options())
        if isinstance(self, TupleType) and isinstance(other, TupleType) and len(self._parts) == len(other._parts):
            return all(a.isSubtypeOf(b) for a, b in zip(self._parts, other._parts, strict=True))
        return isinstance(other, NumberType) and isinstance(self, (IntType, FloatType, ComplexType))

    def __eq__(self, other):
        return type(self) is type(other) and self._parts == other._parts

    def __hash__(self):
        return hash((type(self), self._parts))

    def __repr__(self):
        return self.annotation_str


def _plain(name, word):
    return type(
        name, (Type,), {"__init__": lambda self: Type.__init__(self), "_word": word, "__doc__": f"The type `{word}`."}
    )


AnyType, TensorType, NumberType = (
    _plain("AnyType", "Any"),
    _plain("TensorType", "Tensor"),
    _plain("NumberType", "number"),
)
IntType, FloatType, ComplexType = (
    _plain("IntType", "int"),
    _plain("FloatType", "float"),
    _plain("ComplexType", "complex"),
)
BoolType, StringType, NoneType = _plain("BoolType", "bool"), _plain("StringType", "str"), _plain("NoneType", "NoneType")
DeviceObjType, _GeneratorType = _plain("DeviceObjType", "Device"), _plain("_GeneratorType", "Generator")


class ListType(Type):
    """A list of values of one type."""

    _word = "List"

    def __init__(self, element):
        super().__init__(element)

    @classmethod
    def ofTensors(cls):
        """The list of tensors."""
        return cls(TensorType())

    def getElementType(self):
        """The type of its values."""
        return self._parts[0]


class FutureType(ListType):
    """What a future will give."""

    _word = "Future"


class DictType(Type):
    """A dictionary: the type of its keys, that of its values."""

    _word = "Dict"

    def __init__(self, key, value):
        super().__init__(key, value)

    def getKeyType(self):
        """The type of the keys."""
        return self._parts[0]

    def getValueType(self):
        """The type of the values."""
        return self._parts[1]


class TupleType(Type):
    """As many values as types."""

    _word = "Tuple"

    def __init__(self, elements):
        super().__init__(*elements)

    @property
    def annotation_str(self):
        """What an annotation says."""
        return super().annotation_str if self._parts else "Tuple[()]"

    def elements(self):
        """The types of its values."""
        return list(self._parts)


class UnionType(Type):
    """A value of one of the types; with None and one other it is their Optional."""

    _word = "Union"

    def __new__(cls, options=()):
        if cls is UnionType and len(options) == 2 and NoneType() in options:
            return OptionalType(next(o for o in options if o != NoneType()))
        return super().__new__(cls)

    def __init__(self, options):
        super().__init__(*sorted(options, key=lambda o: not isinstance(o, TensorType)))

    def _options(self):
        return self._parts


class OptionalType(UnionType):
    """A value of a type, or None."""

    _word = "Optional"

    def __init__(self, element):
        Type.__init__(self, *(element if isinstance(element, (list, tuple)) else [element]))
        self._parts = tuple(p for p in self._parts if p != NoneType())

    @classmethod
    def ofTensor(cls):
        """A tensor, or None."""
        return cls(TensorType())

    def getElementType(self):
        """The type of a value that is not None."""
        return self._parts[0]

    def _options(self):
        return (*self._parts, NoneType())


_OF = {
    int: IntType, float: FloatType, complex: ComplexType, bool: BoolType, str: StringType, None: NoneType, type(None): NoneType,
    typing.Any: AnyType, _C.Tensor: TensorType, _C.device: DeviceObjType, _C.dtype: IntType, _C.Generator: _GeneratorType,
}  # fmt: skip


def try_ann_to_type(ann, loc=None, rcb=None):
    """The type that an annotation names; None for one that scripts have no type for."""
    made = _OF.get(ann) if not isinstance(ann, list) else None
    if made is not None:
        return made()
    if isinstance(ann, type) and not typing.get_args(ann) and issubclass(ann, _C.Tensor):
        return TensorType()
    origin, args = typing.get_origin(ann), typing.get_args(ann)
    parts = [try_ann_to_type(a, loc, rcb) for a in args if a != ()]
    if origin is None or None in parts:
        return None
    if origin is list:
        return ListType(*parts)
    if origin is dict:
        return DictType(*parts)
    if origin is tuple:
        return TupleType(parts)
    if origin in (typing.Union, types.UnionType):
        return UnionType(parts)
    return None


def ann_to_type(ann, loc=None, rcb=None):
    """The type that an annotation names; raises for one that scripts have no type for."""
    made = try_ann_to_type(ann, loc, rcb)
    if made is None:
        raise ValueError(f"Unknown type annotation: '{ann}'" + (f" at {loc.highlight()}" if loc else ""))
    return made
