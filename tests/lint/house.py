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
CODE = {".c", ".h", ".cpp", ".hpp", ".cu", ".cuh", ".py", ".toml"}
HARD = 800  # lines; make two rooms of a file before that
CONTRACT = 1000  # lines of C headers
OPGEN = 500
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


def findings(files):
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
            contract += len(lines) - 1
        if path.name == "opgen.py" and len(lines) > OPGEN:
            yield f"{path}: {len(lines)} lines, at most {OPGEN}"
        for number, line in enumerate(lines, 1):
            found = INCLUDE.match(line)
            other = room_of(found.group(1), path) if found and room in MAY else None
            if other and other not in MAY[room]:
                yield f"{path}:{number}: {room} includes {found.group(1)}"
            if (
                room == "core"
                and path.suffix in {".cpp", ".hpp"}
                and re.search(r'"(cuda|hip|emulated|openblas|mkl|onednn)"', line)
            ):
                yield f"{path}:{number}: the core names a backend: {line.strip()[:80]}"
    if contract > CONTRACT:
        yield f"abi/: {contract} lines of C headers; there is room for {CONTRACT}"


def main():
    found = list(findings(tracked()))
    print("\n".join(found) if found else "walls stand")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
