"""tests/python/graph/archives_test.py: archives of TorchScript and of torch.export, written here byte by byte: read without executing
anything; damaged and hostile ones raise.

tests/compat/beside_archives_test.py reads what PyTorch itself writes.
"""

import io
import json
import os
import pickle
import random
import struct
import zipfile

import adjoin
import pytest
from adjoin import export, jit

SEED = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(10**6)))
ALLOWED = (
    ValueError,
    TypeError,
    RuntimeError,
    NotImplementedError,
    IndexError,
    KeyError,
    AttributeError,
    OverflowError,
    pickle.UnpicklingError,
)

CODE = """class Net(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  weight : Tensor
  training : bool
  k : int
  def forward(self: __torch__.Net,
    x: Tensor,
    n: int=2) -> Tuple[Tensor, List[int]]:
    weight = self.weight
    y = torch.matmul(x, weight)
    seen = annotate(List[int], [])
    y0 = y
    for i in range(n):
      if torch.eq(torch.remainder(i, 2), 0):
        y1 = torch.add(y0, CONSTANTS.c0)
      else:
        y1 = __torch__.helper(y0, self.k, )
      _0 = torch.append(seen, i)
      y0 = y1
    return (y0, seen)
def helper(x: Tensor,
    k: int) -> Tensor:
  if torch.lt(k, 0):
    ops.prim.RaiseException(torch.format("k is {}", k), "builtins.ValueError")
  else:
    pass
  return torch.mul(torch.relu(x), k)
"""


def text(s):
    return b"X" + struct.pack("<I", len(s)) + s.encode()


def tensor(key, shape):
    """The opcodes of a float32 tensor that lies in data/KEY."""
    numbers = [b"(" + b"".join(b"K" + bytes([n]) for n in ns) + b"t" for ns in (shape, (shape[1], 1))]
    stored = (
        b"("
        + text("storage")
        + b"ctorch\nFloatStorage\n"
        + text(key)
        + text("cpu")
        + b"K"
        + bytes([shape[0] * shape[1]])
        + b"tQ"
    )
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + stored
        + b"K\x00"
        + numbers[0]
        + numbers[1]
        + b"\x89"
        + b"ccollections\nOrderedDict\n)R"
        + b"tR"
    )


def zipped(parts, packed=()):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in parts.items():
            archive.writestr("net/" + name, data, zipfile.ZIP_DEFLATED if name in packed else zipfile.ZIP_STORED)
    return file.getvalue()


def script(code=CODE, k=b"K\x03", extra=None, data=None):
    state = b"}(" + text("weight") + tensor("0", (2, 2)) + text("training") + b"\x89" + text("k") + k + b"u"
    parts = {
        "data.pkl": data or b"\x80\x02c__torch__\nNet\n)\x81" + state + b"b.",
        "code/__torch__.py": code,
        "data/0": struct.pack("<4f", 1, 2, 3, 4),
        "constants.pkl": b"\x80\x02(" + tensor("0", (1, 2)) + b"t.",
        "constants/0": struct.pack("<2f", 10, 20),
        "version": "3\n",
        "byteorder": "little",
    }
    return zipped(parts | (extra or {}), ("code/__torch__.py",))


def loaded(data):
    return jit.load(io.BytesIO(data))


def test_a_script_is_interpreted():
    net = loaded(script())
    x = adjoin.tensor([[1.0, -1.0]])
    y, seen = net(x, 3)
    start = x @ net.weight + adjoin.tensor([[10.0, 20.0]])
    assert y.equal(start.relu() * 3 + adjoin.tensor([[10.0, 20.0]])) and seen == [0, 1, 2]
    assert [n for n, _ in net.named_parameters()] == ["weight"] and "for i in range" in net.code
    program = jit.trace(net, (x,))
    assert program(x)[0].equal(net(x)[0])
    with pytest.raises(ValueError, match="k is -1"):
        loaded(script(k=b"J" + struct.pack("<i", -1)))(x)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (CODE.replace("self.weight", "self.__class__"), "no attribute '__class__'"),
        (CODE.replace("torch.matmul(x, weight)", "x.__reduce__()"), "__reduce__"),
        (CODE.replace("torch.matmul(x, weight)", "(x).data_ptr"), "reads 'data_ptr' of a Tensor"),
        (CODE.replace("torch.matmul(x, weight)", "__import__('os')"), "'__import__', which nothing has set"),
        (CODE.replace("torch.matmul(x, weight)", "torch.load('x')"), "aten::load has no function"),
        (CODE.replace("torch.matmul(x, weight)", "torch.save(x, 'x')"), "aten::save has no function"),
        (CODE.replace("torch.matmul(x, weight)", "torch.hub.load('x')"), "is not served"),
        (CODE.replace("torch.matmul(x, weight)", "torch.compile(x)"), "aten::compile has no function"),
        (CODE.replace('"k is {}"', '"{0.__class__}"').replace("torch.lt(k, 0)", "True"), "{0.__class__}"),
        (CODE.replace("torch.matmul(x, weight)", "(lambda: 1)()"), "a Lambda, which TorchScript does not write"),
        ("import os\n" + CODE, "a Import, which TorchScript does not write"),
        (CODE.replace("torch.matmul(x, weight)", "(" * 3000 + "x" + ")" * 3000), "deeper than"),
        (CODE.replace("torch.matmul(x, weight)", "-" * 50000 + "1"), "cannot be read"),
        (CODE.replace("torch.matmul(x, weight)", "self.forward(x, 1)"), "calls lie deeper"),
        (CODE.replace("torch.matmul(x, weight)", "torch.mul([1], 9999999999)"), "more than"),
        (CODE.replace("torch.matmul(x, weight)", "torch.pow(torch.pow(9, 999), 999)"), "too large"),
        (CODE.replace("class Net", "class Other"), "has no Net"),
    ],
)
def test_code_does_what_its_ops_do_and_no_more(code, told):
    with pytest.raises(ALLOWED, match=told):
        loaded(script(code))(adjoin.ones(1, 2))


def test_data_that_are_no_module_raise():
    for data, told in (
        (b"\x80\x02cos\nsystem\n" + text("true") + b"\x85R.", "no module|os.system"),
        (b"\x80\x02c__torch__.torch.classes.quantized\nConv\n)\x81}b.", "PyTorch's own"),
        (b"\x80\x02K\x01.", "no module"),
    ):
        with pytest.raises(ALLOWED, match=told):
            loaded(script(data=data))
    twice = b"]q\x000"
    for i in range(40):  # a list of two times the list before
        twice += b"]q" + bytes([i + 1]) + b"(h" + bytes([i]) + b"h" + bytes([i]) + b"e0"
    twice += b"h" + bytes([40])
    state = b"}(" + text("weight") + tensor("0", (2, 2)) + text("k") + twice + b"u"
    loaded(script(data=b"\x80\x02c__torch__\nNet\n)\x81" + state + b"b."))
    itself = b"]q\x00(h\x00e"
    with pytest.raises(ALLOWED, match="deeper than"):
        loaded(script(data=b"\x80\x02c__torch__\nNet\n)\x81}(" + text("k") + itself + b"ub."))
    bomb = "x" * (65 << 20)
    with pytest.raises(RuntimeError, match="its code has more than"):
        loaded(
            zipped(
                {"code/__torch__.py": bomb, "data.pkl": b"\x80\x02N.", "constants.pkl": b"\x80\x02).", "version": "3"},
                ("code/__torch__.py",),
            )
        )


def meta(sizes, strides=None):
    strides = strides or [4**i for i in range(len(sizes))][::-1]
    sizes = [
        {"as_int": n}
        if isinstance(n, int)
        else {"as_expr": {"expr_str": f"Symbol('{n}', positive=True, integer=True)"}}
        for n in sizes
    ]
    return {"dtype": 7, "sizes": sizes, "strides": [{"as_int": n} for n in strides], "storage_offset": {"as_int": 0}, "layout": 7, "requires_grad": True}  # fmt: skip


def named(name):
    return {"as_tensor": {"name": name}}


def tree(*children, kind="builtins.tuple", context=None):
    return {"type": kind, "context": json.dumps(context), "children_spec": list(children)}


LEAF = {"type": None, "context": None, "children_spec": []}


def exported(change=lambda said: None, weight=None, data=None):
    def call(target, *args):
        return [{"name": "a", "arg": a, "kind": 1} for a in args], target

    nodes = []
    for out, target, args in (
        ("y", "torch.ops.aten.linear.default", (named("x"), named("p_w"))),
        ("z", "torch.ops.aten.relu_.default", (named("y"),)),
    ):
        inputs, target = call(target, *args)
        nodes.append({"target": target, "inputs": inputs, "outputs": [named(out)], "metadata": {}})
    nodes.append(
        {
            "target": "torch.ops.aten.sym_size.int",
            "inputs": call("", named("x"), {"as_int": 0})[0],
            "outputs": [{"as_sym_int": {"as_name": "n"}}],
            "metadata": {},
        }
    )
    nodes.append(
        {
            "target": "_operator.mul",
            "inputs": call("", {"as_sym_int": {"as_name": "n"}}, {"as_sym_int": {"as_int": 2}})[0],
            "outputs": [{"as_sym_int": {"as_name": "m"}}],
            "metadata": {},
        }
    )
    nodes.append(
        {
            "target": "torch.ops.aten.mul.Tensor",
            "inputs": call("", named("z"), {"as_sym_int": {"as_name": "m"}})[0],
            "outputs": [named("o")],
            "metadata": {},
        }
    )
    graph = {
        "inputs": [named("p_w"), named("x")],
        "outputs": [named("o")],
        "nodes": nodes,
        "tensor_values": {"x": meta(["s0", 2])},
    }
    signature = {
        "input_specs": [
            {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "l.w"}},
            {"user_input": {"arg": named("x")}},
        ],
        "output_specs": [{"user_output": {"arg": named("o")}}],
    }
    spec = json.dumps([1, tree(tree(LEAF), tree(kind="builtins.dict", context=[]))])
    call = {
        "fqn": "",
        "signature": {"in_spec": spec, "out_spec": json.dumps([1, tree(LEAF, kind="builtins.dict", context=["out"])])},
    }
    said = {
        "graph_module": {"graph": graph, "signature": signature, "module_call_graph": [call]},
        "schema_version": {"major": 8, "minor": 20},
        "range_constraints": {"s0": {"min_val": 2, "max_val": 9}},
    }
    change(said)
    entry = weight or {
        "path_name": "weight_0",
        "is_param": True,
        "use_pickle": False,
        "tensor_meta": meta([3, 2], [2, 1]),
    }
    return zipped({
        "models/model.json": json.dumps(said), "data/weights/model_weights_config.json": json.dumps({"config": {"l.w": entry}}),
        "data/weights/weight_0": struct.pack("<6f", *range(-3, 3)) if data is None else data, "archive_format": "pt2",
    })  # fmt: skip


def test_a_program_of_torch_export_is_computed():
    net = loaded(exported())
    for n in (2, 5):
        x = adjoin.randn(n, 2)
        assert net(x)["out"].equal((x @ net.l.w.t()).relu() * n * 2)
    assert [n for n, _ in net.named_parameters()] == ["l.w"]
    assert export.load(io.BytesIO(exported())).module()(x)["out"].equal(net(x)["out"])
    for x, told in (
        (adjoin.ones(10, 2), "exported for 2 to 9"),
        (adjoin.ones(2, 3), "exported for 2"),
        (adjoin.ones(2), "dimensions"),
    ):
        with pytest.raises((RuntimeError, TypeError), match=told):
            net(x)


def test_programs_that_ask_for_more_than_ops_raise():
    def target(name):
        return lambda said: said["graph_module"]["graph"]["nodes"][0].update(target=name)

    for name in (
        "os.system",
        "builtins.eval",
        "torch.ops.aten.load.default",
        "torch.ops.higher_order.run_const_graph",
        "torch.hub.load",
    ):
        with pytest.raises(ALLOWED, match=name.rpartition(".")[2] if "aten" not in name else "load"):
            loaded(exported(target(name)))(adjoin.ones(2, 2))
    whole = {"path_name": "weight_0", "is_param": True, "tensor_meta": meta([3, 2], [2, 1])}
    for weight, told in (
        (whole | {"use_pickle": True}, "pickled"),
        (whole | {"tensor_meta": meta([1 << 40, 1 << 40], [1 << 40, 1])}, "wants .* bytes, there are 24"),
        (whole | {"tensor_meta": meta([-3, 2], [2, 1])}, "a size of a weight"),
        (whole | {"path_name": "../weight_0"}, "has no"),
    ):
        with pytest.raises(RuntimeError, match=told):
            loaded(exported(weight=weight))
    with pytest.raises(RuntimeError, match="schema"):
        loaded(exported(lambda said: said["schema_version"].update(major=9)))
    with pytest.raises(RuntimeError, match="'nobody', which nothing has made"):
        loaded(
            exported(lambda said: said["graph_module"]["graph"]["nodes"][0]["inputs"][0].update(arg=named("nobody")))
        )(adjoin.ones(2, 2))


def tried(data):
    try:
        net = loaded(data)
        with adjoin.no_grad():
            net(adjoin.ones(2, 2))
    except ALLOWED as error:
        assert str(error) or isinstance(error, AssertionError)


def damaged(whole, rng):
    data = bytearray(whole)
    if rng.random() < 0.2:
        return bytes(data[: rng.randrange(len(data))])
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] = rng.choice((0, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(data)


def test_damaged_archives_raise():
    rng = random.Random(SEED)
    for whole in (script(), exported()):
        for _ in range(150):
            tried(damaged(whole, rng))
    for _ in range(150):  # inside of the check sums: the pickle, the code, the graph
        code = bytearray(CODE.encode())
        code[rng.randrange(len(code))] = rng.choice(b'()[]:,."x0-= \n')
        tried(script(code.decode()))
        pickled = zipfile.ZipFile(io.BytesIO(script())).read("net/data.pkl")
        tried(script(data=damaged(pickled, rng)))
        tried(exported(lambda said: disturbed(said, rng)))


def disturbed(said, rng):
    """Replaces one part of nested lists and dictionaries."""
    places = []

    def walk(o):
        for k in list(o) if isinstance(o, dict) else range(len(o)):
            places.append((o, k))
            if isinstance(o[k], (dict, list)):
                walk(o[k])

    walk(said)
    o, k = rng.choice(places)
    o[k] = rng.choice((None, -1, 1 << 62, "", "x", [], {}, {"as_int": 1}, [1], True, "torch.ops.aten.cat.default"))
