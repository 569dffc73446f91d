"""bench/gpu/steps/rows.py: who computes each row on this device: a kernel of its own, a body of other ops, or nobody. It needs no
package adjoin."""

import collections
import json
import pathlib
import subprocess

from pieces import DEVICE, OUT, check, figure, left_out
from runner import PREFIX

NO_KERNEL = "no plugin has a kernel for"
KNOWN = {"linalg::ldl_factor", "linalg::ldl_factor_ex"}  # no GPU's library has them
BY_HAND = "arguments of its own are wanted, as a sparse tensor; its tests give them"


def main():
    to = pathlib.Path(OUT) / "rows.support.json"
    command = [
        PREFIX / "bin/adjoin",
        "conform",
        PREFIX / f"lib/adjoin/plugins-1/libaj_{DEVICE}.so",
        "--mode",
        "support",
    ]
    job = subprocess.run([str(word) for word in command] + ["--json", str(to)])
    check(
        "every row was asked about", job.returncode == 0, f"adjoin conform --mode support ended with {job.returncode}"
    )
    records = json.loads(to.read_text())["records"]
    served = {r["row"] for r in records if r["passed"]}
    missing = {r["row"] for r in records if NO_KERNEL in r["reason"]} - served
    unasked = sorted({r["row"] for r in records} - served - missing)
    ways = collections.Counter(r["reason"] if r["passed"] else "nobody" for r in records if r["row"] not in unasked)
    for way, count in ways.most_common():
        figure(way, count, "pairs of row and dtype")
    failed = [f"{r['row']} {r['dtype']}: {r['reason']}" for r in records if r["failed"]]
    check("no answer is wrong", not failed, "; ".join(failed[:5]))
    nobody = sorted(missing - KNOWN)
    check(
        "somebody computes each row",
        not nobody,
        " ".join(nobody) or f"but, as is known: {' '.join(sorted(missing & KNOWN))}",
    )
    if unasked:
        left_out(f"{len(unasked)} rows: {' '.join(unasked)}", BY_HAND)


main()
