"""adjoin.onnx._ir: a program's text as calls, for the exporter."""

import re
from dataclasses import dataclass, field

from .. import _aten, _C

_WORD = re.compile(
    r'\s+|#[^\n]*|(?P<string>"(?:[^"\\]|\\.)*")|(?P<value>%[\w.]+(?:::[\w.]+)*)|(?P<number>-?(?:inf\b|nan\b|\d[\d.]*(?:e[+-]?\d+)?))'
    r"|(?P<name>[A-Za-z_][\w.]*(?:::[\w.]+)*)|(?P<sign>->|[^\s])"
)
_WORDS = {"None": None, "true": True, "false": False}


@dataclass(frozen=True)
class Size:
    """A sum of products of symbols: ((symbols, factor), ...)."""

    terms: tuple

    def __str__(self):
        return " + ".join(
            "*".join([*symbols, *([str(by)] if by != 1 or not symbols else [])]) for symbols, by in self.terms
        )


@dataclass
class Value:
    """A tensor of the program."""

    name: str
    dtype: object = None
    shape: tuple = ()


@dataclass
class DeviceOf:
    """The device of a value."""

    value: object


@dataclass
class Call:
    """A call of an op; of `if`, `while` and `detach` with blocks."""

    op: str
    args: dict
    results: list
    into: list = field(default_factory=list)
    blocks: list = field(default_factory=list)
    line: int = 0


@dataclass
class Block:
    inputs: list
    calls: list
    results: list


class Reader:
    """The text of a program that the extension has printed."""

    def __init__(self, text):
        self.words = [(m.lastgroup, m.group(m.lastgroup)) for m in _WORD.finditer(text) if m.lastgroup]
        self.at, self.values, self.symbols, self.weights = 0, {}, [], []
        self.need("adjoin.program", "1")
        if self.peek()[1] == "scripted":
            raise NotImplementedError(
                "onnx.export: a scripted program decides by values of all sorts; jit.trace it, or the module, first"
            )
        if self.eat("sizes"):
            self.symbols.append(self.word())
            while self.eat(","):
                self.symbols.append(self.word())
        if self.eat("form"):
            self.at += 3
        self.need("fn")
        self.name = self.word()
        self.need("(")
        inputs = []
        while not self.eat(")"):
            if inputs:
                self.need(",")
            made = self.named()
            self.need(":")
            inputs.append(self.typed(made))
        self.need("{")
        self.body = self.block("return", inputs)
        self.need("}")

    def peek(self, ahead=0):
        return self.words[self.at + ahead] if self.at + ahead < len(self.words) else (None, None)

    def word(self):
        self.at += 1
        return self.words[self.at - 1][1]

    def eat(self, word):
        if self.peek()[1] != word or self.peek()[0] == "string":
            return False
        self.at += 1
        return True

    def need(self, *words):
        for word in words:
            if not self.eat(word):
                raise ValueError(f"onnx: the program's text has {self.peek()[1]!r} where {word!r} is wanted")

    def named(self):
        name = self.word()[1:]
        made = self.values[name] = Value(name)
        return made

    def use(self):
        return self.values[self.word()[1:]]

    def size(self):
        terms = []
        while True:
            symbols, by = [], 1
            while True:
                word = self.word()
                if word[0] in "-0123456789":
                    by *= int(word)
                else:
                    symbols.append(word)
                if not self.eat("*"):
                    break
            terms.append((tuple(symbols), by))
            if not self.eat("+"):
                return Size(tuple(terms))

    def typed(self, value):
        value.dtype = self.word()
        if value.dtype == "draw":
            return value
        self.need("[")
        shape = []
        while not self.eat("]"):
            if shape:
                self.need(",")
            shape.append(int(self.word()) if self.peek()[0] == "number" else self.size())
        value.shape = tuple(shape)
        return value

    def block(self, end, inputs):
        calls = []
        while not self.eat(end):
            self.statement(calls)
        results = []
        if self.peek()[0] == "value":
            results.append(self.use())
            while self.eat(","):
                results.append(self.use())
        return Block(inputs, calls, results)

    def result(self):
        if self.eat("_"):
            return None
        if not self.eat("["):
            return self.named()
        items = []
        while not self.eat("]"):
            if items:
                self.need(",")
            items.append(self.named())
        return items

    def statement(self, calls):
        results = []
        if self.peek()[0] == "value" or self.peek()[1] in ("[", "_"):
            results.append(self.result())
            while self.eat(","):
                results.append(self.result())
            self.need("=")
        kind = self.word()
        if kind in ("param", "const"):
            name = _unquoted(self.word())
            self.need(":")
            self.weights.append((kind, name, self.typed(results[0])))
            return
        made = Call(kind, {}, results)
        if kind == "if":
            made.args = {"decides": self.use()}
            self.need("{")
            made.blocks.append(self.block("yield", []))
            self.need("}", "else", "{")
            made.blocks.append(self.block("yield", []))
            self.need("}")
        elif kind == "while":
            self.loop(made)
        else:
            self.arguments(made)
        if self.eat("into"):
            made.into.append(None if self.eat("_") else self.use())
            while self.eat(","):
                made.into.append(None if self.eat("_") else self.use())
        if self.eat(":"):
            self.types(results)
        while self.eat("no_grad") or self.eat("draws") or self.eat("effect"):
            pass
        if self.eat("@"):
            made.line = int(self.word())
        calls.append(made)

    def types(self, results):
        first = True
        for result in results:
            if result is None:
                continue
            if not first:
                self.need(",")
            first = False
            if not isinstance(result, list):
                self.typed(result)
                continue
            self.need("[")
            for i, item in enumerate(result):
                if i:
                    self.need(",")
                self.typed(item)
            self.need("]")

    def loop(self, made):
        self.need("(")
        inside, given = [], []
        while not self.eat(")"):
            if inside:
                self.need(",")
            value = self.named()
            self.need("=")
            given.append(self.use())
            value.dtype, value.shape = given[-1].dtype, given[-1].shape
            inside.append(value)
        made.args = {"carried": given}
        self.need("{")
        made.blocks.append(self.block("yield", inside))
        self.need("}", "do", "{")
        made.blocks.append(self.block("yield", inside))
        self.need("}")

    def arguments(self, made):
        names = ["input"] if made.op == "detach" else [p[0] for p in signature(made.op)]
        self.need("(")
        next_ = 0
        while not self.eat(")"):
            if made.args:
                self.need(",")
            if self.peek()[0] == "name" and self.peek(1)[1] == "=":
                next_ = names.index(self.word())
                self.need("=")
            made.args[names[next_]] = self.argument()
            next_ += 1

    def argument(self):
        kind, word = self.peek()
        if kind == "value":
            return self.use()
        if word == "[":
            self.at += 1
            items = []
            while not self.eat("]"):
                if items:
                    self.need(",")
                items.append(self.argument())
            return items
        if kind == "string":
            return _unquoted(self.word())
        if kind == "number":
            self.at += 1
            return float(word) if any(c in word for c in ".enf") else int(word)
        if word in _WORDS:
            self.at += 1
            return _WORDS[word]
        if word == "values":
            self.at += 1
            return self.argument()
        if word in ("floats", "bools"):
            self.at += 1
            self.need("[", "]")
            return []
        if word in ("dtype", "device", "layout", "format", "complex") and self.peek(1)[1] == "(":
            self.at += 2
            if word == "complex":
                real = float(self.word())
                self.need(",")
                made = complex(real, float(self.word()))
            elif word == "device":
                made = DeviceOf(self.use()) if self.peek()[0] == "value" else _unquoted(self.word())
            else:
                made = self.word()
            self.need(")")
            return made
        return self.size()


def _unquoted(word):
    raw = re.sub(
        r"\\(x..|.)", lambda m: {"n": "\n"}.get(m[1], chr(int(m[1][1:], 16)) if m[1][0] == "x" else m[1]), word[1:-1]
    )
    return raw


def signature(op):
    """(name, default as text or None, for keywords alone, base, is it a list) of each parameter."""
    name = op
    if not _C.op_info(name):
        raise NotImplementedError(f"onnx: there is no row of the op '{op}'")
    rows = [r for r in _C.op_info(name) if r["name"] == name]
    if rows and rows[0]["name"] == name and "." in name.rpartition("::")[2]:
        return _of_row(rows[0]["schema"])
    return _of_row((rows or _C.op_info(name))[0]["schema"])


def _of_row(schema):
    inside = schema[schema.index("(") + 1 : schema.rindex(") ->")]
    found = []
    for part in _aten._parts(inside):
        if part == "*":
            continue
        words, _, default = part.partition("=")
        kind, _, name = words.strip().rpartition(" ")
        found.append((name, default if "=" in part else None, kind))
    return found


def default_of(text):
    """The value of a default that a schema says."""
    if text is None or text == "None":
        return None
    if text in ("True", "true", "False", "false"):
        return text in ("True", "true")
    if text[0] in "'\"":
        return text[1:-1]
    if text[0] == "[":
        return [default_of(t.strip()) for t in text[1:-1].split(",") if t.strip()]
    try:
        return float(text) if any(c in text for c in ".en") else int(text)
    except ValueError:
        return text
