"""build.py: compiles the golden plugins against the frozen headers, the same bytes every time, and writes SHA256SUMS.

python build.py          writes bin/ and SHA256SUMS beside it
python build.py FOLDER   compiles into a folder and writes no sums

What a test calls: build(folder, include=headers, prefix="fresh") compiles today's headers, under other names.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ABI = HERE.parents[1] / "v1.0-rc2"  # the frozen headers
KIT = HERE.parents[3] / "abi/kit"  # no part of the contract: as it is when they are built
BIN = HERE / "bin" / f"{platform.machine()}-{sys.platform}"
SUMS = BIN / "SHA256SUMS"
PLUGINS = {
    "op": "op.c",
    "objects": "objects.c",
    "kit": "op.cpp",
    "key": "key.c",
    "blas": "blas.c",
    "device": "device.c",
}
SCRIPT = "{ global: aj_plugin_note_v1; aj_plugin_init_v1; aj_plugin_drain_v1; local: *; };\n"
# No static libstdc++, nothing that says when, where or by whom it was compiled.
FLAGS = [
    "-Os",
    "-g0",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-ident",
    "-ffp-contract=off",
]
LINK = [
    "-s",
    "-Wl,--build-id=none",
    "-Wl,--gc-sections",
    "-Wl,--as-needed",
    "-Wl,-z,noseparate-code",
    "-Wl,--hash-style=gnu",
]


def include_folder(folder, abi=ABI, kit=KIT):
    """adjoin/abi and adjoin/kit as they are installed."""
    (folder / "adjoin").mkdir(parents=True)
    (folder / "adjoin/abi").symlink_to(abi)
    (folder / "adjoin/kit").symlink_to(kit)
    return folder


def names(prefix="golden"):
    """{part: name of its plugin}."""
    return {part: f"{prefix}_{part}" for part in PLUGINS}


def build(out, include=None, prefix="golden", parts=(*PLUGINS, "frontend")):
    """{part: its file}."""
    out.mkdir(parents=True, exist_ok=True)
    made = {}
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        include = include or include_folder(scratch / "include")
        (scratch / "plugin.map").write_text(SCRIPT)
        env = {**os.environ, "SOURCE_DATE_EPOCH": "0", "LC_ALL": "C"}
        for part in parts:
            flags = [
                *FLAGS,
                f"-I{include}",
                f"-ffile-prefix-map={HERE}=golden",
                f"-ffile-prefix-map={scratch}=scratch",
                "-o",
            ]
            if part == "frontend":
                made[part] = out / f"{prefix}_frontend"
                words = ["gcc", "-std=c11", *flags, made[part], HERE / "frontend/frontend.c", *LINK, "-ldl"]
            else:
                name = names(prefix)[part]
                made[part] = out / f"libaj_{name}.so"
                compiler = ["g++", "-std=c++20", "-fvisibility=hidden"] if part == "kit" else ["gcc", "-std=c11"]
                words = [
                    *compiler,
                    "-shared",
                    "-fPIC",
                    f'-DNAME="{name}"',
                    *flags,
                    made[part],
                    HERE / part / PLUGINS[part],
                ]
                words += [*LINK, f"-Wl,--version-script={scratch}/plugin.map", *(["-lm"] if part == "device" else [])]
            subprocess.run([str(w) for w in words], check=True, env=env)
            made[part].chmod(0o755 if part == "frontend" else 0o644)
    return made


def sums(folder):
    return "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(folder.iterdir())
        if file.name != SUMS.name
    )


def main(words):
    if words:
        build(Path(words[0]))
        return
    shutil.rmtree(BIN, ignore_errors=True)
    build(BIN)
    SUMS.write_text(sums(BIN))
    print(f"{BIN}: {sum(f.stat().st_size for f in BIN.iterdir())} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
