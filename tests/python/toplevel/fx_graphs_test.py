"""tests/python/toplevel/fx_graphs_test.py: adjoin.fx: graphs, their modules, and the programs over them."""

import copy
import importlib
import operator
import pickle
import sys

import adjoin
import adjoin.nn.functional as F
import pytest
from adjoin import fx, nn
from adjoin.fx import Graph, GraphModule, Proxy, symbolic_trace
from adjoin.fx.immutable_collections import immutable_dict, immutable_list
from adjoin.fx.node import map_aggregate
from adjoin.fx.passes.shape_prop import ShapeProp
from adjoin.fx.passes.split_module import split_module
from adjoin.fx.passes.split_utils import split_by_tags
from adjoin.fx.proxy import GraphAppendingTracer
from adjoin.fx.subgraph_rewriter import replace_pattern
from adjoin.utils import _pytree
from fx_net import an_image, eval_net, same


@pytest.fixture
def net():
    return eval_net()


@pytest.fixture
def image():
    return an_image()


def test_a_graph_by_hand():
    graph = Graph()
    x = graph.placeholder("x")
    w = graph.get_attr("sub.w")
    y = graph.call_method("mul", (x, w))
    graph.output((graph.call_function(adjoin.add, (y, x), {"alpha": 2}),))
    module = GraphModule({"sub.w": nn.Parameter(adjoin.full((1,), 3.0))}, graph)
    assert module(adjoin.ones(1))[0] == 5 and list(module.state_dict()) == ["sub.w"]
    assert [n.name for n in graph.nodes] == ["x", "sub_w", "mul", "add", "output"] and len(graph.nodes) == 5
    assert [n.name for n in reversed(graph.nodes)][0] == "output" and graph.output_node().op == "output"
    assert y.all_input_nodes == [x, w] and list(x.users) == [y, y.next] and y.prev is w and x < y and not y < x
    with graph.inserting_before(y):
        z = graph.call_function(operator.neg, (x,))
    y.replace_input_with(x, z)
    module.recompile()
    assert module(adjoin.ones(1))[0] == -1 and list(z.users) == [y] and y not in x.users
    y.update_arg(0, x)
    graph.eliminate_dead_code()
    module.recompile()
    assert z not in list(graph.nodes) and module(adjoin.ones(1))[0] == 5
    y.args = (x, 4.0)
    y.insert_arg(1, 7.0)
    assert y.args == (x, 7.0, 4.0) and not w.users
    y.args = y.args[:2]
    y.next.update_kwarg("alpha", 1)
    module.recompile()
    assert module(adjoin.ones(1))[0] == 8
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(y)
    graph.output_node().append(y)
    with pytest.raises(RuntimeError, match="used before it has been defined"):
        graph.lint()
    with pytest.raises(RuntimeError, match="has none"):
        GraphModule({}, graph)


def test_arguments_of_nodes_are_not_changed_in_place():
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.call_function(adjoin.cat, ([x, x],), {"dim": 0})
    assert type(y.args[0]) is immutable_list and type(y.kwargs) is immutable_dict
    with pytest.raises(NotImplementedError, match="node.args"):
        y.args[0].append(x)
    with pytest.raises(NotImplementedError):
        y.kwargs["dim"] = 1
    assert hash(immutable_list([1, 2])) == hash(immutable_list([1, 2]))
    leaves, spec = _pytree.tree_flatten(immutable_dict(a=immutable_list([1, 2]), b=3))
    back = _pytree.tree_unflatten(leaves, spec)
    assert leaves == [1, 2, 3] and type(back) is immutable_dict and type(back["a"]) is immutable_list
    assert map_aggregate((1, [2, {"k": slice(3, 4)}]), lambda v: v and v * 2) == (2, [4, {"k": slice(6, 8)}])


def test_dead_code_that_has_an_effect_stays():
    def f(x):
        x.mul(3)
        y = x.clone()
        y.add_(1)
        return y

    traced = symbolic_trace(f)
    assert traced.graph.eliminate_dead_code()
    traced.recompile()
    assert [n.target for n in traced.graph.nodes if n.op == "call_method"] == ["clone", "add_"]
    assert traced(adjoin.ones(1)) == 2 and not traced.graph.eliminate_dead_code()


def test_copies_and_pickles(net, image):
    traced = symbolic_trace(net)
    traced.meta["note"] = 7
    wanted = traced(image)
    for other in (copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))):
        assert same(other(image), wanted) and other.meta["note"] == 7 and not other.training
        assert other.graph is not traced.graph and other.code == traced.code
        with adjoin.no_grad():
            other.get_parameter("head.bias").add_(1)
        assert same(traced(image), wanted) and not same(other(image), wanted)
        for node in other.graph.find_nodes(op="call_function", target=F.relu):
            node.target = adjoin.tanh
        other.recompile()
        assert "tanh" not in traced.code and same(traced(image), wanted)
    shared = copy.copy(traced)
    assert shared.head is traced.head and shared.graph is not traced.graph and same(shared(image), wanted)


def test_a_graph_in_a_graph(net):
    inner = symbolic_trace(lambda x, y: adjoin.relu(x) * y)
    outer = Graph()
    a, b = outer.placeholder("a"), outer.placeholder("b")
    values = dict(zip(inner.graph.find_nodes(op="placeholder"), (a, b), strict=True))
    outer.output(outer.graph_copy(inner.graph, values))
    module = GraphModule(nn.Module(), outer)
    assert module(adjoin.tensor(-1.0), 3) == 0 and module(adjoin.tensor(2.0), 3) == 6
    proxy = Proxy(a, GraphAppendingTracer(outer))
    with outer.inserting_before(outer.output_node()):
        doubled = (proxy + proxy).node
    outer.output_node().args = (doubled,)
    module.recompile()
    assert module(adjoin.tensor(2.0), 3) == 4


def test_submodules_of_graph_modules(net, image):
    traced = symbolic_trace(net)
    assert traced.add_submodule("extra.deep.act", nn.Tanh()) and not traced.add_submodule("head.weight.x", nn.Tanh())
    with traced.graph.inserting_before(traced.graph.output_node()):
        act = traced.graph.call_module("extra.deep.act", (traced.graph.output_node().args[0],))
    traced.graph.output_node().args = (act,)
    traced.recompile()
    assert same(traced(image), net(image).tanh())
    traced.add_submodule("unused.one", nn.Linear(1, 1))
    traced.delete_all_unused_submodules()
    names = dict(traced.named_modules())
    assert "unused" not in names and "unused.one" not in names and "extra.deep.act" in names and "stem.0" in names
    assert traced.delete_submodule("extra.deep.act") and not traced.delete_submodule("extra.deep.act")
    with pytest.raises(RuntimeError, match="nonexistent attribute"):
        traced.graph.lint()
    with pytest.warns(UserWarning, match="has none"):
        traced.graph.call_module("nowhere")


def test_patterns_are_replaced():
    def f(x, y):
        a = adjoin.relu(x + y) * 2
        b = adjoin.relu(a + y) * 2
        return b - x, adjoin.relu(x + b) * 3

    def pattern(p, q):
        return adjoin.relu(p + q) * 2

    def instead(p, q):
        return adjoin.sigmoid(p) - q

    traced = symbolic_trace(f)
    found = replace_pattern(traced, pattern, instead)
    traced.graph.lint()
    x, y = adjoin.tensor([1.0, -3.0]), adjoin.tensor([0.5, 1.0])
    b = adjoin.sigmoid(adjoin.sigmoid(x) - y) - y
    got = traced(x, y)
    assert len(found) == 2 and same(got[0], b - x) and same(got[1], adjoin.relu(x + b) * 3)
    assert found[0].anchor.name == "mul" and fx.replace_pattern is replace_pattern
    used_outside = symbolic_trace(lambda x, y: (adjoin.relu(x + y) * 2, x + y))
    assert len(replace_pattern(used_outside, pattern, instead)) == 1

    def leaks(x, y):
        s = x + y
        return adjoin.relu(s) * 2, s

    assert replace_pattern(symbolic_trace(leaks), pattern, instead) == []


def test_a_graph_in_parts(net, image):
    traced = symbolic_trace(net)
    calls = [n for n in traced.graph.nodes if n.op not in ("placeholder", "get_attr", "output")]
    third = {n: 3 * i // len(calls) for i, n in enumerate(calls)}
    names = {}
    parts = split_module(traced, net, lambda n: third[n], names)
    assert [n for n, _ in parts.named_children()] == ["submod_0", "submod_1", "submod_2"]
    assert same(parts(image), net(image)) and names["submod_0.stem.0"] == "stem.0"
    for i, n in enumerate(calls):
        n.tag = "first" if i < 4 else "rest"
    tagged = split_by_tags(traced, ["first", "rest"])
    assert [n for n, _ in tagged.named_children()] == ["first", "rest"] and same(tagged(image), net(image))
    circle = symbolic_trace(lambda x: adjoin.relu(adjoin.tanh(adjoin.relu(x))))
    with pytest.raises(RuntimeError, match="cycle"):
        split_module(circle, None, lambda n: int(n.target is adjoin.tanh))


def test_shapes_of_every_step(net, image):
    traced = symbolic_trace(net)
    out = ShapeProp(traced).propagate(image)
    metas = {n.name: n.meta.get("tensor_meta") for n in traced.graph.nodes}
    assert same(out, net(image)) and metas["stem_0"].shape == (2, 8, 6, 6) and metas["head"].dtype == adjoin.float32
    assert metas["output"].shape == (2, 4) and metas["stem_0"].memory_format == adjoin.contiguous_format


def test_generated_lines_can_be_changed():
    traced = symbolic_trace(lambda x: x + 1)
    with traced.graph.on_generate_code(lambda before: lambda body: ["x = x * 10\n", *body]):
        traced.recompile()
    assert traced(adjoin.ones(1)) == 11
    traced.recompile()
    assert traced(adjoin.ones(1)) == 2


def test_text_and_folders(net, image, tmp_path, capsys, monkeypatch):
    traced = symbolic_trace(net)
    traced.graph.print_tabular()
    assert capsys.readouterr().out.split()[:5] == ["opcode", "name", "target", "args", "kwargs"]
    text = traced.print_readable(print_output=False)
    assert (
        text.startswith("class Net(") and "self.stem" in text and traced.code.strip().splitlines()[-1].strip() in text
    )
    traced.to_folder(tmp_path / "written", "Written")
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        assert same(importlib.import_module("written").Written().eval()(image), net(image))
    finally:
        sys.modules.pop("written", None)
        sys.modules.pop("written.module", None)


def test_hooks_of_graphs():
    traced, seen = symbolic_trace(lambda x: adjoin.relu(x)), []
    traced._register_create_node_hook(lambda n: seen.append(("made", n.name)))
    traced._register_erase_node_hook(lambda n: seen.append(("gone", n.name)))
    relu = traced.graph.find_nodes(op="call_function")[0]
    with traced.graph.inserting_after(relu):
        tanh = traced.graph.call_function(adjoin.tanh, relu.args)
    relu.replace_all_uses_with(tanh)
    traced.graph.erase_node(relu)
    assert seen == [("made", "tanh"), ("gone", "relu")]


def test_what_the_graph_does_not_use_is_kept():
    module = symbolic_trace(nn.Linear(2, 2))
    module.add_submodule("spare", nn.Linear(3, 3))
    module.register_buffer("kept", adjoin.ones(1))
    module.register_parameter("own", nn.Parameter(adjoin.full((1,), 5.0)))
    for made in (pickle.loads(pickle.dumps(module)), copy.deepcopy(module)):
        assert list(made.state_dict()) == list(module.state_dict()) and made.own == 5 and made.own is not module.own
        assert adjoin.equal(made.spare.weight, module.spare.weight)
