"""tests/python/toplevel/stubs_test.py: the stubs have the names that the package has, and a program is checked with them."""

import ast
import importlib
import os
import pathlib
import subprocess
import sys

import adjoin
import pytest

PACKAGE = pathlib.Path(adjoin.__file__).parent
PROGRAM = pathlib.Path(__file__).parent / "typed/program.py"
STUBS = sorted(PACKAGE.rglob("*.pyi"))


if not STUBS and "LD_PRELOAD" in os.environ:
    pytest.skip("NOT TESTED: a sanitizer build has no stubs", allow_module_level=True)


def module_of(path):
    parts = ["adjoin", *path.relative_to(PACKAGE).with_suffix("").parts]
    module = importlib.import_module(".".join(p for p in parts if p != "__init__"))
    vars(adjoin.autograd).pop("gradcheck", None)  # the import put a module in the function's place
    return module


def defined(body):
    """Public names that a stub gives, and the node of each."""
    found = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {alias.asname: node for alias in node.names if alias.asname}
    return {name: node for name, node in found.items() if not name.startswith("_")}


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()
    sources = {p.relative_to(PACKAGE).with_suffix("") for p in PACKAGE.rglob("*.py")} - {pathlib.Path("demo/__main__")}
    sources = {p for p in sources if not p.is_relative_to("torch/path")}  # of another name
    assert {p.relative_to(PACKAGE).with_suffix("") for p in STUBS} == sources | {pathlib.Path("_C")}


@pytest.mark.parametrize("path", STUBS, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_each_name_is_there_and_the_reverse(path):
    module, stub = module_of(path), ast.parse(path.read_text())
    names = defined(stub.body)
    missing = [name for name in names if not hasattr(module, name)]
    assert not missing, f"not in {module.__name__}: {missing}"
    here = module.__name__
    for name, thing in vars(module).items():
        own = callable(thing) and getattr(thing, "__module__", None) == here
        assert not own or name.startswith("_") or name in names, f"not in the stub of {here}: {name}"
    for name, node in names.items():
        if isinstance(node, ast.ClassDef):
            cls, inside = getattr(module, name), defined(node.body)
            assert not [n for n in inside if not hasattr(cls, n)], name
            public = [n for n in vars(cls) if not n.startswith("_") and n.isidentifier()]
            assert not [n for n in public if n not in inside], name


def test_every_op_is_in_the_stubs():
    stub = defined(ast.parse((PACKAGE / "__init__.pyi").read_text()).body)
    assert {"add", "einsum", "max", "zeros"} <= set(stub)
    ops = [name for name in dir(adjoin) if type(getattr(adjoin, name, None)).__name__ == "Op"]
    assert len(ops) > 200 and not [name for name in ops if name not in stub]


def test_signatures_come_from_the_rows():
    text = (PACKAGE / "__init__.pyi").read_text()
    assert (
        "def relu(input: Tensor, *, out: Tensor | None = None) -> Tensor: ..." in text
        or "def relu(input: Tensor" in text
    )
    assert "keepdim: builtins.bool = False) -> _values_indices" in text


def test_the_program_runs():
    subprocess.run([sys.executable, PROGRAM], check=True, capture_output=True)


def test_mypy_strict(tmp_path):
    pytest.importorskip("mypy", reason="NOT TESTED: mypy is not installed")
    base = ["-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(tmp_path)]
    env = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    for what in ([str(PROGRAM)], ["-p", "adjoin"]):
        got = subprocess.run([sys.executable, *base, *what], capture_output=True, text=True, env=env, cwd=tmp_path)
        assert got.returncode == 0, got.stdout + got.stderr
    (tmp_path / "wrong.py").write_text(
        "import adjoin\nx: int = adjoin.ones(2).sum()\nadjoin.relu('text')\nadjoin.nix\n"
    )
    got = subprocess.run([sys.executable, *base, "wrong.py"], capture_output=True, text=True, env=env, cwd=tmp_path)
    assert [line.split(":")[1] for line in got.stdout.splitlines() if "error:" in line] == ["2", "3", "4"], got.stdout
