"""tests/lint/tidy.py [--all | FILE...]: C++ as .clang-tidy wants it. Without arguments: what differs from main, as far as a build
says how it is compiled.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

CONFIG = pathlib.Path(__file__).resolve().parents[2] / ".clang-tidy"
ROOMS = ("core", "plugins", "frontends")
TREE = pathlib.Path(os.environ.get("ADJOIN_TREE", "build/release"))
MOST = 6  # sources of a quick look, which is to take seconds
GCC_ALONE = {"-fno-tree-loop-distribute-patterns"}  # clang takes it for an error


def lines_of(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


def changed():
    """Files that differ from where this branch left main, or from the commit before: on main itself."""
    head = lines_of("git", "rev-parse", "HEAD")
    base = lines_of("git", "merge-base", "HEAD", "main")
    if not base or base == head:
        base = lines_of("git", "rev-parse", "--verify", "-q", "HEAD~1")
    different = lines_of("git", "diff", "--name-only", *base) if base else []
    return different + lines_of("git", "ls-files", "-o", "--exclude-standard")


def database():
    """{source: its command}, of the build's; each once."""
    found = {}
    for entry in json.loads((TREE / "compile_commands.json").read_text()):
        path = os.path.relpath(os.path.join(entry["directory"], entry["file"]))
        if path.startswith(ROOMS):
            words = entry["command"].split(" ")
            found.setdefault(path, entry | {"command": " ".join(w for w in words if w not in GCC_ALONE)})
    return found


def sources_of(files, known):
    """The known sources among the files, and for a header the first source that includes it."""
    chosen = [f for f in files if f in known]
    for header in (f for f in files if f.endswith((".hpp", ".h")) and f.startswith((*ROOMS, "abi"))):
        name = f"/{os.path.basename(header)}"
        for source in sorted(known, key=lambda s: (os.path.dirname(s) != os.path.dirname(header), s)):
            text = pathlib.Path(source).read_text(encoding="utf-8")
            if f'{name}"' in text or f'"{name[1:]}"' in text or f"{name}>" in text:
                chosen.append(source)
                break
    return list(dict.fromkeys(chosen))


def main():
    if not (TREE / "compile_commands.json").exists():
        print("clang-tidy: left out, there is no build to say how files are compiled (./run build)")
        return 0
    if not shutil.which("clang-tidy"):
        print("clang-tidy is missing; ./run setup installs it")
        return 1
    known = database()
    every, named = sys.argv[1:] == ["--all"], sys.argv[1:]
    files = sorted(known) if every else sources_of(named or changed(), known)
    if not named and len(files) > MOST:
        print(f"clang-tidy: {MOST} of {len(files)} changed sources; tests/lint/tidy.py --all looks at all")
        files = files[:MOST]
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "compile_commands.json").write_text(json.dumps(list(known.values())))
        command = ["clang-tidy", "--quiet", f"--config-file={CONFIG}", "-p", folder]
        jobs = ["xargs", "-r", "-d", "\n", "-n", "1", "-P", str(os.cpu_count()), *command]
        done = subprocess.run(jobs, input="\n".join(files), capture_output=True, text=True)
    if done.returncode:
        print(done.stdout)
        print("\n".join(line for line in done.stderr.split("\n") if "error" in line))
    return int(done.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
