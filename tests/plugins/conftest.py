"""tests/plugins/conftest.py: the paper card's library, compiled once."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = sorted((HERE / "paper_card").glob("*.cpp"))


@pytest.fixture(scope="session")
def card(tmp_path_factory):
    """The library, compiled."""
    folder = tmp_path_factory.mktemp("paper_card")
    compiler = ["ccache", "g++"] if shutil.which("ccache") else ["g++"]
    objects = [folder / (source.stem + ".o") for source in SOURCES]
    jobs = [
        subprocess.Popen([*compiler, "-std=c++20", "-O1", "-fPIC", f"-I{HERE.parents[1]}", "-c", source, "-o", to])
        for source, to in zip(SOURCES, objects, strict=True)
    ]
    assert [job.wait() for job in jobs] == [0] * len(jobs)
    subprocess.run(["g++", "-shared", *objects, "-o", folder / "libcard.so", "-ldl", "-pthread"], check=True)
    return folder / "libcard.so"
