"""tests/packages/docs_test.py: the pages that are made have every row, header and layer, and what they show has run."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

from abi_tools import INCLUDE, LIBDIR, PREFIX, clean_environment

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("made")
    env = clean_environment(PYTHONPATH=LIBDIR / "adjoin/python")
    command = [sys.executable, ROOT / "frontends/docs/make.py", PREFIX, out, "--short"]
    subprocess.run(command, check=True, env=env, capture_output=True)
    return out


def test_every_row(made):
    pages = {page.stem: page.read_text() for page in (made / "ops").glob("*.md")}
    public = 0
    for row in json.loads((PREFIX / "share/adjoin/ops.json").read_text()):
        if row["name"].startswith("_") or "internal" in row.get("tags", []):
            continue
        public += "elsewhere" not in (row.get("test") or {})  # no sample of those stands in a row
        text = pages[pathlib.PurePath(row["file"].split(":")[0]).stem]
        assert f"\n## {row['name']}\n{row['doc']}\n\n```text\n{row['schema']}\n```\n" in text
    text = "\n".join(pages.values())
    assert text.count("- gradient of `") > 200 and public > 600
    # Of nearly every op an example was run, and some dtypes compute.
    assert (
        text.count("\n```python\n") > 0.95 * public
        and text.count("- dtypes that compute on the processor: ") > 0.9 * public
    )


def test_an_example_is_a_session_that_runs(made):
    """Those of one family once more: what is shown is what comes out."""
    import adjoin

    page = (made / "ops/softmax.md").read_text()
    shown = re.findall(r"^```python\n((?:[^#`].*\n)+)((?:# .*\n)+)```$", page, re.M)
    assert len(shown) == page.count("\n## ") > 2
    for code, result in shown:
        *before, call = code.rstrip("\n").split("\n")
        space = {"torch": adjoin}
        exec("\n".join(before), space)
        assert repr(eval(call, space)) == re.sub(r"^# ?", "", result, flags=re.M).rstrip("\n")


def test_an_example_fits_a_page(made):
    for page in (made / "ops").glob("*.md"):
        for line in re.findall(r"^\w+ = torch\.tensor\(\[\[.*", page.read_text(), re.M):
            assert len(line) < 100, f"{page.stem}: {line}"


def test_the_overview_leads_to_every_family(made):
    overview = (made / "ops.md").read_text()
    for page in (made / "ops").glob("*.md"):
        assert f"[{page.stem}](ops/{page.stem}.md)" in overview and f"\nops/{page.stem}\n" in overview
    for purpose in re.findall(r"^\| \[\w+\]\(.*\) \| \d+ \| (.*) \|$", overview, re.M):
        assert purpose.endswith("."), f"cut off: {purpose}"


def test_the_gallery_has_its_pictures(made):
    text = (made / "gallery.md").read_text()
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert len(pictures) == text.count("\n## ") > 4
    for picture in pictures:
        assert (made / picture).read_bytes().startswith(b"\x89PNG")


def test_who_comes_from_pytorch_reads_what_is_missing(made):
    import adjoin

    text = (made / "migration.md").read_text()
    rows = dict(re.findall(r"^\| `(torch[\w.]*)` \| \d+ of \d+ \| (.*) \|$", text, re.M))
    assert len(rows) > 60 and rows["torch.optim"] == rows["torch.distributions"] == ""
    for name in rows["torch.linalg"].split(", "):
        assert not hasattr(adjoin.linalg, name)
    have, of = map(int, re.search(r"^Of (\d+) public names .* (\d+) are here", text, re.M).groups()[::-1])
    assert 0.75 * of < have <= of
    assert "| `NO_CUDA=1` | plugin `cuda` |" in text and "| `USE_MKLDNN=0` | plugin `onednn` |" in text
    assert (
        "| `torch.ones(2).sum().data[0]` | `IndexError` | `2.0` |" in text
        and "| `tests/programs/old/wgan.py` | 2017" in text
    )


def test_each_example_has_its_curves(made):
    text = (made / "examples.md").read_text()
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert len(pictures) == text.count("\n## ") == text.count("    adjoin run frontends/docs/examples/") == 10
    for picture in pictures:
        assert (made / picture).read_bytes().startswith(b"\x89PNG")


def test_status_and_changes_are_pages(made):
    assert (made / "status.md").read_text().count("| `tests/") > 100
    assert (made / "changelog.md").read_text().startswith("# Changelog")


def test_every_header_whole(made):
    text = (made / "contract.md").read_text()
    for header in (INCLUDE / "adjoin/abi").glob("*.h"):
        assert f"\n## {header.name}\n" in text
        for line in header.read_text().splitlines():
            if line.startswith(("typedef", "  ", "}")) and "*/" not in line and not line.lstrip().startswith("/*"):
                assert line in text, f"{header.name}: {line}"


def test_layers(made):
    text = (made / "nn.md").read_text()
    for name in ("adjoin.nn.Linear(", "adjoin.nn.Conv2d(", "adjoin.optim.AdamW(", "adjoin.optim.lr_scheduler."):
        assert name in text
