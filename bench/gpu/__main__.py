"""bench/gpu: `./run gpu`, the first hour on a card: steps with limits, and a report that grows with each of them."""

import argparse
import pathlib
import signal
import subprocess
import sys

import archive
import card
import runner
from report import Report
from table import STEPS


def pages():
    lines = [f"  {step.name:<10} {step.limit // 60:>2} min  {step.what}" for step in STEPS]
    return "steps, in this order:\n" + "\n".join(lines)


def read_options():
    parser = argparse.ArgumentParser(
        prog="./run gpu",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="What holds on the card of this machine. Nothing is installed, no network is used.",
        epilog=pages() + "\n\n./run gpu pack [--help] makes the archive that another machine runs this from.\n"
        "./run gpu predict [--help] says from machine code what an H200 could reach at most, beside what a report has measured.",
    )
    parser.add_argument(
        "step", nargs="*", help="these steps alone; the report goes on; default: all that have no result"
    )
    parser.add_argument("--again", action="store_true", help="all steps, those that have a result too")
    parser.add_argument("--device", choices=card.VENDORS, help="default: the one that is here")
    parser.add_argument(
        "--out", type=pathlib.Path, default=runner.ROOT / "gpu-report", help="folder of report and logs"
    )
    parser.add_argument("--limit", type=float, help="seconds that each step has at most, instead of its own")
    options = parser.parse_args()
    names = [step.name for step in STEPS]
    for name in options.step:
        if name not in names:
            parser.error(f"there is no step '{name}'; {', '.join(names)} are known")
    return options


def interrupt(*_):
    raise KeyboardInterrupt


def main():
    if sys.argv[1:2] == ["pack"]:
        import pack

        return pack.main(sys.argv[2:])
    if sys.argv[1:2] == ["predict"]:
        return subprocess.call([sys.executable, runner.HERE / "model", *sys.argv[2:]])
    options = read_options()
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        archive.verify(runner.ROOT)
        found = card.find(options.device)
        report = Report(options.out, found, archive.contents(runner.ROOT))
    except (card.NoCard, archive.Broken, runner.NotBuilt, ValueError) as error:
        print(f"./run gpu: {error}", file=sys.stderr)
        return 2
    print(f"== {found.title()}; the report: {report.page}", flush=True)
    chosen = [step for step in STEPS if step.name in options.step] or [
        step for step in STEPS if options.again or not report.has(step.name)
    ]
    if any(step.python for step in chosen) and not report.has("module") and STEPS[0] not in chosen:
        chosen.insert(0, STEPS[0])  # it makes the package fit this Python
    try:
        for step in chosen:
            runner.run(step, found, report, options.limit)
    except KeyboardInterrupt:
        report.write()
        left = [step.name for step in STEPS if not report.has(step.name)]
        print(f"== interrupted; without a result: {' '.join(left)}; ./run gpu goes on with them", file=sys.stderr)
        return 130
    print(report.last_line(), flush=True)
    return 0 if report.good([step.name for step in chosen]) else 1


if __name__ == "__main__":
    sys.exit(main())
