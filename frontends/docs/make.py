#!/usr/bin/env python3
"""frontends/docs/make.py: writes the pages that come from the rows, the headers, the package, tests and runs: make.py PREFIX OUT.

--no-gallery leaves out the pictures, whose programs take a minute or two;
--short trains the examples for a few steps.
"""

import inspect
import itertools
import json
import pathlib
import re
import sys

import adjoin
import examples
import families
import gallery
import migration
import status
from adjoin import nn, optim


def escaped(text):
    """A docstring is plain text: what Markdown would read as its own signs is not meant so."""
    parts = re.split(r"(``?[^`]+``?)", inspect.cleandoc(text))
    return "".join(p if i % 2 else re.sub(r"([*_<>\[\]#|$])", r"\\\1", p) for i, p in enumerate(parts))


def signature(cls):
    try:
        return str(inspect.signature(cls))
    except (ValueError, TypeError):
        return "(...)"


def nn_page():
    text = ["# Layers and optimizers", ""]
    for title, module in (
        ("adjoin.nn", nn),
        ("adjoin.optim", optim),
        ("adjoin.optim.lr_scheduler", optim.lr_scheduler),
    ):
        text += [f"## {title}", ""]
        for name, thing in sorted(vars(module).items()):
            if inspect.isclass(thing) and thing.__module__.startswith("adjoin") and thing.__doc__ and name[0] != "_":
                text += [f"### {name}", f"```python\n{title}.{name}{signature(thing)}\n```", escaped(thing.__doc__), ""]
    return "\n".join(text)


def plain(comment):
    lines = [re.sub(r"^\s*(/\*|\*/|\*)?\s?", "", line) for line in comment.splitlines()]
    return "\n".join(lines).replace("*/", "").strip()


def struct_of(chunk):
    named = re.search(r"^\} (aj_\w+);", chunk, re.M)
    return named[1] if named else ""


def header(path):
    text = path.read_text()
    top = re.match(r"/\*.*?\*/", text, re.S)[0]
    rest = text[len(top) :]
    rest = re.sub(
        r"^#(ifndef|define) ADJOIN_ABI_\w+\n|^#ifdef __cplusplus\n(extern \"C\" \{|\})\n#endif\n", "", rest, flags=re.M
    )
    rest = re.sub(r"\n#endif\s*\Z", "\n", rest).strip()
    lines = [f"## {path.name}", "", plain(top), ""]
    chunks = re.split(r"\n\s*\n(?=\S)", rest)
    for title, group in itertools.groupby(chunks, key=struct_of):  # what has no title stands together
        lines += [f"### {title}", ""] if title else []
        lines += ["```c", "\n\n".join(group), "```", ""]
    return "\n".join(lines)


def contract_page(folder):
    order = ["base", "core", "op", "autograd", "device", "service", "plugin", "capi", "report", "dlpack"]
    files = sorted(folder.glob("*.h"), key=lambda f: order.index(f.stem) if f.stem in order else len(order))
    return "\n".join(["# The contract", "", "Installed as `adjoin/abi/`: C99, and all that a plugin or a frontend needs.", "",
                      *map(header, files)])  # fmt: skip


def main():
    prefix, out = map(pathlib.Path, [word for word in sys.argv[1:] if not word.startswith("-")])
    rows = json.loads((prefix / "share/adjoin/ops.json").read_text())
    out.mkdir(parents=True, exist_ok=True)
    made = families.write(rows, out)
    (out / "nn.md").write_text(nn_page())
    (out / "contract.md").write_text(contract_page(prefix / "include/adjoin/abi"))
    (out / "status.md").write_text(status.page())
    (out / "migration.md").write_text(migration.page())
    (out / "changelog.md").write_text((families.ROOT / "CHANGELOG.md").read_text())
    if "--no-gallery" not in sys.argv:
        gallery.write(out)
        examples.write(out, short="--short" in sys.argv)
    print(f"adjoin {adjoin.__version__}: {len(rows)} rows, {made} families")


if __name__ == "__main__":
    main()
