"""adjoin.jit._script.code: a scripted program as Python: what `.code` shows of it. It runs, with names that `environment` gives."""

import ast
import json
import keyword
import re

from .._code import FORMATS, LAYOUTS
from .expressions import BINARY, COMPARE

TOKEN = re.compile(
    r'\s*("(?:[^"\\]|\\.)*"|%[\w.]+|fn:[\w.]+|&\d+|\*\*|[$.]?[A-Za-z_][\w.]*(?:::[\w.]+)*|\.\.\.|-?(?:\d[\w.]*(?:[+-]\d+)?|inf|nan)|.)',
    re.DOTALL,
)


def sign(kind):
    """How Python writes an operator of its syntax tree: ast.Add as +."""
    a, b = ast.Name("a"), ast.Name("b")
    made = ast.Compare(a, [kind()], [b]) if issubclass(kind, ast.cmpop) else ast.BinOp(a, kind(), b)
    return ast.unparse(made).split(" ", 1)[1].removesuffix(" b")


OPERATORS = {name: sign(kind) for kind, name in {**BINARY, **COMPARE}.items()}
SIGNS = {"neg": "-", "pos": "+", "invert": "~", "not": "not "}
CALLED = {"to_list": "list", "to_tuple": "tuple", "to_dict": "dict", "power": "pow", "device": "torch.device",
          "autocast_enabled": "torch.is_autocast_enabled", "autocast_dtype": "torch.get_autocast_dtype"}  # fmt: skip
OURS = ("tensor", "is_tensor", "is_grad_enabled", "get_default_dtype", "numel", "finfo", "iinfo")
KINDS = {"Tensor": "torch.Tensor", "dtype": "torch.dtype", "device": "torch.device"}


def environment():
    """What the text of a program's code names."""
    import collections
    import math
    import typing

    import adjoin

    return {"torch": adjoin, "ops": adjoin.ops, "math": math, "namedtuple": collections.namedtuple, **vars(typing)}


def name_of(value):
    name = re.sub(r"\W", "_", value.removeprefix("%"))
    name = f"_{name}" if name[0].isdigit() else name
    return name + "_" if keyword.iskeyword(name) else name


def op(name):
    *spaces, last = name.split("::")
    home = ".".join(["ops", *spaces])
    return f"{home}.{last}" if last.isidentifier() else f'getattr({home}, "{last}")'


class Tokens:
    def __init__(self, text):
        self.list, self.at = TOKEN.findall(text), 0

    def peek(self):
        return self.list[self.at] if self.at < len(self.list) else ""

    def next(self):
        self.at += 1
        return self.list[self.at - 1]

    def take(self, wanted):
        if self.peek() == wanted:
            self.at += 1
            return True
        return False


class Literals:
    """Operands of calls as Python writes them."""

    def __init__(self, named):
        self.named = named  # fields of named tuples, by type

    def items(self, tokens, end):
        found = []
        while not tokens.take(end):
            found.append(self.operand(tokens))
            tokens.take(",")
        return found

    def operand(self, tokens):
        for spread in ("**", "*"):
            if tokens.take(spread):
                return spread + self.literal(tokens)
        if tokens.at + 1 < len(tokens.list) and tokens.list[tokens.at + 1] == "=":
            name = tokens.next()
            tokens.next()
            return f"{name}={self.literal(tokens)}"
        return self.literal(tokens)

    def literal(self, tokens):
        t = tokens.next()
        if t[0] == "%":
            return name_of(t)
        if t in ("true", "false"):
            return t.capitalize()
        if t.lstrip("-") in ("inf", "nan"):
            return f'float("{t}")'
        if t == "[":
            return f"[{', '.join(self.items(tokens, ']'))}]"
        if t == "{":
            pairs = []
            while not tokens.take("}"):
                key = self.literal(tokens)
                tokens.take(":")
                pairs.append(f"{key}: {self.literal(tokens)}")
                tokens.take(",")
            return "{" + ", ".join(pairs) + "}"
        if t == "tuple" and tokens.peek() != "(":
            kind, fields = json.loads(tokens.next()).removeprefix("enum "), []
            while not tokens.take("("):
                fields.append(json.loads(tokens.next()))
            self.named[kind] = fields
            return f"{kind}({', '.join(self.items(tokens, ')'))})"
        if tokens.peek() == "(" and t[0] not in '"&':
            tokens.next()
            return self.made(t, self.items(tokens, ")"))
        return t if t[0] != "&" else f"objects[{t[1:]}]"

    def made(self, kind, given):
        if kind == "tuple":
            return f"({', '.join(given)}{',' if len(given) == 1 else ''})"
        if kind == "dtype":
            return f"torch.{given[0]}"
        if kind == "device":
            return f"torch.device({given[0]})"
        if kind in ("layout", "format"):
            return "torch." + (LAYOUTS if kind == "layout" else FORMATS)[int(given[0])]
        if kind in ("op", "function", "type", "builtin"):
            name = json.loads(given[0])
            return op(name) if kind == "op" else builtin(name) if kind == "builtin" else name
        return f"{kind}({', '.join(given)})"  # range, slice, complex


def builtin(name):
    return CALLED.get(name) or (f"torch.{name}" if name in OURS else name)


class Function:
    """The statements of a function."""

    def __init__(self, lines, at, literals, indent):
        self.lines, self.at, self.literals, self.indent, self.out = lines, at, literals, indent, []

    def line(self, text):
        self.out.append("  " * self.indent + text)

    def block(self):
        """Statements up to the bracket that closes; what stands behind it."""
        self.indent += 1
        before = len(self.out)
        while not (line := self.lines[self.at].strip()).startswith("}"):
            self.at += 1
            self.statement(re.sub(r" @\d+$", "", line))
        self.at += 1
        if len(self.out) == before:
            self.line("pass")
        self.indent -= 1
        return re.sub(r" @\d+$", "", line[1:].strip())

    def shown(self, text):
        return self.literals.literal(Tokens(text))

    def statement(self, line):
        if line == "while {":
            return self.loop()
        if line.endswith(" {"):
            word, _, rest = line[:-2].partition(" ")
            if word == "if":
                self.line(f"if {self.shown(rest)}:")
                if self.block() == "else {":
                    self.line("else:")
                    self.block()
            elif word == "for":
                names, _, values = rest.rpartition(" in ")
                self.line(f"for {self.names(names)} in {self.shown(values)}:")
                self.block()
            elif word == "autocast":
                tokens, told = Tokens(rest), []
                for name in ("", "enabled=", "dtype=", "cache_enabled="):
                    told.append(name + self.literals.literal(tokens))
                    tokens.take(",")
                self.line(f"with torch.autocast({', '.join(told)}):")
                self.block()
            else:
                self.line(f"with torch.set_grad_enabled({self.shown(rest)}):")
                self.block()
        elif line in ("break", "continue", "return"):
            self.line(line)
        elif line.startswith("return "):
            self.line(f"return {self.shown(line[7:])}")
        else:
            self.call(*re.match(r"(?:([*%\w., ]+?) = )?((?:fn:)?[$.]?[\w:.]+)\((.*)$", line, re.DOTALL).groups())

    def loop(self):
        self.line("while True:")
        test = re.match(r"(.*) do \{$", self.block())[1]
        if self.out[-1].strip() == "pass":
            self.out.pop()
        self.indent += 1
        self.line(f"if not {self.shown(test)}:")
        self.line("  break")
        self.indent -= 1
        self.block()

    def names(self, text):
        found = [("*" if n.startswith("*") else "") + name_of(n.lstrip("*")) for n in text.strip(", ").split(", ")]
        return ", ".join(found) + ("," if text.strip().endswith(",") else "")

    def call(self, names, function, rest):
        given = self.literals.items(Tokens(rest), ")")
        told = self.of(function, given, names)
        if told is not None:
            self.line(f"{self.names(names)} = {told}" if names else told)

    def of(self, function, given, names):
        if function.startswith("."):
            return f"{given[0]}{function}({', '.join(given[1:])})"
        if function.startswith("fn:"):
            return f"{function[3:]}({', '.join(given)})"
        if not function.startswith("$"):
            return f"{op(function)}({', '.join(given)})"
        name = function[1:]
        if name in OPERATORS:
            return f"{given[0]} {OPERATORS[name]} {given[1]}"
        if name in SIGNS:
            return SIGNS[name] + given[0]
        if name[0] == "i" and name[1:] in OPERATORS and name not in ("is", "in"):
            self.line(f"{given[0]} {OPERATORS[name[1:]]}= {given[1]}")
            return given[0] if names and self.names(names) != given[0] else None
        special = getattr(self, f"of_{name}", None)
        return special(given) if special else f"{builtin(name)}({', '.join(given)})"

    def of_copy(self, given):
        return given[0]

    of_identity = of_copy

    def of_list(self, given):
        return f"[{', '.join(given)}]"

    def of_tuple(self, given):
        return self.literals.made("tuple", given)

    def of_dict(self, given):
        return "{" + ", ".join(f"{k}: {v}" for k, v in zip(given[::2], given[1::2], strict=True)) + "}"

    def of_append(self, given):
        return f"{given[0]}.append({given[1]})"

    def of_entry(self, given):
        return f"{given[0]}[{given[1]}] = {given[2]}"

    of_setitem = of_entry

    def of_getitem(self, given):
        return f"{given[0]}[{given[1]}]"

    def of_delitem(self, given):
        return f"del {given[0]}[{given[1]}]"

    def of_getattr(self, given):
        return (
            f"{given[0]}.{json.loads(given[1])}"
            if given[1][0] == '"' and len(given) == 2
            else f"getattr({', '.join(given)})"
        )

    def of_setattr(self, given):
        return f"{given[0]}.{json.loads(given[1])} = {given[2]}"

    def of_call(self, given):
        return f"{given[0]}({', '.join(given[1:])})"

    def of_raise(self, given):
        return f"raise {json.loads(given[0])}({', '.join(given[1:])})"

    def of_format(self, given):
        value, conversion, spec = given
        if conversion != '""':
            value = f"{ {'r': 'repr', 's': 'str', 'a': 'ascii'}[json.loads(conversion)] }({value})"
        return f"format({value}, {spec})"

    def of_join(self, given):
        return '"".join([' + ", ".join(given) + "])"

    def of_named(self, given):
        kind = json.loads(given[0])
        self.literals.named[kind] = json.loads("[" + given[1].strip("(),") + "]")
        return f"{kind}({', '.join(given[2:])})"

    def of_isinstance(self, given):
        kinds = ", ".join(KINDS.get(k, k.partition("[")[0]) for k in re.findall(r'"([^"]*)"', given[1]))
        kinds = (
            kinds.replace("List", "list")
            .replace("Dict", "dict")
            .replace("Tuple", "tuple")
            .replace("None", "type(None)")
        )
        return f"isinstance({given[0]}, ({kinds},))"

    def of_type_name(self, given):
        return f"type({given[0]}).__name__"

    def of_weight(self, given):
        return f"WEIGHTS[{given[0]}]"

    def of_find_op(self, given):
        return f"getattr(ops, {given[0]})"

    def of_op(self, given):
        return f"{given[0]}({', '.join(given[1:])})"


class Code:
    def __init__(self, text):
        self.lines, self.named, self.classes, self.functions = text.splitlines(), {}, [], {}
        self.literals = Literals(self.named)

    def whole(self):
        at = 0
        while at < len(self.lines):
            line = self.lines[at]
            at += 1
            if line.startswith("class "):
                at = self.klass(line, at)
            elif line.startswith("fn "):
                at = self.function(line, at)
        out = []
        for name, bases, methods, properties, constants in self.classes:
            out.append(f"class {name}{bases}:")
            out += [f"  {k} = {v}" for k, v in constants]
            known = {function for _, function in methods}
            of_bases = [f for f in self.functions if f.startswith(name + ".") and f not in known]
            for method, function in [*methods, *((f.rpartition(".")[2], f) for f in of_bases)]:
                if function not in self.functions:
                    continue
                head, body = self.functions.pop(function)
                if method in properties:
                    out.append("  @property")
                out.append(f"  def {method}{head}")
                out += ["  " + line for line in body]
            if out[-1].startswith("class "):
                out.append("  pass")
        for name, (head, body) in self.functions.items():
            out += [f"def {name_of(name)}{head}", *body]
        kinds = [f'{kind} = namedtuple("{kind}", {fields!r})' for kind, fields in self.named.items()]
        return "\n".join([*kinds, *out]) + "\n"

    def klass(self, line, at):
        name = line.split()[1]
        methods, properties, constants = [], [], []
        while self.lines[at] != "}":
            word, _, rest = self.lines[at].strip().partition(" ")
            key, _, value = rest.partition(" = ")
            if word == "method":
                methods.append((json.loads(key), value))
            elif word == "property":
                properties.append(json.loads(rest))
            else:
                constants.append((json.loads(key), self.literals.literal(Tokens(value))))
            at += 1
        bases = (
            "(torch.nn.Module)"
            if " module" in line
            else "(list)"
            if " list" in line
            else "(dict)"
            if " dict" in line
            else ""
        )
        self.classes.append((name, bases, methods, properties, constants))
        return at + 1

    def function(self, line, at):
        name, params, kind = re.match(r'fn ([^(]+)\((.*)\)(?: -> "(.*)")? \{$', line).groups()
        head = f"({self.params(params)}){' -> ' + self.kind(kind) if kind else ''}:"
        f = Function(self.lines, at, self.literals, 0)
        f.block()
        self.functions[name] = head, f.out
        return f.at

    def params(self, text):
        tokens, found, only = Tokens(text), [], False
        while tokens.peek():
            if tokens.take("only"):
                if not only and not any(p.startswith("*") for p in found):
                    found.append("*")
                only = True
            star = "**" if tokens.take("**") else "*" if tokens.take("*") else ""
            told = star + name_of(tokens.next())
            if tokens.take(":"):
                told += f": {self.kind(json.loads(tokens.next()))}"
            if tokens.take("="):
                told += f" = {self.literals.literal(tokens)}"
            found.append(told)
            tokens.take(",")
        return ", ".join(found)

    def kind(self, text):
        """An annotation; classes of the program are named, wherever they stand."""
        return re.sub(r"\b(Tensor|dtype|device)\b", r"torch.\1", text)


def python_of(text):
    return Code(text).whole()
