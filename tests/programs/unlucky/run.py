"""tests/programs/unlucky/run.py: what `adjoin run` says about wrong and unlucky programs; ``--write`` renews golden.txt."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = tomllib.loads((HERE / "programs.toml").read_text())
GOLDEN = HERE / "golden.txt"


def extension(folder, kind):
    """compiled.so, which wants PyTorch's library: by its name, or one of its functions."""
    symbol = "extern void _ZN2at4_ops3add4callEv(void); void *f(void) { return (void *)_ZN2at4_ops3add4callEv; }"
    text = {"needs": "", "symbols": symbol}[kind]
    build = ["cc", "-shared", "-fPIC", "code.c", "-o"]
    (folder / "code.c").write_text("")
    subprocess.run([*build, "libtorch_cpu.so"], cwd=folder, check=True)
    (folder / "code.c").write_text(text)
    links = ["-Wl,--no-as-needed", "./libtorch_cpu.so"] if kind == "needs" else ["-Wl,-z,now"]
    subprocess.run([*build, "compiled.so", *links], cwd=folder, check=True)
    (folder / "libtorch_cpu.so").unlink()


def tidy(text, folder):
    """Without what differs from run to run: folders, numbers of processes, Python's own lines."""
    text = text.replace(str(folder) + "/", "").replace(str(folder), ".")
    text = re.sub(r"[^\s\"(]*/(adjoin|lib/python3\.\d+)/(?=\S*\.py)", r"\1/", text)
    text = re.sub(r"(adjoin|python)(/\S+\.py\S*, line) \d+", r"\1\2 N", text)
    text = re.sub(r"searched: .*|in use .* limit .*|CUDA driver: .*?\)", "...", text)  # of this machine
    return re.sub(r"\S*/bin/python[\d.]*", "python", re.sub(r"\b(pid|process) \d+", r"\1 N", text))


def said(name):
    """The exit code of a program, and what it said on both streams."""
    given = PROGRAMS[name]
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made).resolve()
        file = given.get("file", "program.py")
        for path, text in {file: given.get("code"), **given.get("files", {})}.items():
            if text is not None:
                (folder / path).parent.mkdir(exist_ok=True)
                (folder / path).write_text(text.lstrip("\n"))
        if "extension" in given:
            extension(folder, given["extension"])
        words = given.get("words", [file])
        done = subprocess.run(
            [sys.executable, "-m", "adjoin.torch", *words],
            cwd=folder,
            input=given.get("stdin", "").lstrip("\n"),
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "COLUMNS": "120", "PYTHONDONTWRITEBYTECODE": "1", "PYTHON_COLORS": "0"},
        )
        return f"{tidy(done.stdout + done.stderr, folder)}exit code {done.returncode}\n"


def parts(text):
    """Name -> what is said, of a golden file."""
    found = re.split(r"^== (\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


if __name__ == "__main__":
    names = [n for n in sys.argv[1:] if n != "--write"]
    told = {name: said(name) for name in names or PROGRAMS}
    text = "".join(f"== {name}\n{what}" for name, what in told.items())
    if "--write" in sys.argv:
        old = parts(GOLDEN.read_text()) if GOLDEN.exists() else {}
        whole = {name: {**old, **told}[name] for name in PROGRAMS}
        GOLDEN.write_text("".join(f"== {name}\n{what}" for name, what in whole.items()))
    else:
        print(text, end="")
