"""tests/extensions/installed.py: where the examples are, and the flags of the installed headers."""

import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "extensions/examples"
sys.path.insert(0, str(SOURCES))


def flags(*words):
    done = subprocess.run(["adjoin", "config", *words], capture_output=True, text=True, check=True)
    return done.stdout.split()
