"""tests/abi/contract.py: the contract as data: what the headers declare, and where a compiler puts it.

The headers keep to a small part of C (structs, enums, tables of functions), so a reader of some pages
does, and the types that it reads are compared as text: a change that no offset shows is seen too.
"""

import re
import subprocess
import tempfile
from pathlib import Path

# What is published: these, and DLPack's, which they include. All other headers are experimental and may change.
COUNTED = ("base", "core", "op", "autograd", "device", "plugin", "service", "capi")
PUBLISHED = sorted(f"{name}.h" for name in (*COUNTED, "dlpack"))

TOKEN = re.compile(r"[A-Za-z_]\w*|\d\w*|<<|[^\s\w]")
SPECIFIERS = {"const", "struct", "unsigned", "signed", "long", "short", "int", "char", "double", "float", "void"}


class Reader:
    """Declarations from preprocessed text."""

    def __init__(self, text):
        self.tokens = TOKEN.findall(re.sub(r"__attribute__\(\(.*?\)\)\)?", "", text))
        self.at = 0

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def next(self, wanted=None):
        token = self.peek()
        if wanted and token != wanted:
            raise ValueError(f"wanted {wanted!r}, found {' '.join(self.tokens[self.at : self.at + 12])!r}")
        self.at += 1
        return token

    def accept(self, token):
        if self.peek() == token:
            self.at += 1
            return True
        return False

    def base(self):
        words = []
        while re.match(r"[A-Za-z_]", self.peek()):
            named = [w for w in words if w not in ("const", "struct")]
            if named and self.peek() not in SPECIFIERS:
                break
            words.append(self.next())
        return " ".join(w for w in words if w != "struct")

    def declarator(self, base):
        """One declarator after the base type: (name, type as text); names of parameters are dropped."""
        kind = base
        while self.peek() in ("*", "const"):
            kind += "*" if self.next() == "*" else " const"
        if self.peek() == "(" and self.peek(1) == "*":
            self.next(), self.next()
            name = self.next() if self.peek() != ")" else ""
            self.next(")")
            return name, f"{kind} (*)({self.parameters()})"
        name = self.next() if re.match(r"[A-Za-z_]", self.peek()) else ""
        if self.peek() == "(":
            return name, f"{kind} ({self.parameters()})"
        while self.accept("["):
            size = ""
            while self.peek() != "]":
                size += self.next()
            self.next("]")
            kind += f"[{size}]"
        return name, kind

    def parameters(self):
        self.next("(")
        kinds = []
        while not self.accept(")"):
            kinds.append(self.declarator(self.base())[1])
            self.accept(",")
        return ", ".join(kinds)

    def fields(self):
        """(name, type) pairs between braces."""
        self.next("{")
        pairs = []
        while not self.accept("}"):
            if self.peek() == "union":
                self.next()
                members = "; ".join(f"{kind} {name}" for name, kind in self.fields())
                pairs.append((self.next(), f"union {{{members}}}"))
                self.next(";")
                continue
            base = self.base()
            pairs.append(self.declarator(base))
            while self.accept(","):
                pairs.append(self.declarator(base))
            self.next(";")
        return pairs

    def enumerators(self):
        self.next("{")
        names = []
        while not self.accept("}"):
            names.append(self.next())
            while self.peek() not in (",", "}"):
                self.next()
            self.accept(",")
        return names

    def pass_over_body(self):
        while self.next() != "{":
            pass
        depth = 1
        while depth:
            depth += {"{": 1, "}": -1}.get(self.next(), 0)

    def declarations(self):
        """structs {name: [(field, type)]}, enums [[name]], types {name: type}, functions {name: type}."""
        structs, enums, types, functions = {}, [], {}, {}
        while self.at < len(self.tokens):
            if self.peek() == "static":  # an inline function of a header: no symbol, nothing laid out
                self.pass_over_body()
                continue
            if self.accept("enum"):
                enums.append(self.enumerators())
            elif self.peek() == "struct" and self.peek(2) == ";":
                self.at += 2
            elif self.peek() == "typedef" and self.peek(1) == "enum":
                self.at += 2
                enums.append(self.enumerators())
                types[self.next()] = "enum"
            elif self.peek() == "typedef" and self.peek(1) == "struct" and "{" in (self.peek(2), self.peek(3)):
                self.at += 2
                tag = self.next() if self.peek() != "{" else ""
                fields = self.fields()
                structs[self.next(tag)] = fields
            elif self.accept("typedef"):
                name, kind = self.declarator(self.base())
                types[name] = kind
            else:
                name, kind = self.declarator(self.base())
                functions[name] = kind
            self.next(";")
        return structs, enums, types, functions


def kinds(headers):
    """FROZEN, EXTENSIBLE or OPAQUE, as the comment behind each struct's brace says; DLPack's are frozen."""
    found = {}
    for header in headers:
        for name, said in re.findall(r"typedef struct (\w+) \{.*?(FROZEN|EXTENSIBLE|OPAQUE)", header.read_text()):
            found[name] = said
    return found


def run_gcc(*words, text=None):
    return subprocess.run(["gcc", *map(str, words)], input=text, capture_output=True, text=True, check=True).stdout


def macros(include, text):
    """Our macros as they are written; guards, and names that end in an underscore, are nobody's business."""
    found = {}
    for line in run_gcc("-E", "-dM", "-x", "c", *include, "-", text=text).splitlines():
        name, value = re.match(r"#define (\w+(?:\([^)]*\))?) ?(.*)", line).groups()
        word = name.split("(")[0]
        if re.match(r"(AJ|ADJOIN|DLPACK)_", word) and not re.search(r"_$|_H$", word):
            found[name] = " ".join(value.split())
    return dict(sorted(found.items()))


def measure(folder, include, text, structs, enums):
    """(sizes, offsets and sizes of fields, numbers), asked of the compiler by a program."""
    lines = []
    for name, fields in structs.items():
        lines.append(f'printf("%zu\\n", sizeof({name}));')
        lines += [f'printf("%zu %zu\\n", offsetof({name}, {f}), sizeof((({name}*)0)->{f}));' for f, _ in fields]
    lines += [f'printf("%lld\\n", (long long){name});' for group in enums for name in group]
    source = f"{text}\n#include <stdio.h>\nint main(void) {{ {' '.join(lines)} return 0; }}"
    program = folder / "measure"
    run_gcc("-w", "-x", "c", *include, "-", "-o", program, text=source)
    return iter(subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines())


def read_contract(folder):
    """Everything that the published headers in the folder promise, as plain data."""
    headers = [Path(folder) / name for name in PUBLISHED]
    text = "".join(f'#include "{h.name}"\n' for h in headers)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        for name in ("stddef.h", "stdint.h"):
            (scratch / name).touch()
        here = f"-I{folder}"
        bare = run_gcc("-E", "-P", "-nostdinc", f"-I{scratch}", "-x", "c", here, "-", text=text)
        structs, enums, types, functions = Reader(bare).declarations()
        said = kinds(headers)
        (scratch / "stddef.h").unlink(), (scratch / "stdint.h").unlink()
        answers = measure(scratch, [here], text, structs, enums)
        measured = {}
        for name, fields in structs.items():
            size = int(next(answers))
            rows = [[field, kind, *map(int, next(answers).split())] for field, kind in fields]
            measured[name] = {"kind": said.get(name, "FROZEN"), "size": size, "fields": rows}
        numbers = [{name: int(next(answers)) for name in group} for group in enums]
        found = macros([here], text)
    return {
        "headers": [h.name for h in headers],
        "structs": measured,
        "enums": numbers,
        "types": types,
        "functions": functions,
        "macros": found,
    }
