"""frontends/docs/families.py: a page for each family of ops; the examples and the dtypes on it come from calls."""

import itertools
import pathlib
import re
import sys
import warnings

import adjoin
from adjoin import _C

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/ops"))
import samples

DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool", "uint8", "int8", "int16", "int32",
          "int64", "uint16", "uint32", "uint64")  # fmt: skip
GROUPS = {"all": DTYPES, "floats": DTYPES[:4], "complex": DTYPES[4:6], "bool": DTYPES[6:7], "integers": DTYPES[7:]}
HOMES = {
    "nn": "torch.nn.functional",
    "linalg": "torch.linalg",
    "special": "torch.special",
    "fft": "torch.fft",
    "sparse": "torch.sparse",
    "torchvision": "torch.ops.torchvision",
}
NUMBERS = 24  # an example with more elements in one tensor explains nothing
WIDE = 48  # characters of a line that a phone shows


def purpose(path):
    """What the comment on top of a family's file says of it."""
    top = itertools.takewhile(lambda line: line.startswith("# "), (ROOT / path).open())
    words = " ".join(line[2:].strip() for line in top).split(": ", 1)[1]
    return words[0].upper() + words[1:]


def family_of(row):
    return row["file"].split(":")[0]


def families(rows):
    """[(file, its rows)], without what only the library itself calls."""
    public = [row for row in rows if not row["name"].startswith("_") and "internal" not in row.get("tags", [])]
    return [(path, list(group)) for path, group in itertools.groupby(sorted(public, key=family_of), key=family_of)]


def quiet(f, *args, **kwargs):
    with warnings.catch_warnings(), adjoin.no_grad():
        warnings.simplefilter("ignore")
        return f(*args, **kwargs)


def measured(row):
    """The dtypes in which the row's own samples compute here."""
    good = []
    for dtype in DTYPES:
        wide = "uint8" if dtype.startswith("uint") else dtype

        def changed(t):
            return t.to(getattr(adjoin, dtype)) if dtype != wide and t.dtype == adjoin.uint8 else t

        try:
            for given, other in itertools.islice(samples.all_samples(row, wide), 1):
                quiet(row.call, **samples.moved(given, changed), **other)
                good.append(dtype)
        except Exception:  # whatever it says: this dtype does not compute
            continue
    return good


def shortly(dtypes):
    """A whole group of dtypes by its name."""
    for name, group in GROUPS.items():
        if set(group) <= set(dtypes) and len(group) > 1:
            rest = [d for d in dtypes if d not in group]
            return ", ".join(filter(None, [name, shortly(rest)]))
    return ", ".join(f"`{d}`" for d in dtypes)


def literal(value):
    """Python for an argument, or ValueError: numbers are rounded, so that a person can follow; of many the shape is told."""
    if isinstance(value, adjoin.Tensor):
        if value.numel() == 0 or (value.numel() > NUMBERS and not value.dtype.is_floating_point):
            raise ValueError
        if value.numel() > NUMBERS:
            return f"torch.rand({', '.join(map(str, value.shape))})"
        numbers = value
        if value.dtype.is_floating_point:
            numbers = (value.double() * 10).round() / 10
        text = re.sub(r"(\d\.\d)\d+", r"\1", str(numbers.tolist()))
        return f"torch.tensor({text})"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, (bool, int, float, str, complex)) or value is None:
        return repr(value)
    if isinstance(value, adjoin.dtype):
        return f"torch.{str(value).split('.')[-1]}"
    raise ValueError


def assigned(name, value):
    """name = value, a row of a matrix a line where one line would be wider than a page."""
    line = f"{name} = {literal(value)}"
    if len(line) <= WIDE or not isinstance(value, adjoin.Tensor):
        return line
    return line.replace("], [", "],\n" + " " * (line.index("[") + 1) + "[")


def called(row, tags):
    """The name under which people call it; None: only the library does."""
    if row.space:
        return f"{HOMES[row.space]}.{row.ident}" if row.space in HOMES else None
    if "method-only" in tags:
        return f"input.{row.ident}"
    return f"torch.{row.ident}"


def example(row, tags):
    """Lines of a session that has just been run; none where no sample is short enough."""
    name = called(row, tags)
    if name is None:
        return []
    tried = (itertools.islice(samples.all_samples(row, dtype), 6) for dtype in ("float32", "int64"))
    for given, other in itertools.chain.from_iterable(tried):
        arguments = {**given, **other}
        try:
            lines = [assigned(k, v) for k, v in given.items()]
            # Defaults need not be said.
            said = {p.name: p for p in row.params if p.name in arguments}
            words, by_name = [], False
            for p in row.params:
                by_name = by_name or p.name not in arguments
                if p.name in said and not (
                    p.name in other and p.default is not None and str(other[p.name]) == str(p.default)
                ):
                    text = p.name if p.name in given else literal(other[p.name])
                    words.append(f"{p.name}={text}" if by_name and p.name not in given else text)
                elif p.name in said:
                    by_name = True
            if name.startswith("input."):
                words = words[1:]
            call = f"{name}({', '.join(words)})"
            space = {"torch": adjoin}
            adjoin.manual_seed(0)
            quiet(exec, "\n".join(lines), space)
            got = quiet(eval, call, space)
            result = repr(got)
            if len(result) > 600 or "torch.rand(" in "".join(lines):
                call, got = f"{call}.shape", got.shape  # the numbers would tell nobody anything
                result = f"torch.Size({list(got)})"
        except Exception:  # a sample that is for tests alone; the next one may read well
            continue
        if len(result) > 600 or result == "None":
            continue
        if len(call) > 80:
            call = f"{name}(\n    " + ",\n    ".join(words) + ",\n)"
        return [*lines, call, *(f"# {line}" for line in result.splitlines())]
    return []


def formulas(entry):
    """The derivative and the body as their row has them."""
    grad, body = entry.get("grad"), entry.get("body")
    if isinstance(grad, dict):
        for names, formula in grad.items():
            if names == "save":
                continue
            told = "computed in C++" if str(formula).startswith("cpp:") else f"`{formula}`"
            yield f"- gradient of `{names}`: {told}"
    elif grad == "none":
        yield "- gradient: none, results never require one"
    if isinstance(body, str):
        yield "- made of other ops, in C++" if body.startswith("cpp:") else f"- made of other ops: `{body}`"


def operation(entry, row):
    tags = entry.get("tags", [])
    name = entry["name"]
    lines = [f"## {name}", entry["doc"], "", f"```text\n{entry['schema']}\n```", ""]
    (info,) = [i for i in _C.op_info(name) if i["name"] == name][:1] or [{}]
    lines += formulas(entry)
    forms = [word for word, key in (("in place", "in_place"), ("`out=`", "out")) if info.get(key)]
    if forms:
        lines.append(f"- also {' and with '.join(forms)}")
    dtypes = measured(row) if row.test is not None else []
    if dtypes:
        lines.append(f"- dtypes that compute on the processor: {shortly(dtypes)}")
    if (entry.get("test") or {}).get("ref"):
        lines.append(f"- compared with: `{entry['test']['ref']}`")
    shown = example(row, tags) if row.test is not None else []
    if shown:
        lines += ["", "```python", *shown, "```"]
    return "\n".join([*lines, ""])


def write(rows, out):
    """out/ops/FAMILY.md for each family, and out/ops.md, which leads to them."""
    folder = out / "ops"
    folder.mkdir(parents=True, exist_ok=True)
    by_name = {row.name: row for row in samples.every_row(elsewhere=True)}
    table = []
    for path, group in families(rows):
        stem = pathlib.PurePath(path).stem
        text = [f"# Ops: {stem}", "", f"{purpose(path)} Defined in `{path}`.", ""]
        text += [operation(entry, by_name[entry["name"]]) for entry in group]
        (folder / f"{stem}.md").write_text("\n".join(text))
        table.append((stem, len(group), purpose(path)))
    lines = ["# Ops by family", "", f"{sum(n for _, n, _ in table)} ops in {len(table)} families. Each page has, for every op, its "
             "schema, its derivative, the dtypes that computed when the page was made, and an example that was run then. The search "
             "finds an op by its name.", "", "| family | ops | what it holds |", "|---|---|---|"]  # fmt: skip
    lines += [f"| [{stem}](ops/{stem}.md) | {count} | {what} |" for stem, count, what in table]
    lines += ["", "```{toctree}", ":hidden:", *[f"ops/{stem}" for stem, _, _ in table], "```", ""]
    (out / "ops.md").write_text("\n".join(lines))
    return len(table)
