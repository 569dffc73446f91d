"""bench/overview.py: results of side_by_side.py as one table (Markdown) and one picture.

python bench/overview.py build/bench/side_by_side.json ... --out bench/results --page bench/README.md

Several files are runs of several suites or numbers of threads; of a case that was run several times the median counts. The page
gets the table between its two marks; `--page bench/README.md bench/results/threads*.json` writes the kept results there again.
"""

import argparse
import json
import statistics
from pathlib import Path

from all_cases import CASES
from side_by_side import geometric_mean, judged, limit_of
from table import WANTED, group_of

MARKS = ("<!-- table: written by bench/overview.py -->\n", "<!-- end of table -->\n")


def median_of(runs_of_case):
    """The run whose ratio is the median; its spread is that of all of them."""
    middle = sorted(runs_of_case, key=lambda r: r["ratio"])[(len(runs_of_case) - 1) // 2]
    spreads = [r["spread"] for r in runs_of_case]
    return {
        **middle,
        "spread": [min(low for low, _ in spreads), max(high for _, high in spreads)],
        "runs": len(runs_of_case),
    }


def merged(paths):
    """By number of threads: the results of all files."""
    runs = {}
    for path in paths:
        record = json.loads(Path(path).read_text())
        run = runs.setdefault(record["threads"], {**record, "results": {}})
        run["date"] = max(run["date"], record["date"])
        run.pop("summary", None)
        for r in record["results"]:
            run["results"].setdefault(r["case"], []).append(r)
    return {n: {**run, "results": [median_of(r) for r in run["results"].values()]} for n, run in sorted(runs.items())}


def of_group(run, group):
    return [r for r in judged(run["results"]) if group_of(CASES[r["case"]]) == group]


def table(runs):
    heads = [f"{n} thread{'s' * (n > 1)}" for n in runs]
    lines = [
        "| suite | wanted | " + " | ".join(f"{h} | its cases" for h in heads) + " |",
        "|---" * (2 + 2 * len(heads)) + "|",
    ]
    for group, wanted in WANTED.items():
        if not any(of_group(run, group) for run in runs.values()):
            continue
        cells = []
        for run in runs.values():
            ratios = [r["ratio"] for r in of_group(run, group)]
            cells += (
                [f"{geometric_mean(ratios):.2f}", f"{min(ratios):.2f} .. {max(ratios):.2f}"] if ratios else ["", ""]
            )
        lines.append(f"| `{group}` | {wanted.mean} | " + " | ".join(cells) + " |")
    lines.append("")
    for head, run in zip(heads, runs.values()):
        above = [r for r in judged(run["results"]) if r["ratio"] > limit_of(CASES[r["case"]])]
        shown = ", ".join(f"`{r['case']}` {r['ratio']:.2f} (wanted {limit_of(CASES[r['case']])})" for r in above)
        lines.append(f"Above what is wanted of them, {head}: {shown or 'none'}.")
    return "\n".join(lines) + "\n"


def into_page(page, text):
    """The page's text with the table between its marks."""
    before, _, rest = page.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    if not after:
        raise SystemExit(f"overview: the page lacks the marks {MARKS[0].strip()} and {MARKS[1].strip()}")
    return before + MARKS[0] + text + MARKS[1] + after


def picture(runs, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    groups = [g for g in WANTED if any(of_group(run, g) for run in runs.values())]
    figure, axes = plt.subplots(figsize=(9, 0.55 * len(groups) + 1.4))
    high = 0.8 / len(runs)
    for k, (threads, run) in enumerate(runs.items()):
        for i, group in enumerate(groups):
            results = of_group(run, group)
            if not results:
                continue
            ratios = [r["ratio"] for r in results]
            y, mean = i + k * high, geometric_mean(ratios)
            label = f"{threads} thread{'s' * (threads > 1)}" if i == 0 else None
            axes.barh(y, mean, high * 0.9, color=f"C{k}", label=label)
            axes.plot(ratios, [y] * len(ratios), "|", color="black", markersize=7, alpha=0.6)
            axes.text(1.01, y, f"{mean:.2f}", va="center", fontsize=8, transform=axes.get_yaxis_transform())
    axes.set_yticks([i + 0.4 - high / 2 for i in range(len(groups))], groups)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    first = next(iter(runs.values()))
    axes.set_xlabel(
        f"time of {first['libraries'][1]} / time of {first['libraries'][0]}; bar: geometric mean, strokes: each case"
    )
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False)  # above, over no bar
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    parser.add_argument("--page", type=Path, help="a page of Markdown whose table is written anew")
    args = parser.parse_args()
    runs = merged(args.files)
    args.out.mkdir(parents=True, exist_ok=True)
    text = table(runs)
    picture(runs, args.out / "overview.png")
    for threads, run in runs.items():
        (args.out / f"threads{threads}.json").write_text(json.dumps(run, indent=1) + "\n")
    if args.page:
        args.page.write_text(into_page(args.page.read_text(), text))
    print(text)
    print(
        f"median ratio of all cases: {statistics.median(r['ratio'] for run in runs.values() for r in judged(run['results'])):.2f}"
    )


if __name__ == "__main__":
    main()
