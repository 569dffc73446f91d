"""tests/python/graph/onnx_test.py: what export() writes, load() reads, and it computes what the network does; damaged files raise.

tests/compat/beside_onnx_test.py runs the same networks by onnxruntime, and ONNX's own cases.
"""

import io
import os
import random
import subprocess

import adjoin
import pytest
from adjoin import export, jit, nn, onnx
from adjoin.nn import functional as F
from adjoin.onnx import _model as messages
from adjoin.onnx import _wire

SEED = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(10**6)))


class Parts(nn.Module):
    """Writes through views, reductions, indices, sizes."""

    def forward(self, x):
        y = x + 1
        y.relu_()
        y[0] = 3
        y[1:3] *= 2
        y[:, 1] = x[:, 0]
        n, m = x.shape
        picked = x[adjoin.tensor([0, 1]), adjoin.tensor([1, 0])]
        moved = x.reshape(n * m).view(m, n).transpose(0, 1).unsqueeze(0).expand(2, n, m)
        ends = x[n - 1], x.flip(0), x.roll(1, 1), x.cumsum(0), x.topk(2), adjoin.arange(n), x.new_zeros(n, 3)
        return (
            y,
            moved,
            picked,
            ends,
            x.std(),
            x.max(1),
            adjoin.where(x > 0, x, 2.0),
            x // 0.3,
            F.pad(x, (1, 1)),
            adjoin.triu(x),
        )


class Flow(nn.Module):
    def forward(self, x, n):
        y = jit.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))
        return jit.while_loop(lambda y, i: i < n, lambda y, i: (y * 1.5, i + 1), (y, n * 0))[0]


def networks():
    """(network, example, other inputs, dynamic_axes)"""
    b = {"x": {0: "batch"}}
    bt = {"x": {0: "batch", 1: "time"}}
    r = adjoin.randn
    mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax(-1))
    cnn = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(True), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3, bias=False),
        nn.GroupNorm(2, 4), nn.SiLU(), nn.Upsample(scale_factor=2), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )  # fmt: skip
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    yield "mlp", mlp, (r(3, 8),), [(r(7, 8),), (r(1, 8),)], b
    yield "cnn", cnn, (r(2, 3, 8, 8),), [(r(5, 3, 8, 8),)], b
    yield "lstm", nn.LSTM(4, 6, 2, bidirectional=True, batch_first=True), (r(3, 5, 4),), [(r(2, 9, 4),)], bt
    yield "gru", nn.GRU(4, 6), (r(3, 5, 4),), [(r(4, 2, 4),)], bt
    yield "encoder", nn.TransformerEncoder(layer, 2), (r(2, 5, 16),), [(r(3, 7, 16),)], bt
    yield "parts", Parts(), (r(6, 5),), [(r(9, 5),)], b
    yield "flow", Flow(), (r(4), adjoin.tensor(3)), [(-adjoin.ones(4), adjoin.tensor(0))], None


NAMES = ["mlp", "cnn", "lstm", "gru", "encoder", "parts", "flow"]


def network(name):
    adjoin.manual_seed(0)
    return next(n[1:] for n in networks() if n[0] == name)


def flat(o):
    return [t for x in o for t in flat(x)] if isinstance(o, (tuple, list)) else [o]


def close(got, want):
    got, want = flat(got), flat(want)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape and g.dtype == w.dtype
        assert adjoin.allclose(g, w, rtol=1e-5, atol=1e-5, equal_nan=True)


def exported(net, example, axes=None, **more):
    return onnx.export(net, example, input_names=["x", "n"][: len(example)], dynamic_axes=axes, **more).to_bytes()


@pytest.mark.parametrize("opset", [13, 20])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_exported_is_loaded_and_computes_the_same(name, opset):
    net, example, others, axes = network(name)
    net.eval()
    with adjoin.no_grad():
        loaded = onnx.load(exported(net, example, axes, opset_version=opset))
        for args in (example, *others):
            close(loaded(*args), net(*args))


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_model_is_traced_saved_and_run(name, tmp_path):
    net, example, others, axes = network(name)
    net.eval()
    with adjoin.no_grad():
        loaded = onnx.load(exported(net, example, axes))
        sizes = {0: axes["x"]} if axes else None
        jit.save(jit.trace(loaded, example, dynamic=sizes), tmp_path / "model.aj")
        program = jit.load(tmp_path / "model.aj")
        for args in (example, *others):
            close(program(*args), net(*args))


def test_programs_of_export_and_trace_are_written():
    net, example, others, axes = network("mlp")
    net.eval()
    program = export.export(net, example, dynamic_shapes=({0: export.Dim("batch", min=1, max=64)},))
    for made in (program, jit.trace(net, example, dynamic={0: {0: "batch"}})):
        loaded = onnx.load(onnx.export(made).to_bytes())
        with adjoin.no_grad():
            close(loaded(*others[0]), net(*others[0]))


def test_training_goes_on_and_modes_are_put_back():
    net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    loaded = onnx.load(exported(net, (adjoin.ones(2, 3),)))
    assert net.training and net[1].training
    loaded(adjoin.ones(2, 3)).sum().backward()
    assert all(p.grad is not None for p in loaded.parameters()) and len(list(loaded.parameters())) == 2


def test_large_weights_lie_beside_the_model(tmp_path):
    net = nn.Linear(64, 32)
    path = tmp_path / "model.onnx"
    onnx.export(net, (adjoin.ones(2, 64),), path, external_data=True)
    assert (tmp_path / "model.onnx.data").stat().st_size >= 64 * 32 * 4 > path.stat().st_size
    close(onnx.load(path)(adjoin.ones(2, 64)), net(adjoin.ones(2, 64)))
    with pytest.raises(ValueError, match="give the path"):
        onnx.load(path.read_bytes())
    data = path.read_bytes().replace(b"model.onnx.data", b"../../../passwd")
    path.write_bytes(data)
    with pytest.raises(ValueError, match="outside of the model's folder"):
        onnx.load(path)


def test_the_command_converts_models(tmp_path):
    net, example, others, axes = network("mlp")
    (tmp_path / "a.onnx").write_bytes(exported(net.eval(), example, axes))

    def convert(*words):
        return subprocess.run(["adjoin", "graph", "convert", *words], cwd=tmp_path, capture_output=True, text=True)

    assert convert("a.onnx", "b.aj").returncode == 0 and convert("b.aj", "c.onnx", "--opset", "20").returncode == 0
    with adjoin.no_grad():
        for args in (example, *others):
            close(jit.load(tmp_path / "b.aj")(*args), net(*args))
            close(onnx.load(tmp_path / "c.onnx")(*args), net(*args))
    wrong = convert("a.onnx", "b.txt")
    assert wrong.returncode and "end in .aj or .onnx" in wrong.stderr and "Traceback" not in wrong.stderr


def test_what_has_no_rule_is_named_and_may_get_one():
    class Lgamma(nn.Module):
        def forward(self, x):
            return adjoin.lgamma(x)

    with pytest.raises(NotImplementedError, match="lgamma"):
        exported(Lgamma(), (adjoin.ones(3),))
    onnx.register_custom_op_symbolic("aten::lgamma", lambda g, x: g.op("mine::LogGamma", x, scale_f=2.0), 13)
    try:
        model = messages.parse(exported(Lgamma(), (adjoin.ones(3),)))
    finally:
        onnx.unregister_custom_op_symbolic("aten::lgamma", 13)
    node = next(n for n in model.graph.node if n.op_type == "LogGamma")
    assert (
        node.domain == "mine" and node.attribute[0].f == 2.0 and {o.domain for o in model.opset_import} == {"", "mine"}
    )
    with pytest.raises(NotImplementedError, match=r"no function computes mine\.LogGamma"):
        onnx.load(io.BytesIO(b"".join(_wire.write(model)[0])))


def test_wrong_calls_say_so():
    net, data = nn.Linear(3, 2), exported(nn.Linear(3, 2), (adjoin.ones(2, 3),))
    with pytest.raises(ValueError, match="opsets 13 to 20"):
        onnx.export(net, (adjoin.ones(2, 3),), opset_version=9)
    with pytest.raises(NotImplementedError, match="training mode"):
        onnx.export(nn.Sequential(nn.BatchNorm1d(3)), (adjoin.ones(2, 3),), training=onnx.TrainingMode.TRAINING)
    loaded = onnx.load(data)
    for wrong, told in (
        ((), "missing"),
        ((adjoin.ones(2, 3, dtype=adjoin.float64),), "float64"),
        ((1, 2), "1 inputs|has 1 inputs"),
    ):
        with pytest.raises(TypeError, match=told):
            loaded(*wrong)


ALLOWED = (ValueError, TypeError, RuntimeError, NotImplementedError, IndexError, KeyError, OverflowError)


def small_model():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.LayerNorm(4))
    return bytearray(exported(net, (adjoin.ones(2, 3),), {"x": {0: "b"}}))


def tried(data):
    """Reading ends in a model or an error that says what is wrong; what was read runs or raises."""
    try:
        with adjoin.no_grad():
            onnx.load(bytes(data))(adjoin.ones(2, 3))
    except ALLOWED as error:
        assert str(error)


def test_damaged_files_raise():
    whole, rng = small_model(), random.Random(SEED)
    for end in range(0, len(whole), 7):
        tried(whole[:end])
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 2, 8))):
            data[rng.randrange(len(data))] = rng.choice((0, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        tried(data)


def model_with(*nodes, **more):
    graph = messages.Graph(name="g", node=list(nodes), output=[messages.ValueInfo(name="y")], **more)
    model = messages.Model(ir_version=8, graph=graph, opset_import=[messages.OperatorSet(domain="", version=17)])
    return b"".join(_wire.write(model)[0])


def test_hostile_files_raise():
    tensor, node = messages.Tensor, messages.Node
    huge = tensor(name="w", dims=[1 << 40, 1 << 40], data_type=1, raw_data=b"1234")
    with pytest.raises(ValueError, match="has 4 bytes"):
        onnx.load(model_with(node(op_type="Identity", input=["w"], output=["y"]), initializer=[huge]))
    with pytest.raises(ValueError, match="a size of -1"):
        onnx.load(model_with(initializer=[tensor(name="w", dims=[-1], data_type=1)]))
    sparse = messages.Sparse(
        values=tensor(name="w", dims=[1], data_type=1, raw_data=b"1234"), dims=[1 << 50],
        indices=tensor(dims=[1], data_type=7, raw_data=b"12345678"),
    )  # fmt: skip
    with pytest.raises(NotImplementedError, match="large as a dense one"):
        onnx.load(model_with(sparse_initializer=[sparse]))
    cycle = [node(op_type="Neg", input=["b"], output=["a"]), node(op_type="Neg", input=["a"], output=["b"])]
    with pytest.raises(ValueError, match="nothing has made before"):
        onnx.load(model_with(*cycle))()
    call = node(op_type="F", domain="d", input=["x"], output=["y"])
    function = messages.Function(name="F", domain="d", input=["x"], output=["y"], node=[call])
    model = messages.parse(model_with(call))
    model.functions = [function]
    with pytest.raises(ValueError, match="calls itself"):
        onnx.load(b"".join(_wire.write(model)[0]))
    many = [
        messages.Function(
            name=f"F{i}", domain="d", output=["y"], node=[node(op_type=f"F{i + 1}", domain="d", output=["y"])] * 2
        )
        for i in range(40)
    ]
    model.functions = [
        *many,
        messages.Function(name="F40", domain="d", output=["y"], node=[node(op_type="None", output=["y"])]),
    ]
    model.graph.node = [node(op_type="F0", domain="d", output=["y"])]
    with pytest.raises(NotImplementedError, match="no function computes None"):  # at once: 2 ** 40 ways lead there
        onnx.load(b"".join(_wire.write(model)[0]))
    deep = b""
    for _ in range(300):  # graphs in attributes of nodes of graphs
        deep = b"".join(
            _wire._field(
                1, "bytes", b"".join(_wire._field(5, "bytes", b"".join(_wire._field(6, "bytes", deep)[0]))[0])
            )[0]
        )
    with pytest.raises(ValueError, match="deeper than"):
        onnx.load(b"".join(_wire._field(7, "bytes", deep)[0]))
