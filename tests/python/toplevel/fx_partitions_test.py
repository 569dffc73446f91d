"""tests/python/toplevel/fx_partitions_test.py: adjoin.fx: parts of a graph that one module stands for, places of a pattern with several results."""

import operator

import adjoin
import pytest
from adjoin import fx, nn
from adjoin.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from adjoin.fx.passes.operator_support import (
    OperatorSupport,
    OpSupports,
    any_chain,
    chain,
    create_op_support,
)
from adjoin.fx.passes.shape_prop import ShapeProp
from adjoin.fx.passes.split_utils import split_by_tags
from adjoin.fx.passes.utils.fuser_utils import fuse_by_partitions
from adjoin.fx.passes.utils.matcher_utils import SubgraphMatcher

adds = create_op_support(lambda modules, node: node.target in (operator.add, operator.getitem, adjoin.std_mean))


def names(parts):
    return [sorted(node.name for node in part.nodes) for part in parts]


def parts_of(function, support=adds, single=True, **more):
    return CapabilityBasedPartitioner(fx.symbolic_trace(function), support, single, **more)


def chained(a, b, c):  # one add before a product that the next needs
    return ((a + b) * 2 + c) + a


def between(a, b, c):  # the product stands between two adds
    d = a + b
    return d + d.relu(), c + d


def apart(a, b, c):
    return a + b, b + c, c + a


def taken_apart(a, b, c):
    s, m = adjoin.std_mean(a + b, 0)
    return s * m


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (chained, [["add_1", "add_2"], ["add"]]),
        (between, [["add_1", "add_2"], ["add"]]),
        (apart, [["add", "add_1", "add_2"]]),
        (taken_apart, [["add", "getitem", "getitem_1", "std_mean"]]),
    ],
)
def test_parts_are_as_large_as_can_be_and_none_needs_itself(function, wanted):
    partitioner = parts_of(function)
    found = partitioner.propose_partitions()
    assert names(found) == wanted
    fused = partitioner.fuse_partitions(found)
    assert {n.target for n in fused.graph.nodes if n.op == "call_module"} == {f"fused_{i}" for i in range(len(wanted))}
    assert not any(n.target is operator.add for n in fused.graph.nodes)
    values = [adjoin.randn(4) for _ in range(3)]
    adjoin.testing.assert_close(fused(*values), function(*values))


def test_small_parts_and_ends_of_parts_can_be_left_out():
    assert names(parts_of(chained, single=False).propose_partitions()) == [["add_1", "add_2"]]
    both = parts_of(chained, single=False, allowed_single_node_partition_ops=["_operator.add", "operator.add"])
    assert len(both.propose_partitions()) == 2

    def seen(a, b):
        return adjoin.t(adjoin.t(adjoin.t(a) + b) + b)

    some = create_op_support(lambda modules, node: node.op == "call_function")
    partitioner = parts_of(seen, some, non_compute_ops=["adjoin.t"])
    found = partitioner.propose_partitions()
    assert names(found) == [["add", "add_1", "t", "t_1", "t_2"]]
    partitioner.remove_bookend_non_compute_ops(found)
    assert names(found) == [["add", "add_1", "t_1"]]


def test_who_supports_what_by_name_dtype_and_together():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x):
            return self.linear(x).relu() + adjoin.sigmoid(x)

    gm = fx.symbolic_trace(Net())
    ShapeProp(gm).propagate(adjoin.randn(2, 3))
    modules = dict(gm.named_modules())
    kinds = OperatorSupport(
        {
            "adjoin.nn.modules.linear.Linear": None,
            "relu": (([adjoin.float32],), {}),
            "adjoin.sigmoid": (([adjoin.float64],), {}),
        }
    )
    asked = lambda support: {n.name for n in gm.graph.nodes if support.is_node_supported(modules, n)}  # noqa: E731
    assert asked(kinds) == {"linear", "relu"}
    assert asked(chain(kinds, OpSupports.decline_if_node_in_names({"relu"}))) == {"linear"}
    assert asked(chain(kinds, OpSupports.decline_if_input_dtype(adjoin.float32))) == set()
    sigmoid = create_op_support(lambda _, node: node.name == "sigmoid")
    assert asked(any_chain(kinds, sigmoid)) == {"linear", "relu", "sigmoid"}


def test_a_part_that_would_need_itself_is_refused():
    def f(a):
        b = a + 1
        return b.relu() + b

    for wanted, reason in ((["add", "add_1"], "would need itself"), (["add", "add"], None)):
        gm = fx.symbolic_trace(f)
        part = [n for n in gm.graph.nodes if n.name in wanted]
        if reason:
            with pytest.raises(AssertionError, match=reason):
                fuse_by_partitions(gm, [part])
        else:
            assert fuse_by_partitions(gm, [part])(adjoin.ones(2)).tolist() == [4.0, 4.0]
    gm = fx.symbolic_trace(f)
    add = next(n for n in gm.graph.nodes if n.name == "add")
    with pytest.raises(AssertionError, match="stand in two parts"):
        fuse_by_partitions(gm, [[add], [add]])


def test_long_graphs_need_no_deep_recursion():
    def f(a):
        for _ in range(1500):
            a = a - 1
        return a + a

    assert names(parts_of(f).propose_partitions()) == [["add"]]


def test_a_pattern_with_several_results_is_found_in_all_its_ways():
    def f(x):
        x = (x + 1).relu()
        return x.sum() + x.sum() + x.sigmoid() + x.sigmoid()

    def pattern(a):
        a = a.relu()
        return a, a.sigmoid(), a.sum()

    graph, wanted = fx.symbolic_trace(f).graph, fx.symbolic_trace(pattern).graph
    assert len(SubgraphMatcher(wanted, remove_overlapping_matches=False).match(graph)) == 4
    assert len(SubgraphMatcher(wanted).match(graph)) == 1


def test_a_place_that_would_need_itself_is_left_alone():
    def f(x, w):
        product = x @ w
        return product * product.sigmoid()

    def pattern(a, b, c):
        product = a @ b
        return product, product * c

    gm = fx.symbolic_trace(f)
    assert fx.replace_pattern(gm, pattern, lambda a, b, c: (a, c)) == []
    x, w = adjoin.randn(2, 2), adjoin.randn(2, 2)
    assert adjoin.equal(gm(x, w), f(x, w))


def test_the_pattern_s_output_is_mapped_where_results_must_be_the_graph_s():
    graph = fx.symbolic_trace(lambda x: x.relu() + 1).graph
    pattern = fx.symbolic_trace(lambda x: x + 1).graph
    (match,) = SubgraphMatcher(pattern, match_output=True).match(graph)
    assert match.nodes_map[pattern.output_node()] is graph.output_node()


def test_split_by_tags_says_where_modules_went():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.third = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            return self.third(self.second(self.first(x)))

    net = Net()
    gm = fx.symbolic_trace(net)
    for node in gm.graph.nodes:
        node.tag = {"first": "red", "second": "blue", "third": "red"}.get(node.name)
    with pytest.raises(RuntimeError, match="cycle"):
        split_by_tags(gm, ["red", "blue"])
    for node in gm.graph.nodes:
        node.tag = "blue" if node.name == "third" else "red"
    made, where = split_by_tags(gm, ["red", "blue"], return_fqn_mapping=True, return_tuple=True)
    assert where == {"first": "red.first", "second": "red.second", "third": "blue.third"}
    x = adjoin.randn(2, 3)
    assert isinstance(made.red(x), tuple) and adjoin.equal(made(x), net(x))
