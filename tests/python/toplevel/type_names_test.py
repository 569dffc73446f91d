"""tests/python/toplevel/type_names_test.py: types of scripted values as objects: what PyTorch prints, which are parts of which."""

import typing

import adjoin
import pytest
from adjoin.jit.annotations import ann_to_type, try_ann_to_type

INT, TENSOR, STRING = adjoin.IntType.get(), adjoin.TensorType.get(), adjoin.StringType.get()


@pytest.mark.parametrize(
    "annotation, text, kind",
    [
        (int, "int", "IntType"),
        (adjoin.Tensor, "Tensor", "TensorType"),
        (adjoin.nn.Parameter, "Tensor", "TensorType"),
        (list[adjoin.Tensor], "List[Tensor]", "ListType"),
        (typing.Optional[int], "Optional[int]", "OptionalType"),  # noqa: UP045
        (int | None, "Optional[int]", "OptionalType"),
        (typing.Dict[str, int], "Dict[str, int]", "DictType"),  # noqa: UP006
        (tuple[int, adjoin.Tensor], "Tuple[int, Tensor]", "TupleType"),
        (tuple[()], "Tuple[()]", "TupleType"),
        (None, "NoneType", "NoneType"),
        (adjoin.device, "Device", "DeviceObjType"),
        (adjoin.dtype, "int", "IntType"),
        (typing.Any, "Any", "AnyType"),
        (int | str, "Union[int, str]", "UnionType"),
    ],
)
def test_annotations(annotation, text, kind):
    made = ann_to_type(annotation)
    assert (str(made), made.annotation_str, made.kind()) == (text, text, kind)
    assert made == try_ann_to_type(annotation) and hash(made) == hash(try_ann_to_type(annotation))


def test_what_has_no_type_is_said():
    assert try_ann_to_type(set) is None and try_ann_to_type(list[set]) is None
    with pytest.raises(ValueError, match="Unknown type annotation: '<class 'set'>'"):
        ann_to_type(set)
    with pytest.raises(TypeError, match="ListType: its parts are types"):
        adjoin.ListType(int)


def test_parts_and_subtypes():
    ints, words = adjoin.ListType(INT), adjoin.DictType(STRING, adjoin.FloatType.get())
    assert (ints.getElementType(), words.getKeyType(), str(words.getValueType())) == (INT, STRING, "float")
    assert str(adjoin.UnionType([INT, TENSOR, STRING])) == "Union[Tensor, int, str]"
    assert adjoin.UnionType([INT, adjoin.NoneType.get()]) == adjoin.OptionalType(INT)
    assert adjoin.TupleType([ints, INT]).elements() == [ints, INT]
    number, maybe = adjoin.NumberType.get(), adjoin.OptionalType(INT)
    assert INT.isSubtypeOf(number) and INT.isSubtypeOf(maybe) and adjoin.NoneType.get().isSubtypeOf(maybe)
    assert (
        not maybe.isSubtypeOf(INT) and not STRING.isSubtypeOf(number) and not ints.isSubtypeOf(adjoin.ListType(number))
    )
    assert adjoin.TupleType([INT]).isSubtypeOf(adjoin.TupleType([number])) and ints.isSubtypeOf(adjoin.AnyType.get())
    assert adjoin._C.TensorType is adjoin.TensorType
