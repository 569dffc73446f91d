"""The programs of the README, as they stand there."""

import pathlib
import re
import subprocess
import sys

import adjoin
import pytest

README = (pathlib.Path(__file__).parents[3] / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_training(tmp_path):
    subprocess.run([sys.executable, "-c", blocks("python")[0]], check=True, cwd=tmp_path)


@pytest.fixture(scope="module")
def squash(tmp_path_factory):
    """The plugin, built with the command in its first line."""
    folder = tmp_path_factory.mktemp("squash")
    code = blocks("cpp")[0]
    (folder / "acme_ops.cpp").write_text(code)
    command = code.split("\n")[0].removeprefix("// acme_ops.cpp: ")
    subprocess.run(command, shell=True, check=True, cwd=folder)
    adjoin.load_plugin(str(folder / "libaj_acme_ops.so"))
    return adjoin.ops.acme.squash


def test_the_plugin_computes_and_differentiates_twice(squash):
    x = adjoin.tensor([-2.5, -0.3, 0.7, 1.9], dtype=adjoin.float64, requires_grad=True)
    adjoin.testing.assert_close(squash(x), x / (1 + x.abs()))
    assert adjoin.autograd.gradcheck(squash, (x,))
    assert adjoin.autograd.gradgradcheck(squash, (x,))


def test_the_plugin_takes_every_floating_dtype(squash):
    for dtype in (adjoin.float16, adjoin.bfloat16, adjoin.float32):
        x = adjoin.tensor([-2.5, 0.7], dtype=dtype)
        adjoin.testing.assert_close(squash(x), (x.float() / (1 + x.float().abs())).to(dtype))
