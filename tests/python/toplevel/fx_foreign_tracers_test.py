"""tests/python/toplevel/fx_foreign_tracers_test.py: tracers that libraries write: their own trace(), their own reading of parts."""

import adjoin as torch
import adjoin.fx._symbolic_trace as st
from adjoin import fx, nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 2)
        self.scale = nn.Parameter(torch.full((2,), 3.0))

    def forward(self, x):
        return self.b(nn.functional.dropout(self.a(x).relu(), 0.0)) * self.scale


class Foreign(fx.Tracer):
    """As libraries have it that need another class's calls to be steps."""

    @st.compatibility(is_backward_compatible=True)
    def trace(self, root, concrete_args=None):
        self.root, function = root, type(root).forward
        self.submodule_paths = {module: name for name, module in root.named_modules()}
        self.graph = fx.Graph(tracer_cls=type(self))
        self.tensor_attrs = {}
        assert isinstance(function, st.FunctionType)
        home = function.__globals__
        function, args = self.create_args_for_root(function, True, concrete_args)
        assert args[0] is root and isinstance(args[1], st.Proxy)
        cache = {}

        @st.functools.wraps(st._orig_module_getattr)
        def read(module, name):
            return self.getattr(name, st._orig_module_getattr(module, name), cache)

        @st.functools.wraps(st._orig_module_call)
        def call(module, *args, **kwargs):
            def forward(*args, **kwargs):
                return st._orig_module_call(module, *args, **kwargs)

            st._autowrap_check(patcher, type(module).forward.__globals__, self._autowrap_function_ids)
            return self.call_module(module, forward, args, kwargs)

        with st._Patcher() as patcher:
            patcher.patch_method(nn.Module, "__getattr__", read, deduplicate=False)
            patcher.patch_method(nn.Module, "__call__", call, deduplicate=False)
            st._patch_wrapped_functions(patcher)
            st._autowrap_check(patcher, home, self._autowrap_function_ids)
            self.create_node("output", "output", (self.create_arg(function(*args)),), {})
        return self.graph


def test_a_tracer_with_its_own_trace_makes_the_usual_graph():
    net, x, before = Net(), torch.randn(5, 3), dict(vars(nn.Module))
    graph = Foreign().trace(net)
    steps = [(node.op, str(node.name)) for node in graph.nodes]
    assert steps == [(node.op, str(node.name)) for node in fx.Tracer().trace(net).nodes]
    assert ("call_function", "dropout") in steps and ("get_attr", "scale") in steps
    assert torch.equal(fx.GraphModule(net, graph)(x), net(x)) and dict(vars(nn.Module)) == before


def test_getattr_of_a_tracer_says_what_a_forward_reads():
    class Doubling(fx.Tracer):
        def __init__(self):
            super().__init__()
            self.read = []

        def getattr(self, attr, attr_val, parameter_proxy_cache):
            self.read.append(attr)
            found = super().getattr(attr, attr_val, parameter_proxy_cache)
            return found * 2 if attr == "scale" else found

    net, x, tracer = Net(), torch.randn(5, 3), Doubling()
    made = fx.GraphModule(net, tracer.trace(net))
    assert torch.equal(made(x), net(x) * 2) and {"a", "b", "scale"} <= set(tracer.read)
    made(x).sum().backward()
    assert net.scale.grad is not None


def test_a_place_for_new_nodes_holds_without_a_with():
    graph = fx.Graph()
    x = graph.placeholder("x")
    last = graph.call_function(torch.neg, (x,))
    graph.output(last)
    graph.inserting_after(x)
    first = graph.call_function(torch.exp, (x,))
    graph.inserting_before(last)
    second = graph.call_function(torch.abs, (first,))
    last.args = (second,)
    assert [node.name for node in graph.nodes] == ["x", "exp", "abs_1", "neg", "output"]
    with graph.inserting_after(first):
        graph.call_function(torch.sin, (first,))
    graph.call_function(torch.cos, (second,))
    assert [node.name for node in graph.nodes] == ["x", "exp", "sin", "abs_1", "cos", "neg", "output"]
    value = torch.tensor([-2.0])
    assert torch.equal(fx.GraphModule(nn.Module(), graph)(value), -value.exp())


def test_tensors_of_a_root_are_known_by_themselves():
    class Held(nn.Module):
        def __init__(self):
            super().__init__()
            self.__dict__["kept"] = torch.ones(2)

        def forward(self, x):
            return x + self.kept

    net, tracer = Held(), fx.Tracer()
    graph = tracer.trace(net)
    assert tracer.tensor_attrs == {net.kept: "kept"} and [n.target for n in graph.nodes if n.op == "get_attr"] == [
        "kept"
    ]
