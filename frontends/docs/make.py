#!/usr/bin/env python3
"""frontends/docs/make.py: writes the reference pages from the rows, the headers and the package: make.py PREFIX OUT."""

import inspect
import itertools
import json
import pathlib
import re
import sys

import adjoin
from adjoin import _C, nn, optim


def operation(row):
    name = row["name"]
    lines = [f"### {name}", f"```\n{row['schema']}\n```", row["doc"], ""]
    (info,) = [i for i in _C.op_info(name) if i["name"] == name][:1] or [{}]
    differentiable = "yes" if info.get("differentiable") else "no"
    forms = [word for word, key in (("in place", "in_place"), ("`out=`", "out")) if info.get(key)]
    lines.append(f"- derivative: {differentiable}" + (f"; also {', '.join(forms)}" if forms else ""))
    try:
        served = _C.explain_op(name, "cpu")
    except Exception:  # an alias or a hidden row
        served = ""
    kinds = re.search(r"plugin cpu.*? for (.*)", served)
    if kinds:
        lines.append(f"- dtypes on the processor: {kinds[1]}")
    elif "body" in row:
        lines.append("- made of other ops; a backend may have a kernel of its own")
    return "\n".join([*lines, f"- defined in `{row['file']}`", ""])


def ops_page(rows):
    text = ["# Ops", "", f"{len(rows)} rows; each is a function, most are methods of `Tensor` too.", ""]
    for family, group in itertools.groupby(rows, key=lambda r: r["file"].split(":")[0]):
        text += [f"## {pathlib.PurePath(family).stem}", ""]
        text += [operation(row) for row in group if not row["name"].startswith("_")]
    return "\n".join(text)


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
    for title, module in (("adjoin.nn", nn), ("adjoin.optim", optim), ("adjoin.optim.lr_scheduler", optim.lr_scheduler)):
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
    rest = re.sub(r"^#(ifndef|define) ADJOIN_ABI_\w+\n|^#ifdef __cplusplus\n(extern \"C\" \{|\})\n#endif\n", "", rest, flags=re.M)
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
    prefix, out = map(pathlib.Path, sys.argv[1:])
    rows = json.loads((prefix / "share/adjoin/ops.json").read_text())
    out.mkdir(parents=True, exist_ok=True)
    (out / "ops.md").write_text(ops_page(rows))
    (out / "nn.md").write_text(nn_page())
    (out / "contract.md").write_text(contract_page(prefix / "include/adjoin/abi"))
    print(f"adjoin {adjoin.__version__}: {len(rows)} rows")


if __name__ == "__main__":
    main()
