#!/usr/bin/env python3
"""core/ops/opgen.py: turns the rows of FAMILY.toml into C++ tables, derivatives, typed functions, stubs and a list.

    opgen.py --out DIR [--only FAMILY|all] FAMILY.toml...     writes what changed
    opgen.py --show NAME [FAMILY.toml...]                     prints what a row became
"""

import argparse
import ast
import json
import pathlib
import re
import sys

from opgen_formula import DTYPES, TENSORS, Formula, repeated
from opgen_rows import CPP, PY, READ, RESERVED, RESULT, RowError, load, split_top


def quote(text):
    return json.dumps(text, ensure_ascii=False)


def reader(p, i, name=None):
    get = f"maybe<{CPP[p.type[:-1]]}>" if p.type.endswith("?") else READ.get(p.type, p.type.lower())
    return f"  const auto& {(name or p.name) + '_' * (p.name in RESERVED)} = k.{get}({i});"


class Derivative:
    """The derivative of a row: what it saves, its function, its aj_vjp_def."""

    def __init__(self, rows, row):
        self.rows, self.row, self.grad = rows, row, row.table.get("grad")
        self.save, self.more, self.flags, self.code, self.function = [], "nullptr", [], [], "nullptr"
        self.users = {}  # of a tensor that is saved: places of the arguments whose gradients need it
        if isinstance(self.grad, str) and self.grad.startswith("cpp:"):
            self.grad = {"*": self.grad}
        if self.grad == "none" or "no-grad" in row.tags:
            self.flags.append("AJ_VJP_NO_GRAD_RESULTS")
        elif isinstance(self.grad, dict):
            self.build(dict(self.grad))
        else:
            row.fail("'grad' is a table of formulas, \"cpp:f\" or \"none\"", "grad =")

    def build(self, grad):
        if "save" in grad:
            self.more = "adjoin::ops::" + grad.pop("save").removeprefix("cpp:")
        native = [v for v in grad.values() if v.startswith("cpp:")]
        if native:
            return self.native(native[0])
        row, entries = self.row, []
        for key, text in grad.items():
            names = [n.strip() for n in key.split(",")]
            for n in names:
                if not (p := next((p for p in row.params if p.name == n), None)) or not p.differentiable:
                    row.fail(f"'{n}' is no tensor argument that can have a gradient", f"{key}")
            entries.append((names, text))
        missing = [p.name for p in row.params if p.differentiable and not any(p.name in e[0] for e in entries)]
        self.function = f"kit::derivative<{row.cname}_vjp>"
        self.formulas(entries, missing)

    def native(self, text):
        m = re.match(r"^cpp:(\w+)(?:\((.*)\))?$", text)
        if not m:
            self.row.fail("a derivative in C++ is \"cpp:f\" or \"cpp:f(saved, ...)\"", text)
        self.function = "adjoin::ops::" + m[1]
        names = [p.name for p in self.row.params] if m[2] is None else split_top(m[2])
        places = {p.name: i for i, p in enumerate(self.row.params)}
        for name in names:
            name, _, user = name.partition(" for ")
            name, _, prop = name.partition(".")
            if user:
                self.users[name] = {places[user]}
            if not self.row.param(name) or prop not in ("", "shape", "dtype"):
                self.row.fail(f"cannot save '{name}{'.' * bool(prop)}{prop}'", text)
            self.save.append((name, prop))

    def scope(self):
        row = self.row
        names = {p.name: p.type for p in row.params}
        for r in row.results:
            names.setdefault(r.name, r.type)
        kept = [(i, r) for i, r in enumerate(row.results) if r.differentiable]
        self.grads = {"g": kept[0][0] if kept else 0} if len(kept) < 2 else {}
        if len(row.results) > 1:
            self.grads |= {f"g_{r.name}": i for i, r in kept}
        if len(kept) > 1:
            self.flags.append("AJ_VJP_MATERIALIZE")
        is_list = len(kept) == 1 and kept[0][1].type == "Tensor[]"
        names |= {n: "Tensor[]" if is_list else "Tensor" for n in self.grads} | {"need": "bools"}
        return names

    def formulas(self, entries, missing):
        row, scope = self.row, self.scope()
        made = [Formula(self.rows, row, text, scope, set(self.grads), next(iter(self.grads))) for _, text in entries]
        whole = set(self.grads)
        places = {p.name: i for i, p in enumerate(row.params)}
        for (names, _), f in zip(entries, made):
            for node in ast.walk(f.tree):
                if isinstance(node, ast.Name):
                    self.users.setdefault(node.id, set()).update(places[n] for n in names)
        for f in made:
            parents = {id(c): n for n in ast.walk(f.tree) for c in ast.iter_child_nodes(n)}
            whole |= {n.id for n in ast.walk(f.tree)
                      if isinstance(n, ast.Name) and not isinstance(parents.get(id(n)), ast.Attribute)}
        body, line = [], f'#line {{}} "{row.file}"'
        trees = [t for f in made for t in (f.tree.elts if isinstance(f.tree, ast.Tuple) else [f.tree])]
        temps = {}
        for f in made:
            f.whole, f.temps = whole, temps
        for i, (key, node) in enumerate(repeated(trees)):
            f = next(f for f in made if any(ast.dump(n) == key for n in ast.walk(f.tree)))
            users = [n for (names, _), g in zip(entries, made) if any(ast.dump(m) == key for m in ast.walk(g.tree))
                     for n in names]
            code, kind = f.compile(node)
            if kind != "Tensor":
                continue
            wanted = " || ".join(f"k.need({self.flat(n)})" for n in users)
            body += [line.format(row.line_of(f.text)), f"  Tensor t{i};", f"  if ({wanted}) t{i} = {code};"]
            temps[key] = (f"t{i}", kind)
        for (names, _), f in zip(entries, made):
            body += [line.format(row.line_of(f.text))] + self.assign(names, f)
        for name in missing:
            rest = [p.name for p in row.params if p.tensor]
            end = f"k.inputs() - {len(rest) - rest.index(name) - 1}"
            asked = f"k.needs_any({self.flat(name)}, {end})" if row.param(name).type == "Tensor[]" else \
                f"k.need({self.flat(name)})"
            body.append(f'  if ({asked}) kit::no_derivative("{row.name}", "{name}");')
        used = set().union(*(f.used for f in made)) if made else set()
        props = set().union(*(f.props for f in made)) if made else set()
        body = self.read(used, props, entries) + body
        self.code = [f"static void {row.cname}_vjp(kit::Grad&{' k' * any('k.' in s for s in body)}) {{", *body,
                     "#line @@", "}"]

    def flat(self, name):
        """Place of a tensor argument among the flattened inputs."""
        tensors = [p for p in self.row.params if p.tensor]
        at = next(i for i, p in enumerate(tensors) if p.name == name)
        lists = [i for i, p in enumerate(tensors) if p.type == "Tensor[]"]
        if not lists or at <= lists[0]:
            return str(at)
        if len(lists) > 1:
            self.row.fail("several lists of tensors: the derivative must be in C++", "grad =")
        return f"k.inputs() - {len(tensors) - at}"

    def read(self, used, props, entries):
        out, row = [], self.row
        for p in row.params + row.results:
            if p.name in used:
                self.save.append((p.name, ""))
                out.append(reader(p, len(self.save) - 1))
            for prop, get in (("shape", "ints"), ("dtype", "dtype")):
                if (p.name, prop) in props:
                    self.save.append((p.name, prop))
                    out.append(f"  const auto& {p.name}_{prop} = k.{get}({len(self.save) - 1});")
        devices = [p for p in row.params if (p.name, "device") in props]
        for i, p in enumerate(devices):
            out.append(f"  const auto& {p.name}_device = k.device({len(self.save) + i});")
        if devices:
            places = [row.params.index(p) for p in devices]
            self.more = ("[](void*, const aj_call* done, aj_saver* s) { return kit::guard(std::string_view(), [&] { "
                         + " ".join(f"kit::save_device(s, done->args[{i}]);" for i in places) + " }); }")
        for name, i in self.grads.items():
            if name in used:
                lists = row.results[i].type == "Tensor[]"
                out.append(f"  const auto& {name} = {'k.grads()' if lists else f'k.grad({i})'};")
        if "need" in used:
            names = next((n for n, text in entries if re.search(r"\bneed\b", text)), [])
            flags = ", ".join(f"k.need({self.flat(n)})" for n in names)
            out.append(f"  const bool needs[] = {{{flags}}};\n  const Bools need(needs, {len(names)});")
        return out

    def assign(self, names, f):
        if isinstance(f.tree, ast.Tuple) and len(f.tree.elts) == len(names):
            return [s for n, node in zip(names, f.tree.elts) for s in self.assign_one(n, f, node)]
        if len(names) == 1:
            return self.assign_one(names[0], f, f.tree)
        code, kind = f.compile(f.tree)
        if not isinstance(kind, tuple) or len(kind) < len(names):
            f.fail(f"the formula of {len(names)} gradients is no tuple of {len(names)}")
        sets = " ".join(f"k.set({self.flat(n)}, std::get<{i}>(all));" for i, n in enumerate(names))
        wanted = " || ".join(f"k.need({self.flat(n)})" for n in names)
        return [f"  if ({wanted}) {{ auto all = {code}; {sets} }}"]

    def assign_one(self, name, f, node):
        code, kind = f.compile(node)
        if kind == "none":
            return []
        if self.row.param(name).type == "Tensor[]":
            if kind not in ("Tensor[]", "list"):
                f.fail(f"the gradient of a list is a list, not {kind}")
            start = self.flat(name)
            return [f"  {{ const auto& all = {code}; uint32_t at = {start}; for (const Tensor& t : all) k.set(at++, t); }}"]
        if kind not in TENSORS:
            f.fail(f"the gradient of '{name}' must be a tensor, not {kind}")
        code = f"kit::as_tensor({code}, {f.like})" if kind == "Operand" else code
        return [f"  if (k.need({self.flat(name)})) k.set({self.flat(name)}, {code});"]

    def definition(self):
        row, out = self.row, []
        saves = []
        for name, prop in self.save:
            at = next((i for i, p in enumerate(row.params) if p.name == name), None)
            what = {"": "ARG", "shape": "SHAPE", "dtype": "DTYPE"}[prop]
            if at is None:
                at = [r.name for r in row.results].index(name)
                what = {"": "RESULT", "shape": "RESULT_SHAPE"}.get(prop) or row.fail(f"cannot save {name}.{prop}")
            saves.append(f"{{AJ_SAVE_{what}, {at}, {0 if prop else self.only_for(name)}u}}")
        if saves:
            out.append(f"static const aj_save {row.cname}_save[] = {{{', '.join(saves)}}};")
        flags = " | ".join(f"uint32_t({f})" for f in self.flags) or "0"
        save = f"{row.cname}_save, {len(saves)}" if saves else "nullptr, 0"
        entry = (f"    {{sizeof(aj_vjp_def), {flags}, AJ_STR_LIT({quote(row.name)}), {save}, 0, {self.more}, "
                 f"{self.function}, nullptr, nullptr, {{nullptr, 0}}}},")
        return out, entry

    def only_for(self, name):
        """A tensor is kept only while a gradient that reads it is wanted."""
        p, users = self.row.param(name), self.users.get(name, set())
        every = {i for i, q in enumerate(self.row.params) if q.differentiable}
        if not users or users == every or not (p.tensor or p in self.row.results):
            return 0
        return sum(1 << i for i in users)

    def saves(self):
        return ", ".join(n + "." * bool(p) + p for n, p in self.save) or "nothing"


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
    code, op_flags, body, entry = [], [], "nullptr", None
    text = row.table.get("body")
    if text:
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
    op_flags += ["AJ_OP_ALLOCATES"] * bool({"alloc", "allocates"} & set(row.tags))
    op_flags += ["AJ_OP_NO_IN_PLACE"] * ("no-in-place" in row.tags)
    infer = "adjoin::ops::" + row.table["infer"].removeprefix("cpp:") if "infer" in row.table else "nullptr"
    strings = [row.table["def"], row.table["doc"], row.table.get("kind", ""), " ".join(row.tags),
               json.dumps(row.table["test"]) if "test" in row.table else ""]
    flags = " | ".join(f"uint32_t({f})" for f in op_flags) or "0"
    op = (f"    {{sizeof(aj_op_def), {flags},\n     "
          + ",\n     ".join(f"AJ_STR_LIT({quote(s)})" for s in strings) + f",\n     {infer}, {body}, nullptr}},")
    return code, op, entry, derivative


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


def family_cpp(rows, name, family):
    code, ops, vjps = [], [], []
    for row in family:
        more, op, entry, _ = made(rows, row)
        code += more + [""] * bool(more)
        ops.append(op)
        vjps += [entry] if entry else []
    source = family[0].file
    text = [f"// {name}.gen.cpp: made by core/ops/opgen.py from {source}; edit that.", "#include <limits>", "",
            "#include <adjoin/kit/grad.hpp>", "#include <adjoin/kit/ops.hpp>", "", "namespace adjoin::ops {",
            *externs(family), "}  // namespace adjoin::ops", "", "namespace adjoin {", "namespace {", "", *code,
            "const aj_op_def op_defs[] = {", *ops, "};"]
    if vjps:
        text += ["const aj_vjp_def vjp_defs[] = {", *vjps, "};"]
    text += ["}  // namespace", "", f"aj_status* register_{name}(aj_registrar* r) {{",
             "  for (const aj_op_def& d : op_defs)", "    if (aj_status* s = kit::env.op->def_op(r, &d)) return s;"]
    if vjps:
        text += ["  for (const aj_vjp_def& d : vjp_defs)",
                 "    if (aj_status* s = kit::env.autograd->def_vjp(r, &d)) return s;"]
    return place_lines("\n".join(text + ["  return nullptr;", "}", "", "}  // namespace adjoin", ""]), f"{name}.gen.cpp")


def all_cpp(names):
    return "\n".join(
        ["// all.gen.cpp: made by core/ops/opgen.py: every family of built-in ops.", "#include <adjoin/abi/op.h>", "",
         "namespace adjoin {", *(f"aj_status* register_{n}(aj_registrar* r);" for n in names), "",
         "aj_status* register_builtin_ops(aj_registrar* r) {",
         *(f"  if (aj_status* s = register_{n}(r)) return s;" for n in names), "  return nullptr;", "}",
         "}  // namespace adjoin", ""])


def function(row):
    """The typed C++ function of a row, and its in-place form where one is derived."""
    def params(types):
        out = []
        for i, p in enumerate(row.params):
            later = all(q.default is not None for q in row.params[i:])
            out.append(f"{types(i, p)} {p.name}{'_' * (p.name in RESERVED)}"
                       + (f" = {p.cpp_default}" if p.default is not None and later else ""))
        return ", ".join([*out, "kit::Here here = kit::Here::current()"])

    values = ", ".join(f"kit::value({p.name}{'_' * (p.name in RESERVED)})" for p in row.params)
    n = len(row.params)
    types = [RESULT[r.type.removesuffix("?")] for r in row.results]
    result = "void" if not types else types[0] if len(types) == 1 else f"std::tuple<{', '.join(types)}>"
    call = "kit::run_void" if not types else "kit::run" if types == ["Tensor"] else f"kit::run_as<{result}>" if len(types) == 1 else \
        f"kit::run_many<{', '.join(types)}>"
    tags = {"ints": "AJ_INTS", "floats": "AJ_FLOATS", "bools": "AJ_BOOLS", "Tensor[]": "AJ_TENSORS"}
    empty = [f"  if ({p.name}.is_none()) args[{i}].tag = {tags[p.type]};\n" for i, p in enumerate(row.params)
             if p.type in tags and not p.optional and p.default is None]  # in f({}) an empty list is meant
    args = f"{'' if empty else 'const '}aj_value args[] = {{{values}}};" if n else "const aj_value* args = nullptr;"
    head = f"  static constinit kit::Op op({quote(row.name)});\n  {args}\n{''.join(empty)}"
    out = [f"inline {result} {row.ident}({params(lambda i, p: p.cpp_type)}) {{\n{head}  return {call}(op.get(), args, {n}, here);\n}}"]
    if in_place(row):
        out.append(f"inline const Tensor& {row.ident}_("
                   + params(lambda i, p: "const Tensor&" if i == 0 else p.cpp_type)
                   + f") {{\n{head}  return kit::run_into(op.get(), args, {n}, {row.params[0].name}, here);\n}}")
    return "\n".join(out)


def in_place(row):
    pointwise = {"unary", "unary_float", "binary", "binary_float", "pointwise", "scan"}
    return (row.table.get("kind") in pointwise and row.params and row.params[0].type in TENSORS
            and not row.ident.endswith("_") and not any(p.written for p in row.params)
            and "no-in-place" not in row.tags)


def ops_hpp(all_rows):
    text = ["// adjoin/kit/ops.hpp: every built-in op as a C++ function; made by core/ops/opgen.py.",
            "#ifndef ADJOIN_KIT_OPS_HPP", "#define ADJOIN_KIT_OPS_HPP", "#include <adjoin/kit/call.hpp>"]
    names = {r.name for r in all_rows}
    for space in sorted({"" if r.space in ("nn", "_") else r.space for r in all_rows}):
        text += ["", "namespace AJ_HIDDEN adjoin {" + (f"\nnamespace {space} {{" if space else ""), ""]
        for row in all_rows:
            here = "" if row.space in ("nn", "_") else row.space
            if here == space and row.ident not in RESERVED | DTYPES.keys() and "python-only" not in row.tags:
                made = function(row)
                if in_place(row) and row.name + "_" in names:
                    made = made[: made.index("\ninline const Tensor&")]
                text += [f"// {row.table['doc']}", made]
        text.append("}  // namespace adjoin" if not space else f"}}  // namespace {space}\n}}  // namespace adjoin")
    return "\n".join(text + ["", "#endif", ""])


def ops_pyi(all_rows):
    groups = {}
    for row in all_rows:
        if not row.hidden and row.ident.isidentifier():
            groups.setdefault((row.space, row.ident), []).append(row)
    text = ['"""Ops of the registry; made by core/ops/opgen.py."""', "from collections.abc import Sequence",
            "from typing import overload", "",
            "from ._C import Generator, Tensor, device, dtype, layout, memory_format", "",
            "Number = bool | int | float | complex", ""]
    for (space, ident), group in sorted(groups.items()):
        for row in group:
            params, star = [], False
            for p in row.params:
                if p.keyword and not star:
                    params.append("*")
                    star = True
                params.append(f"{p.name}: {PY[p.type.removesuffix('?')]}{' | None' * p.optional}"
                              + (f" = {p.default}" if p.default is not None else ""))
            types = [PY[r.type.removesuffix("?")].replace("Sequence", "list") for r in row.results if not r.aux]
            result = "None" if not types else types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]"
            text += ["@overload"] * (len(group) > 1)
            text += [f"# {space}" * bool(space) or "# adjoin",
                     f"def {ident}({', '.join(params)}) -> {result}:", f'    """{row.table["doc"]}"""']
    return "\n".join(text + [""])


def ops_json(all_rows):
    keep = ("doc", "kind", "grad", "body", "test", "tags")
    rows = [{"name": r.name, "schema": r.table["def"], "file": f"{r.file}:{r.line}"}
            | {k: r.table[k] for k in keep if k in r.table} for r in all_rows]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def show(rows, row):
    code, op, entry, derivative = made(rows, row)
    print(f"// {row.file}:{row.line}\n// {row.table['def']}\n")
    if derivative:
        print(f"// saves: {derivative.saves()}")
        first = row.params[0].name if row.params else ""
        if in_place(row) and (first, "") in derivative.save:
            print(f"// {row.ident}_: saves a copy of {first} when recording")
    elif "body" in row.table:
        print("// the body records itself")
    print("\n".join(s for s in code if s != "#line @@"), op, entry or "", function(row), sep="\n")


def write(path, text):
    """Only what changed, so that only what changed is compiled."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--only", help="a family, or 'all' for what is made from every family")
    parser.add_argument("--show", metavar="NAME")
    parser.add_argument("files", nargs="*", default=sorted(pathlib.Path(__file__).parent.rglob("*.toml")))
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
    if args.only in (None, "all"):
        write(args.out / "all.gen.cpp", all_cpp(families))
        write(args.out / "ops.hpp", ops_hpp(all_rows))
        write(args.out / "ops.pyi", ops_pyi(all_rows))
        write(args.out / "ops.json", ops_json(all_rows))


if __name__ == "__main__":
    try:
        main()
    except RowError as error:
        sys.exit(str(error))
