"""bench/gpu/model: `./run gpu predict`: a bound on the time of each case of beside/cases.py on an H200, from machine code and from
what the simulated card notes; the table and the picture in bench/results, with what a card's report has measured.

./run gpu predict [--report gpu-report.json] [--library libaj_cuda.so] [--out FOLDER]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), *(str(ROOT / folder) for folder in ("bench/gpu/beside", "tests/lint", "tests/plugins"))]
os.environ.setdefault("ADJOIN_GPU_SIMULATED", "")

import page  # noqa: E402
import predict  # noqa: E402
import sass  # noqa: E402
from cases import CASES  # noqa: E402

ARCHITECTURE = "sm_90"  # the card's
MEMORY = 120 << 30  # of the card; what nobody writes takes no memory here


def recorded():
    """{case: what it queues}."""
    import paper

    with tempfile.TemporaryDirectory() as folder:
        card = paper.compile_card(pathlib.Path(folder))
        around = paper.surroundings("cuda", card, f"idle=2 memory={MEMORY}", ADJOIN_MEMORY_CACHE="off")
        env = {**os.environ, **{key: str(value) for key, value in around.items()}}
        job = subprocess.run(
            [sys.executable, HERE / "record.py", "cuda", card], env=env, stdout=subprocess.PIPE, text=True, check=True
        )
    return dict(map(json.loads, job.stdout.splitlines()))


def share(case, seconds):
    ideal = max(case.bytes / predict.BANDWIDTH, case.flops / predict.MATRIX)
    return ideal / seconds if ideal else None


def predicted(queued, kernels):
    """{case: its bound}."""
    rows = {}
    for name, lines in queued.items():
        case = CASES[name]
        found = predict.bound(lines, kernels, lambda kernel, case=case: page.matrix_flops(kernel, case))
        if not found:
            rows[name] = {"by": "the library, which is not modelled", "launches": len(lines)}
            continue
        seconds, by, launches, names = found
        rows[name] = {
            "milliseconds": seconds * 1e3, "share": share(case, seconds), "by": by, "launches": launches,
            "kernels": sorted({each.split("<")[0].split("::")[-1] for each in names}),
        }  # fmt: skip
    return rows


def main():
    parser = argparse.ArgumentParser(prog="./run gpu predict", description=__doc__)
    parser.add_argument(
        "--report", type=pathlib.Path, help="gpu-report.json of a card: fills the column of what was measured"
    )
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build/release/plugins/libaj_cuda.so")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results")
    options = parser.parse_args()
    queued = recorded()
    wanted = {predict.name_of(line) for lines in queued.values() for line in lines}
    kernels = sass.read_some(options.library, ARCHITECTURE, wanted)
    model = {"card": "H200", "architecture": ARCHITECTURE, "cases": predicted(queued, kernels)}
    (options.out / "gpu_model.json").write_text(json.dumps(model, indent=1) + "\n")
    page.write(options.out, model, page.measured(options.report))
    print(options.out / "gpu_model.md")


if __name__ == "__main__":
    main()
