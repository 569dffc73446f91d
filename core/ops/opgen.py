#!/usr/bin/env python3
"""core/ops/opgen.py: turns the rows of FAMILY.toml into C++ tables, derivatives, typed functions, stubs and a list.

opgen.py --out DIR [--only FAMILY|all] FAMILY.toml...     writes what changed
opgen.py --show NAME [FAMILY.toml...]                     prints what a row became

A family beneath plugins/ is that of an op pack: its table stands in the pack, and its section .adjoin.ops says what there
is before the pack is loaded. The typed functions, the stubs and the list have its ops like the core's.
"""

import argparse
import ast
import json
import pathlib
import sys

from opgen_derivative import Derivative, quote, reader
from opgen_formula import DTYPES, Formula, repeated
from opgen_rows import PY, RESERVED, RESULT, ROOT, RowError, load


def body_code(rows, row):
    text = row.table["body"]
    scope = {p.name: p.type for p in row.params}
    first = next((p.name for p in row.params if p.type == "Tensor"), "Tensor()")
    f = Formula(rows, row, text, scope, set(scope), first)
    parts = f.tree.elts if isinstance(f.tree, ast.Tuple) else [f.tree]
    lines = [f'#line {row.line_of(text)} "{row.file}"']
    for i, (key, node) in enumerate(repeated(parts)):
        code, kind = f.compile(node)
        if kind == "Tensor":
            lines.append(f"  const Tensor t{i} = {code};")
            f.temps[key] = (f"t{i}", kind)
    want = [r.type for r in row.results]
    if len(parts) != len(want) and not (len(parts) == 1 and len(want) != 1):
        f.fail(f"the body has {len(parts)} results, the schema {len(want)}")
    for i, node in enumerate(parts):
        code, kind = f.compile(node)
        if isinstance(kind, tuple):
            lines.append(f"  k.ret_all({code});")
        elif kind != want[i] and not (want[i] == "Scalar" and kind in ("int", "float", "bool")):
            f.fail(f"result {i} is {kind}, the schema says {want[i]}")
        else:
            lines.append(f"  k.ret({i}, {code});")
    read = [reader(p, i) for i, p in enumerate(row.params) if p.name in f.used]
    return [f"static void {row.cname}_body(kit::Body& k) {{", *read, *lines, "#line @@", "}"]


def place_lines(text, name):
    """Puts the generated file's own line numbers where a formula's #line ended."""
    lines = text.split("\n")
    return "\n".join(f'#line {i + 2} "{name}"' if s == "#line @@" else s for i, s in enumerate(lines))


def made(rows, row):
    """Body, derivative function and definitions of one row."""
    code, op_flags, body, self, entry = [], [], "nullptr", "nullptr", None
    text = row.table.get("body")
    if row.alias_of:
        code = [f"static constinit kit::Op {row.cname}_named({quote(row.alias_of.name)});"]
        body, self = "kit::call_named", f"&{row.cname}_named"
    elif text:
        if text.startswith("cpp:"):
            body = "adjoin::ops::" + text[4:]
        else:
            code += body_code(rows, row)
            body = f"kit::body<{row.cname}_body>"
    derivative = None
    if "grad" in row.table or "no-grad" in row.tags:
        derivative = Derivative(rows, row)
        defs, entry = derivative.definition()
        code += ([f"// {row.name} saves: {derivative.saves()}"] if derivative.code else []) + derivative.code + defs
    elif text:
        op_flags.append("AJ_OP_BODY_RECORDS")
    op_flags += ["AJ_OP_ALLOCATES"] * ("alloc" in row.tags)
    op_flags += ["AJ_OP_NO_IN_PLACE"] * ("no-in-place" in row.tags)
    infer = "adjoin::ops::" + row.table["infer"].removeprefix("cpp:") if "infer" in row.table else "nullptr"
    strings = [
        row.table["def"],
        row.table["doc"],
        row.table.get("kind", ""),
        " ".join(row.tags),
        json.dumps(row.table["test"]) if "test" in row.table else "",
    ]
    flags = " | ".join(f"uint32_t({f})" for f in op_flags) or "0"
    op = (
        f"    {{sizeof(aj_op_def), {flags},\n     "
        + ",\n     ".join(f"AJ_STR_LIT({quote(s)})" for s in strings)
        + f",\n     {infer}, {body}, {self}}},"
    )
    return code, op, entry, derivative, op_flags


def externs(family):
    """C++ functions that the rows name, by the way they are called."""
    found = {}
    for row in family:
        grad = row.table.get("grad")
        grads = [grad] if isinstance(grad, str) else [v for k, v in (grad or {}).items() if k != "save"]
        for text in [row.table.get("infer", ""), row.table.get("body", "")]:
            if text.startswith("cpp:"):
                found[text[4:]] = "aj_call*"
        for text in grads:
            if text.startswith("cpp:"):
                found[text[4:].split("(")[0]] = "aj_grad_call*"
        if isinstance(grad, dict) and "save" in grad:
            found[grad["save"].removeprefix("cpp:")] = "const aj_call*, aj_saver*"
    return [f"aj_status* {f}(void*, {args});" for f, args in sorted(found.items())]


def promise(row, flags, entry):
    """The op's line of a pack's section .adjoin.ops; core/op/waiting.hpp says what stands in it."""
    flag_words = {
        "AJ_OP_ALLOCATES": "allocates",
        "AJ_OP_NO_IN_PLACE": "no-in-place",
        "AJ_OP_BODY_RECORDS": "body-records",
    }
    words = [flag_words[f] for f in flags]
    words += [key for key in ("infer", "body") if key in row.table]
    if not row.table["doc"].isascii():
        row.fail("the doc of a pack's op is ASCII", "doc =")
    words += ["no-grad" if "AJ_VJP_NO_GRAD_RESULTS" in entry else "vjp"] if entry else []
    return (
        "\t".join([row.table["def"], row.table.get("kind", ""), " ".join(row.tags), " ".join(words), row.table["doc"]])
        + "\n"
    )


def promises_c(rows, name, family):
    lines = []
    for row in family:
        _, _, entry, _, flags = made(rows, row)
        lines.append("    " + quote(promise(row, flags, entry)))
    text = [
        f"/* {name}.ops.c: made by core/ops/opgen.py from {family[0].file}: what a pack's file says before it is loaded. */",
        "#include <adjoin/abi/plugin.h>",
        "AJ_PLUGIN_OPS(",
        *lines,
        ");",
    ]
    return "\n".join(text) + "\n"


def in_pack(family):
    return family[0].file.startswith("plugins/")


def family_cpp(rows, name, family):
    code, ops, vjps = [], [], []
    for row in family:
        more, op, entry, _, _ = made(rows, row)
        code += more + [""] * bool(more)
        ops.append(op)
        vjps += [entry] if entry else []
    source = family[0].file
    text = [
        f"// {name}.gen.cpp: made by core/ops/opgen.py from {source}; edit that.",
        "#include <limits>",
        "",
        "#include <adjoin/kit/grad.hpp>",
        "#include <adjoin/kit/named.hpp>",
        "#include <adjoin/kit/ops.hpp>",
        "",
        "namespace adjoin::ops {",
        *externs(family),
        "}  // namespace adjoin::ops",
        "",
        "namespace adjoin {",
        "namespace {",
        "",
        *code,
        "const aj_op_def op_defs[] = {",
        *ops,
        "};",
    ]
    if vjps:
        text += ["const aj_vjp_def vjp_defs[] = {", *vjps, "};"]
    text += [
        "}  // namespace",
        "",
        f"aj_status* register_{name}(aj_registrar* r) {{",
        "  for (const aj_op_def& d : op_defs)",
        "    if (aj_status* s = kit::env.op->def_op(r, &d)) return s;",
    ]
    if vjps:
        text += [
            "  for (const aj_vjp_def& d : vjp_defs)",
            "    if (aj_status* s = kit::env.autograd->def_vjp(r, &d)) return s;",
        ]
    return place_lines(
        "\n".join(text + ["  return nullptr;", "}", "", "}  // namespace adjoin", ""]), f"{name}.gen.cpp"
    )


def all_cpp(names):
    return "\n".join(
        [
            "// all.gen.cpp: made by core/ops/opgen.py: every family of built-in ops.",
            "#include <adjoin/abi/op.h>",
            "",
            "namespace adjoin {",
            *(f"aj_status* register_{n}(aj_registrar* r);" for n in names),
            "",
            "aj_status* register_builtin_ops(aj_registrar* r) {",
            *(f"  if (aj_status* s = register_{n}(r)) return s;" for n in names),
            "  return nullptr;",
            "}",
            "}  // namespace adjoin",
            "",
        ]
    )


def function(row):
    """The typed C++ function of a row, and its in-place form where one is derived."""

    def params(types):
        out = []
        for i, p in enumerate(row.params):
            later = all(q.default is not None for q in row.params[i:])
            out.append(
                f"{types(i, p)} {p.name}{'_' * (p.name in RESERVED)}"
                + (f" = {p.cpp_default}" if p.default is not None and later else "")
            )
        return ", ".join([*out, "kit::Here here = kit::Here::current()"])

    values = ", ".join(f"kit::value({p.name}{'_' * (p.name in RESERVED)})" for p in row.params)
    n = len(row.params)
    types = [RESULT[r.type.removesuffix("?")] for r in row.results]
    result = "void" if not types else types[0] if len(types) == 1 else f"std::tuple<{', '.join(types)}>"
    call = (
        "kit::run_void"
        if not types
        else "kit::run"
        if types == ["Tensor"]
        else f"kit::run_as<{result}>"
        if len(types) == 1
        else f"kit::run_many<{', '.join(types)}>"
    )
    tags = {"ints": "AJ_INTS", "floats": "AJ_FLOATS", "bools": "AJ_BOOLS", "Tensor[]": "AJ_TENSORS"}
    empty = [
        f"  if ({p.name}.is_none()) args[{i}].tag = {tags[p.type]};\n"
        for i, p in enumerate(row.params)
        if p.type in tags and not p.optional and p.default is None
    ]  # in f({}) an empty list is meant
    args = f"{'' if empty else 'const '}aj_value args[] = {{{values}}};" if n else "const aj_value* args = nullptr;"
    head = f"  static constinit kit::Op op({quote(row.name)});\n  {args}\n{''.join(empty)}"
    out = [
        f"inline {result} {row.ident}({params(lambda i, p: p.cpp_type)}) {{\n{head}  return {call}(op.get(), args, {n}, here);\n}}"
    ]
    if row.has_in_place_form:
        out.append(
            f"inline const Tensor& {row.ident}_("
            + params(lambda i, p: "const Tensor&" if i == 0 else p.cpp_type)
            + f") {{\n{head}  return kit::run_into(op.get(), args, {n}, {row.params[0].name}, here);\n}}"
        )
    return "\n".join(out)


def ops_hpp(all_rows):
    text = [
        "// adjoin/kit/ops.hpp: every built-in op as a C++ function; made by core/ops/opgen.py.",
        "#ifndef ADJOIN_KIT_OPS_HPP",
        "#define ADJOIN_KIT_OPS_HPP",
        "#include <adjoin/kit/call.hpp>",
    ]
    names = {r.name for r in all_rows}
    for space in sorted({"" if r.space in ("nn", "_") else r.space for r in all_rows}):
        text += ["", "namespace AJ_HIDDEN adjoin {" + (f"\nnamespace {space} {{" if space else ""), ""]
        for row in all_rows:
            here = "" if row.space in ("nn", "_") else row.space
            if here == space and row.ident not in RESERVED | DTYPES.keys() and "python-only" not in row.tags:
                made = function(row)
                if row.has_in_place_form and row.name + "_" in names:
                    made = made[: made.index("\ninline const Tensor&")]
                text += [f"// {row.table['doc']}", made]
        text.append("}  // namespace adjoin" if not space else f"}}  // namespace {space}\n}}  // namespace adjoin")
    return "\n".join(text + ["", "#endif", ""])


def ops_pyi(all_rows):
    groups = {}
    for row in all_rows:
        if not row.hidden and row.ident.isidentifier():
            groups.setdefault((row.space, row.ident), []).append(row)
    text = [
        '"""Ops of the registry; made by core/ops/opgen.py."""',
        "from collections.abc import Sequence",
        "from typing import overload",
        "",
        "from ._C import Generator, Tensor, device, dtype, layout, memory_format",
        "",
        "Number = bool | int | float | complex",
        "",
    ]
    for (space, ident), group in sorted(groups.items()):
        for row in group:
            params, star = [], False
            for p in row.params:
                if p.keyword and not star:
                    params.append("*")
                    star = True
                params.append(
                    f"{p.name}: {PY[p.type.removesuffix('?')]}{' | None' * p.optional}"
                    + (f" = {p.default}" if p.default is not None else "")
                )
            types = [PY[r.type.removesuffix("?")].replace("Sequence", "list") for r in row.results if not r.aux]
            result = "None" if not types else types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]"
            text += ["@overload"] * (len(group) > 1)
            text += [
                f"# {space}" * bool(space) or "# adjoin",
                f"def {ident}({', '.join(params)}) -> {result}:",
                f'    """{row.table["doc"]}"""',
            ]
    return "\n".join(text + [""])


def ops_json(all_rows):
    keep = ("doc", "kind", "grad", "body", "test", "tags")
    rows = [
        {"name": r.name, "schema": r.table["def"], "file": f"{r.file}:{r.line}"}
        | {k: r.table[k] for k in keep if k in r.table}
        for r in all_rows
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def show(rows, row):
    code, op, entry, derivative, _ = made(rows, row)
    print(f"// {row.file}:{row.line}\n// {row.table['def']}\n")
    if derivative:
        print(f"// saves: {derivative.saves()}")
        first = row.params[0].name if row.params else ""
        if row.in_place and (first, "") in derivative.save:
            print(f"// {row.ident}_: saves a copy of {first} when recording")
    elif "body" in row.table:
        print("// the body records itself")
    print("\n".join(s for s in code if s != "#line @@"), op, entry or "", function(row), sep="\n")


def write(path, text):
    """Only what changed, so that only what changed is compiled."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def row_files():
    """Every FAMILY.toml of the house."""
    return sorted([*pathlib.Path(__file__).parent.rglob("*.toml"), *ROOT.glob("plugins/ops_*/*.toml")])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--only", help="a family, or 'all' for what is made from every family")
    parser.add_argument("--show", metavar="NAME")
    parser.add_argument("files", nargs="*", default=row_files())
    args = parser.parse_args()
    all_rows = load(args.files)
    rows = {}
    for row in all_rows:
        rows.setdefault(row.space + "::" * bool(row.space) + row.ident, []).append(row)
    if args.show:
        found = [r for r in all_rows if args.show in (r.name, r.ident, r.space + "::" + r.ident)]
        if not found:
            raise RowError(f"no row is named '{args.show}'")
        return [show(rows, r) for r in found]
    families = {}
    for row in all_rows:
        families.setdefault(row.family, []).append(row)
    for name, family in families.items():
        if args.only in (None, name):
            write(args.out / f"{name}.gen.cpp", family_cpp(rows, name, family))
            if in_pack(family):
                write(args.out / f"{name}.ops.c", promises_c(rows, name, family))
    if args.only in (None, "all"):
        own = [name for name, family in families.items() if not in_pack(family)]
        write(args.out / "all.gen.cpp", all_cpp(own))
        write(args.out / "ops.hpp", ops_hpp(all_rows))
        write(args.out / "ops.pyi", ops_pyi(all_rows))
        write(args.out / "ops.json", ops_json(all_rows))


if __name__ == "__main__":
    try:
        main()
    except RowError as error:
        sys.exit(str(error))
