"""bench/gpu/steps/conform.py: `adjoin conform` in as many processes as there are processors. It needs no package adjoin. What is
done when the limit comes is kept, and another run goes on from there."""

import json
import os
import pathlib
import subprocess
import time

from pieces import DEVICE, OUT, SIMULATED, check, figure, left_out, seconds_left, unfinished
from runner import PREFIX

GROUP = 12  # ops of one process: what a crash or the limit takes with it
RESERVE = 15  # seconds before the limit at which no group goes on
MOST = 16  # processes: each has a context on the card
FOLDER = pathlib.Path(OUT) / "conform"
ADJOIN = str(PREFIX / "bin/adjoin")
PLUGIN = str(PREFIX / f"lib/adjoin/plugins-1/libaj_{DEVICE}.so")


def work():
    """{name of a group: options}: the device alone, then its rows."""
    listed = json.loads(subprocess.run([ADJOIN, "ops", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    ops = [op["name"] for op in listed]
    chosen = os.environ.get("ADJOIN_GPU_OPS", "").split()  # for who looks into one of them
    if chosen:
        left_out(f"{len(ops) - len(chosen)} of {len(ops)} ops", "ADJOIN_GPU_OPS names others")
        ops = chosen
    count = -(-len(ops) // GROUP)
    groups = {"device": ["--mode", "device"]}
    for mode in ("test", "grad"):
        for i in range(count):  # neighbours in the table take alike long: deal them out
            groups[f"{mode}{i:03}"] = ["--mode", mode] + [word for op in ops[i::count] for word in ("--op", op)]
    return groups


def start(name, options):
    with open(FOLDER / f"{name}.log", "wb") as log:
        command = [ADJOIN, "conform", PLUGIN, *options, "--json", str(FOLDER / f"{name}.json")]
        if SIMULATED:
            command += ["--largest", "5000"]
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)


def finished(groups):
    return [name for name in groups if (FOLDER / f"{name}.json").exists()]


def drive(groups):
    """Runs the groups; the device's own first and alone, for it fills the card's memory."""
    jobs, waiting, told = {}, [name for name in groups if name not in finished(groups)], time.time()
    while (waiting or jobs) and seconds_left() > RESERVE:
        for name in [name for name, job in jobs.items() if job.poll() is not None]:
            code = jobs.pop(name).returncode
            if not (FOLDER / f"{name}.json").exists():
                last = (FOLDER / f"{name}.log").read_text(errors="replace").strip().splitlines()[-1:]
                text = json.dumps({"records": [], "broken": f"ended with {code}: {''.join(last)}"})
                (FOLDER / f"{name}.json").write_text(text)
        while waiting and len(jobs) < min(MOST, os.cpu_count() or 1) and "device" not in jobs:
            name = waiting.pop(0)
            jobs[name] = start(name, groups[name])
        if time.time() - told > 10:
            told = time.time()
            print(f"{len(finished(groups))} of {len(groups)} groups, {seconds_left():.0f} s left", flush=True)
        time.sleep(0.05)
    for job in jobs.values():
        job.kill()


def tell(groups):
    done, bad = finished(groups), {}
    passed, failed, others, rows = 0, 0, 0, set()
    for name in done:
        answer = json.loads((FOLDER / f"{name}.json").read_text())
        if "broken" in answer:
            bad[name] = [answer["broken"]]
        for record in answer["records"]:
            passed, failed = passed + record["passed"], failed + record["failed"]
            others += record["refused"] + record["unsupported"] + record["skipped"]
            rows.add(record["row"])
            if record["failed"]:
                what = " ".join(filter(None, (record["row"] or record["check"], record["check"], record["dtype"])))
                bad.setdefault(what, []).extend(str(f) for f in record["failures"][:2] or [record["reason"]])
    for what, failures in bad.items():
        check(what, False, " / ".join(failures)[:500])
    figure("cases that conform", passed, "cases", f"{failed} do not, {others} refused alike, unsupported or not tried")
    figure("rows with cases", len(rows - {""}), "rows")
    if len(done) < len(groups):
        unfinished(f"{len(done)} of {len(groups)} groups done; ./run gpu conform goes on with the others")
    else:
        check("what was checked conforms", not bad, f"{passed} cases")
        (FOLDER / "complete").touch()


def main():
    groups = work()
    FOLDER.mkdir(exist_ok=True)
    begun = FOLDER / "groups"  # what the results there belong to
    text = json.dumps(groups)
    if (FOLDER / "complete").exists() or not begun.exists() or begun.read_text() != text:
        for file in FOLDER.iterdir():
            file.unlink()
        begun.write_text(text)
    drive(groups)
    tell(groups)


if __name__ == "__main__":
    main()
