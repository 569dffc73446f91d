"""tests/python/data/hogwild_test.py: a Hogwild program, as people write it, trains one model in two processes."""

import os
import pathlib
import re
import subprocess
import sys

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "programs/hogwild.py"


def test_the_program_trains():
    command = [sys.executable, "-m", "adjoin.torch", str(PROGRAM), "--num-processes", "2", "--epochs", "3"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    # Two processes write, and the end of a line may come behind the next one's beginning.
    lines = re.findall(r"(\d+)\tTrain Epoch: (\d) \[(\d+)/640 \((\d+)%\)\]\tLoss: \d\.\d{6}", done.stdout)
    assert len({pid for pid, *_ in lines}) == 2 and len(lines) == 2 * 3 * 4, done.stdout
    right = int(re.search(r"Accuracy: (\d+)/200 ", done.stdout)[1])
    assert right > 180, done.stdout  # by chance it is 50
