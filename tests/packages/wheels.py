"""tests/packages/wheels.py: environments that have nothing but wheels, and programs in them."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MIB = 2**20


def make(*words):
    """build/wheels with what `./run wheel` makes of the sources of now."""
    done = subprocess.run([ROOT / "run", "wheel", *words], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / "build/wheels"


def newest(folder, pattern):
    return max(folder.glob(pattern), key=lambda f: f.stat().st_mtime)


def pip(empty, *words):
    """Of another Python: the environment has none."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", empty / "bin/python"]
    subprocess.run([*command, *words], check=True)


def install(empty, *wheels):
    pip(empty, "install", "-q", "--no-index", "--no-deps", *wheels)


def environment(folder, *wheels):
    """With these wheels and nothing else, not even pip."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    install(folder, *wheels)
    return folder


def site_of(empty):
    (found,) = empty.glob("lib/python*/site-packages")
    return found


def run(empty, *words, **extra):
    """With the environment's programs alone in PATH."""
    env = {"PATH": str(empty / "bin"), "HOME": str(empty), "LANG": "C.UTF-8", **{k: str(v) for k, v in extra.items()}}
    return subprocess.run([str(w) for w in words], env=env, capture_output=True, text=True, cwd=empty, timeout=300)


def ok(got):
    assert got.returncode == 0, got.stdout + got.stderr
    return got.stdout


def python(empty, code, **extra):
    return ok(run(empty, empty / "bin/python", "-c", code, **extra))
