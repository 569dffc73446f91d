"""tests/python/toplevel/served_names_test.py: what a module's __getattr__ serves, dir() tells and the stub has."""

import ast
import importlib
import pathlib

import adjoin
import pytest
from adjoin import _hints

PACKAGE = pathlib.Path(adjoin.__file__).parent
NAMES = sorted({n.rpartition("::")[2] for n in adjoin._C.op_names(True) if "." not in n})
OTHERS = ["FloatTensor", "BoolTensor", "amp", "default_generator", "opcheck", "OpCheckError", "CUDAExtension", "CUDA_HOME", "has_mkl", "Variable",
          "gradcheck", "vmap", "_foreach_add", "_foreach_add_", "_foreach_norm", "finfo", "save"]  # fmt: skip
ROOMS = {
    f: ".".join(["adjoin", *(p for p in f.relative_to(PACKAGE).with_suffix("").parts if p != "__init__")])
    for f in PACKAGE.rglob("*.py")
}
SERVING = sorted(name for file, name in ROOMS.items() if "\ndef __getattr__(name):" in file.read_text())


def test_there_are_such_modules():
    assert {
        "adjoin",
        "adjoin.nn.functional",
        "adjoin.linalg",
        "adjoin.special",
        "adjoin.fft",
        "adjoin.ops",
        "adjoin.return_types",
    } <= set(SERVING)


@pytest.mark.parametrize("name", SERVING)
def test_dir_has_what_is_served(name, monkeypatch):
    module = importlib.import_module(name)
    monkeypatch.setattr(_hints, "hint", lambda *given: "")  # a hint for each name that is not there takes long
    monkeypatch.setattr("adjoin.ops.hint", lambda *given: "")
    listed = set(dir(module))
    served = [n for n in [*NAMES, *OTHERS] if n not in listed and hasattr(module, n)]
    assert not served, f"{name} serves what dir() does not tell: {served}"
    absent = [n for n in listed if not n.startswith("_") and not hasattr(module, n)]
    assert not absent, f"dir({name}) tells what is not there: {absent}"


@pytest.mark.parametrize(
    "name", ["adjoin", "adjoin.nn.functional", "adjoin.linalg", "adjoin.special", "adjoin.return_types"]
)
def test_the_stub_has_what_is_served(name):
    parts = pathlib.Path(*name.split(".")[1:])
    stub = PACKAGE / parts / "__init__.pyi" if name == "adjoin" else (PACKAGE / parts).with_suffix(".pyi")
    if not stub.exists():
        pytest.skip("NOT TESTED: a sanitizer build has no stubs")
    body = ast.parse(stub.read_text()).body
    have = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    have |= {node.target.id for node in body if isinstance(node, ast.AnnAssign)}
    have |= {
        alias.asname or alias.name
        for node in body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    module = importlib.import_module(name)
    missing = [n for n in dir(module) if n in NAMES and n not in have and hasattr(module, n)]
    assert not missing, missing


def test_forms_in_place_of_functional():
    forms = {"celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "rrelu_", "selu_", "threshold_"}
    assert forms <= set(dir(adjoin.nn.functional))
    x = adjoin.tensor([-2.0, 3.0])
    assert adjoin.nn.functional.hardtanh_(x) is x and x.tolist() == [-1, 1]


def test_functional_has_what_networks_need_and_no_more():
    with pytest.raises(AttributeError, match="'adjoin.nn.functional' has no attribute 'matmul'"):
        adjoin.nn.functional.matmul  # noqa: B018


def test_a_row_says_where_its_function_stands_too():
    """Ops of networks in adjoin, ops of tensors in nn.functional: no list of names in the package says so."""
    functional, found = adjoin.nn.functional, {"function:adjoin": set(), "function:nn": set()}
    for name in adjoin._C.op_names():
        for info in adjoin._C.op_info(name):
            for tag in set(info["tags"].split()) & set(found):
                found[tag].add(name.removeprefix("nn::"))
    assert {"conv2d", "dropout", "selu"} <= found["function:adjoin"] <= set(dir(adjoin))
    assert {"relu", "channel_shuffle", "native_channel_shuffle"} <= found["function:nn"] <= set(dir(functional))
    assert all(getattr(adjoin, name) is getattr(functional, name) for names in found.values() for name in names)
    assert adjoin.nn.functional.relu_ is adjoin.relu_ and not {"sigmoid_", "tanh_"} & set(dir(functional))
    for module, name in ((adjoin, "hardsigmoid"), (functional, "sin"), (functional, "sigmoid_")):
        with pytest.raises(AttributeError):
            getattr(module, name)
