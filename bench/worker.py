"""bench/worker.py: times cases for one library, a sample at a time, as asked on standard input.

A line is a JSON list: ["open", case], ["sample"] or ["close"]; the answer is a line of JSON.
"""

import gc
import importlib
import json
import os
import sys
import time
import timeit

from all_cases import CASES
from rivals import RIVALS

TARGET = 0.01  # seconds of one sample
# On a machine with much other work the processor's time says more than the wall's, for one thread.
CLOCK = time.process_time if os.environ.get("BENCH_CLOCK") == "cpu" else time.perf_counter


class Open:
    def __init__(self, library, T, case):
        self.case = case
        if library in RIVALS:
            statement, setup = case.rivals[library]
            names = setup()
        else:
            statement, names = case.statement, {"T": T, **case.setup(T)}
        self.loop = timeit.Timer(statement, timer=CLOCK, globals=names).timeit
        self.count = 1
        self.loop(1)
        while (took := self.loop(self.count)) < TARGET:
            self.count = max(self.count + 1, int(self.count * min(10, 1.2 * TARGET / max(took, 1e-9))))

    def sample(self):
        """The best of a few tries of which none may have lost the processor to somebody else."""
        tries = []
        for _ in range(5):
            cpu, wall = time.process_time(), time.perf_counter()
            tries.append(self.loop(self.count))
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            if cpu >= 0.97 * wall or CLOCK is time.process_time:
                break
        return min(tries) / self.count / self.case.per


def main():
    name, threads = sys.argv[1], int(sys.argv[2])
    answers, sys.stdout = sys.stdout, sys.stderr  # a library may print
    T = importlib.import_module(name)
    if name not in RIVALS:
        T.set_num_threads(threads)
    now = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request[0] == "open":
                now = Open(name, T, CASES[request[1]])
                gc.collect()
                answer = now.count
            elif request[0] == "sample":
                answer = now.sample()
            elif request[0] == "version":
                answer = T.__version__
            else:
                now = answer = None
        except Exception as error:  # noqa: BLE001 - told to whoever asked, whatever it is
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


main()
