"""tests/abi/copies_test.py: the contract as other languages' bindings wrote it down by hand stands where the headers put it."""

import json
import re
import tempfile
from pathlib import Path

import pytest

from abi_tools import HERE, ROOT
from contract import Reader, measure
from freeze import CANDIDATE

BINDINGS = ROOT / "frontends/cli/templates/bindings"
LAYOUT = json.loads((HERE / CANDIDATE / "layout.json").read_text())["structs"]
PLACES = {name: {field: at for field, _, at, _ in struct["fields"]} for name, struct in LAYOUT.items()}


def compare(name, found):
    """Of one struct: {field: offset} as a binding has it. Fields that it calls otherwise are its own business."""
    common = {field: at for field, at in found.items() if field in PLACES[name]}
    assert len(common) > 1, f"{name}: nothing to compare"
    wrong = {f: (at, PLACES[name][f]) for f, at in common.items() if at != PLACES[name][f]}
    assert not wrong, f"{name}: (there, in the headers): {wrong}"


def lua_structs():
    """Its declarations are C."""
    text = re.search(r"ffi\.cdef \[\[(.*?)\]\]", (BINDINGS / "lua/adjoin.lua").read_text(), re.S)[1]
    structs, *_ = Reader(re.sub(r"//[^\n]*", "", text)).declarations()
    plain = "#include <stddef.h>\n#include <stdint.h>\n" + text
    with tempfile.TemporaryDirectory() as folder:
        answers = measure(Path(folder), [], plain, structs, [])
        for name, fields in structs.items():
            next(answers)
            yield name, {field: int(next(answers).split()[0]) for field, _ in fields}


@pytest.mark.parametrize("name,fields", [pytest.param(*row, id=row[0]) for row in lua_structs() if row[0] in LAYOUT])
def test_lua(name, fields):
    compare(name, fields)


RUST = {
    "Str": "aj_str",
    "DLTensor": "DLTensor",
    "Object": "aj_object",
    "Tensor": "aj_tensor",
    "Value": "aj_value",
    "Core": "aj_core",
    "Dispatch": "aj_dispatch",
    "Autograd": "aj_autograd",
    "Backward": "aj_backward",
    "Call": "aj_call",
    "GradCall": "aj_grad_call",
    "OpDef": "aj_op_def",
    "KernelDef": "aj_kernel_def",
    "Save": "aj_save",
    "VjpDef": "aj_vjp_def",
    "Env": "aj_plugin_env",
}
CALLED = {"this": "self", "kind": "type", "refs": "refs_private", "run": "fn"}  # words that mean something in Rust
SIZES = {"u8": (1, 1), "u32": (4, 4), "i32": (4, 4), "u64": (8, 8), "i64": (8, 8), "f64": (8, 8), "Str": (16, 8)}
SIZES |= {"super::Device": (8, 4), "super::DType": (4, 2), "DLTensor": (48, 8), "Content": (8, 8)}


def rust_size(kind):
    """(size, alignment); all that has no name here is a pointer."""
    row = re.fullmatch(r"\[(.*); (\d+)\]", kind)
    if row:
        size, align = rust_size(row[1])
        return size * int(row[2]), align
    return SIZES.get(kind, (8, 8))


@pytest.mark.parametrize("name", RUST)
def test_rust(name):
    text = (BINDINGS / "rust/src/contract.rs").read_text()
    body = re.search(rf"pub struct {name} \{{(.*?)\n    \}}", text, re.S)[1]
    at, found = 0, {}
    for field, kind in re.findall(r"pub (\w+): (.*),$", body, re.M):
        size, align = rust_size(kind)
        at = (at + align - 1) // align * align
        if not kind.startswith("[Unused"):  # several that are not used, under a name of its own
            found[CALLED.get(field, field)] = at
        at += size
    compare(RUST[name], found)


def test_rust_saves():
    """aj_save stands in an array, so its size counts."""
    text = (BINDINGS / "rust/src/contract.rs").read_text()
    row = re.search(r"pub save: \*const (.*),$", text, re.M)[1]
    sizes = dict(re.findall(r"pub struct (\w+) \{\s*((?:pub \w+: \w+,\s*)+)\}", text))
    kinds = re.findall(r": (\w+),", sizes[row]) if row in sizes else [row]
    size = sum(rust_size(kind)[0] for kind in kinds)
    assert size == LAYOUT["aj_save"]["size"], f"{row} has {size} bytes"


@pytest.mark.parametrize("words,name", [("CORE", "aj_core"), ("OPS", "aj_dispatch"), ("AUTOGRAD", "aj_autograd")])
def test_ctypes_tables(words, name):
    """A table there is its functions' names in order, as many as are used."""
    text = (ROOT / "tests/frontends/from_ctypes.py").read_text()
    listed = re.search(rf'^{words} = "+([^"]*)"', text, re.M)[1].split()
    wanted = [field for field in PLACES[name] if field not in ("struct_size", "minor")]
    assert listed == wanted[: len(listed)]


CTYPES = {
    "Str": "aj_str",
    "Dense": "DLTensor",
    "Tensor": "aj_tensor",
    "Value": "aj_value",
    "Call": "aj_call",
    "GradCall": "aj_grad_call",
    "Backward": "aj_backward",
    "Save": "aj_save",
    "OpDef": "aj_op_def",
    "KernelDef": "aj_kernel_def",
    "VjpDef": "aj_vjp_def",
    "Env": "aj_plugin_env",
}


@pytest.mark.parametrize("name", CTYPES)
def test_ctypes(name):
    """What stands above its first table are declarations alone."""
    text = (ROOT / "tests/frontends/from_ctypes.py").read_text()
    space = {}
    exec(text[: text.index("\n# A table")], space)
    made = space[name]
    called = {"size": "struct_size", "refs": "refs_private"}
    compare(CTYPES[name], {called.get(field, field): getattr(made, field).offset for field, *_ in made._fields_})
