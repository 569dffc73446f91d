"""core/ops/opgen_derivative.py: the derivative of a row as C++: what is saved, the function, its entry in the table."""

import ast
import json
import re

from opgen_formula import TENSORS, Formula, repeated
from opgen_rows import CPP, READ, RESERVED, split_top


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
            row.fail('\'grad\' is a table of formulas, "cpp:f" or "none"', "grad =")

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
            self.row.fail('a derivative in C++ is "cpp:f" or "cpp:f(saved, ...)"', text)
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
            whole |= {
                n.id
                for n in ast.walk(f.tree)
                if isinstance(n, ast.Name) and not isinstance(parents.get(id(n)), ast.Attribute)
            }
        body, line = [], f'#line {{}} "{row.file}"'
        trees = [t for f in made for t in (f.tree.elts if isinstance(f.tree, ast.Tuple) else [f.tree])]
        temps = {}
        for f in made:
            f.whole, f.temps = whole, temps
        for i, (key, node) in enumerate(repeated(trees)):
            f = next(f for f in made if any(ast.dump(n) == key for n in ast.walk(f.tree)))
            users = [
                n
                for (names, _), g in zip(entries, made)
                if any(ast.dump(m) == key for m in ast.walk(g.tree))
                for n in names
            ]
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
            asked = (
                f"k.needs_any({self.flat(name)}, {end})"
                if row.param(name).type == "Tensor[]"
                else f"k.need({self.flat(name)})"
            )
            body.append(f'  if ({asked}) kit::no_derivative("{row.name}", "{name}");')
        used = set().union(*(f.used for f in made)) if made else set()
        props = set().union(*(f.props for f in made)) if made else set()
        body = self.read(used, props, entries) + body
        self.code = [
            f"static void {row.cname}_vjp(kit::Grad&{' k' * any('k.' in s for s in body)}) {{",
            *body,
            "#line @@",
            "}",
        ]

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
            self.more = (
                "[](void*, const aj_call* done, aj_saver* s) { return kit::guard(std::string_view(), [&] { "
                + " ".join(f"kit::save_device(s, done->args[{i}]);" for i in places)
                + " }); }"
            )
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
            return [
                f"  {{ const auto& all = {code}; uint32_t at = {start}; for (const Tensor& t : all) k.set(at++, t); }}"
            ]
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
        entry = (
            f"    {{sizeof(aj_vjp_def), {flags}, AJ_STR_LIT({quote(row.name)}), {save}, 0, {self.more}, "
            f"{self.function}, nullptr, nullptr, {{nullptr, 0}}}},"
        )
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
