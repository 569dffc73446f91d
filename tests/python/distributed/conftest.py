"""tests/python/distributed/conftest.py: programs in several processes, by `adjoin launch`."""

import dataclasses
import os
import shutil
import subprocess
import textwrap
import time

import pytest
from slowness import slower

import adjoin

LAUNCH = shutil.which("adjoin")
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]
STARTED_BY = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "ADJOIN_CONTROL", "LOCAL_RANK")


def pytest_collection_modifyitems(config, items):
    if "gloo" in adjoin.plugin.available():
        return
    skip = pytest.mark.skip(reason="libgloo-dev is not installed: the plugin gloo was not built")
    for item in items:
        if "tests/python/distributed" in str(item.fspath) and "launch" in getattr(item, "fixturenames", ()):
            item.add_marker(skip)


@dataclasses.dataclass
class Ended:
    code: int
    out: str
    err: str
    seconds: float

    def lines(self):
        return sorted(self.out.splitlines())


@pytest.fixture
def launch(tmp_path):
    """launch(n, source, *options): the program in n processes, under a deadline; TEST_ENGINE names the engine, of which mpi has a
    launcher of its own."""

    def run(n, source, *options, timeout=60, arguments=(), engine=None, **variables):
        program = tmp_path / "program.py"
        program.write_text(textwrap.dedent(source))
        env = {name: value for name, value in os.environ.items() if name not in STARTED_BY} | variables
        command = [LAUNCH, "launch", "--nproc-per-node", str(n), *options, str(program), *arguments]
        if engine:
            env["TEST_ENGINE"] = engine
        if engine == "mpi":  # which mixes the lines of several: each rank writes a file of its own
            command = [
                *MPIRUN,
                "--output-filename",
                str(tmp_path / "said"),
                "-n",
                str(n),
                LAUNCH,
                "run",
                str(program),
                *arguments,
            ]
        began = time.monotonic()
        got = subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout * slower())
        took, out = time.monotonic() - began, got.stdout
        if engine == "mpi":
            out = "".join(file.read_text() for file in sorted((tmp_path / "said").glob("**/stdout")))
            shutil.rmtree(tmp_path / "said", ignore_errors=True)
        return Ended(got.returncode, out, got.stderr, took)

    return run


@pytest.fixture(params=["gloo", "shm", "mpi"])
def engine(request):
    """Each engine that joins processes here."""
    if request.param not in adjoin.plugin.available() or (request.param == "mpi" and not shutil.which("mpirun")):
        pytest.skip(f"NOT TESTED: the plugin {request.param} was not built")
    return request.param


@pytest.fixture
def good(launch):
    """The same, and the program ends well; its lines of output, sorted."""

    def run(n, source, *options, **more):
        got = launch(n, source, *options, **more)
        assert got.code == 0, got.err
        return got.lines()

    return run
