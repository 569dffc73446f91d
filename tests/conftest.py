"""tests/conftest.py: one test of so many, where each takes long; which ones the seed says."""

import os
import random
import signal
import zlib

SHARE = int(os.environ.get("ADJOIN_TEST_SHARE", "1"))
SEED = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(10**6)))

# Who starts tests in the background ignores Ctrl-C, and so would the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header():
    return f"one test of {SHARE}: seed {SEED}" if SHARE > 1 else None


def pytest_collection_modifyitems(config, items):
    if SHARE == 1 or os.environ.get("ADJOIN_TEST_FULL") == "1":
        return
    left = [i for i in items if zlib.crc32(f"{SEED} {i.nodeid}".encode()) % SHARE]
    config.hook.pytest_deselected(items=left)
    gone = set(left)
    items[:] = [i for i in items if i not in gone]
