"""bench/gpu/beside/worker.py: times cases for one library on its card, a sample at a time, as asked on standard input: a line is a
JSON list, ["open", case], ["sample"] or ["close"]; the answer is a line of JSON."""

import gc
import importlib
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import timing
from cases import CASES


def main():
    library, device = sys.argv[1:]
    answers, sys.stdout = sys.stdout, sys.stderr  # a library may print
    T = importlib.import_module(library)
    gpus = getattr(T, device)
    f = count = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request[0] == "open":
                f = CASES[request[1]].make(T, device)
                count = answer = timing.repeats(f, gpus)
            elif request[0] == "sample":
                answer = timing.once(f, gpus, count) / count
            else:
                f = answer = None
                gc.collect()
                gpus.empty_cache()
        except Exception as error:  # told to whoever asked, whatever it is
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    os.environ.pop("ADJOIN_GPU_STEP", None)
    main()
