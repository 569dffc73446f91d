"""tests/abi/rules_test.py: all headers of the contract keep to a small part of C that any language can read.

They are read by a parser of the tests' own (contract.py), as a binding's generator would: names, types that have one
size everywhere, texts with a length, a device wherever there is a stream.
"""

import re

import pytest

from abi_tools import INCLUDE
from contract import PUBLISHED, Reader, run_gcc

FOLDER = INCLUDE / "adjoin/abi"
HEADERS = sorted(h.name for h in FOLDER.glob("*.h"))
PLAIN = {"void", "const", "char", "double", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t"}
PLAIN |= {"int64_t", "uint64_t"}
# Where a text comes without its length: it ends with NUL, and the header says so.
TEXTS = {"aj_str.data", "aj_value.v", "aj_core.status_new", "aj_plugin_env.query", "aj_get_interface", "aj_load_plugin"}


@pytest.fixture(scope="module")
def preprocessed(tmp_path_factory):
    """The contract's own text: the language's headers are empty."""
    empty = tmp_path_factory.mktemp("language")
    for name in ("stddef.h", "stdint.h"):
        (empty / name).touch()
    text = "".join(f"#include <adjoin/abi/{name}>\n" for name in HEADERS)
    words = ["-E", "-P", "-nostdinc", f"-I{empty}", "-DUINTPTR_MAX=1", "-DUINT64_MAX=1", "-x", "c", f"-I{INCLUDE}"]
    return run_gcc(*words, "-", text=text)


@pytest.fixture(scope="module")
def declared(preprocessed):
    """structs, enums, types, functions of all headers."""
    return Reader(preprocessed).declarations()


@pytest.fixture(scope="module")
def ours(declared):
    """(name, type as text) of every field, callback type and function that is not DLPack's."""
    structs, _, types, functions = declared
    pairs = [(f"{s}.{f}", kind) for s, fields in structs.items() for f, kind in fields]
    pairs += [*types.items(), *functions.items()]
    return [(name, kind) for name, kind in pairs if not name.startswith("DL")]


def test_everything_is_read(declared):
    structs, enums, types, functions = declared
    for header in HEADERS:
        text = (FOLDER / header).read_text()
        assert set(re.findall(r"^\} (\w+);", text, re.M)) <= {*structs, *types}, header
    assert len(structs) > 40 and len(enums) > 20 and len(types) > 10 and len(functions) == 4


def test_names(declared):
    structs, enums, types, functions = declared
    for name in [*structs, *types, *functions]:
        assert re.fullmatch(r"aj_[a-z0-9_]+|DL(Pack)?[A-Z]\w*", name), name
    for name, fields in structs.items():
        if name.startswith("aj_"):
            for field, _ in fields:
                assert re.fullmatch(r"[a-z][a-z0-9_]*", field), f"{name}.{field}"
                assert len(field) > 1 or name in ("aj_gemm", "aj_linalg_problem") or field == "v", (
                    f"{name}.{field}: a word is wanted"
                )
    for name in [n for group in enums for n in group]:
        assert re.fullmatch(r"AJ_[A-Z0-9_]+|kDL\w+", name), name


def test_every_number_is_written_down(preprocessed):
    for body in re.findall(r"enum \{(.*?)\}", preprocessed, re.S):
        for item in filter(str.strip, body.split(",")):
            assert "=" in item, item


def test_types_have_one_size_everywhere(declared, ours):
    """No bool, int, long, float, size_t, no type of an enum; DLPack's own are its own."""
    structs, _, types, _ = declared
    known = PLAIN | set(structs) | {name for name, kind in types.items() if kind != "enum"}
    opaque = {"aj_registrar", "aj_saver", "aj_autograd", "aj_core"}
    for name, kind in ours:
        words = set(re.findall(r"[A-Za-z_]\w*", kind)) - {"union"}
        if name == "aj_value.v":
            words -= set(re.findall(r"(\w+)(?:;|\})", kind))  # the members' names
        assert words <= known | opaque, f"{name}: {kind}"


def test_no_bits_and_no_open_lists(preprocessed):
    assert "..." not in preprocessed
    assert not re.search(r"\w\s*:\s*\d+\s*;", preprocessed), "a field of bits has no place of its own"


def test_texts_have_a_length(ours):
    assert {name for name, kind in ours if "char*" in kind} == TEXTS


def test_structs_are_passed_by_address(declared):
    """What may grow is never handed over by value, nor held."""
    structs, _, types, functions = declared
    small = {"aj_str", "aj_object", "aj_save", "aj_operand", "aj_value", "aj_node", "aj_tensor", "aj_linalg_matrix"}
    small |= {n for n in structs if n.startswith("DL")}
    for name, kind in [(f"{s}.{f}", k) for s, fields in structs.items() for f, k in fields] + [*functions.items()]:
        for struct in set(structs) - small:
            assert not re.search(rf"\b{struct}\b(?! const\*|\*)", kind), f"{name}: {kind}"


def test_a_device_wherever_a_stream_is(declared):
    """A stream that is NULL, the default one, says nothing of its device."""
    structs, _, _, _ = declared
    for name, fields in structs.items():
        if any(re.search(r"stream$", f) and kind == "void*" for f, kind in fields):
            assert any(kind == "DLDevice" for _, kind in fields), f"{name}: of which device is the stream?"
    for field, kind in structs["aj_device_vtbl"]:
        free = field in ("count", "copy") or field.startswith("fork_")
        if "(*)" in kind and not free:
            assert "(void*, int32_t" in kind, f"{field} does not say which device"


def test_values_own_by_their_tag(declared):
    tags = next(group for group in declared[1] if "AJ_TENSOR" in group and "AJ_NONE" in group)
    text = (FOLDER / "base.h").read_text()
    numbers = {tag: int(re.search(rf"\b{tag} = (\d+)", text)[1]) for tag in tags}
    counted = {"AJ_TENSOR", "AJ_STRING_OBJ", "AJ_LIST_OBJ", "AJ_COMPLEX_OBJ", "AJ_GENERATOR", "AJ_STREAM"}
    counted |= {"AJ_FUNCTION", "AJ_OBJECT", "AJ_DYNAMIC_BEGIN"}
    assert {tag for tag, number in numbers.items() if number >= 64} == counted
    assert len(set(numbers.values())) == len(numbers)


def test_what_is_not_counted_is_experimental():
    for name in sorted(set(HEADERS) - set(PUBLISHED)):
        assert "experimental" in (FOLDER / name).read_text().split("\n")[0], name
