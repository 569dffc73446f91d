"""bench/gpu/steps/beside.py: Adjoin and PyTorch on the same card in the same run: a process each, samples alternating; the ratio of
their times, and the share of this card's limits that Adjoin reaches."""

import json
import os
import shutil
import statistics
import subprocess
import sys

from pieces import DEVICE, OUT, check, figure, left_out, seconds_left
from runner import HERE

sys.path.insert(0, str(HERE / "beside"))
from cases import CASES

SAMPLES = 5
ASK = "import torch; assert torch.cuda.is_available(), 'its PyTorch finds no card'; print(torch.__version__, torch.cuda.get_device_name(0))"


def pytorch():
    """(a Python whose PyTorch has this card, what it says), or (None, what was tried)."""
    tried = []
    candidates = [os.environ.get("ADJOIN_GPU_PYTORCH"), sys.executable, shutil.which("python3"), shutil.which("python")]
    for python in dict.fromkeys(filter(None, candidates)):
        try:
            job = subprocess.run([python, "-c", ASK], capture_output=True, text=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired) as error:
            tried.append(f"{python}: {error}")
            continue
        if job.returncode == 0:
            return python, job.stdout.strip()
        tried.append(f"{python}: {(job.stderr.strip().splitlines() or ['no answer'])[-1]}")
    return None, "; ".join(tried)


class Worker:
    def __init__(self, python, library, device):
        self.library = library
        with open(os.path.join(OUT, f"beside.{library}.log"), "wb") as log:
            self.job = subprocess.Popen(
                [python, str(HERE / "beside/worker.py"), library, device], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, text=True,
            )  # fmt: skip

    def ask(self, *request):
        try:
            self.job.stdin.write(json.dumps(request) + "\n")
            self.job.stdin.flush()
            line = self.job.stdout.readline()
        except OSError:
            line = ""
        if not line:
            return {"error": f"its process has ended with {self.job.wait()}"}
        return json.loads(line)


def limits():
    """Of this card, from the step of that name: bytes a second, operations a second."""
    found = {}
    try:
        with open(os.path.join(OUT, "limits.jsonl"), encoding="utf-8") as file:
            for entry in map(json.loads, file):
                found[entry["name"]] = entry.get("value")
    except OSError:
        return None, None
    rate, product = found.get("sum of two, into a third"), found.get("product bfloat16")
    return rate and rate * 1e9, product and product * 1e12


def compared(name, workers):
    """Milliseconds of each library, in samples that alternate; the first error instead."""
    times = {worker.library: [] for worker in workers}
    for _ in range(SAMPLES):
        for worker in workers:
            answer = worker.ask("sample")
            if isinstance(answer, dict):
                return worker.library, answer["error"], None
            times[worker.library].append(answer)
    return None, None, times


def run(name, case, workers, of):
    for worker in workers:
        answer = worker.ask("open", name)
        if isinstance(answer, dict):
            return worker.library, answer["error"]
    library, error, times = compared(name, workers)
    if error:
        return library, error
    ours, theirs = times["adjoin"], times["torch"]
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    words = [
        f"wanted at most {case.wanted}",
        f"{statistics.median(ours):.4g} ms, PyTorch {statistics.median(theirs):.4g} ms",
    ]
    for amount, limit in ((case.bytes, of[0]), (case.flops, of[1])):
        if amount and limit:
            share = amount / (statistics.median(ours) / 1e3) / limit
            wanted = f", wanted {100 * case.share:.0f} %" if case.share else ""
            words.append(f"{100 * share:.0f} % of this card's limit{wanted}")
    figure(name, ratio, "of PyTorch's time" + (" **above**" if ratio > case.wanted else ""), "; ".join(words))
    return None, None


def main():
    python, said = pytorch()
    if not python:
        return left_out(
            "beside PyTorch",
            f"there is no PyTorch with this card; ADJOIN_GPU_PYTORCH=/path/to/python3 names one; tried {said}",
        )
    print(f"PyTorch {said}, in {python}", flush=True)
    workers = [
        Worker(sys.executable, "adjoin", DEVICE),
        Worker(python, "torch", "cuda"),
    ]  # PyTorch calls AMD's cards cuda, too
    of, done = limits(), 0
    for name, case in CASES.items():
        if seconds_left() < 20:
            left_out(name, "no time was left; --limit SECONDS gives more")
            continue
        library, error = run(name, case, workers, of)
        if library == "adjoin":
            check(name, False, error)
        elif error:
            left_out(name, f"PyTorch: {error}")
        done += not error
        for worker in workers:
            worker.ask("close")
    check("cases were compared", done > 0, f"{done} of {len(CASES)}, PyTorch {said}")


main()
