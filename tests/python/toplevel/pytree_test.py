"""tests/python/toplevel/pytree_test.py: adjoin.utils._pytree: nodes of every kind, own ones, paths, texts, mistakes."""

import dataclasses
import subprocess
import sys
import time
from collections import OrderedDict, defaultdict, deque, namedtuple

import adjoin
import pytest
from adjoin.utils import _pytree as pytree

Point = namedtuple("Point", "x y")
TREES = [
    5,
    None,
    [],
    (),
    {},
    [1, (2, 3), {"a": 4, "b": [5]}],
    OrderedDict(b=1, a=[2, 3]),
    deque([1, (2,)], maxlen=4),
    Point(1, [2, 3]),
    defaultdict(list, {"k": [1, 2]}),
    adjoin.Size([2, 3]),
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_a_tree_is_its_leaves_and_its_shape(tree):
    leaves, spec = pytree.tree_flatten(tree)
    again = pytree.tree_unflatten(leaves, spec)
    assert again == tree and type(again) is type(tree)
    assert spec == pytree.tree_structure(tree) and spec.num_leaves == len(leaves) == len(pytree.tree_leaves(tree))
    doubled = pytree.tree_map(lambda x: 2 * (x or 0), tree)
    assert pytree.tree_leaves(doubled) == [2 * (x or 0) for x in leaves]
    assert hash(spec) == hash(pytree.tree_structure(tree))


def test_what_makes_a_container_again_comes_back():
    kept = pytree.tree_map(lambda x: x, deque([1], maxlen=3))
    assert kept.maxlen == 3
    assert pytree.tree_map(lambda x: x, defaultdict(int, a=1))["missing"] == 0
    assert list(pytree.tree_map(lambda x: x, OrderedDict([("z", 1), ("a", 2)]))) == ["z", "a"]


def test_several_trees_are_walked_together():
    assert pytree.tree_map(lambda a, b: a + b, [1, (2, 3)], [10, (20, 30)]) == [11, (22, 33)]
    assert pytree.tree_map(lambda a, b: (a, b), [1, 2], [[3], {"k": 4}]) == [(1, [3]), (2, {"k": 4})]
    assert pytree.tree_map(lambda a, b: a - b, {"a": 1, "b": 2}, {"b": 20, "a": 10}) == {"a": -9, "b": -18}
    for wrong, words in (([1], "arity"), ((1, 2), "Type mismatch"), (7, "Type mismatch")):
        with pytest.raises(ValueError, match=words):
            pytree.tree_map(lambda a, b: a, [1, 2], wrong)
    with pytest.raises(ValueError, match="keys mismatch"):
        pytree.tree_map(lambda a, b: a, {"a": 1}, {"b": 1})


def test_some_leaves_and_questions():
    tree = [1, "a", (2.0, None)]
    assert pytree.tree_map_only(int, lambda x: -x, tree) == [-1, "a", (2.0, None)]
    assert pytree.tree_map_only((int, float), lambda x: -x, tree) == [-1, "a", (-2.0, None)]
    assert pytree.tree_map_only(lambda x: x is None, lambda x: 0, tree) == [1, "a", (2.0, 0)]
    assert pytree.tree_any(lambda x: x is None, tree) and not pytree.tree_all(lambda x: x is None, tree)
    assert pytree.tree_all_only(int, lambda x: x == 1, tree) and not pytree.tree_any_only(float, lambda x: x < 0, tree)
    assert pytree.tree_leaves(tree, is_leaf=lambda x: isinstance(x, tuple)) == [1, "a", (2.0, None)]
    assert pytree.arg_tree_leaves([1, 2], k=(3,)) == [1, 2, 3]
    seen = []
    assert pytree.tree_map_(seen.append, tree) is tree and seen == [1, "a", 2.0, None]
    assert pytree.tree_is_leaf(3) and not pytree.tree_is_leaf([])


class Pair:
    def __init__(self, a, b, note):
        self.a, self.b, self.note = a, b, note


def test_a_class_of_the_programs_own_is_a_node_once_it_is_registered():
    assert pytree.tree_leaves(p := Pair(1, [2], "n")) == [p]
    pytree.register_pytree_node(
        Pair,
        lambda p: ([p.a, p.b], p.note),
        lambda children, note: Pair(*children, note),
        serialized_type_name="tests.Pair",
        flatten_with_keys_fn=lambda p: ([(pytree.GetAttrKey("a"), p.a), (pytree.GetAttrKey("b"), p.b)], p.note),
    )
    try:
        made = pytree.tree_map(lambda x: x * 10, Pair(1, [2], "n"))
        assert (made.a, made.b, made.note) == (10, [20], "n")
        assert [pytree.keystr(k) for k, _ in pytree.tree_leaves_with_path(made)] == [".a", ".b[0]"]
        with pytest.raises(ValueError, match="already registered"):
            pytree.register_pytree_node(Pair, None, None)
        spec = pytree.tree_structure(made)
        assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    finally:
        pytree._deregister_pytree_node(Pair)
    assert pytree.tree_leaves(p) == [p]


def test_data_classes_and_constants():
    @dataclasses.dataclass
    class Batch:
        x: int
        y: object = None

    @dataclasses.dataclass(frozen=True)
    class Name:
        text: str

    pytree.register_dataclass(Batch)
    pytree.register_constant(Name)
    try:
        assert pytree.tree_map(lambda v: v + 1, Batch(1, (2,))) == Batch(2, (3,))
        assert pytree.tree_leaves(Batch(1)) == [1] and pytree.tree_map(lambda v: v, Batch(1)) == Batch(1)
        assert pytree.tree_leaves([Name("a"), 1]) == [1]
        assert pytree.tree_structure([Name("a"), 1]) != pytree.tree_structure([Name("b"), 1])
    finally:
        pytree._deregister_pytree_node(Batch)
        pytree._deregister_pytree_node(Name)


def test_ways_to_leaves():
    tree = {"a": [1, 2], "b": (Point(3, 4),)}
    found, spec = pytree.tree_flatten_with_path(tree)
    assert [(pytree.keystr(k), v) for k, v in found] == [
        ("['a'][0]", 1), ("['a'][1]", 2), ("['b'][0].x", 3), ("['b'][0].y", 4)
    ]  # fmt: skip
    assert spec == pytree.tree_structure(tree) and all(pytree.key_get(tree, k) == v for k, v in found)
    named = pytree.tree_map_with_path(lambda k, v: f"{pytree.keystr(k)}={v}", tree)
    assert named["b"][0] == Point("['b'][0].x=3", "['b'][0].y=4")
    assert found[0][0] == (pytree.MappingKey("a"), pytree.SequenceKey(0))


def test_shapes_as_text():
    for tree in TREES[:8] + [defaultdict(list, a=[1])]:
        spec = pytree.tree_structure(tree)
        assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    assert pytree.treespec_pprint(pytree.tree_structure([1, {"k": 2}])) == "[*, {'k': *}]"
    assert repr(pytree.tree_structure([1, (2,)])) == "TreeSpec(list, None, [*,\n  TreeSpec(tuple, None, [*])])"
    with pytest.raises(NotImplementedError, match="serialization name"):
        pytree.treespec_dumps(pytree.tree_structure(Point(1, 2)))
    with pytest.raises(ValueError, match="Unknown protocol"):
        pytree.treespec_loads("[9, {}]")


def test_a_leaf_stands_for_all_below_it():
    spec = pytree.tree_structure([1, (2, 3), {"k": 4}])
    assert pytree._broadcast_to_and_flatten(0, spec) == [0, 0, 0, 0]
    assert pytree._broadcast_to_and_flatten([0, 1, {"k": 2}], spec) == [0, 1, 1, 2]
    assert pytree._broadcast_to_and_flatten([0, 1], spec) is None
    assert pytree._broadcast_to_and_flatten([0, [1, 2], {"k": 2}], spec) is None


def test_wrong_shapes_are_told():
    spec = pytree.tree_structure([1, 2])
    with pytest.raises(ValueError, match="length 1 .* 2 items"):
        pytree.tree_unflatten([1], spec)
    with pytest.raises(TypeError, match="TreeSpec"):
        pytree.tree_unflatten([1], "spec")
    assert (
        spec.child(0).is_leaf()
        and spec.children() == [pytree.LeafSpec()] * 2
        and spec.flatten_up_to([[1], 2]) == [[1], 2]
    )


def test_results_of_an_op_are_a_node():
    result = adjoin.topk(adjoin.tensor([1.0, 3.0, 2.0]), 2)
    doubled = pytree.tree_map(lambda x: x * 2, {"a": result})["a"]
    assert type(doubled) is type(result) and doubled.values.tolist() == [6, 4] and doubled.indices.tolist() == [2, 4]
    leaves, spec = pytree.tree_flatten(result)
    assert len(leaves) == 2 and type(pytree.tree_unflatten(leaves, spec)) is type(result)
    assert [path[0].name for path, _ in pytree.tree_flatten_with_path(result)[0]] == ["values", "indices"]
    assert len(pytree.tree_leaves(time.localtime())) == 1  # Python's own are leaves


def test_they_are_one_where_torch_is_adjoin():
    code = """
import adjoin.torch
adjoin.torch.install()
import torch
from torch.utils import _pytree
result = _pytree.tree_map(lambda x: x * 2, torch.topk(torch.tensor([1.0, 3.0, 2.0]), 2))
assert type(result) is torch.return_types.topk and result.values.tolist() == [6, 4], result
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
