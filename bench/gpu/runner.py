"""bench/gpu/runner.py: runs one step in a process of its own, ends it with its children at its limit, keeps what it said."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PREFIX = ROOT / "build/release/stage/usr/local"
PACKAGE = PREFIX / "lib/adjoin/python"


class NotBuilt(Exception):
    """What the steps drive is not here."""


def surroundings(step, card, out, limit):
    """The environment of a step."""
    paths = [str(HERE), str(PACKAGE), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        **card.environment,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "ADJOIN_GPU_DEVICE": card.device,
        "ADJOIN_GPU_SIMULATED": "1" if card.simulated else "",
        "ADJOIN_GPU_OUT": str(out),
        "ADJOIN_GPU_STEP": step.name,
        "ADJOIN_GPU_UNTIL": str(time.time() + limit),
    }


def said(path):
    """What the step's checks have written, one a line; the last one may be cut off."""
    entries = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            entries.append(json.loads(line))
        except ValueError:
            break
    return entries


def end(job):
    """The step and all its children, which are a group."""
    try:
        os.killpg(job.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        job.wait(timeout=10)
    except subprocess.TimeoutExpired:  # what waits within a driver ends when the driver lets it
        print(f"   process {job.pid} was killed and has not ended: the driver holds it", flush=True)


def follow(job, log, limit, started):
    """Prints what the step prints until it ends; False: it did not within its limit."""
    with open(log, encoding="utf-8", errors="replace") as lines:
        while True:
            running = job.poll() is None
            for line in iter(lines.readline, ""):
                print("   " + line.rstrip("\n")[:160], flush=True)
            if not running:
                return True
            if time.monotonic() - started > limit:
                return False
            time.sleep(0.1)


def run(step, card, report, limit=None):
    """Runs the step and writes the report."""
    limit = limit or step.limit
    print(f"== {step.name}: {step.what} (at most {limit:.0f} s)", flush=True)
    log, results = report.folder / f"{step.name}.log", report.folder / f"{step.name}.jsonl"
    results.unlink(missing_ok=True)
    if step.python and not report.good(["module"], left_out=False):
        report.add(step, "left out", why=f"{sys.executable} cannot import adjoin; the step module says why")
        return print(f"== {step.name}: {report.told(step.name)}", flush=True)
    environment = surroundings(step, card, report.folder, limit)
    started = time.monotonic()
    with open(log, "wb") as file:
        job = subprocess.Popen(
            [sys.executable, str(HERE / "steps" / f"{step.name}.py")], stdin=subprocess.DEVNULL, stdout=file,
            stderr=subprocess.STDOUT, env=environment, cwd=str(report.folder), start_new_session=True,
        )  # fmt: skip
    state, why = "interrupted", "somebody interrupted it"
    try:
        if follow(job, log, limit, started):
            state, why = verdict(job.returncode, said(results), log)
        else:
            state, why = "killed", f"it had not ended after {limit:.0f} s, its limit"
    finally:
        end(job)
        report.add(step, state, why=why, seconds=time.monotonic() - started, entries=said(results))
    print(f"== {step.name}: {report.told(step.name)}", flush=True)


def verdict(code, entries, log):
    """(state, why) of a step that has ended."""
    if code:
        how = f"it ended with {code}" if code > 0 else f"signal {-code} ended it ({signal.Signals(-code).name})"
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        return "failed", "; ".join([how, *last])
    checks = [e for e in entries if e["kind"] == "check"]
    if any(not e["ok"] for e in checks):
        return "failed", ""
    unfinished = [e["why"] for e in entries if e["kind"] == "unfinished"]
    if unfinished:
        return "unfinished", "; ".join(unfinished)
    if checks:
        return "passed", ""
    reasons = [f"{e['name']}: {e['why']}" for e in entries if e["kind"] == "left out"]
    return ("left out", "; ".join(reasons)) if reasons else ("failed", "it checked nothing")
