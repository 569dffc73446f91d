"""tests/python/toplevel/modules_test.py: every module of the package can be the first that a program imports."""

import subprocess
import sys

PROGRAM = """
import os, pathlib, sys, adjoin

def alone(module, then=lambda: None):
    child = os.fork()
    if not child:
        try:
            __import__(module)
            print("tried", module, flush=True)
            then()
        except BaseException as error:
            print(f"{module}: {type(error).__name__}: {error}", flush=True)
        os._exit(0)
    os.waitpid(child, 0)

def name_of(file):
    return ".".join(file.relative_to(top.parent).with_suffix("").parts).removesuffix(".__init__")

top = pathlib.Path(adjoin.__file__).parent
for package in sorted(top.rglob("__init__.py")):  # a package is there before its modules are
    if not (package.parents[1] / "__init__.py").exists() and package.parent != top:
        continue  # adjoin/torch/path/torch: another name, that of adjoin.torch
    modules = [name_of(file) for file in sorted(package.parent.glob("*.py")) if file.name[:2] != "__"]
    alone(name_of(package), lambda: [alone(module) for module in modules])
"""


def test_each_module_alone():
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert len([line for line in told if line.startswith("tried")]) > 150
    assert [line for line in told if not line.startswith("tried")] == []
