"""bench/gpu/card.py: which card is here, as the plugins say it, and where a Python keeps its maker's libraries."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

import runner

VENDORS = ("cuda", "hip")
SIMULATED = "card of paper"  # what tests/plugins/paper_card calls itself
# What the packages of a Python bring, where the system has none: the plugin's word for it, its variable, where it lies.
INSIDE = (
    ("cuBLASLt", "ADJOIN_CUBLASLT", "nvidia/*/lib/libcublasLt.so.*"),
    ("cuDNN", "ADJOIN_CUDNN", "nvidia/*/lib/libcudnn.so.*"),
    ("cuSOLVER", "ADJOIN_CUSOLVER", "nvidia/*/lib/libcusolver.so.*"),
    ("cuBLAS", "ADJOIN_CUBLAS", "nvidia/*/lib/libcublas.so.*"),
    ("cuFFT", "ADJOIN_CUFFT", "nvidia/*/lib/libcufft.so.*"),
)


class NoCard(Exception):
    """No device: what each plugin says of it."""


class Card:
    def __init__(self, device, name, lines, environment):
        self.device, self.name, self.lines, self.environment = device, name, lines, environment
        self.simulated = name.startswith(SIMULATED)

    def title(self):
        return f"{self.name} ({self.device})" + (", SIMULATED: no figure is a card's" if self.simulated else "")


def folders(python):
    """Where this Python looks for packages."""
    command = [python, "-c", "import sys; print(*sys.path, sep='\\n')"]
    try:
        job = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []  # the step that needs it tells
    return [folder for folder in job.stdout.splitlines() if folder]


def libraries(lines):
    """Variables for what the plugin has not found and a Python has: that of PyTorch, this one, the system's."""
    pythons = [os.environ.get("ADJOIN_GPU_PYTORCH"), sys.executable, shutil.which("python3")]
    found = {}
    for name, variable, pattern in INSIDE:
        if variable in os.environ or not any(line.startswith(f"library {name}: not found") for line in lines):
            continue
        for folder in [each for python in filter(None, pythons) for each in folders(python)]:
            for file in sorted(glob.glob(os.path.join(glob.escape(folder), pattern))):
                found.setdefault(variable, file)
    return found


def ask(device, environment):
    """The lines of `adjoin plugins why`."""
    command = [runner.PREFIX / "bin/adjoin", "plugins", "why", device, "--json"]
    try:
        job = subprocess.run(
            command, capture_output=True, text=True, timeout=60,
            env=dict(os.environ, **environment),
        )  # fmt: skip
        return [line.strip() for line in json.loads(job.stdout)["lines"]]
    except subprocess.TimeoutExpired:
        return [f"device {device}: no device, because its driver has not answered for 60 s"]
    except (OSError, ValueError, KeyError) as error:
        told = error if isinstance(error, OSError) else job.stderr.strip() or f"no answer ({error})"
        raise runner.NotBuilt(f"{command[0]} does not run here: {told}") from error


def find(wanted=None):
    """The first vendor's card, or the one that is wanted."""
    if not (runner.PREFIX / "bin/adjoin").exists():
        raise runner.NotBuilt(
            f"there is no {runner.PREFIX}/bin/adjoin: `./run build` first, or unpack the whole archive"
        )
    reasons = []
    for device in [wanted] if wanted else VENDORS:
        lines = ask(device, {})
        environment = libraries(lines)
        if environment:
            lines = ask(device, environment)
        names = [re.match(rf"device {device}:0: ([^,]*)", line) for line in lines]
        names = [match.group(1) for match in names if match]
        if names:
            return Card(device, names[0], lines, environment)
        because = [line for line in lines if "no device, because" in line] or lines[:1]
        reasons += because or [f"{device}: nothing is said"]
    raise NoCard("no card is here: " + "; ".join(reasons))
