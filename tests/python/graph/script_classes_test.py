"""tests/python/graph/script_classes_test.py: traces inside of scripts and scripts inside of those, several traced methods, checks of
traces, freezing with names, enums and containers of one's own, one value unpacked, sparse tensors, texts that see local names."""

import enum
import io

import adjoin
import pytest
from adjoin import Tensor, jit, nn

x = adjoin.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
GIVEN = (x, -x, x.abs(), -x.abs())


def loaded(made):
    file = io.BytesIO()
    jit.save(made, file)
    file.seek(0)
    return jit.load(file)


class Deciding(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        if x.sum() > 0:
            return self.layer(x)
        return x - 1


@jit.script
def pick(x):
    if x.sum() > 0:
        return x * 2
    return x * 3


class Traced(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.last = jit.script(Deciding()), nn.Linear(3, 3)

    def forward(self, x):
        return pick(self.last(self.inner(x)))


class Top(nn.Module):
    def __init__(self):
        super().__init__()
        self.part, self.out = jit.trace(Traced(), x), nn.Linear(3, 3)

    def forward(self, x, n: int):
        for _ in range(n):
            x = self.part(x)
        return self.out(x)


def test_what_was_traced_with_scripts_inside_is_part_of_a_script():
    net = Top()
    scripted = jit.script(net)
    for made in (scripted, loaded(scripted)):
        assert sorted(made.state_dict()) == sorted(
            [
                "part.inner.layer.weight",
                "part.inner.layer.bias",
                "part.last.weight",
                "part.last.bias",
                "out.weight",
                "out.bias",
            ]
        )
        for y in GIVEN:
            assert made(y, 2).equal(net(y, 2))
    scripted.double()
    assert scripted(x.double(), 1).dtype == adjoin.float64
    traced = jit.trace(lambda x: pick(x + 1), x)

    def outer(x, n: int):
        return traced(x) + n

    for y in GIVEN:
        assert jit.script(outer)(y, 1).equal(pick(y + 1) + 1)


class Methods(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        return self.one(x)

    def both(self, x, y):
        return {"product": self.one(x) * self.two(y)}


def test_several_methods_are_traced():
    net, y = Methods(), x + 1
    made = jit.trace_module(net, {"forward": x, "both": (x, y)}, check_inputs=[{"both": (y, x)}])
    alone = jit.trace_module(net, {"both": (x, y)})
    again = loaded(made)
    assert list(again.state_dict()) == list(net.state_dict())
    for one in (made, again):
        assert one(y).equal(net(y))
    for one in (made, again, alone, loaded(alone)):
        assert one.both(y, x)["product"].equal(net.both(y, x)["product"])
    assert made.both(x[:1], y[:1])["product"].equal(net.both(x[:1], y[:1])["product"])
    with pytest.raises(AttributeError, match="no method 'absent'"):
        jit.trace_module(net, {"absent": x})


def test_traces_are_checked_with_other_inputs():
    calls = []

    def counts(x):
        calls.append(1)
        return x * len(calls)

    with pytest.raises(jit.TracingCheckError, match="result 0"):
        jit.trace(counts, x, check_inputs=[(x,)])

    def forms(x):
        calls.append(1)
        return (x,) if len(calls) % 2 else [x]

    with pytest.raises(jit.TracingCheckError):
        jit.trace(forms, x, check_inputs=[(x,), (x,)])
    assert jit.trace(lambda x: x + 1, x, check_inputs=[(x[:1],), x])(x).equal(x + 1)


def test_freezing_keeps_what_is_named():
    net = Methods()
    frozen = jit.freeze(jit.script(net).eval(), ["one", "two.bias"])
    assert list(frozen.state_dict()) == ["one.weight", "one.bias", "two.bias"] and frozen(x).equal(net(x))
    with adjoin.no_grad():
        frozen.one.weight.zero_()
    assert frozen(x).equal(net.one.bias.expand(2, 3)) and net.one.weight.any()
    with pytest.raises(AttributeError, match="'absent'"):
        jit.freeze(jit.script(net).eval(), ["absent"])
    with pytest.raises(NotImplementedError, match="one of a traced module"):
        jit.freeze(jit.trace(net, x).eval(), ["one"])


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def members():
    out = []
    for c in Colour:
        out.append(c.value)
    return out, [c.name for c in Colour]


def only(n: int):
    (a,) = (n,)
    [b] = [a + 1]
    (*c,) = [a, b]
    return a, b, c, [k for (k,) in [(1,), (2,)]], [p * q for r, (p, q) in [(1, (2, 3))]]


def too_many(n: int):
    (a,) = [n, n]
    return a


def test_members_of_enums_and_one_value_unpacked():
    assert jit.script(members)() == members() == ([1, 2], ["RED", "BLUE"])
    assert jit.script(only)(3) == only(3)
    with pytest.raises(ValueError, match="one value is wanted"):
        jit.script(too_many)(1)


class Named(nn.ModuleDict):
    def forward(self, x):
        for layer in self.values():
            x = layer(x)
        return x


class Sized(nn.ModuleList):
    def __len__(self):
        return 7


@jit.script
class Held:
    def __init__(self, n: int):
        self.n = n

    def plus(self, k: int) -> int:
        return self.n + k


class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.named, self.sized, self.held = Named({"a": nn.Linear(3, 3), "b": nn.ReLU()}), Sized(), Held(5)

    def forward(self, x):
        return self.named(x) * self.held.plus(2), len(self.sized)


def test_containers_and_instances_that_modules_hold():
    net = Containers()
    scripted, plain = jit.script(net)(x), net(x)
    assert scripted[0].equal(plain[0]) and scripted[1] == plain[1] == 7
    assert "original_name=Named" in repr(jit.script(net))


def complex_keys(z: complex):
    found = {z: 1, z + 0: 2, 2 + 0j: 3}
    return found[z], len(found), found[2 + 0j]


def counted(x: Tensor, y: Tensor, k: int):
    places = adjoin.vstack((x, y))
    ones = adjoin.ones_like(x)
    return adjoin.sparse_coo_tensor(places, ones, (k, k), dtype=adjoin.float32)


def counted_densely(x: Tensor, y: Tensor, k: int):
    ones = adjoin.ones_like(x)
    made = adjoin.sparse_coo_tensor(adjoin.vstack((x, y)), ones, (k, k))
    return made.to_dense(), made.is_sparse, x.is_sparse, made.layout == adjoin.sparse_coo, x.to_dense()


def test_sparse_tensors_are_made():
    a, b = adjoin.tensor([0, 1, 1]), adjoin.tensor([1, 1, 1])
    made, plain = jit.script(counted)(a, b, 2), counted(a, b, 2)
    assert made.layout is adjoin.sparse_coo and made.to_dense().equal(plain.to_dense()) and made.to_dense()[1, 1] == 2
    scripted, plain = jit.script(counted_densely)(a, b, 2), counted_densely(a, b, 2)
    assert scripted[1:4] == plain[1:4] == (True, False, True)
    assert scripted[0].equal(plain[0]) and scripted[0].dtype == adjoin.int64 and scripted[4].equal(a)
    twice = jit.script(complex_keys)(1j)
    assert twice == complex_keys(1j)


def test_texts_see_local_names():
    factor = 3

    def helper(n: int):
        return n + 1

    unit = jit.CompilationUnit("""
    def made(n: int):
        return helper(n) * factor
    """)
    assert unit.made(2) == 9 == helper(2) * factor


class Looping(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor, n: int):
        for _ in range(n):
            if x.sum() > 0:
                x = adjoin.relu(self.layer(x))
        return x, n


def test_graphs_list_inputs_results_and_calls():
    graph = jit.script(Looping()).graph
    assert [v.debugName() for v in graph.inputs()] == ["self", "x", "n"] and graph.startswith("adjoin.program")
    assert [str(v.type()) for v in graph.inputs()][1:] == ["Tensor", "int"]
    (result,) = graph.outputs()
    assert str(result.type()) == "Tuple[Tensor, int]"
    assert [n.kind() for n in graph.nodes()] == ["aten::range", "prim::Loop", "prim::TupleConstruct"]
    (linear,) = graph.findAllNodes("aten::linear")
    assert [v.debugName() for v in linear.inputs()][0] == "input" and linear.outputsSize() == 1
    assert graph.findNode("aten::absent") is None and graph.findNode("aten::relu", recurse=False) is None
    traced = jit.trace(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), x)
    kinds = [n.kind() for n in traced.graph.nodes()]
    assert kinds == ["prim::Param", "prim::Param", "aten::linear", "aten::relu"] and traced.graph_for(x) == traced.graph
    assert [v.debugName() for v in traced.graph.outputs()] == [n.output().debugName() for n in traced.graph.nodes()][
        -1:
    ]


four = adjoin.tensor(4.0)


def with_tensors(x, other=four, *, k=four):
    return x + other * k


class Choosing(nn.Module):
    __constants__ = ["whole"]

    def __init__(self, whole):
        super().__init__()
        self.whole = whole

    def forward(self):
        if self.whole:
            return 1
        else:
            return "one"


ABSENT = False


def without(x: Tensor):
    if ABSENT:
        return absent_library(x)  # noqa: F821
    return x + 1


class Partly(nn.Module):
    @jit.unused
    @adjoin.no_grad()
    def left_out(self, x):
        return next(x)

    def forward(self, x: Tensor):
        return self.left_out(x) if x.dim() > 5 else x


def test_defaults_constants_and_what_is_left_out():
    scripted = jit.script(with_tensors)
    for given, named in (((x,), {}), ((x, x), {}), ((x,), {"k": x})):
        assert scripted(*given, **named).equal(with_tensors(*given, **named))
    assert jit.script(Choosing(True))() == 1 and jit.script(Choosing(False))() == "one"
    assert jit.script(Partly())(x).equal(x) and jit.script(without)(x).equal(x + 1)
