"""frontends/docs/migration.py: the page for who comes from PyTorch: written from tests, from names that were recorded, from `./run`."""

import ast
import importlib
import json
import pathlib
import re
import subprocess
import warnings

import adjoin

ROOT = pathlib.Path(__file__).resolve().parents[2]
SWITCHES = ("NO_CUDA=1", "NO_ROCM=1", "NO_MKLDNN=1", "USE_CUDA=0", "USE_ROCM=0", "USE_MKLDNN=0")


def absent():
    """{PyTorch's module: (how many of its names are here, how many it has, those that are not)}."""
    found = {}
    for path, text in json.loads((ROOT / "tests/programs/recorded_names.json").read_text())["names"].items():
        names = text.split()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                here = (
                    adjoin.Tensor
                    if path == "torch.Tensor"
                    else importlib.import_module("adjoin" + path[len("torch") :])
                )
            except ImportError:
                here = object()
            missing = [name for name in names if not hasattr(here, name)]
        found[path] = (len(names) - len(missing), len(names), missing)
    return found


def words():
    """Lines of a test, what each gives, and what it gives with --old."""
    tree = ast.parse((ROOT / "tests/python/toplevel/old_programs_test.py").read_text())
    return next(
        ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "WORDS"
    )


def options(switch):
    """What `./run build` leaves out with a variable."""
    script = 'eval "$(sed -n "/^switched_off()/,/^}/p" run)"; switched_off'
    clean = {"PATH": "/usr/bin:/bin", **dict([switch.split("=")])}
    return subprocess.run(
        ["bash", "-c", script], cwd=ROOT, env=clean, capture_output=True, text=True, check=True
    ).stdout.split()


def programs():
    """(file, what it says of itself) of the programs that tests run."""
    for path in sorted((ROOT / "tests/programs").rglob("*.py")):
        told = re.match(r'"""\S+: (.*?)(?:\n\n|""")', path.read_text(), re.S)
        if told:
            yield path.relative_to(ROOT), " ".join(told[1].split())


def page():
    """The text."""
    found = absent()
    have, of = (sum(row[i] for row in found.values()) for i in (0, 1))
    text = ["# Coming from PyTorch", ""]
    text += ["`adjoin run train.py` runs a program with Adjoin in the place of PyTorch. This page was written while the site was built, from "
             "what tests hold.", ""]  # fmt: skip
    text += ["## Programs that tests run", "| program | what it is |", "|---|---|"]
    text += [f"| `{path}` | {told} |" for path, told in programs()]
    text += ["", "## Words of 2016 and 2017", "| written | gives | with `adjoin run --old` |", "|---|---|---|"]
    text += [f"| `{line}` | `{today}` | `{then}` |" for line, today, then in words()]
    text += ["", "## Switches", "| `./run build` with | leaves out |", "|---|---|"]
    for switch in SWITCHES:
        plugins = [option.removeprefix("-D").partition("=")[0] for option in options(switch)]
        text += [f"| `{switch}` | {', '.join(f'plugin `{name}`' for name in plugins)} |"]
    text += ["", "`NO_CUDA=1` and `NO_ROCM=1` hide the cards of a program that `adjoin run` starts, too."]
    text += ["", "## What differs", ""]
    for section in re.findall(r"^## (.*)$", (ROOT / "frontends/docs/differences.md").read_text(), re.M):
        text += [f"- {section}"]
    text += ["", "[Differences](../differences.md) has each, with its reason.", "", "## Names", ""]
    text += [f"Of {of} public names of PyTorch's modules {have} are here. The others raise `AttributeError`.", ""]
    text += ["| module | here | not here |", "|---|---|---|"]
    text += [f"| `{path}` | {n} of {m} | {', '.join(missing)} |" for path, (n, m, missing) in found.items()]
    return "\n".join([*text, ""])
