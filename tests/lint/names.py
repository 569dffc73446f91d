"""tests/lint/names.py: names of ops outside of their rows, which a new op would have to join.

In the core any name counts: what the core does by itself to ops is said in the row. In Python a list counts, MANY names of ops in
one literal; the exports of a module (`__all__`) are its own definitions and no list of this kind.
"""

import ast
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
    "new_zeros": "zeros that a gradient without strides is written into",
    "real": "the gradient of a real tensor in a complex formula",
    "reshape": "a gradient is brought to its input's shape",
    "sum": "a gradient is brought to its input's shape",
    "to": "casts of autocast, gradients of another dtype or device",
    "trace": "a level of messages",
    "view": "a kind of ops",
    "view_as_complex": "a view of a complex tensor's numbers, written to",
    "view_as_real": "a view of a complex tensor's numbers, written to",
}
MANY = 7
ROOMS = ("frontends", "extensions", "bench")
LISTS = {  # a file whose lists of names may stand, and why
    "bench/accuracy.py": "references and ranges of each function in the table of units in the last place",
    "bench/accuracy_solvers.py": "errors of each function",
    "bench/cases.py": "cases that are timed",
    "bench/gpu/steps/kernels.py": "a call for each family of kernels; a row does not say which file computes it",
    "bench/goals.py": "what is wanted of each case that is timed",
    "bench/kernels.py": "cases that are timed",
    "bench/limit_share.py": "cases that are timed",
    "bench/linalg.py": "cases that are timed",
    "bench/sweep.py": "cases that are timed",
    "frontends/python/adjoin/__init__.py": "functions of layers that PyTorch has at its top, too, with other arguments",
    "frontends/python/adjoin/_aten.py": "names and overloads by which programs for PyTorch know ops; no row of ours says them",
    "frontends/python/adjoin/distributed/tensor/_rules.py": "how an op is computed in parts where its kind does not say it",
    "frontends/python/adjoin/distributed/tensor/_views.py": "what a view does with each dimension; its row has code for that",
    "frontends/python/adjoin/jit/_aten_layers.py": "ops of PyTorch's files whose arguments stand in another order",
    "frontends/python/adjoin/jit/_pt2.py": "what programs of torch.export do with sizes: Python's operators",
    "frontends/python/adjoin/jit/_torchscript/_plain.py": "what TorchScript's ops do with numbers and lists: Python's operators",
    "frontends/python/adjoin/_masked_tensor.py": "what each op does with the mask; a row does not say it",
    "frontends/python/adjoin/nested/_calls.py": "what each op does with the ragged dimension; a row does not say it",
    "frontends/python/adjoin/nested/_segments.py": "ops that run sequence by sequence",
    "frontends/python/adjoin/nested/_strided.py": "ops whose result for a batch is that for its parts",
    "frontends/python/adjoin/nn/init.py": "the gain of each nonlinearity",
    "frontends/python/adjoin/onnx/_builder.py": "views through which the exporter follows a write",
    "frontends/python/adjoin/onnx/_ops_recurrent.py": "activations by the names that ONNX has for them",
    "frontends/python/adjoin/onnx/_rules.py": "which node of ONNX an op becomes; a row does not say it",
    "frontends/python/adjoin/onnx/_rules_shape.py": "which node of ONNX an op becomes",
    "frontends/python/stubs/known.py": "signatures of methods that are not ops",
}
TEXT = re.compile(r'"((?:\w+::)?[a-z]\w*(?:\.\w+)?)"')


def ops():
    """Every name by which a row is known, with its space and without."""
    files = [*pathlib.Path("core/ops").rglob("*.toml"), *pathlib.Path("plugins").glob("ops_*/*.toml")]
    rows = [row for file in files for row in tomllib.loads(file.read_text())["op"]]
    full = {row["def"].split("(")[0] for row in rows} | {name for row in rows for name in row.get("aliases", [])}
    return full, {name.split("::")[-1].split(".")[0] for name in full}


def in_core(files, known):
    seen = set()
    for path in files:
        if path.parts[0] != "core" or path.suffix not in {".cpp", ".hpp"} or path.is_relative_to("core/ops"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            for name in known.intersection(TEXT.findall(line)):
                seen.add(name)
                if name not in ALLOWED:
                    yield f"{path}:{number}: names the op {name}; a row can say it: {line.strip()[:80]}"
    for name in sorted(set(ALLOWED) - seen):
        yield f"tests/lint/names.py: {name} stands nowhere in the core any more"
    if len(ALLOWED) > MOST:
        yield f"tests/lint/names.py: {len(ALLOWED)} names are allowed, at most {MOST}"


def words(node):
    """The strings of a literal: of a list, a tuple, a set, the keys of a dict, or of "a b c".split()."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
        text = node.func.value
        return text.value.split() if isinstance(text, ast.Constant) and isinstance(text.value, str) else []
    found = node.elts if isinstance(node, (ast.List, ast.Tuple, ast.Set)) else getattr(node, "keys", [])
    return [e.value for e in found if isinstance(e, ast.Constant) and isinstance(e.value, str)]


def lists_of(text, known):
    """(line, how many names of ops) of each list."""
    tree = ast.parse(text)
    exports = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            exports.update(map(id, ast.walk(node.value)))
        count = 0 if id(node) in exports else len(known.intersection(words(node)))
        if count >= MANY:
            yield node.lineno, count


def in_python(files, known):
    seen = set()
    for path in files:
        if path.parts[0] not in ROOMS or path.suffix != ".py":
            continue
        for line, count in lists_of(path.read_text(encoding="utf-8"), known):
            seen.add(str(path))
            if str(path) not in LISTS:
                yield f"{path}:{line}: a list of {count} names of ops; a row can say it (a tag, an alias, the kind)"
    for path in sorted(set(LISTS) - seen):
        yield f"tests/lint/names.py: {path} has no list of ops any more"


def main():
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    files = [path for path in map(pathlib.Path, out.stdout.splitlines()) if path.is_file()]
    full, short = ops()
    found = [*in_core(files, full), *in_python(files, short)]
    if found:
        print("\n".join(found))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
