"""tests/compat/beside_onnx_test.py: ONNX's own node cases of opsets 13 to 20, read and computed, as they are and as traced programs; what is
exported, run by onnxruntime.

Run where the packages onnx and onnxruntime are installed; left out elsewhere.
"""

import collections
import pathlib
import sys
import warnings

import adjoin
import pytest
from adjoin import jit
from adjoin import onnx as ours
from adjoin.onnx import _model, _wire

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
import numpy as np  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).parents[1] / "python/graph"))
import onnx_test as graphs  # noqa: E402

OPSETS = range(13, 21)
# Nodes without a function, and why: their cases are not counted.
UNSERVED = {
    "ImageDecoder": "formats of pictures",
    "StringSplit": "strings",
    "StringConcat": "strings",
    "RegexFullMatch": "strings",
    "Equal of strings": "strings",
}
SMALL = ("int4", "uint4", "float4_e2m1fn", "float8_e8m0fnu", "int2", "uint2")


def as_tensor(x):
    if x is None:
        return None
    if isinstance(x, (list, tuple)):
        return [as_tensor(v) for v in x]
    if isinstance(x, onnx.TensorProto):
        return _model.tensor_of(_wire.read(_model.Tensor, memoryview(x.SerializeToString())))
    x = np.asarray(x)
    if x.dtype == object or x.dtype.name in SMALL:
        raise NotImplementedError(x.dtype.name)
    if x.dtype.name == "bfloat16" or "float8" in x.dtype.name:
        dtype = getattr(adjoin, x.dtype.name)
        return (
            adjoin.frombuffer(bytearray(x.tobytes()), dtype=dtype).reshape(x.shape)
            if x.size
            else adjoin.zeros(x.shape, dtype=dtype)
        )
    return adjoin.from_numpy(np.ascontiguousarray(x).reshape(x.shape).copy())


def compare(got, want, case):
    want = as_tensor(want)
    if want is None or isinstance(want, list):
        assert got is None if want is None else len(got) == len(want)
        for g, w in zip(got or (), want or (), strict=True):
            compare(g, w, case)
        return
    assert got.shape == want.shape and got.dtype == want.dtype, (
        f"{got.dtype} {got.shape}, wanted {want.dtype} {want.shape}"
    )
    if got.dtype.itemsize <= 2 and got.dtype.is_floating_point:
        got, want = got.float(), want.float()
    small = want.dtype.is_floating_point and want.dtype.itemsize <= 2
    np.testing.assert_allclose(
        got.detach().numpy(), want.numpy(), rtol=max(case.rtol, 1e-3), atol=1e-2 if small else 1e-6
    )


def cases():
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in collect_testcases(None):
            opsets = {o.domain: o.version for o in case.model.opset_import}
            if set(opsets) == {""} and opsets[""] in OPSETS:
                yield case


def reason(case):
    names = {n.op_type for n in case.model.graph.node}
    if named := sorted(names & set(UNSERVED)):
        return named[0]
    strings = any(i.type.tensor_type.elem_type == onnx.TensorProto.STRING for i in case.model.graph.input)
    return "Equal of strings" if strings else None


def run(case, trace):
    model = ours.load(case.model.SerializeToString())
    for inputs, outputs in case.data_sets:
        args = [as_tensor(x) for x in inputs]
        with adjoin.no_grad():
            if trace:
                made = traced(model, args)
            else:
                made = model(*args)
        made = list(made) if isinstance(made, tuple) else [made]
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        assert len(made) == len(outputs)
        for got, want in zip(made, outputs, strict=True):
            compare(got, want, case)


def traced(model, args):
    """By the graph's interpreter. Inputs that decide shapes are what the program knows: one by one they are given so."""
    kept = list(range(len(args)))
    while True:
        try:
            program = jit.trace(lambda *xs: model(**named(model, args) | dict(zip([model.input_names[i] for i in kept], xs, strict=True))), tuple(args[i] for i in kept), constants_limit=1 << 40)  # fmt: skip
            return program(*(args[i] for i in kept))
        except NotImplementedError as error:
            if "decides a shape" not in str(error) or len(kept) <= 1:
                raise
            kept.pop()


def named(model, args):
    return dict(zip(model.input_names, args, strict=False))


def table(trace):
    done, wrong, left = 0, {}, collections.Counter()
    for case in cases():
        if why := reason(case):
            left[why] += 1
            continue
        try:
            run(case, trace)
            done += 1
        except Exception as error:  # every one is told
            wrong[case.name] = f"{type(error).__name__}: {error}".splitlines()[0][:160]
    share = done / (done + len(wrong))
    print(f"\n{'as programs' if trace else 'as they are'}: {done} of {done + len(wrong)} cases, {100 * share:.1f} %")
    print("not counted:", ", ".join(f"{n} {why} ({UNSERVED[why]})" for why, n in sorted(left.items())))
    for name, why in sorted(wrong.items()):
        print("  ", name, why)
    return share, wrong


def test_node_cases():
    share, wrong = table(False)
    assert share >= 0.95 and not wrong


def test_node_cases_as_programs():
    share, _ = table(True)
    assert share >= 0.9  # the rest have sizes that depend on values, or sequences


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", graphs.NAMES)
def test_onnxruntime_computes_what_was_exported(name, opset):
    net, example, others, axes = graphs.network(name)
    net.eval()
    data = graphs.exported(net, example, axes, opset_version=opset)
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    options = runtime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = runtime.InferenceSession(data, options)
    for args in (example, *others):
        got = session.run(None, {i.name: a.numpy() for i, a in zip(session.get_inputs(), args, strict=True)})
        with adjoin.no_grad():
            graphs.close([adjoin.from_numpy(np.array(g)) for g in got], net(*args))
