"""bench/worker.py: times cases for one library, a sample at a time, as asked on standard input.

A line is a JSON list: ["open", case], ["sample"] or ["close"]; the answer is a line of JSON.
"""

import gc
import importlib
import json
import sys
import time
import timeit

from all_cases import CASES

TARGET = 0.01  # seconds of one sample


class Open:
    def __init__(self, T, case):
        self.case = case
        names = {"T": T, **case.setup(T)}
        self.loop = timeit.Timer(case.statement, globals=names).timeit
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
            if cpu >= 0.97 * wall:
                break
        return min(tries) / self.count / self.case.per


def main():
    name, threads = sys.argv[1], int(sys.argv[2])
    answers, sys.stdout = sys.stdout, sys.stderr  # a library may print
    T = importlib.import_module(name)
    T.set_num_threads(threads)
    now = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request[0] == "open":
                now = Open(T, CASES[request[1]])
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
