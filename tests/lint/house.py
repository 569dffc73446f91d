"""The walls of the house: who may include whom, how large files may be, where op names may stand."""

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
PARTS = {  # whose headers a folder of plugins/cpu may include beside its own; includes name them from plugins/ on
    "vector": set(),
    "cpu/product": {"vector"},
    "cpu/lines": {"vector"},
    "cpu/image": {"vector", "cpu/product"},
    "cpu/pointwise": {"vector"},
    "cpu/index": {"vector"},
    "cpu/train": {"vector", "cpu/product"},
    "cpu/tune": {"vector", "cpu/product"},
    "cpu": {"vector", "cpu/product", "cpu/tune"},
}
PART = 60  # files of such a folder
CODE = {".c", ".h", ".cpp", ".hpp", ".cu", ".cuh", ".py", ".toml"}
HARD = 800  # lines; make two rooms of a file before that
CONTRACT = 1200  # lines of the headers that are frozen, together
EXPERIMENT = 150  # lines of any other header
COLUMNS = 110  # of headers, which people read beside their code
COUNTED = {f"{name}.h" for name in ("base", "core", "op", "autograd", "device", "plugin", "service", "capi")}
OPGEN = 500
# What a program's locale changes; the command is a program of its own and sets none.
LOCALE = re.compile(r"\b(strto(d|f|ld)|atof|sto(d|f|ld)|(is|to)(alpha|alnum|digit|space|upper|lower)|strn?casecmp)\(|(printf|scanf)\([^;]*%[-+ #0-9.*]*[aefgAEFG]")
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


def part_findings(files):
    """Arrows between the folders of plugins/cpu that PARTS does not have, and folders that grow too large."""
    plugins = pathlib.Path("plugins")
    for one, others in PARTS.items():
        for other in others:
            if one in PARTS[other]:
                yield f"tests/lint/house.py: {one} and {other} may include each other"
    held = dict.fromkeys(PARTS, 0)
    for path in files:
        if not path.is_relative_to(plugins / "cpu") and not path.is_relative_to(plugins / "vector"):
            continue
        part = str(path.parent.relative_to(plugins))
        if part not in PARTS:
            yield f"{path}: {part} has no place in PARTS of tests/lint/house.py"
            continue
        held[part] += 1
        if path.suffix not in {".cpp", ".hpp"}:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            found = re.match(r'\s*#\s*include "([^"]+)"', line)
            if not found:
                continue
            where = next((f for f in (path.parent / found[1], plugins / found[1]) if f.is_file()), None)
            if not where:
                yield f"{path}:{number}: {found[1]} is neither beside it nor in plugins/"
            elif (other := str(where.parent.relative_to(plugins))) != part and other not in PARTS[part]:
                yield f"{path}:{number}: {part} includes {found[1]}"
    for part, count in held.items():
        if count > PART:
            yield f"plugins/{part}: {count} files, at most {PART}: make two folders of it"


def findings(files):
    yield from part_findings(files)
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
            if room in MAY and path.suffix in {".cpp", ".hpp", ".cu", ".h"} and re.search(r"(?<!secure_)getenv\(", line):
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
