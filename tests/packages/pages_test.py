"""tests/packages/pages_test.py: drawings and tables are what their scripts write, links lead somewhere, what is cited is in the clone."""

import json
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "frontends/docs"), str(ROOT / "bench")]
import draw
import overview

TRACKED = subprocess.run(
    ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout
FILES = [pathlib.Path(line) for line in TRACKED.splitlines() if (ROOT / line).is_file()]
WORDS = [f for f in FILES if f.suffix == ".md" and f.parts[0] != "build" and "templates" not in f.parts]
NAMES = {f.name for f in FILES}
MADE = {
    "gpu-report.md",  # ./run gpu writes it
    "ops.md",
    "nn.md",
    "contract.md",
    "status.md",
    "changelog.md",
    "gallery.md",
    "examples.md",
    "migration.md",
    "FAMILY.md",
}  # by frontends/docs/make.py


@pytest.mark.parametrize("name", draw.DRAWINGS)
def test_a_drawing_is_what_its_script_draws(name):
    drawn = draw.DRAWINGS[name]().svg()
    assert (ROOT / f"frontends/docs/drawings/{name}.svg").read_text() == drawn, "stale: python frontends/docs/draw.py"
    svg = xml.fromstring(drawn)
    wide = float(svg.get("viewBox").split()[2])
    for box in svg.iter("{http://www.w3.org/2000/svg}rect"):
        assert 0 <= float(box.get("x")) and float(box.get("x")) + float(box.get("width")) <= wide


def test_the_table_of_speed_is_that_of_the_results():
    runs = {}
    for path in sorted((ROOT / "bench/results").glob("threads*.json")):
        run = json.loads(path.read_text())
        runs[run["threads"]] = run
    page = (ROOT / "bench/README.md").read_text()
    assert runs and overview.into_page(page, overview.table(runs)) == page, (
        "stale: bench/overview.py --page bench/README.md"
    )


@pytest.mark.parametrize("path", WORDS, ids=str)
def test_links_lead_somewhere(path):
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", (ROOT / path).read_text(), flags=re.S | re.M)
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)[^)]*\)", text):
        if not target.startswith("made/"):  # Sphinx looks after those
            assert (ROOT / path.parent / target).exists(), target


def test_what_files_cite_is_in_the_clone():
    lost = []
    for path in FILES:
        if (
            path.suffix in {".c", ".h", ".cpp", ".hpp", ".cuh", ".cu", ".py", ".toml", ".md", ".sh", ".build"}
            or path.name == "run"
        ):
            text = (ROOT / path).read_text(errors="replace")
            lost += [
                f"{path}: {name}"
                for name in re.findall(r"[\w-]+\.md\b", text)
                if name not in NAMES | MADE | {f"{path.stem}.md"}
            ]
            lost += [
                f"{path}: {word}" for word in re.findall(r"\bmechanics\b|\bdesign, section\b|\bthe design says\b", text)
            ]
    lost = [line for line in lost if not line.startswith("tests/packages/")]
    assert not lost


def test_contributing_names_what_is_there():
    for page in ("CONTRIBUTING.md", "plugins/README.md", "tests/README.md", "README.md"):
        for path in re.findall(
            r"`((?:abi|core|plugins|frontends|extensions|tests|bench)/[\w./-]+)`", (ROOT / page).read_text()
        ):
            if not re.search(r"\b(NAME|FAMILY|FILE)\b", path):  # a place to fill in
                assert (ROOT / path).exists(), f"{page}: {path}"


def test_contributing_has_its_sections():
    sections = re.findall(r"^## (.*)$", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    wanted = ["How the house is built", "Add an op", "Add a kernel", "Add a layer", "Add a backend", "Run one test",
              "What a change must show", "Commit messages", "Dependencies"]  # fmt: skip
    assert sections == wanted
