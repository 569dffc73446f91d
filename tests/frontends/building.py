"""tests/frontends/building.py: programs of other languages are built with the line that stands in their first comment."""

import os
import re
import subprocess
from pathlib import Path

import adjoin
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "frontends/cpp/examples"


def build_line(source, compiler):
    """The command in the comment at the top of a source."""
    found = re.search(rf"^(?://| \*) +({compiler} .*?)(?: &&.*)?$", source.read_text(), re.M)
    assert found, f"{source} does not say how it is built"
    return found[1]


def build(source, folder, compiler="g[+][+]", more=""):
    """Builds a source in a folder with its own line, unoptimized, for that is quicker; every warning is an error."""
    line = build_line(source, compiler).replace("-O2", "-O0").replace(source.name, f"'{source}'", 1)
    done = subprocess.run(f"{line} -Wall -Werror {more}", shell=True, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / source.stem


def run(*words, **more):
    words = [str(word) for word in words]
    done = subprocess.run(
        words, capture_output=True, text=True, errors="replace", env={**os.environ, **more.pop("env", {})}, **more
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def config(what):
    return subprocess.run(["adjoin", "config", what], capture_output=True, text=True, check=True).stdout.strip()


def check_descent(told, numbers_in):
    """The first six lines of a program: loss, gradient and weight of two steps against the gradient of
    (by * (w * x) ** 2).sum(), by 3 and 1. numbers_in: what it told in a line."""
    w = adjoin.tensor([1.0, -2.0, 3.0], requires_grad=True)
    x = adjoin.tensor([0.5, 1.5, -1.0])
    for by, lines in ((3.0, told[:3]), (1.0, told[3:6])):
        loss = (by * (w * x) ** 2).sum()
        (grad,) = adjoin.autograd.grad(loss, w)
        with adjoin.no_grad():
            w -= 0.125 * grad
        for line, wanted in zip(lines, (loss.reshape(1), grad, w), strict=True):
            assert numbers_in(line) == pytest.approx(wanted.tolist(), rel=1e-6)
