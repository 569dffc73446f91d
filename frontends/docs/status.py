#!/usr/bin/env python3
"""frontends/docs/status.py: what works, from what the tests said.

status.py FILE.xml...   reads JUnit reports of pytest or meson into status.json, then writes README.md's table
status.py --run [FILE]  runs files of tests, or all that status.json lacks, and reads what they said
status.py               drops files that are gone and writes README.md's table

A result is kept for each file of tests: how many passed, were left out, failed, and why some were left out. A test
(tests/packages/status_test.py) fails when the table is not what the results give, when a file of tests came or went and the table
does not say so, or when something that is called planned is there.
"""

import datetime
import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

import adjoin

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KEPT = HERE / "status.json"
README = ROOT / "README.md"
MARKS = ("<!-- status: written by frontends/docs/status.py -->\n", "<!-- end of status -->\n")

# What a person calls a part, and the files that test it: a file belongs to the first row that names it.
PARTS = (
    ("the contract in C, old and new plugins", ["tests/abi/*"]),
    ("the core: calls, tape, memory, loader", ["tests/core/*", "C++ core"]),
    ("ops, with first and second derivatives", ["tests/ops/*"]),
    ("plugins `cuda`, `hip`", ["tests/plugins/vendors_test.py", "tests/plugins/paper_*_test.py"]),
    ("plugins `cpu`, `onednn`, `reference`, `emulated`, `shadow`", ["tests/plugins/*", "C++ kit"]),
    (
        "Python: tensors and autograd",
        [
            "tests/python/tensor/*",
            "tests/python/autograd/*",
            "tests/python/amp/*",
            "tests/python/sparse/*",
            "tests/python/nested/*",
        ],
    ),
    (
        "Python: layers, optimizers, distributions",
        ["tests/python/nn/*", "tests/python/optim/*", "tests/python/distributions/*"],
    ),
    ("Python: data, processes, files", ["tests/python/data/*", "tests/python/files/*"]),
    ("programs: traced, saved, run without Python", ["tests/python/graph/*"]),
    ("many processes: `adjoin launch`, `torch.distributed`", ["tests/python/distributed/*"]),
    ("Python: the package, whole programs", ["tests/python/*"]),
    ("C++, C, Lua, Rust", ["tests/frontends/*", "C++ files*"]),
    ("the command `adjoin`", ["tests/cli/*"]),
    ("ops of your own: extensions", ["tests/extensions/*"]),
    ("wheel, prefix, documentation", ["tests/packages/*"]),
    ("the house: walls, names, form", ["tests/lint/*"]),
    ("side by side with PyTorch", ["tests/compat/*"]),
)
ITSELF = "tests/packages/status_test.py"  # what judges the results has none: it would wait for its own
PROGRAMS = {"C++ core", "C++ kit", "C++ files", "C++ files fuzz"}  # as meson calls them
DEVICES = {"plugins `cuda`, `hip`": ("cuda", "hip")}


# What is planned, and how one sees that it has come.
PLANNED = {
    "quantized and named tensors": lambda: any(map(adjoin.__dict__.__contains__, ("quantize_per_tensor", "align_tensors"))),
}  # fmt: skip


def part_of(name):
    return next((title for title, patterns in PARTS if any(fnmatch.fnmatch(name, p) for p in patterns)), None)


def known_files():
    """Every file of tests, by the name that results have."""
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "tests"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = {line for line in tracked.stdout.splitlines() if line.endswith("_test.py") and (ROOT / line).exists()}
    return (found | PROGRAMS) - {ITSELF}


def kept():
    return json.loads(KEPT.read_text()) if KEPT.exists() else {"date": "", "devices": {}, "files": {}}


def file_of(case):
    """The file of a pytest case: its class name is the path with dots, and perhaps a class behind."""
    words = case.get("classname", "").split(".")
    for end in range(len(words), 0, -1):
        path = "/".join(words[:end]) + ".py"
        if (ROOT / path).is_file():
            return path
    return None


def read(path):
    """{file: {"passed", "left_out", "failed", "reasons"}} of one report."""
    results = {}
    for case in xml.parse(path).getroot().iter("testcase"):
        if case.get("classname") == "adjoin":  # a program of meson's
            name, text = f"C++ {case.get('name')}", case.findtext("system-out") or ""
            count = sum(map(int, re.findall(r"\[  PASSED  \] (\d+) test", text))) or 1
            bad = case.find("failure") is not None or case.find("error") is not None
            results[name] = {"passed": 0 if bad else count, "left_out": 0, "failed": int(bad), "reasons": []}
            continue
        name = file_of(case)
        if name is None:
            continue
        entry = results.setdefault(name, {"passed": 0, "left_out": 0, "failed": 0, "reasons": []})
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            entry["failed"] += 1
        elif skipped is not None:
            entry["left_out"] += 1
            reason = re.sub(r"\s+", " ", skipped.get("message", "")).strip().removeprefix("NOT TESTED: ")[:120]
            if reason not in entry["reasons"]:
                entry["reasons"].append(reason)
        else:
            entry["passed"] += 1
    return results


def device(name):
    try:
        count = adjoin._C.device_count(name)
    except (RuntimeError, AttributeError):
        count = 0
    return count


def sums(record):
    """[(part, entry)] with the results of its files added up; "missing" are files that were not run."""
    for title, _ in PARTS:
        total = {"passed": 0, "left_out": 0, "failed": 0, "missing": [], "files": 0}
        for name in sorted(known_files()):
            if part_of(name) != title:
                continue
            total["files"] += 1
            entry = record["files"].get(name)
            if entry is None:
                total["missing"].append(name)
            else:
                for key in ("passed", "left_out", "failed"):
                    total[key] += entry[key]
        yield title, total


def state(title, total, record):
    without = [name for name in DEVICES.get(title, ()) if not record["devices"].get(name)]
    if total["failed"]:
        return f"{total['failed']} of its tests fail{'s' * (total['failed'] == 1)}"
    if not total["passed"]:
        return "not run"
    if without:
        return "they compile and load; they never ran on a GPU"
    return "works" if not total["missing"] else f"works; {len(total['missing'])} of {total['files']} files not run"


def told(total):
    words = [f"{total['passed']:,} passed"]
    words += [f"{total['left_out']:,} left out"] if total["left_out"] else []
    words += [f"{total['failed']:,} failed"] if total["failed"] else []
    return ", ".join(words) if total["passed"] + total["failed"] + total["left_out"] else ""


def table(record):
    lines = ["| part | state | its tests |", "|---|---|---|"]
    lines += [f"| {title} | {state(title, total, record)} | {told(total)} |" for title, total in sums(record)]
    lines += [f"| {name} | planned, not there yet | |" for name in PLANNED]
    return "\n".join(lines) + "\n"


def into(page, text):
    before, _, rest = page.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    if not after:
        raise SystemExit("status: README.md lacks the marks of its table")
    return before + MARKS[0] + text + MARKS[1] + after


def page():
    """The site's page: the table, then each file."""
    record = kept()
    lines = ["# Status", "", "Linux on x86-64 is what is tested. The numbers are those of one run of the tests, on a machine without a "
             f"GPU, {record['date']}. A test fails when this page is not up to date.", "", table(record)]  # fmt: skip
    for title, _ in PARTS:
        files = [name for name in sorted(known_files()) if part_of(name) == title]
        lines += [f"## {title[0].upper()}{title[1:]}", "", "| file | passed | left out, why |", "|---|---|---|"]
        for name in files:
            entry = record["files"].get(name)
            why = "; ".join(entry["reasons"]).replace("|", "\\|").replace("<", "&lt;") if entry else "not run"
            shown = f"{entry['left_out']}: {why}" if entry and entry["left_out"] else "" if entry else why
            lines.append(f"| `{name}` | {entry['passed'] if entry else ''} | {shown} |")
        lines.append("")
    return "\n".join(lines)


def main():
    record = kept()
    reports = [word for word in sys.argv[1:] if word.endswith(".xml")]
    asked = [word for word in sys.argv[1:] if word.endswith(".py")]
    with tempfile.TemporaryDirectory() as folder:
        if "--run" in sys.argv:
            new = asked or sorted(name for name in known_files() - set(record["files"]) if name.startswith("tests/"))
            report = pathlib.Path(folder) / "new.xml"
            subprocess.run([sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *new], cwd=ROOT, check=False)
            reports.append(report)
        for report in reports:
            record["files"].update(read(report))
    if reports:
        record["date"] = datetime.date.today().isoformat()
        record["devices"] = {name: device(name) for names in DEVICES.values() for name in names}
    record["files"] = {name: record["files"][name] for name in sorted(known_files() & set(record["files"]))}
    KEPT.write_text(json.dumps(record, indent=1) + "\n")
    README.write_text(into(README.read_text(), table(record)))


if __name__ == "__main__":
    main()
