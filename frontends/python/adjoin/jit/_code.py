"""adjoin.jit._code: a captured program as Python: what `.code` shows. It runs, with names that `environment` gives."""

import json
import keyword
import re

TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|%[\w.]+|(?:values|floats|bools)(?=\[)|[A-Za-z_][\w:.]*|-?\d[\w.]*(?:[+-]\d+)?|.', re.DOTALL
)
HEAD = re.compile(r"fn (\S+?)\((.*)\) \{$")
SIZES = re.compile(r"%([\w.]+): \w+\[(.*?)\]")
KEPT = re.compile(r'  %([\w.]+) = (param|const) "((?:[^"\\]|\\.)*)" : ')
IF = re.compile(r"(?:(.+?) = )?if (%[\w.]+) \{$")
WHILE = re.compile(r"(?:(.+?) = )?while \((.*)\) \{$")
CALL = re.compile(r"(?:((?:%[\w.]+|[\[\], _])+) = )?([\w:.]+)\((.*)$", re.DOTALL)
LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "_mkldnn", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged")
FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
WORDS = {
    "true": "True",
    "false": "False",
    "nan": 'float("nan")',
    "inf": 'float("inf")',
    "values": "",
    "floats": "",
    "bools": "",
}


def environment(constants=None):
    """What the text of a program's code names."""
    import adjoin

    return {"torch": adjoin, "ops": adjoin.ops, "CONSTANTS": constants or {}}


def name_of(value):
    """The variable of a value %2 or %x.1."""
    name = re.sub(r"\W", "_", value.removeprefix("%"))
    name = f"_{name}" if name[0].isdigit() else name
    return name + "_" if keyword.iskeyword(name) or name in ("ops", "torch", "self", "CONSTANTS") else name


def shown(text):
    """An argument or a list of them."""
    text = re.sub(r"\bdtype\((\w+)\)", r"torch.\1", text)
    text = re.sub(r"\bdevice\((%[\w.]+)\)", lambda m: f"{name_of(m[1])}.device", text)
    text = re.sub(r'\bdevice\("', 'torch.device("', text)
    text = re.sub(r"\b(layout|format)\((\d+)\)", lambda m: numbered(m[1], int(m[2])), text)
    return "".join(name_of(t) if t[0] == "%" else WORDS.get(t, t) for t in TOKEN.findall(text))


def numbered(kind, number):
    """A layout or memory format by its number in the contract."""
    return "torch." + (LAYOUTS if kind == "layout" else FORMATS)[number]


def function(op):
    """What calls the op "nn::linear" or "max.dim"."""
    *spaces, name = op.split("::")
    home = ".".join(["ops", *spaces])
    return f"{home}.{name}" if name.isidentifier() and not keyword.iskeyword(name) else f'getattr({home}, "{name}")'


def closing(text):
    """Where the bracket that is open at the begin of text is closed."""
    depth, at = 1, 0
    for token in TOKEN.findall(text):
        depth += (token in "([{") - (token in ")]}")
        if not depth:
            return at
        at += len(token)
    raise ValueError(f"a bracket stays open: {text}")


def targets(names):
    """The left side of an assignment; "": there is none."""
    found = re.findall(r"%[\w.]+|_|\[|\]", names or "")
    parts = [n if n in "[]" else "_" if n == "_" else name_of(n) for n in found]
    if parts and parts[0] == "[" and parts.count("[") == 1 and parts[-1] == "]":
        parts = parts[1:-1]
        return "".join(p + ", " for p in parts).strip() + " = " if parts else ""
    text = ", ".join(parts).replace("[, ", "[").replace(", ]", "]")
    return text + " = " if text.strip("_, ") else ""


def value_of(form, results):
    """What the program gives, by the form of its results."""
    if isinstance(form, int):
        return results[form]
    ((kind, inner),) = form.items()
    if kind == "c":
        return repr(inner)
    if kind in "dm":
        pairs = inner.items() if kind == "d" else inner
        return "{" + ", ".join(f"{k!r}: {value_of(v, results)}" for k, v in pairs) + "}"
    if kind == "n":
        return f"{inner[0].rpartition('.')[2]}({', '.join(value_of(v, results) for v in inner[2])})"
    items = ", ".join(value_of(v, results) for v in inner)
    return f"[{items}]" if kind == "l" else f"({items}{',' if len(inner) == 1 else ''})"


class Writer:
    def __init__(self, text, module):
        self.lines, self.at, self.out, self.indent, self.quiet = text.splitlines(), 0, [], 1, False
        self.module, self.form = module, None

    def line(self, text):
        self.out.append("  " * self.indent + text)

    def whole(self):
        while not (head := HEAD.match(self.lines[self.at])):
            if self.lines[self.at].startswith("form "):
                self.form = json.loads(json.loads(self.lines[self.at].rpartition(" -> ")[2]))
            self.at += 1
        params = ["self"] if self.module else []
        for value, kind in re.findall(r"%([\w.]+): (draw|\w+\[.*?\])", head[2]):
            params.append(f"{name_of(value)}: {'torch.Generator' if kind == 'draw' else 'torch.Tensor'}")
        self.out.append(f"def {head[1]}({', '.join(params)}):")
        known = set()
        for value, sizes in SIZES.findall(head[2]):  # sizes that have a name
            for d, size in enumerate(sizes.split(", ")):
                if size.isidentifier() and size not in known:
                    known.add(size)
                    self.line(f"{size} = {name_of(value)}.shape[{d}]")
        self.at += 1
        while kept := KEPT.match(self.lines[self.at]):
            path = json.loads(f'"{kept[3]}"')
            inside = kept[2] == "param" and self.module
            self.line(f"{name_of(kept[1])} = {attribute('self', path) if inside else f'CONSTANTS[{path!r}]'}")
            self.at += 1
        results = self.block("return")
        given = [name_of(r) for r in results]
        if self.form is None:
            self.line(f"return {', '.join(given)}")
        else:
            self.line(f"return {value_of(self.form, given)}")
        return "\n".join(self.out) + "\n"

    def block(self, end):
        """Statements up to `end`; what stands behind that."""
        self.quiet = False
        while True:
            line = self.lines[self.at].strip()
            self.at += 1
            if line == end or line.startswith(end + " "):
                self.loud()
                return re.findall(r"%[\w.]+", line[len(end) :])
            self.statement(line)

    def loud(self):
        if self.quiet:
            self.indent -= 1
        self.quiet = False

    def assign(self, names, values):
        if names:
            self.line(f"{', '.join(names)} = {', '.join(values)}")

    def statement(self, line):
        if found := IF.match(line):
            return self.branch(found)
        if found := WHILE.match(line):
            return self.loop(found)
        names, op, rest = CALL.match(line).groups()
        end = closing(rest)
        args, rest = shown(rest[:end]), rest[end + 1 :]
        quiet = " no_grad" in rest
        if quiet and not self.quiet:
            self.loud()
            self.line("with torch.no_grad():")
            self.indent += 1
        elif not quiet:
            self.loud()
        self.quiet = quiet
        into = re.match(r" into ([%\w., ]+?)(?= :| no_grad| effect| @|$)", rest)
        self.line(self.call(names, op, args, into and into[1].split(", ")))

    def call(self, names, op, args, into):
        if op == "detach":
            return f"{targets(names)}{args}.detach()"
        wanted = [name_of(v) for v in into or () if v != "_"]
        if wanted and not op.partition(".")[0].endswith("_"):
            args += (", " if args else "") + f"out={wanted[0] if len(wanted) == 1 else '(' + ', '.join(wanted) + ')'}"
        return f"{targets(names)}{function(op)}({args})"

    def branch(self, found):
        names = re.findall(r"%[\w.]+", found[1] or "")
        self.loud()
        self.line(f"if {name_of(found[2])}:")
        for ends in ("} else {", "}"):
            self.indent += 1
            before = len(self.out)
            values = self.block("yield")
            self.assign([name_of(n) for n in names], [name_of(v) for v in values])
            if len(self.out) == before:
                self.line("pass")
            self.indent -= 1
            self.at += 1  # the line that ends the block
            if ends != "}":
                self.line("else:")
        self.quiet = False

    def loop(self, found):
        names = re.findall(r"%[\w.]+", found[1] or "")
        carried = re.findall(r"(%[\w.]+) = (%[\w.]+)", found[2])
        inside = [name_of(a) for a, _ in carried]
        self.loud()
        self.assign(inside, [name_of(b) for _, b in carried])
        self.line("while True:")
        self.indent += 1
        (test,) = self.block("yield")
        self.line(f"if not {name_of(test)}:")
        self.line("  break")
        self.at += 1  # } do {
        values = self.block("yield")
        self.assign(inside, [name_of(v) for v in values])
        self.indent -= 1
        self.at += 1
        self.assign([name_of(n) for n in names], inside)
        self.quiet = False


def attribute(base, path):
    """base.layers.0.weight as Python reads it."""
    for part in path.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f"getattr({base}, {part!r})"
    return base


def python_of(text, module=False):
    """The program as Python; module: its parameters are attributes of `self`."""
    return Writer(text, module).whole()
