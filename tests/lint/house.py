"""The walls of the house: who may include whom, which folder stands on which, how large files and folders may be."""

import pathlib
import re
import subprocess
import sys

MAY = {  # whose headers a room may include
    "abi": {"abi"},
    "core": {"abi", "core"},
    "plugins": {"abi", "plugins"},
    "frontends": {"abi", "frontends"},
    "extensions": {"abi", "frontends", "extensions"},
}
FLOORS = {  # a room's folders, lowest first, and whose headers each may include: its own and these, which all stand above it here
    "core": {
        "pch": "",
        "base": "",
        "guest": "base",
        "guest/rare": "base guest",
        "thread": "base guest",
        "device": "base guest thread",
        "device/rare": "base guest device",
        "random": "base guest thread device",
        "service": "base guest thread",
        "memory": "base guest thread device random",
        "tensor": "base guest thread device memory",
        "op": "base guest thread device service tensor",
        "tape": "base guest thread memory tensor op",
        "call": "base guest thread memory tensor op tape",
        "ops": "base tensor",
        "ops/rare": "base ops",
        "ops/nn": "ops",
        "ops/nn/rare": "ops ops/nn",
        "profile": "base guest device memory op",
        "plugin": "base guest thread device service op",
        "plugin/hot": "base thread op plugin",
        "interfaces": "base guest thread device memory random service tensor op tape call ops profile plugin",
    },
    "plugins": {  # includes name them from plugins/ on
        "vector": "",
        "cpu/product": "vector",
        "cpu/lines": "vector",
        "cpu/image": "vector cpu/product",
        "cpu/pointwise": "vector",
        "cpu/index": "vector",
        "cpu/train": "vector cpu/product",
        "cpu/tune": "vector cpu/product",
        "cpu": "vector cpu/product cpu/tune",
    },
}
FILES = 60  # of a folder there
CODE = {".c", ".h", ".cpp", ".hpp", ".cu", ".cuh", ".py", ".toml"}
HARD = 800  # lines; make two rooms of a file before that
CONTRACT = 1200  # lines of the headers that are frozen, together
EXPERIMENT = 150  # lines of any other header
COLUMNS = 110  # of headers, which people read beside their code
COUNTED = {f"{name}.h" for name in ("base", "core", "op", "autograd", "device", "plugin", "service", "capi")}
OPGEN = 500
# What a program's locale changes; the command is a program of its own and sets none.
LOCALE = re.compile(
    r"\b(strto(d|f|ld)|atof|sto(d|f|ld)|(is|to)(alpha|alnum|digit|space|upper|lower)|strn?casecmp)\(|(printf|scanf)\([^;]*%[-+ #0-9.*]*[aefgAEFG]"
)
TOGETHER = {"lint", "core", "ops", "plugins", "python"}  # folders of tests/
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^">]+)[">]')


def tracked():
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    return [pathlib.Path(line) for line in out.stdout.splitlines() if pathlib.Path(line).is_file()]


def room_of(include, path):
    """The room that a quoted include of ours points into; None for the system's."""
    if include.startswith(("adjoin/abi/", "adjoin/kit/")):
        return "abi"
    here = path.parent / include
    if here.is_file():
        return here.resolve().relative_to(pathlib.Path.cwd()).parts[0]
    first = include.split("/")[0]
    return first if first in MAY and pathlib.Path(include).is_file() else None


def folder_of(path):
    """(a room of FLOORS, the file's folder in it), or None."""
    for room in FLOORS:
        if path.is_relative_to(room):
            folder = str(path.parent.relative_to(room))
            roots = {f.split("/")[0] for f in FLOORS[room]}  # the other plugins have no folders
            return (room, folder) if room == "core" or folder.split("/")[0] in roots else None
    return None


def arrows(path, lines):
    """Lines that include a header of another folder of the same room: (number, include, room, from, to)."""
    mine = folder_of(path)
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line) if mine else None
        if not found:
            continue
        near = path.parent / found.group(1)
        far = pathlib.Path(mine[0]) / found.group(1) if mine[0] == "plugins" else pathlib.Path(found.group(1))
        target = near.resolve().relative_to(pathlib.Path.cwd()) if near.is_file() else far
        theirs = folder_of(target) if target.is_file() else None
        if theirs and theirs != mine and theirs[0] == mine[0]:
            yield number, found.group(1), mine[0], mine[1], theirs[1]


def floor_findings(files):
    """What stands in no folder of FLOORS, what reaches up, folders that are full; a table that allows arrows up."""
    for room, folders in FLOORS.items():
        below = set()
        for folder, may in folders.items():
            for other in sorted(set(may.split()) - below):
                yield f"tests/lint/house.py: {room}/{folder} may include {other}, which does not stand before it"
            below.add(folder)
    held = {}
    for path in files:
        where = folder_of(path)
        if not where or where[1] == ".":
            continue
        room, folder = where
        held[where] = held.get(where, 0) + 1
        if folder not in FLOORS[room]:
            yield f"{path}: {room}/{folder} has no place in FLOORS of tests/lint/house.py"
        elif path.suffix in CODE:
            for number, include, _, _, to in arrows(path, path.read_text(encoding="utf-8").split("\n")):
                if to != "." and to not in FLOORS[room][folder].split():
                    yield f"{path}:{number}: {folder} may not include {include}; it may: {FLOORS[room][folder] or 'nothing'}"
    for (room, folder), count in held.items():
        if count > FILES:
            yield f"{room}/{folder}: {count} files, at most {FILES}: make two folders of it"
    # The pictures and the page show what the table says.
    for page in ("core/README.md", "CONTRIBUTING.md"):
        drawn = re.search(r"```text\n(.*?)```", pathlib.Path(page).read_text(encoding="utf-8"), re.S)
        names = [w for line in drawn.group(1).split("\n") for w in line.split("|")[0].split()] if drawn else []
        if names != [f for f in reversed(FLOORS["core"]) if f != "pch"]:
            yield f"{page}: its picture shows other floors than FLOORS of tests/lint/house.py: {' '.join(names)}"
    page = pathlib.Path("core/README.md").read_text(encoding="utf-8")
    for folder, may in FLOORS["core"].items():
        if folder != "pch" and f"| `{folder}` | {may or 'nothing'} |" not in page:
            yield f"core/README.md: no row says of `{folder}`: {may or 'nothing'}"


def header_findings(path, lines):
    """What a header of the contract breaks by itself."""
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            yield f"{path}:{number}: {len(line)} columns, at most {COLUMNS}"
    if path.name in COUNTED or path.name == "dlpack.h":
        return
    if len(lines) - 1 > EXPERIMENT:
        yield f"{path}: {len(lines) - 1} lines, at most {EXPERIMENT}: an experimental header says little"
    if "experimental" not in lines[0]:
        yield f"{path}:1: it is none of the counted headers, so its first line says «experimental»"


def test_name_findings(files):
    """Files that pytest takes in one run, which knows them by their names alone."""
    together = {}
    for path in files:
        if path.match("*_test.py") and path.parts[:1] == ("tests",) and path.parts[1] in TOGETHER:
            other = together.setdefault(path.name, path)
            if other != path:
                yield f"{path}: {other} has this name, too; pytest takes one of them"


def findings(files):
    yield from floor_findings(files)
    yield from test_name_findings(files)
    contract = 0
    for path in files:
        if path.suffix not in CODE:
            continue
        text = path.read_text(encoding="utf-8")
        lines = text.split("\n")
        room = path.parts[0]
        if len(lines) > HARD:
            yield f"{path}: {len(lines)} lines, at most {HARD}: make two rooms of it"
        if room == "abi" and path.suffix == ".h":
            yield from header_findings(path, lines)
            contract += (len(lines) - 1) * (path.name in COUNTED)
        if path.name == "opgen.py" and len(lines) > OPGEN:
            yield f"{path}: {len(lines)} lines, at most {OPGEN}"
        for number, line in enumerate(lines, 1):
            found = INCLUDE.match(line)
            other = room_of(found.group(1), path) if found and room in MAY else None
            if other and other not in MAY[room]:
                yield f"{path}:{number}: {room} includes {found.group(1)}"
            bound = room in MAY and path.suffix in {".cpp", ".hpp", ".h"} and not {"cli", "examples"} & set(path.parts)
            if bound and LOCALE.search(line):
                yield f"{path}:{number}: bound to the locale; std::from_chars and std::to_chars are not: {line.strip()[:80]}"
            if (
                room in MAY
                and path.suffix in {".cpp", ".hpp", ".cu", ".h"}
                and re.search(r"(?<!secure_)getenv\(", line)
            ):
                yield f"{path}:{number}: getenv: a set-user-id program trusts no variable; secure_getenv"
            if (
                room == "core"
                and path.suffix in {".cpp", ".hpp"}
                and re.search(r'"(cuda|hip|emulated|openblas|mkl|onednn)"', line)
            ):
                yield f"{path}:{number}: the core names a backend: {line.strip()[:80]}"
    if contract > CONTRACT:
        yield f"abi/: {contract} lines of counted headers; there is room for {CONTRACT}"


def main():
    found = list(findings(tracked()))
    print("\n".join(found) if found else "walls stand")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
