"""tests/abi/grow.py: the contract as its next minor version could be, and a libadjoin built from it.

Every EXTENSIBLE struct gets two more fields (the note, which is read from a file, no pointers); nothing else changes. `build/grown` holds the copy of the
sources and its build, so that the second run compiles only what changed in between.
"""

import re
import shutil
import subprocess

from abi_tools import INCLUDE, ROOT

APPENDED = "  uint64_t later_number;\n  void (*later_function)(void);\n"
TO_THE_NOTE = "  uint64_t later_number, later_word;\n"
GROWN = ROOT / "build/grown"
PARTS = ("abi", "core", "extensions", "plugins", "frontends", "meson.build", "meson_options.txt")
PLUGINS = ("cpu", "reference", "cuda", "hip", "onednn", "shadow", "emulated")


def grow(text):
    """(a header with the fields, the names of its structs that got them)."""
    names = re.findall(r"typedef struct (\w+) \{ /\* EXTENSIBLE", text)
    for name in names:
        more = TO_THE_NOTE if name == "aj_plugin_note" else APPENDED
        text = re.sub(rf"^\}} {name};", more + f"}} {name};", text, flags=re.M)
    return text.replace("#define AJ_ABI_MINOR 0", "#define AJ_ABI_MINOR 1"), names


def grow_folder(folder):
    """Grows the headers in a folder; the names of the structs."""
    grown = []
    for header in sorted(folder.glob("*.h")):
        text, names = grow(header.read_text())
        header.write_text(text)
        grown += names
    return grown


def grown_include(folder):
    """An include folder with the installed contract grown; the kit stays. Also the names of the structs."""
    shutil.copytree(INCLUDE / "adjoin", folder / "adjoin")
    return grow_folder(folder / "adjoin/abi")


def write_if_other(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != data:
        path.write_bytes(data)


def copy_sources(to):
    """What the core's build reads, with a grown contract; files that are the same keep their time."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *PARTS]
    out = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    wanted = {name for name in out.split("\0") if name and (ROOT / name).is_file()}
    for old in [p for p in to.rglob("*") if p.is_file()]:
        if str(old.relative_to(to)) not in wanted:
            old.unlink()
    for name in wanted:
        data = (ROOT / name).read_bytes()
        if re.fullmatch(r"abi/\w+\.h", name):
            data = grow(data.decode())[0].encode()
        write_if_other(to / name, data)


def build_grown():
    """libadjoin.so of the grown contract."""
    source, build = GROWN / "source", GROWN / "build"
    copy_sources(source)
    cache = "ccache " if shutil.which("ccache") else ""
    options = ["-Doptimization=0", "-Db_pch=true", "-Dtests=false", "-Dwarning_level=0", "-Dpython="]
    options += [f"-D{plugin}=disabled" for plugin in PLUGINS]
    again = ["--reconfigure"] if (build / "build.ninja").exists() else []
    setup = ["env", f"CC={cache}gcc", f"CXX={cache}g++", "meson", "setup", *again, build, source, *options]
    subprocess.run(setup, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", build, "--quiet", "core/libadjoin.so"], check=True)
    return build / "core/libadjoin.so"
