"""tests/abi/dlpack_test.py: our DLPack is the real one, whole, and both may be included in either order.

What DLPack 1.3 declares is recorded in dlpack_1_3.json, so ours is compared on every machine. Where the real header is
found (ADJOIN_DLPACK_HEADER, a system's, a PyTorch's), it is compared with the record, and stands beside ours.
`python dlpack_test.py dlpack.h` prints the record of a header.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from contract import Reader, measure, run_gcc

RECORD = Path(__file__).with_name("dlpack_1_3.json")
PLACES = [
    *filter(None, [os.environ.get("ADJOIN_DLPACK_HEADER")]),
    "/usr/include/dlpack/dlpack.h",
    "/usr/local/include/dlpack/dlpack.h",
    *(f"{p}/torch/include/ATen/dlpack.h" for p in sys.path if p),
    *map(str, Path("/opt").glob("*/lib/python3*/site-packages/torch/include/ATen/dlpack.h")),
]
REAL = next((p for p in PLACES if Path(p).is_file()), None)
needs_real = pytest.mark.skipif(
    not REAL, reason="NOT TESTED: no real dlpack.h here (Debian: libdlpack-dev; or set ADJOIN_DLPACK_HEADER)"
)


def macros(text, language):
    """Every macro that the header defines, as it is written, with its guard."""
    words = ["-E", "-dM", "-x", language]
    plain = set(run_gcc(*words, "-", text="#include <stddef.h>\n#include <stdint.h>\n").splitlines())
    lines = set(run_gcc(*words, "-", text=text).splitlines()) - plain
    return dict(sorted((line.split(" ", 2) + [""])[1:3] for line in lines))


def facts(header):
    """Everything that a dlpack.h declares, and where a compiler puts it."""
    text = f'#include "{header}"\n'
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        for name in ("stddef.h", "stdint.h"):
            (scratch / name).touch()
        bare = run_gcc("-E", "-P", "-nostdinc", f"-I{scratch}", "-x", "c", "-", text=text)
        structs, enums, types, functions = Reader(bare).declarations()
        (scratch / "stddef.h").unlink(), (scratch / "stdint.h").unlink()
        answers = measure(scratch, [], text + "#include <stddef.h>\n", structs, enums)
        layout = {}
        for name, fields in structs.items():
            size = int(next(answers))
            layout[name] = [size, [[f, kind, *map(int, next(answers).split())] for f, kind in fields]]
        numbers = [{name: int(next(answers)) for name in group} for group in enums]
    assert functions == {}
    return {"structs": layout, "enums": numbers, "types": types,
            "macros": macros(text, "c"), "macros of C++": macros(text, "c++")}  # fmt: skip


def record(found):
    """JSON with a struct, an enum, a type or a macro a line."""
    parts = []
    for what, items in found.items():
        rows = items if isinstance(items, list) else [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in items.items()]
        rows = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        ends = "[]" if isinstance(items, list) else "{}"
        parts.append(f'  "{what}": {ends[0]}\n    ' + ",\n    ".join(rows) + ends[1])
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    print(record(facts(sys.argv[1])), end="")
    sys.exit()

from abi_tools import INCLUDE, needs_clang  # noqa: E402  (the record needs no installation)


@pytest.fixture(scope="module")
def recorded():
    return json.loads(RECORD.read_text())


def test_ours_is_the_recorded_one(recorded):
    assert facts(INCLUDE / "adjoin/abi/dlpack.h") == recorded


@needs_real
def test_the_real_one_is_the_recorded_one(recorded):
    real = facts(REAL)
    minor = real["macros"].get("DLPACK_MINOR_VERSION")
    if minor != recorded["macros"]["DLPACK_MINOR_VERSION"]:
        pytest.skip(f"NOT TESTED: {REAL} is DLPack 1.{minor}")
    assert real == recorded


OURS = ["adjoin/abi/dlpack.h", "adjoin/abi/capi.h"]
ORDERS = {  # THEIRS stands for the real header
    "ours": OURS,
    "ours, theirs": [*OURS, "THEIRS"],
    "theirs, ours": ["THEIRS", *OURS],
    "theirs, the kit": ["THEIRS", "adjoin/kit/kit.hpp"],
    "the kit, theirs": ["adjoin/kit/kit.hpp", "THEIRS"],
    "ours, the kit": [*OURS, "adjoin/kit/kit.hpp"],
}
C, KIT = [("c", "c99"), ("c", "c11"), ("c++", "c++11"), ("c++", "c++17"), ("c++", "c++20")], [("c++", "c++20")]
USE = """
DLTensor tensor;
DLManagedTensorVersioned* managed;
DLDevice device = {kDLCPU, 0};
DLPackExchangeAPI exchange;
aj_tensor* ours;
"""


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=needs_clang)])
@pytest.mark.parametrize("order", ORDERS)
def test_in_either_order(order, compiler, tmp_path):
    if "theirs" in order and not REAL:
        pytest.skip("NOT TESTED: no real dlpack.h here")
    lines = [f'#include "{REAL}"' if h == "THEIRS" else f"#include <{h}>" for h in ORDERS[order]]
    file = tmp_path / "both"
    file.write_text("\n".join(lines) + USE)
    for language, standard in KIT if "kit" in order else C:
        strict = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{INCLUDE}"]
        subprocess.run([compiler, "-x", language, f"-std={standard}", *strict, str(file)], check=True)
