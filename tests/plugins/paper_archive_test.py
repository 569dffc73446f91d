"""tests/plugins/paper_archive_test.py: `./run gpu` from its archive, in an empty folder, with nothing installed, on the simulated
card: the steps, their limits, the report that goes on."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time

import pytest
from paper import VENDORS, either, needs_cuda, surroundings

from abi_tools import PREFIX, ROOT

FULL = os.environ.get("ADJOIN_TEST_FULL") == "1"
PYTHON = os.path.realpath(sys.executable)  # of the environment's: the one beneath it
MOST = 15_000_000  # bytes of the archive
SEED = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(10**6)))
FEW = "add softmax"  # ops for the step conform


@pytest.fixture(scope="session")
def packed(tmp_path_factory):
    if not VENDORS:
        pytest.skip("NOT TESTED: neither plugin is built")
    if not PREFIX.is_relative_to(ROOT):
        pytest.skip("NOT TESTED: what is installed is not this checkout's build")
    folder = tmp_path_factory.mktemp("packed")
    jobs = []
    for name in VENDORS:
        command = [sys.executable, ROOT / "bench/gpu", "pack", "--device", name, "--out", folder / f"{name}.tar.xz"]
        command += [] if name in small(VENDORS) else ["--level", "0"]
        jobs.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
    for name, job in zip(VENDORS, jobs, strict=True):
        _, told = job.communicate()
        too_large = job.returncode == 1 and re.fullmatch(r"./run gpu pack: more than \d+ MB\n", told)
        assert job.returncode == 0 or (too_large and name not in small(VENDORS)), told
    return sorted(folder.glob("*.tar.xz"))


def small(names):
    """Whose archive is packed as it is shipped: one of both takes a minute; all with --full."""
    return names if FULL else [names[SEED % len(names)]]


@pytest.fixture(scope="session")
def unpacked(packed, tmp_path_factory):
    """The archives' folder, each vendor's over the other's, which no test changes."""
    folder = tmp_path_factory.mktemp("unpacked")
    for path in packed:
        with tarfile.open(path) as file:
            file.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return folder / "adjoin-gpu"


@pytest.fixture
def own(unpacked, tmp_path):
    """A folder of the test's own: a file is replaced there, never written to."""
    shutil.copytree(unpacked, tmp_path / "adjoin-gpu", copy_function=os.link)
    return tmp_path / "adjoin-gpu"


def environment(name, card, orders="", **extra):
    """Nothing but what the simulated card needs, and the Python that the module was made for, without packages."""
    env = {"PATH": "/usr/bin:/bin", "ADJOIN_GPU_PYTHON": PYTHON, **surroundings(name, card, orders), **extra}
    return {key: str(value) for key, value in env.items()}


@pytest.fixture
def gpu(unpacked, tmp_path):
    """`./run gpu WORDS` with a report of the test's own."""
    return Gpu(unpacked, tmp_path / "report")


class Gpu:
    def __init__(self, folder, out):
        self.command, self.out = [folder / "run", "gpu", "--out", out], out

    def __call__(self, name, card, *words, orders="", **extra):
        env = environment(name, card, orders, **extra)
        return subprocess.run([*self.command, *words], cwd="/", env=env, capture_output=True, text=True, timeout=3600)

    def facts(self):
        return json.loads((self.out / "gpu-report.json").read_text())

    def page(self):
        return (self.out / "gpu-report.md").read_text()

    def states(self):
        return {name: step["state"] for name, step in self.facts()["steps"].items()}


def take_module(folder):
    """Removes _C, as if it were made for another version."""
    (module,) = (folder / "build/release/stage/usr/local/lib/adjoin/python/adjoin").glob("_C.*.so")
    listed = folder / "gpu-archive.json"
    contents = json.loads(listed.read_text())
    del contents["files"][str(module.relative_to(folder))]
    listed.unlink()
    listed.write_text(json.dumps(contents))
    module.unlink()
    return module


def alive(pid):
    try:
        return open(f"/proc/{pid}/stat").read().split()[2] != "Z"
    except OSError:
        return False


def test_the_archive_is_small(packed):
    sizes = {path.name: path.stat().st_size / 1e6 for path in packed if path.name.split(".")[0] in small(VENDORS)}
    assert sizes and max(sizes.values()) <= MOST / 1e6, sizes


@either
def test_steps_run_in_an_empty_folder(name, card, gpu):
    """All of them with --full, with every row; the cheap ones otherwise."""
    few = {
        "cuda": ["module", "limits", "kernels", "conform", "rows", "faults", "sanitizer"],
        "hip": ["kernels", "conform", "faults", "sanitizer"],
    }
    steps = [] if FULL else few[name]
    extra = {} if FULL else {"ADJOIN_GPU_OPS": FEW}
    done = gpu(name, card, *steps, **extra)
    while FULL and "unfinished" in gpu.states().values():  # few processors take more than its limit
        done = gpu(name, card)
    facts, page = gpu.facts(), gpu.page()
    assert done.returncode == 0, done.stdout + done.stderr + page
    got = gpu.states()
    wanted = {"kernels", "conform", "faults", *({"rows"} & set(steps))}
    assert wanted <= {step for step in got if got[step] == "passed"}, page
    assert got["sanitizer"] == "left out"
    assert facts["facts"]["simulated"] and page.startswith("# Adjoin on card of paper") and "is simulated" in page
    assert len(facts["steps"]["kernels"]["entries"]) > 20
    assert all((gpu.out / f"{step}.log").exists() for step in got)


def test_no_card_is_told_at_once(unpacked, tmp_path):
    env = {"PATH": "/usr/bin:/bin", "ADJOIN_CUDA_DRIVER": "/nonexistent.so", "ADJOIN_HIP_RUNTIME": "/nonexistent.so"}
    command = [unpacked / "run", "gpu", "--out", tmp_path / "report"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 2
    for name in VENDORS:
        assert f"device {name}: no device, because " in done.stderr
    assert not (tmp_path / "report").exists()


@needs_cuda
def test_a_step_that_hangs_is_killed_with_its_children(card, gpu, tmp_path):
    """A stream that never ends, then a Python that never answers."""
    done = gpu("cuda", card, "kernels", "--limit", "4", orders="hang=1")
    assert done.returncode == 1
    assert gpu.states() == {"module": "passed", "kernels": "killed"}
    assert "had not ended after 4 s, its limit" in gpu.page()
    sleeper, wrote = tmp_path / "sleeper", tmp_path / "pid"
    sleeper.write_text(f"#!/bin/sh\necho $$ > {wrote}\nexec sleep 1000\n")
    sleeper.chmod(0o755)
    done = gpu("cuda", card, "beside", "--limit", "4", ADJOIN_GPU_PYTORCH=sleeper)
    assert done.returncode == 1 and gpu.states() == {"module": "passed", "kernels": "killed", "beside": "killed"}, (
        done.stdout
    )
    assert not alive(wrote.read_text().strip())


@needs_cuda
def test_a_report_goes_on_after_an_interruption(card, gpu):
    assert gpu("cuda", card, "module").returncode == 0
    env = environment("cuda", card, "hang=1")
    job = subprocess.Popen(gpu.command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in job.stdout:
        if line.startswith("== limits"):  # not module: that has a result
            break
        assert not line.startswith("== module:"), line
    time.sleep(0.5)
    job.send_signal(signal.SIGINT)
    _, err = job.communicate(timeout=60)
    assert job.returncode == 130
    assert "interrupted; without a result: limits kernels conform " in err
    assert gpu.states() == {"module": "passed", "limits": "interrupted"}
    page = gpu.page()
    assert "| limits | **interrupted** |" in page and "| kernels | not run |" in page
    assert gpu("cuda", card, "limits").returncode == 0
    assert gpu.states() == {"module": "passed", "limits": "passed"}


@needs_cuda
def test_another_cards_report_is_left_alone(card, gpu):
    assert gpu("cuda", card, "module").returncode == 0
    file = gpu.out / "gpu-report.json"
    file.write_text(file.read_text().replace('"card": "card of paper"', '"card": "another"'))
    done = gpu("cuda", card, "module")
    assert done.returncode == 2
    assert "is of another run: card was 'another' and is 'card of paper' now; move it away" in done.stderr


@needs_cuda
def test_conformance_goes_on_where_it_stopped(card, gpu):
    few = {"ADJOIN_GPU_OPS": FEW}
    done = gpu("cuda", card, "conform", "--limit", "10", **few)  # less than it keeps for the end
    assert done.returncode == 1 and gpu.states() == {"conform": "unfinished"}
    assert gpu("cuda", card, "conform", **few).returncode == 0
    folder = gpu.out / "conform"
    before = {file.name: file.stat().st_mtime_ns for file in folder.glob("*.json")}
    assert {"device.json", "test000.json", "grad000.json"} == set(before)
    (folder / "complete").unlink()
    (folder / "test000.json").unlink()
    assert gpu("cuda", card, "conform", **few).returncode == 0
    changed = {file.name for file in folder.glob("*.json") if before[file.name] != file.stat().st_mtime_ns}
    assert changed == {"test000.json"}


@needs_cuda
def test_what_does_not_conform_fails_the_step(card, gpu):
    """Launches that do nothing."""
    done = gpu("cuda", card, "kernels", "conform", orders="idle=1", ADJOIN_GPU_OPS="softmax")
    assert done.returncode == 1
    assert gpu.states() == {"module": "passed", "kernels": "failed", "conform": "failed"}
    page = gpu.page()
    assert "- **does not hold:** softmax: " in page and "- **does not hold:** softmax values float32: " in page


@needs_cuda
def test_a_broken_archive_is_told(card, own, tmp_path):
    gpu = Gpu(own, tmp_path / "report")
    library = own / "build/release/stage/usr/local/lib/libadjoin.so"
    library.unlink()
    assert (
        "the archive is broken: build/release/stage/usr/local/lib/libadjoin.so is missing; " in gpu("cuda", card).stderr
    )
    library.write_text("half of it")
    done = gpu("cuda", card)
    assert done.returncode == 2 and "libadjoin.so is not what was packed; unpack it again" in done.stderr
    (own / "gpu-archive.json").unlink()
    (own / "gpu-archive.json").write_text("{")
    assert "gpu-archive.json cannot be read" in gpu("cuda", card).stderr


SANITIZER = """#!/bin/sh
tool=$2; shift 4
"$@"
if [ $tool = racecheck ]; then
  echo "========= Error: Race reported between Write access and Read access"
  echo "========= RACECHECK SUMMARY: 1 hazard displayed (1 errors, 0 warnings)"
else echo "========= ERROR SUMMARY: 0 errors"
fi
"""


@needs_cuda
def test_what_the_sanitizer_finds_is_told(card, gpu, tmp_path):
    (tmp_path / "compute-sanitizer").write_text(SANITIZER)
    (tmp_path / "compute-sanitizer").chmod(0o755)
    done = gpu("cuda", card, "sanitizer", PATH=f"{tmp_path}:/usr/bin:/bin")
    assert done.returncode == 1, done.stdout
    page = gpu.page()
    assert "**does not hold:** racecheck: 1 findings, the first: Error: Race reported between" in page
    assert "- holds: memcheck (0 findings); initcheck (0 findings); synccheck (0 findings)" in page


@needs_cuda
def test_ratios_stand_beside_another_library(card, gpu, unpacked, tmp_path):
    """Adjoin plays PyTorch, but for one op."""
    (tmp_path / "torch.py").write_text("import sys, adjoin\nsys.modules['torch'] = adjoin\ndel adjoin.Tensor.topk\n")
    package = unpacked / "build/release/stage/usr/local/lib/adjoin/python"
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}:{package}:$PYTHONPATH exec {PYTHON} "$@"\n')
    python.chmod(0o755)
    done = gpu("cuda", card, "limits", "beside", ADJOIN_GPU_PYTORCH=python)
    assert done.returncode == 0, done.stdout
    page = gpu.page()
    assert "| add float32 | " in page and "of PyTorch's time" in page and "of this card's limit, wanted 85 %" in page
    assert "- left out: topk of rows: PyTorch: AttributeError" in page


@needs_cuda
def test_what_needs_no_package_runs_without_it(card, own, tmp_path):
    """No module for this Python, and no compiler."""
    module = take_module(own)
    gpu = Gpu(own, tmp_path / "report")
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("bash", "readlink", "dirname"):
        (tools / tool).symlink_to(shutil.which(tool))
    done = gpu("cuda", card, "kernels", "conform", PATH=tools, ADJOIN_GPU_OPS="sign")
    assert done.returncode == 1, done.stdout + done.stderr
    assert gpu.states() == {"module": "failed", "kernels": "left out", "conform": "passed"}
    assert "there is no g++: a Python 3.11 (ADJOIN_GPU_PYTHON), or g++" in gpu.page()
    assert not module.exists()


@pytest.mark.skipif(not FULL, reason="NOT TESTED: minutes of g++; --full")
@needs_cuda
def test_the_module_is_compiled_for_another_python(card, own, tmp_path):
    module, gpu = take_module(own), Gpu(own, tmp_path / "report")
    done = gpu("cuda", card, "module", "kernels")
    assert done.returncode == 0, done.stdout
    assert module.exists() and "| compiling _C | " in gpu.page()


def of_the_room(code, *arguments, **variables):
    """Python in a process of its own, which has the room's modules: their names are others' too."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "bench/gpu"), **variables}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)


def test_what_is_not_built_is_not_packed(tmp_path):
    code = "import pathlib, sys, pack; pack.PLUGINS = pathlib.Path(sys.argv[1]); pack.built(['hip'])"
    done = of_the_room(code, tmp_path)
    assert done.returncode == 1
    assert re.search("pack: not built: .*libaj_cpu.so, .*libaj_hip.so; ./run build, with the", done.stderr), done.stderr


def test_libraries_of_pytorchs_packages_are_found(tmp_path):
    """Where the system has none; that of a variable stays."""
    there = tmp_path / "site/nvidia/cu13/lib/libcublasLt.so.13"
    there.parent.mkdir(parents=True)
    there.touch()
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}/site exec python3 "$@"\n')
    python.chmod(0o755)
    code = "import card, json, sys; print(json.dumps(card.libraries(sys.argv[1:])))"
    missing = ["library cuBLASLt: not found: no such file", "library cuDNN 9.1.0: /there"]

    def found(words, **variables):
        done = of_the_room(code, *words, ADJOIN_GPU_PYTORCH=str(python), **variables)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert found(missing) == {"ADJOIN_CUBLASLT": str(there)}
    assert found(["library cuBLASLt 13.1.0: /there"]) == {}
    assert found(missing, ADJOIN_CUBLASLT="/mine") == {}


def test_options_are_told(unpacked):
    done = subprocess.run(
        [unpacked / "run", "gpu", "--help"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert done.returncode == 0 and "  conform     9 min  every row" in done.stdout
    done = subprocess.run(
        [unpacked / "run", "gpu", "walk"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert done.returncode == 2 and "there is no step 'walk'; module, limits, " in done.stderr
