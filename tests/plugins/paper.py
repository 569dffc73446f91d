"""tests/plugins/paper.py: the plugin files cuda and hip on a simulated card (paper_card/): what the tests of it share."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "abi"))
from abi_tools import INCLUDE, PLUGINDIR, clean_environment

BODIES = PLUGINDIR / "libaj_emulated.so"


def built(name):
    """Whether the plugin is there, with kernels."""
    file = PLUGINDIR / f"libaj_{name}.so"
    return file.exists() and BODIES.exists() and b"softmax_kernel" in file.read_bytes()


VENDORS = [name for name in ("cuda", "hip") if built(name)]
for _name in {"cuda", "hip"} - set(VENDORS):
    print(f"NOT TESTED: the plugin {_name}, or emulated, is not built with kernels", file=sys.stderr)
either = pytest.mark.parametrize("name", VENDORS)
needs_cuda = pytest.mark.skipif("cuda" not in VENDORS, reason="NOT TESTED: the plugin cuda is not built")


def compile_card(folder):
    """The simulated card's library."""
    here = Path(__file__).parent
    sources = sorted((here / "paper_card").glob("*.cpp"))
    compiler = ["ccache", "g++"] if shutil.which("ccache") else ["g++"]
    objects = [folder / (source.stem + ".o") for source in sources]
    jobs = [
        subprocess.Popen(
            [
                *compiler,
                "-std=c++20",
                "-O1",
                "-fPIC",
                "-ftls-model=initial-exec",
                f"-I{here.parents[1]}",
                f"-I{INCLUDE}",
                "-c",
                source,
                "-o",
                to,
            ]
        )
        for source, to in zip(sources, objects, strict=True)
    ]
    assert [job.wait() for job in jobs] == [0] * len(jobs)
    subprocess.run(["g++", "-shared", *objects, "-o", folder / "libcard.so", "-ldl", "-pthread"], check=True)
    return folder / "libcard.so"


def surroundings(name, card, orders="", **extra):
    runtime = {"ADJOIN_PAPER_CARD": orders, "ADJOIN_PAPER_CARD_BODIES": BODIES}
    if name == "cuda":
        libraries = (
            "ADJOIN_CUDA_DRIVER",
            "ADJOIN_CUBLASLT",
            "ADJOIN_CUBLAS",
            "ADJOIN_CUSOLVER",
            "ADJOIN_CUFFT",
            "ADJOIN_CUDNN",
            "ADJOIN_NVML",
            "ADJOIN_NVTX",
            "ADJOIN_CUPTI",
        )
    else:
        libraries = (
            "ADJOIN_HIP_RUNTIME",
            "ADJOIN_HIPBLASLT",
            "ADJOIN_ROCBLAS",
            "ADJOIN_HIPSOLVER",
            "ADJOIN_HIPBLAS",
            "ADJOIN_HIPFFT",
            "ADJOIN_ROCTRACER",
        )
    runtime |= dict.fromkeys(libraries, card)
    return {**runtime, **extra}


BEGINNING = """
import adjoin, atexit, ctypes, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # who was begun in the background ignores it
paper = ctypes.CDLL("{card}")
atexit.register(paper.paper_end)
order = lambda text: paper.paper_order(text.encode())
count = lambda what: paper.paper_count(what.encode())
gpu, gpus = "{name}", adjoin.{name}
Graph = getattr(gpus, "CUDAGraph", None) or gpus.Graph
def told(f, *arguments):
    try:
        f(*arguments)
    except (RuntimeError, IndexError) as e:
        return f"{{type(e).__name__}}: {{e}}"
"""


def start(program, name, card, orders="", **extra):
    env = {
        **clean_environment(**surroundings(name, card, orders, **extra)),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    file = card.parent / f"program_{abs(hash((program, name)))}.py"
    file.write_text(BEGINNING.format(card=card, name=name) + program)
    return subprocess.Popen([sys.executable, file], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def run(program, name, card, orders="", timeout=180, **extra):
    """What the program has printed."""
    job = start(program, name, card, orders, **extra)
    out, err = job.communicate(timeout=timeout)
    # A crash in a stream's thread says nothing: the signal and the last line tell where to look.
    assert job.returncode == 0, f"it ended with {job.returncode} after {out[-500:]!r}: {err}"
    return out
