"""bench/gpu/card.py: which card is here, as the plugins say it, and where a Python keeps its maker's libraries."""

import glob
import json
import os
import re
import subprocess
import sys

import runner

VENDORS = ("cuda", "hip")
SIMULATED = "card of paper"  # what tests/plugins/paper_card calls itself
# The libraries that PyTorch's packages bring, where nothing else says which.
INSIDE = {"ADJOIN_CUBLASLT": "nvidia/*/lib/libcublasLt.so.*", "ADJOIN_CUDNN": "nvidia/cudnn/lib/libcudnn.so.*"}


class NoCard(Exception):
    """No device: what each plugin says of it."""


class Card:
    def __init__(self, device, name, lines, environment):
        self.device, self.name, self.lines, self.environment = device, name, lines, environment
        self.simulated = name.startswith(SIMULATED)

    def title(self):
        return f"{self.name} ({self.device})" + (", SIMULATED: no figure is a card's" if self.simulated else "")


def libraries():
    """Environment variables for what the packages of this Python have; those that are set stay."""
    found = {}
    for variable, pattern in INSIDE.items():
        for folder in [p for p in sys.path if p.endswith("-packages")]:
            files = sorted(glob.glob(os.path.join(glob.escape(folder), pattern)))
            if files and variable not in os.environ:
                found.setdefault(variable, files[-1])
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
    environment, reasons = libraries(), []
    for device in [wanted] if wanted else VENDORS:
        lines = ask(device, environment)
        names = [re.match(rf"device {device}:0: ([^,]*)", line) for line in lines]
        names = [match.group(1) for match in names if match]
        if names:
            return Card(device, names[0], lines, environment)
        because = [line for line in lines if "no device, because" in line] or lines[:1]
        reasons += because or [f"{device}: nothing is said"]
    raise NoCard("no card is here: " + "; ".join(reasons))
