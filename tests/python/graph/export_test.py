"""tests/python/graph/export_test.py: exported programs: dynamic dimensions with bounds, the signature, buffers, files."""

import dataclasses
import io
import subprocess

import adjoin
import pytest
from adjoin import nn
from adjoin.export import Dim, ExportedProgram, InputKind, dims, export, load, register_dataclass, save
from adjoin.utils import _pytree
from breaks_test import bits


def net():
    adjoin.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))


def test_a_program_takes_any_batch_within_its_bounds(tmp_path):
    model = net().eval()
    program = export(model, (adjoin.randn(4, 6),), dynamic_shapes={"input": {0: Dim("batch", min=1, max=32)}})
    assert isinstance(program, ExportedProgram) and program.range_constraints == {"batch": (1, 32)}
    save(program, tmp_path / "net.pt2")
    memory = io.BytesIO()
    save(program, memory)
    memory.seek(0)
    for p in (program, load(tmp_path / "net.pt2"), load(memory)):
        run = p.module()
        for n in (1, 4, 9, 32):
            x = adjoin.randn(n, 6)
            assert bits(run(x)) == bits(model(x))
        with pytest.raises(RuntimeError, match="'batch' is 33.*1 to 32"):
            run(adjoin.randn(33, 6))
        with pytest.raises(RuntimeError, match="float32"):
            run(adjoin.randn(4, 7))
        assert {"0.weight", "1.running_var"} < set(run.state_dict()) <= set(model.state_dict())
    x = adjoin.randn(5, 6)
    assert bits(adjoin.jit.load(tmp_path / "net.pt2")(x)) == bits(model(x))
    told = subprocess.run(["adjoin", "graph", "check", tmp_path / "net.pt2"], capture_output=True, text=True)
    assert "sound: 1 inputs, 1 results" in told.stdout, told


def test_the_signature_names_what_is_what():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(adjoin.ones(3))
            self.register_buffer("count", adjoin.zeros(()))
            self.fixed = adjoin.full((3,), 2.0)

        def forward(self, x, *, by):
            self.count.add_(1)
            return x * self.weight + self.fixed, x * by

    module = Scaled()
    numbers = adjoin.get_rng_state()
    program = export(module, (adjoin.ones(3),), {"by": adjoin.ones(3)})
    assert module.count.item() == 0 and adjoin.get_rng_state().equal(numbers)
    s = program.graph_signature
    assert s.parameters == ("weight",) and s.buffers == ("count",) and len(s.lifted_tensor_constants) == 1
    assert len(s.user_inputs) == 2 and len(s.user_outputs) == 2 and list(s.buffers_to_mutate) == ["count"]
    assert [i.target for i in s.input_specs if i.kind is InputKind.PARAMETER] == ["weight"]
    run = program.module()
    assert run(adjoin.ones(3), by=adjoin.full((3,), 5.0))[1].tolist() == [5, 5, 5] and module.count.item() == 1
    assert [n for n, _ in program.named_parameters()] == ["weight"] and [n for n, _ in program.named_buffers()] == [
        "count"
    ]
    run(adjoin.ones(3), by=adjoin.ones(3))[0].sum().backward()
    assert module.weight.grad.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="module"):
        program(adjoin.ones(3))
    with pytest.raises(NotImplementedError, match="mode"):
        run.eval()
    assert program.run_decompositions() is program
    with pytest.raises(NotImplementedError, match="table"):
        program.run_decompositions({"relu": 1})


def test_dimensions_are_written_in_every_way():
    class Two(nn.Module):
        def forward(self, x, y):
            return x @ y

    x, y = adjoin.randn(3, 5), adjoin.randn(5, 4)
    a, b = dims("a", "b", max=100)
    for spec in (
        {"x": {0: a}, "y": {1: b}},
        ({0: a}, {1: b}),
        ((a, None), (None, b)),
        {"x": (Dim.AUTO, None), "y": [None, Dim.DYNAMIC]},
    ):
        run = export(Two(), (x, y), dynamic_shapes=spec).module()
        assert run(adjoin.ones(7, 5), adjoin.ones(5, 2)).shape == (7, 2)
    assert export(Two(), (x, y), dynamic_shapes={"x": {0: Dim.STATIC}}).range_constraints == {}
    for spec, told in (
        ({"z": {0: a}}, "'z'"),
        (({0: a},), "1 entries"),
        ({"x": {0: 2.5}}, "Dim"),
        ({"x": {0: a, 1: a}}, "'a'"),
    ):
        with pytest.raises((ValueError, TypeError), match=told):
            export(Two(), (x, y), dynamic_shapes=spec)
    with pytest.raises(ValueError, match="min 3"):
        Dim("n", min=3, max=2)
    with pytest.raises(ValueError, match="Module"):
        export(lambda x: x, (x,))


def test_dimensions_of_nested_inputs():
    class Nested(nn.Module):
        def forward(self, pair, n, *, more):
            return pair[0] + pair[1][0] * more["k"] * n

    b, x = Dim("b", min=2, max=9), adjoin.ones(3, 2)
    spec = {"pair": ({0: b}, [{0: b}]), "n": None, "more": {"k": {0: b}}}
    program = export(Nested(), ((x, [x + 0]), 2), {"more": {"k": x * 1}}, dynamic_shapes=spec)
    run, y = program.module(), adjoin.ones(5, 2)
    assert run((y, [y + 0]), 2, more={"k": y * 1}).shape == (5, 2)
    y = adjoin.ones(10, 2)
    with pytest.raises(RuntimeError, match="'b' is 10"):
        run((y, [y + 0]), 2, more={"k": y * 1})
    for pair, told in (((None, []), "0 entries"), ({0: b}, "tuple"), ((None, [{0: 2.5}]), "Dim")):
        with pytest.raises((ValueError, TypeError), match=told):
            export(Nested(), ((x, [x + 0]), 2), {"more": {"k": x * 1}}, dynamic_shapes={**spec, "pair": pair})
    with pytest.raises(TypeError, match="'n'|int"):
        export(Nested(), ((x, [x + 0]), 2), {"more": {"k": x * 1}}, dynamic_shapes={"n": {0: b}})


@dataclasses.dataclass
class Pair:
    x: adjoin.Tensor
    y: adjoin.Tensor
    n: int = 3
    bias: adjoin.Tensor | None = None


def test_data_classes_are_inputs_and_results(tmp_path):
    class Swaps(nn.Module):
        def forward(self, p):
            return {"p": Pair(p.y * p.n, p.x), "n": [p.n]}

    class Makes(nn.Module):
        def forward(self, x):
            return Pair(x, x + 1)

    x = adjoin.ones(2)
    with pytest.raises(TypeError, match="Pair is no tensor.*register_dataclass"):
        export(Swaps(), (Pair(x, x + 1),))
    register_dataclass(Pair, serialized_type_name="tests.Pair")
    try:
        program = export(Swaps(), (Pair(x, x + 1),))
        save(program, tmp_path / "swaps.aj")
        for run in (program.module(), load(tmp_path / "swaps.aj").module()):
            made = run(Pair(x * 5, x * 7))
            assert made["p"] == Pair(made["p"].x, made["p"].y) and made["n"] == [3]
            assert made["p"].x.tolist() == [21, 21] and made["p"].y.tolist() == [5, 5]
            with pytest.raises(TypeError, match="inputs of the form"):
                run(Pair(x, x + 1, n=4))
        save(export(Makes(), (x,)), tmp_path / "makes.aj")
        assert load(tmp_path / "makes.aj").module()(x).y.tolist() == [2, 2]
    finally:
        _pytree._deregister_pytree_node(Pair)
    with pytest.raises(RuntimeError, match="tests.Pair, which is not registered here"):
        load(tmp_path / "makes.aj").module()(x)


def test_files_lie_beside_a_program(tmp_path):
    program = export(net().eval(), (adjoin.ones(2, 6),))
    save(program, tmp_path / "net.aj", extra_files={"notes.txt": "é", "raw": b"\xff\x00"})
    extra = {"notes.txt": "", "raw": ""}
    again = load(tmp_path / "net.aj", extra_files=extra)
    assert extra == {"notes.txt": "é", "raw": b"\xff\x00"}
    assert bits(again.module()(adjoin.ones(2, 6))) == bits(program.module()(adjoin.ones(2, 6)))


def test_a_decision_is_refused_and_code_may_ask():
    class Decides(nn.Module):
        def forward(self, x):
            if not adjoin.compiler.is_exporting() and x.sum() > 0:
                return x
            return x * 2

    assert export(Decides(), (adjoin.ones(2),)).module()(adjoin.ones(2)).tolist() == [2, 2]
    assert not adjoin.compiler.is_exporting()

    class Always(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    for strict in (True, False):
        with pytest.raises(NotImplementedError, match=r"value .* \(export_test.py:\d+ in forward\)"):
            export(Always(), (adjoin.ones(2),), strict=strict)
    assert not adjoin.compiler.is_compiling()


def test_the_calls_of_a_program_are_a_graph_of_fx():
    net = adjoin.nn.Linear(3, 2)
    program = export(net, (adjoin.ones(4, 3),))
    assert [node.op for node in program.graph.nodes] == [
        "placeholder",
        "get_attr",
        "get_attr",
        "call_function",
        "output",
    ]
    x = adjoin.randn(4, 3)
    assert program.graph_module(x).equal(net(x))


def test_texts_go_with_a_program(tmp_path):
    net = adjoin.nn.Linear(2, 1)
    x = adjoin.ones(1, 2)
    program = adjoin.export.export(net, (x,))
    for file in (tmp_path / "program.pt2", io.BytesIO()):
        adjoin.export.save(program, file, extra_files={"labels.txt": "cat\ndog", "export.json": "mine"})
        if hasattr(file, "seek"):
            file.seek(0)
        found = {"labels.txt": "", "absent.txt": "as it was"}
        again = adjoin.export.load(file, extra_files=found)
        assert found == {"labels.txt": "cat\ndog", "export.json": "mine", "absent.txt": "as it was"}
        assert again.module()(x).equal(net(x))
