"""tests/packages/docs_test.py: the reference pages have every row, every header and every layer."""

import json
import pathlib
import subprocess
import sys

import pytest

from abi_tools import INCLUDE, LIBDIR, PREFIX, clean_environment

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("made")
    env = clean_environment(PYTHONPATH=LIBDIR / "adjoin/python")
    command = [sys.executable, ROOT / "frontends/docs/make.py", PREFIX, out]
    subprocess.run(command, check=True, env=env, capture_output=True)
    return out


def test_every_row(made):
    text = (made / "ops.md").read_text()
    for row in json.loads((PREFIX / "share/adjoin/ops.json").read_text()):
        assert row["name"].startswith("_") or f"\n### {row['name']}\n```\n{row['schema']}\n```\n{row['doc']}" in text
    assert text.count("- derivative: yes") > 200 and text.count("- dtypes on the processor: ") > 100


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
