"""tests/lint/measure.py [TREE]: the house in numbers: arrows between folders, largest files, long functions, formatting,
and what is read of a call. TREE is another checkout of Adjoin: run it before and after a change that moves things.

It fails only where a function of CALL or GENERAL is gone: then the list is to say where the call goes now.
"""

import ast
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

from house import CODE, FILES, FLOORS, INCLUDE, tracked

LONG = 60  # lines of a function
ROOMS = ("abi", "core", "plugins", "frontends", "extensions")
OPENS = re.compile(r"^(?!namespace|extern|struct|class|enum|union)[A-Za-z_~\[][^;=#]*\(")  # a function at the left edge

# What runs between Python and the kernel in a dense float32 `x + y` of 8x8, from the operator down, and back to the object:
# FILE: FUNCTION ... Accessors and predicates of a line or two are left out, and what every kernel is written in: the kit's
# guard, Highway's loads and stores.
CALL = """
frontends/python/src/number.cpp: binary quick_operand run
core/call/call.cpp: call Look keys_now Running serve run_pointwise begins_few put
core/call/frame.hpp: Frame::Frame begin add_tensor alike invoke
core/tensor/tensor.cpp: tensor_new_like block_new frontend_word set_frontend_word
core/memory/small.hpp: small_alloc
plugins/cpu/pointwise/binary.cpp: unscaled
plugins/vector/rows.cpp: run_rows
plugins/vector/rows-inl.hpp: with run
frontends/python/src/tensor.cpp: wrap new_object attach
"""
# The general path, from run_pointwise to the kernel: broadcast, promotion, casts, given tensors, threads.
GENERAL = """
core/call/pointwise.cpp: run_planned find_operands look find_dtypes promoted result_dtype choose_kernel add_inputs add_number
core/call/pointwise.cpp: walks_flat flat_output walked_output broadcast fit_target refuse_overlap kept_order inner_of
core/call/pointwise.cpp: may_write
core/call/plan.hpp: Plan::finish_dense
core/call/plan.cpp: Plan::walk Plan::sort_dims Plan::coalesce Plan::finish run_plan run_part plan_estimate_ns
core/call/output.cpp: pick_kernel prepare_output run_kernel
"""


def length_of(text, name):
    """Lines of the first definition of a function or struct, its template line with it; None: there is none."""
    for found in re.finditer(rf"(?<![\w:.>]){re.escape(name)}(?=\(|[ ]*\{{)", text):
        line = text.rfind("\n", 0, found.start()) + 1
        if re.search(r"\b(return|if|for|while)\b|=|//", text[line : found.start()]):
            continue
        at, depth = found.end(), 0
        while text[at] != "{" or depth:  # its arguments, and what a constructor sets
            depth += (text[at] in "({") - (text[at] in ")}")
            if text[at] == ";" or depth < 0:
                break
            at += 1
        if text[at] != "{" or depth:
            continue
        while True:
            depth += (text[at] == "{") - (text[at] == "}")
            at += 1
            if depth == 0:
                break
        above = text[text.rfind("\n", 0, line - 1) + 1 : line] if line else ""
        return text.count("\n", line, at) + 1 + above.lstrip().startswith("template")
    return None


def path_of_call(listed):
    """(lines, functions, files) of such a list."""
    lines, names, files = 0, 0, set()
    for row in listed.strip().split("\n"):
        path, functions = row.split(": ")
        text = pathlib.Path(path).read_text(encoding="utf-8") if os.path.exists(path) else ""
        for name in functions.split():
            n = length_of(text, name)
            if n is None:
                raise SystemExit(
                    f"{path}: no function `{name}`, which tests/lint/measure.py names on the path of a call"
                )
            lines, names = lines + n, names + 1
        files.add(path)
    return lines, names, len(files)


def folders_of(files, room):
    """Arrows between the folders of a room, as {(from, to): how many includes}."""
    found = collections.Counter()
    for path in files:
        if not path.is_relative_to(room) or path.suffix not in CODE:
            continue
        for line in path.read_text(encoding="utf-8").split("\n"):
            include = INCLUDE.match(line)
            for target in (path.parent / include.group(1), pathlib.Path(include.group(1))) if include else ():
                target = pathlib.Path(os.path.normpath(target))
                if target.is_file() and target.is_relative_to(room) and target.parent != path.parent:
                    found[str(path.parent.relative_to(room)), str(target.parent.relative_to(room))] += 1
                    break
    return found


def circles(arrows):
    """The folders from which a way along the arrows leads back."""
    reach = collections.defaultdict(set)
    for a, b in arrows:
        reach[a].add(b)
    while True:
        more = {a: to | set().union(*(reach.get(b, set()) for b in to)) for a, to in reach.items()}
        if more == reach:
            return {a for a, to in reach.items() if a in to}
        reach = more


def lengths(path, text):
    """(lines, name) of each function: in C++ of those that begin at the left edge, which is nearly all."""
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                yield node.end_lineno - node.lineno + 1, node.name
        return
    start = depth = 0
    name = ""
    for number, line in enumerate(text.split("\n"), 1):
        if start == 0 and OPENS.match(line):
            start, depth, name = number, 0, line.split("(")[0].split(" ")[-1]
        if start and depth is not None:  # its head, which may have several lines
            depth += line.count("(") - line.count(")")
            if depth == 0 and not line.rstrip().endswith("{"):
                start = 0  # a declaration, or a body in the same line
            depth = None if depth == 0 else depth
        elif start and line.startswith("}"):
            yield number - start + 1, name
            start = 0


def unformatted(files):
    tool = shutil.which("clang-format")
    if not tool:
        return "clang-format is missing"
    wrong = collections.Counter()
    for path in files:
        done = subprocess.run([tool, "--dry-run", "-Werror", str(path)], capture_output=True)
        wrong["/".join(path.parts[:2])] += done.returncode != 0
    return f"{wrong.total()} of {len(files)}: " + ", ".join(f"{k} {n}" for k, n in wrong.most_common(8) if n)


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else ".")
    files = [p for p in tracked() if p.parts[0] in ROOMS]
    for room in FLOORS:
        arrows = folders_of(files, room)
        order = {folder: place for place, folder in enumerate(FLOORS[room])}
        up = [k for k in arrows if order.get(k[1], -1) > order.get(k[0], len(order))]
        both = sum(1 for a, b in arrows if a < b and (b, a) in arrows)
        print(
            f"{room}: {len(arrows)} arrows between folders, {sum(arrows.values())} includes; "
            f"{both} pairs include each other, {len(up)} arrows run up, {len(circles(arrows))} folders stand in a circle"
        )
        sizes = collections.Counter(str(p.parent) for p in files if p.is_relative_to(room))
        print(
            f"  files of its largest folders (at most {FILES}): "
            + ", ".join(f"{k} {n}" for k, n in sizes.most_common(3))
        )
    texts = {p: p.read_text(encoding="utf-8") for p in files if p.suffix in CODE}
    rows = sorted(((t.count("\n"), str(p)) for p, t in texts.items()), reverse=True)
    print("largest files: " + ", ".join(f"{p} {n}" for n, p in rows[:3]))
    found = [(n, f"{name} ({p})") for p, t in texts.items() if p.suffix != ".toml" for n, name in lengths(p, t)]
    long = sorted((f for f in found if f[0] > LONG), reverse=True)
    print(
        f"functions over {LONG} lines: {len(long)} of {len(found)}: " + ", ".join(f"{name} {n}" for n, name in long[:6])
    )
    for what, listed in (("a dense add, Python to kernel and back", CALL), ("the general path beside it", GENERAL)):
        print("{}: {} lines, {} functions, {} files".format(what, *path_of_call(listed)))
    print("not as .clang-format says: " + unformatted([p for p in texts if p.suffix in {".c", ".h", ".cpp", ".hpp"}]))


if __name__ == "__main__":
    main()
