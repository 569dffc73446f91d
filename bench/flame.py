"""bench/flame.py: a flame graph (Gregg 2016) of one case, or of a statement, as SVG.

python bench/flame.py add_64                  where a call of a small tensor goes
python bench/flame.py train_gpt --out gpt.svg

The width of a box is its share of the time, what stands on it was called by it; the title of a box, shown under the pointer,
has the figures. Samples come from Linux' `perf` (package linux-perf), which must be allowed to look
(kernel.perf_event_paranoid <= 2); without it the script says so.
"""

import argparse
import html
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from all_cases import CASES

HERE = Path(__file__).resolve().parent
CHILD = """
import sys, time
sys.path.insert(0, {here!r})
import adjoin as T
from all_cases import CASES
T.set_num_threads({threads})
case = CASES[{case!r}]
names = dict(case.setup(T), T=T)
code = compile(case.statement, "case", "exec")
end = time.perf_counter() + {seconds}
while time.perf_counter() < end:
    exec(code, names)
"""
ROW, WIDTH = 17, 1400


def sampled(case, seconds, threads):
    """Stacks with how often each was seen, outermost function first."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "perf.data"
        child = CHILD.format(here=str(HERE), case=case, seconds=seconds, threads=threads)
        command = ["perf", "record", "-q", "-F", "999", "--call-graph", "dwarf,16384", "-o", data]
        run = subprocess.run([*command, sys.executable, "-c", child], capture_output=True, text=True, check=False)
        if run.returncode or not data.exists():
            raise SystemExit(f"flame: perf record failed: {run.stderr.strip() or 'no samples'}")
        text = subprocess.run(
            ["perf", "script", "-i", data, "-F", "ip,sym"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    stacks = {}
    for block in text.split("\n\n"):
        frames = [line.strip().partition(" ")[2] or "?" for line in block.splitlines() if line.strip()]
        if frames:
            key = tuple(reversed(frames))
            stacks[key] = stacks.get(key, 0) + 1
    return stacks


def tree(stacks):
    root = {"count": 0, "below": {}}
    for frames, count in stacks.items():
        node = root
        node["count"] += count
        for frame in frames:
            node = node["below"].setdefault(frame, {"count": 0, "below": {}})
            node["count"] += count
    return root


def boxes(node, name, x, depth, scale, out):
    width = node["count"] * scale
    if width < 0.4:
        return
    out.append((name, x, depth, width, node["count"]))
    for below, child in sorted(node["below"].items()):
        boxes(child, below, x, depth + 1, scale, out)
        x += child["count"] * scale


def drawing(stacks, title):
    root, out = tree(stacks), []
    boxes(root, "all", 0.0, 0, WIDTH / max(1, root["count"]), out)
    height = ROW * (max(b[2] for b in out) + 3)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="monospace" font-size="11">',
        f'<text x="8" y="14">{html.escape(title)}: {root["count"]} samples</text>',
    ]
    for name, x, depth, width, count in out:
        y = height - ROW * (depth + 1)
        ours = "adjoin" in name or "aj_" in name
        color = f"hsl({(hash(name) % 20) + (200 if ours else 25)},60%,{70 + hash(name) % 9}%)"
        shown = html.escape(name[: int(width / 6.7)]) if width > 20 else ""
        lines.append(
            f"<g><title>{html.escape(name)}: {count / root['count']:.1%}</title>"
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 1}" fill="{color}"/>'
            f'<text x="{x + 2:.1f}" y="{y + 12}">{shown}</text></g>'
        )
    return "\n".join([*lines, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", help="a name that side_by_side.py --list prints")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/bench/flame.svg"))
    args = parser.parse_args()
    if args.case not in CASES:
        raise SystemExit(f"flame: no case is called '{args.case}'; side_by_side.py --list prints them")
    if not shutil.which("perf"):
        raise SystemExit("flame: perf is not installed; install linux-perf")
    stacks = sampled(args.case, args.seconds, args.threads)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(drawing(stacks, args.case))
    print(f"flame: wrote {args.out}")


if __name__ == "__main__":
    main()
