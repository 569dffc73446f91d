"""tests/abi/freeze.py: takes the contract as it is now for a version: copies of its published headers, and their layout as data.

python tests/abi/freeze.py [v1.0-rc2]        writes tests/abi/VERSION/{*.h, layout.json, layout.c}
python tests/abi/freeze.py --diff [v1.0-rc2] only says what changed since

A candidate may be taken again until it is published; after that a new minor version gets a folder of its own.
"""

import json
import shutil
import sys
from pathlib import Path

from contract import PUBLISHED, read_contract
from contract_diff import compare

HERE = Path(__file__).resolve().parent
ABI = HERE.parents[1] / "abi"
CANDIDATE = "v1.0-rc2"

ASSERTS = """\
#ifdef __cplusplus
#define ASSERT(condition, text) static_assert(condition, text)
#else
#define ASSERT(condition, text) _Static_assert(condition, text)
#endif
#define SIZE(T, n) ASSERT(sizeof(T) == (n), "ABI: " #T " changed size")
#define AT(T, field, n) ASSERT(offsetof(T, field) == (n), "ABI: " #T "." #field " moved")
#define UP_TO(T, last, n) ASSERT(AJ_END_OF(T, last) == (n), "ABI: " #T "." #last " ends elsewhere")
#define VALUE(name, n) ASSERT((name) == (n), "ABI: " #name " changed its number")
"""


def packed(items):
    """As many a line as fit into 100 columns."""
    lines = [""]
    for item in items:
        if len(lines[-1]) + len(item) >= 100:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + item
    return lines


def layout_c(contract, version):
    """Assertions that any compiler checks: SIZE of what never grows, UP_TO the last published field of what may."""
    lines = [
        f"/* tests/abi/{version}/layout.c: the layout as assertions: compiling it is the test. freeze.py writes it. */",
        *(f"#include <adjoin/abi/{header}>" for header in contract["headers"]),
        "",
        ASSERTS,
    ]
    for name, struct in contract["structs"].items():
        if struct["kind"] == "EXTENSIBLE":
            lines.append(f"UP_TO({name}, {struct['fields'][-1][0]}, {struct['size']});")
        else:
            lines.append(f"SIZE({name}, {struct['size']});")
        lines += packed(f"AT({name}, {field}, {offset});" for field, _, offset, _ in struct["fields"])
    for group in contract["enums"]:
        lines += packed(f"VALUE({name}, {number});" for name, number in group.items())
    return "\n".join(lines) + "\n"


def layout_json(contract):
    """JSON with one field, number, type or macro a line, so that a diff of it can be read."""

    def lines(items, indent):
        return ",\n".join(" " * indent + item for item in items)

    structs = []
    for name, s in contract["structs"].items():
        rows = lines(map(json.dumps, s["fields"]), 6)
        structs.append(f'"{name}": {{"kind": "{s["kind"]}", "size": {s["size"]}, "fields": [\n{rows}]}}')
    parts = [f'"headers": {json.dumps(contract["headers"])}', '"structs": {\n' + lines(structs, 4) + "}"]
    parts.append('"enums": [\n' + lines(map(json.dumps, contract["enums"]), 4) + "]")
    for what in ("types", "functions", "macros"):
        pairs = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in contract[what].items()]
        parts.append(f'"{what}": {{\n' + lines(pairs, 4) + "}")
    return "{\n" + lines(parts, 2) + "\n}\n"


def write(version, abi=ABI, to=HERE):
    folder = to / version
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for header in PUBLISHED:
        shutil.copy(abi / header, folder / header)
    contract = read_contract(folder)
    (folder / "layout.json").write_text(layout_json(contract))
    (folder / "layout.c").write_text(layout_c(contract, version))
    return folder


def diff(version):
    """Prints what changed; 1 if a promise is broken."""
    broken, added = compare(json.loads((HERE / version / "layout.json").read_text()), read_contract(ABI))
    for line in broken:
        print(f"broken: {line}")
    for line in added:
        print(f"added: {line}")
    return 1 if broken else 0


def main(words):
    version = next((w for w in words if not w.startswith("-")), CANDIDATE)
    if "--diff" in words:
        return diff(version)
    print(write(version))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
