"""Names of ops in the core outside of their rows: what the core does by itself to ops is said in the row, not in a list of names.

The frontends' lists (Python's homes of functions, the tolerances of `adjoin conform`) are not looked at yet."""

import pathlib
import re
import subprocess
import sys
import tomllib

MOST = 40
ALLOWED = {  # a name that may stand in the core as text, and why
    "add": "gradients of one tensor are added",
    "alias": "the name of a node that has no op",
    "all": "a word of the plugins' policy",
    "any": "the check for NaN in gradients",
    "as_strided": "a view whose op is not known; its gradient",
    "bfloat16": "a dtype",
    "bool": "a dtype, a parameter's type",
    "clone": "what is written and still needed is cloned",
    "complex": "a class of dtypes",
    "copy_": "copies between layouts and devices",
    "empty": "a word of a traced call",
    "fill_": "a gradient that begins as ones",
    "float": "a parameter's type",
    "int": "a parameter's type",
    "isnan": "the check for NaN in gradients",
    "max": "a parameter of clamp; no limit in /sys/fs/cgroup",
    "min": "a parameter of clamp",
    "real": "the gradient of a real tensor in a complex formula",
    "reshape": "a gradient is brought to its input's shape",
    "sum": "a gradient is brought to its input's shape",
    "to": "casts of autocast, gradients of another dtype or device",
    "trace": "a level of messages",
    "view": "a kind of ops",
    "view_as_complex": "a view of a complex tensor's numbers, written to",
    "view_as_real": "a view of a complex tensor's numbers, written to",
}
TEXT = re.compile(r'"((?:\w+::)?[a-z]\w*(?:\.\w+)?)"')


def ops():
    rows = [row for file in pathlib.Path("core/ops").rglob("*.toml") for row in tomllib.loads(file.read_text())["op"]]
    return {row["def"].split("(")[0] for row in rows} | {name for row in rows for name in row.get("aliases", [])}


def main():
    out = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "core"], capture_output=True, text=True, check=True
    )
    known, seen, found = ops(), set(), []
    for path in map(pathlib.Path, out.stdout.splitlines()):
        if path.suffix not in {".cpp", ".hpp"} or path.is_relative_to("core/ops") or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            for name in known.intersection(TEXT.findall(line)):
                seen.add(name)
                if name not in ALLOWED:
                    found.append(f"{path}:{number}: names the op {name}; a row can say it: {line.strip()[:80]}")
    found += [
        f"tests/lint/names.py: {name} stands nowhere in the core any more" for name in sorted(set(ALLOWED) - seen)
    ]
    if len(ALLOWED) > MOST:
        found.append(f"tests/lint/names.py: {len(ALLOWED)} names are allowed, at most {MOST}")
    if found:
        print("\n".join(found))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
