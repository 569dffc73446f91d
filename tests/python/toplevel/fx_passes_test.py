"""tests/python/toplevel/fx_passes_test.py: adjoin.fx: programs over graphs one after the other, shared calls, orders, retraced trees of arguments."""

import collections
import operator

import adjoin
import adjoin.nn.functional as F
import pytest
from adjoin import fx, nn
from adjoin.fx import GraphModule, Tracer, symbolic_trace
from adjoin.fx.experimental.const_fold import split_const_subgraphs
from adjoin.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from adjoin.fx.passes.infra.pass_base import PassBase, PassResult
from adjoin.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper, this_before_that_pass_constraint
from adjoin.fx.operator_schemas import get_signature_for_torch_op
from adjoin.fx.passes.tools_common import legalize_graph
from adjoin.fx.passes.utils.matcher_utils import SubgraphMatcher


def turns(old, new):
    def one(module):
        found = [node for node in module.graph.nodes if node.target is old]
        for node in found:
            node.target = new
        return PassResult(module, bool(found))

    one.__name__ = f"{old.__name__}_to_{new.__name__}"
    return one


class Twice(nn.Module):
    def forward(self, x):
        return adjoin.add(adjoin.add(x, x), x)


def test_passes_run_until_nothing_changes():
    manager = PassManager([turns(adjoin.mul, adjoin.sub), turns(adjoin.add, adjoin.mul)], steps=5)
    result = manager(fx.symbolic_trace(Twice()))
    assert result.modified and result.graph_module(adjoin.tensor([3.0])).tolist() == [-3.0]
    assert not manager(result.graph_module).modified
    one = PassManager([turns(adjoin.mul, adjoin.sub), turns(adjoin.add, adjoin.mul)])
    assert one(fx.symbolic_trace(Twice())).graph_module(adjoin.tensor([3.0])).tolist() == [27.0]


def test_passes_that_return_nothing_are_wrapped():
    def in_place(module):
        turns(adjoin.add, adjoin.mul)(module)

    class Pass(PassBase):
        def call(self, module):
            in_place(module)

    for one in (in_place, Pass()):
        with pytest.raises(TypeError, match="should be type PassResult.*pass_result_wrapper"):
            PassManager([one])(fx.symbolic_trace(Twice()))
        result = PassManager([pass_result_wrapper(one)])(fx.symbolic_trace(Twice()))
        assert result.modified and result.graph_module(adjoin.tensor([3.0])).tolist() == [27.0]


def test_a_fault_in_a_pass_names_it():
    def breaks(module):
        raise ValueError("bad")

    with pytest.raises(ValueError, match=r"'breaks' pass after the following passes: \['add_to_mul'\]: bad"):
        PassManager([turns(adjoin.add, adjoin.mul), breaks])(fx.symbolic_trace(Twice()))


def test_the_order_of_passes():
    passes = [turns(adjoin.add, adjoin.mul) for _ in range(6)]
    manager = PassManager(list(passes))
    before = [(5, 0), (5, 2), (4, 0), (4, 1), (2, 3), (3, 1)]
    for this, that in before:
        manager.add_constraint(this_before_that_pass_constraint(passes[this], passes[that]))
    with pytest.raises(RuntimeError, match="solve_constraints"):
        manager.validate_constraints()
    manager.solve_constraints()
    assert [passes.index(one) for one in manager.passes] == [4, 5, 0, 2, 3, 1]
    manager.add_constraint(this_before_that_pass_constraint(passes[1], passes[5]))
    with pytest.raises(RuntimeError, match="Circular dependency"):
        manager.solve_constraints()
    manager.remove_pass(["add_to_mul"])
    assert manager.passes == []


def test_checks_of_passes():
    def no_sums(module):
        if any(node.target is adjoin.add for node in module.graph.nodes):
            raise ValueError("a sum is left")

    manager = PassManager([turns(adjoin.add, adjoin.mul)])
    manager.add_checks(no_sums)
    with pytest.raises(ValueError, match="a sum is left"):
        manager(fx.symbolic_trace(Twice()))
    manager.suppress_check_failures = True
    assert manager(fx.symbolic_trace(Twice())).modified
    with pytest.raises(TypeError, match="only take in one variable"):
        manager.add_checks(lambda module, more: None)


def count(module, target):
    return sum(node.target is target for node in module.graph.nodes)


def test_what_is_computed_twice_is_computed_once():
    def program(x):
        a, b = adjoin.sin(x), adjoin.sin(x)
        return adjoin.cos(a) + adjoin.cos(b) + adjoin.sum(x, [0, 1]) + adjoin.sum(x, [0, 1]) + x * 2 + x * 2.0

    made = CSEPass()(fx.symbolic_trace(program))
    assert made.modified and count(made.graph_module, adjoin.sin) == count(made.graph_module, adjoin.cos) == 1
    assert count(made.graph_module, adjoin.sum) == 1 and count(made.graph_module, operator.mul) == 2
    x = adjoin.randn(2, 3)
    assert adjoin.equal(made.graph_module(x), program(x))
    assert not CSEPass()(made.graph_module).modified


def test_what_draws_or_writes_is_not_shared():
    drawn = CSEPass()(fx.symbolic_trace(lambda x: adjoin.rand_like(x) - adjoin.rand_like(x)))
    assert not drawn.modified and adjoin.rand_like in get_CSE_banned_ops()
    shared = CSEPass(banned_ops=set())(fx.symbolic_trace(lambda x: adjoin.rand_like(x) - adjoin.rand_like(x)))
    assert shared.graph_module(adjoin.ones(3)).tolist() == [0.0, 0.0, 0.0]

    def writes(x):
        a = adjoin.neg(x)
        x.add_(1)
        return a + adjoin.neg(x)

    made = CSEPass()(fx.symbolic_trace(writes))
    assert made.graph_module(adjoin.zeros(1)).tolist() == [-1.0]


def test_an_order_where_all_come_after_their_inputs():
    module = fx.symbolic_trace(lambda x: adjoin.neg(adjoin.exp(x)) + 1)
    nodes = {node.name: node for node in module.graph.nodes}
    nodes["neg"].append(nodes["exp"])
    with pytest.raises(RuntimeError):
        module.graph.lint()
    ordered = legalize_graph(module)
    ordered.graph.lint()
    assert ordered(adjoin.zeros(1)).tolist() == [0.0]
    nodes = {node.name: node for node in ordered.graph.nodes}
    nodes["exp"].args = (nodes["neg"],)
    with pytest.raises(RuntimeError, match="Input graph has cycles, unable to add"):
        legalize_graph(ordered)


def test_types_of_values():
    def program(x):
        return fx.annotate.annotate(x + 1, int) * 2

    import adjoin.fx.annotate  # noqa: F401

    graph = fx.symbolic_trace(program).graph
    assert [node.type for node in graph.nodes if node.target is operator.add] == [int]
    assert program(2) == 6
    with pytest.raises(RuntimeError, match="already has the type"):
        fx.symbolic_trace(lambda x: fx.annotate.annotate(fx.annotate.annotate(x + 1, int), float))


def test_checks_of_values_stay():
    def program(x):
        adjoin._assert(adjoin.equal(x, x), "not itself")
        return x * 2

    module = fx.symbolic_trace(program)
    assert not module.graph.eliminate_dead_code() and count(module, adjoin._assert) == 1


def test_a_replaced_pattern_takes_its_modules_along():
    class Before(nn.Module):
        def __init__(self):
            super().__init__()
            self.sigmoid, self.last = nn.Sigmoid(), nn.ReLU()

        def forward(self, x):
            return self.last(self.sigmoid(x))

    class After(nn.Module):
        def __init__(self):
            super().__init__()
            self.tanh, self.last = nn.Tanh(), nn.ReLU()

        def forward(self, x):
            return self.last(self.tanh(x))

    module = fx.symbolic_trace(Before())
    fx.replace_pattern(module, Before(), After())
    assert sorted(name for name, _ in module.named_children()) == ["last", "tanh"]
    x = adjoin.randn(3)
    assert adjoin.equal(module(x), x.tanh().relu())


Point = collections.namedtuple("Point", ["x", "y"])


@pytest.mark.parametrize(
    ("program", "given"),
    [
        (lambda tree: tree["a"] + tree["z"][0], {"a": fx.PH, "z": [fx.PH]}),
        (lambda tree: sum(tree), (fx.PH, fx.PH)),
        (lambda tree: tree.x - tree.y, Point(fx.PH, fx.PH)),
    ],
)
def test_trees_of_arguments_are_traced_again(program, given):
    from adjoin.utils import _pytree

    first = fx.symbolic_trace(program, concrete_args={"tree": given})
    values = _pytree.tree_map(lambda x: adjoin.randn(2), given)
    assert "tree_flatten_spec" in first.code and adjoin.equal(first(values), program(values))
    again = fx.symbolic_trace(first)
    assert "tree_flatten_spec" not in again.code and adjoin.equal(again(values), program(values))


def test_and_and_or_change_nothing():
    class Strict(fx.Tracer):
        check_mutable_operations = True

    def program(x):
        return (x & x) | x

    graph = Strict().trace(program)
    x = adjoin.tensor([1, 2])
    assert fx.GraphModule({}, graph)(x).tolist() == [1, 2] and not any(
        node.is_impure() for node in list(graph.nodes)[1:-1]
    )
    assert CSEPass()(fx.symbolic_trace(lambda x: (x & 1) + (x & 1))).modified
    for writer in (lambda x: adjoin.relu_(x), lambda x: adjoin.sigmoid(x, out=adjoin.empty(1))):
        with pytest.raises(RuntimeError, match="mutable operation"):
            Strict().trace(writer)


def test_named_tuples_are_shown_by_their_fields():
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(sum, (Point(x, 1.5),))
    assert "args = (Point(x=%x, y=1.5),)" in node.format_node()


def test_a_traced_module_is_replicated():
    module = fx.symbolic_trace(Twice())
    assert module._replicate_for_data_parallel()(adjoin.tensor([3.0])).tolist() == [9.0]


def test_the_type_of_a_result_is_kept():
    def program(x: list[str]) -> list[str]:
        return x

    module = fx.symbolic_trace(program)
    assert "->" in module.code and module(["a"]) == ["a"]
    assert [node.type for node in module.graph.nodes] == [list[str]] * 2
    assert "->" not in fx.symbolic_trace(lambda x: x).code


def test_code_of_others_may_name_torch():
    class OfList(fx.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return f"def forward(self, values: List[torch.Tensor]){maybe_return_annotation}:\n    {', '.join(free_vars)} = values"

        def additional_globals(self):
            return [("List", list)]

        def process_inputs(self, *inputs):
            return inputs[0]

    module = fx.symbolic_trace(lambda a, b: a - b)
    module.graph.set_codegen(OfList())
    module.recompile()
    assert module([adjoin.ones(1), adjoin.zeros(1)]).tolist() == [1.0]


def test_overloads_are_steps():
    aten = adjoin.ops.aten

    def f(x, out):
        aten.mul.out(x, x, out=out)
        adjoin.add(x, x, out=out)
        aten.add_.Tensor(out, 1)
        aten.neg.default(x)  # nobody wants it
        return aten.relu(x), aten.cat.default([x, x])

    module = symbolic_trace(f)
    assert module.graph.eliminate_dead_code()
    module.recompile()
    targets = [n.target for n in module.graph.nodes if n.op == "call_function"]
    assert targets == [aten.mul.out, adjoin.add, aten.add_.Tensor, aten.relu, aten.cat.default]
    out = adjoin.empty(2)
    made = module(-adjoin.ones(2), out)
    assert out.tolist() == [-1, -1] and made[0].tolist() == [0, 0] and made[1].shape == (4,)
    library = adjoin.library.Library("fxpasses", "FRAGMENT")
    library.define("fill(Tensor(a!) x) -> ()")
    library.impl("fill", lambda x: x.fill_(7) and None, "CPU")
    module = symbolic_trace(lambda x: (adjoin.ops.fxpasses.fill.default(x), x)[1])
    assert not module.graph.eliminate_dead_code() and module(adjoin.ones(1)) == 7


def test_draws_are_never_shared():
    from adjoin.fx.experimental.proxy_tensor import make_fx

    def f(x):
        return adjoin.rand(8) - adjoin.rand(8) + F.dropout(x) - F.dropout(x) + x.sin() * x.sin()

    module = make_fx(f)(adjoin.ones(8))
    shared = CSEPass()(module).graph_module
    names = [n.name for n in shared.graph.nodes]
    assert "sin" in names and "sin_1" not in names
    adjoin.manual_seed(1)
    wanted = module(adjoin.ones(8))
    adjoin.manual_seed(1)
    assert adjoin.equal(shared(adjoin.ones(8)), wanted) and wanted.std() > 0


class _OfConstants(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(adjoin.randn(2, 3)), nn.Parameter(adjoin.randn(2, 3))
        self.linear, self.drop = nn.Linear(3, 3), nn.Dropout()

    def forward(self, x, y):
        p = self.a.permute(1, 0).permute(1, 0) + self.b
        drawn = F.dropout(self.a) + self.drop(self.a)
        return {"r": x + p * y + self.linear(self.b) * 2, "drawn": drawn, "n": self.a.size(0) * x}


def test_constants_are_folded():
    net = _OfConstants()
    folded = split_const_subgraphs(net)
    read = [n.target for n in folded.graph.nodes if n.op == "get_attr"]
    assert read == ["a", "_FX_CONST_FOLDED_ATTRS.0", "_FX_CONST_FOLDED_ATTRS.1"]
    assert not any(n.target in ("linear", "b", "permute") for n in folded.graph.nodes)
    x, y = adjoin.randn(2, 3), adjoin.randn(2, 3)
    for _ in range(2):
        adjoin.manual_seed(0)
        wanted = net(x, y)
        adjoin.manual_seed(0)
        made = folded(x, y)
        assert all(adjoin.equal(made[k], wanted[k]) for k in wanted)
    with adjoin.no_grad():
        net.a.zero_()
    assert adjoin.equal(folded(x, y)["r"], wanted["r"])  # folded at the first call
    folded.run_folding()
    assert adjoin.allclose(folded(x, y)["r"], net(x, y)["r"])
    skipped = split_const_subgraphs(net, skip_folding_node_fn=lambda n: True)
    assert skipped.const_subgraph_module is None and adjoin.equal(skipped(x, y)["r"], net(x, y)["r"])


def test_what_is_written_is_no_constant():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", adjoin.zeros(1))

        def forward(self, x):
            adjoin.ops.aten.add_.Tensor(self.n, x)
            return x + self.n * 2

    class Reads(Tracer):
        proxy_buffer_attributes = True

    net = Counts()
    folded = split_const_subgraphs(GraphModule(net, Reads().trace(net)))
    assert folded.const_subgraph_module is None and [folded(adjoin.ones(1)).item() for _ in range(2)] == [3, 5]


def test_places_of_a_pattern():
    class Affine(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.w, self.b = nn.Parameter(adjoin.ones(n, n)), nn.Parameter(adjoin.ones(n))

        def forward(self, x):
            return adjoin.ops.aten.addmm.default(self.b, x, self.w)

    kept = symbolic_trace(Affine(3)), symbolic_trace(Affine(5))
    (found,) = SubgraphMatcher(kept[1].graph).match(kept[0].graph)
    assert [n.target for n in found.returning_nodes] == [adjoin.ops.aten.addmm.default]
    assert [n.name for n in found.placeholder_nodes] == ["x"]
    chain = symbolic_trace(lambda x: F.relu(F.relu(F.relu(x + 1) + 2) * 3))
    pattern = symbolic_trace(lambda x: F.relu(x + 1)).graph
    assert len(SubgraphMatcher(pattern).match(chain.graph)) == 1
    assert len(SubgraphMatcher(pattern, ignore_literals=True).match(chain.graph)) == 2
    assert len(SubgraphMatcher(pattern, match_placeholder=True, ignore_literals=True).match(chain.graph)) == 1
    last = symbolic_trace(lambda x: F.relu(x * 3)).graph
    assert len(SubgraphMatcher(last, match_output=True).match(chain.graph)) == 1
    assert not SubgraphMatcher(pattern, match_output=True, ignore_literals=True).match(chain.graph)
    twice = symbolic_trace(lambda x: F.relu(F.relu(x))).graph
    thrice = symbolic_trace(lambda x: F.relu(F.relu(F.relu(x)))).graph
    assert len(SubgraphMatcher(twice).match(thrice)) == 1
    assert len(SubgraphMatcher(twice, remove_overlapping_matches=False).match(thrice)) == 2
    with pytest.raises(ValueError, match="computes nothing"):
        SubgraphMatcher(symbolic_trace(lambda x: x).graph)


def test_a_traced_module_is_scripted_and_traced_again():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 2)

        def forward(self, x, scale=1.0):
            return F.relu(self.linear(x)) * scale

    net, x = Net(), adjoin.randn(4, 3)
    assert adjoin.equal(adjoin.jit.script(symbolic_trace(net))(x), net(x))
    fixed = symbolic_trace(net, concrete_args={"scale": 2.0})
    again = symbolic_trace(fixed)
    assert adjoin.equal(again(x, 2.0), net(x, 2.0))
    with pytest.raises(AssertionError, match="scale"):
        again(x, 3.0)
    bag = nn.EmbeddingBag(5, 3, mode="sum")
    rows = adjoin.tensor([[0, 2], [1, 4]])
    assert adjoin.equal(symbolic_trace(bag)(rows, None, None), bag(rows))


def test_signatures_of_ops():
    (add,) = get_signature_for_torch_op(adjoin.add)
    assert list(add.parameters) == ["input", "other", "alpha"] and add.bind(1, 2).arguments == {"input": 1, "other": 2}
    (linear,), (text,) = get_signature_for_torch_op(F.linear, return_schemas=True)
    assert linear.parameters["bias"].default is None and text.startswith("nn::linear(")
    assert (
        get_signature_for_torch_op(adjoin.ops.aten.relu.default)[0].bind(1) and get_signature_for_torch_op(len) is None
    )
