"""tests/python/distributed/slowness.py: how long a process may take to do what was promised within so many seconds."""

import os

FULL = os.environ.get("ADJOIN_TEST_FULL") == "1"
PATIENCE = float(os.environ.get("ADJOIN_TEST_PATIENCE", 3))  # the stated seconds, times so much


def slower():
    """How many times as long as on a machine of its own a process may take: so many programs want to run on each processor."""
    return max(1, os.getloadavg()[0] / os.cpu_count())


def patience():
    """How many times the stated seconds a process may take."""
    return PATIENCE * slower()
