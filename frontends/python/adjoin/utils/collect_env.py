"""adjoin.utils.collect_env: what `adjoin doctor` finds, seen from this process.

    python -m adjoin.utils.collect_env [--json]

The libraries of the calling process are looked at too: copies of BLAS and OpenMP that NumPy and others
brought beside ours.
"""

import json
import os
import subprocess
import sys

from ..__main__ import program


def _run(*words):
    environment = {**os.environ, "ADJOIN_PYTHON": sys.executable}
    command = [program(), "doctor", "--pid", str(os.getpid()), *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def get_env_info():
    """A dictionary: ``ok``, and a list of ``findings`` (section, name, state, text, remedy)."""
    return json.loads(_run("--json").stdout)


def get_pretty_env_info():
    """The same as text, for a report of a fault."""
    return _run().stdout


def main():
    done = _run(*sys.argv[1:])
    print(done.stdout, end="")
    print(done.stderr, end="", file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
