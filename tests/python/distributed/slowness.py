"""tests/python/distributed/slowness.py: how long a process may take to do what was promised within so many seconds."""

import os

FULL = os.environ.get("ADJOIN_TEST_FULL") == "1"
PATIENCE = float(os.environ.get("ADJOIN_TEST_PATIENCE", 3))  # the stated seconds, times so much


def patience():
    """How many times the stated seconds; more where more programs want to run than there are processors."""
    return PATIENCE * max(1, os.getloadavg()[0] / os.cpu_count())
