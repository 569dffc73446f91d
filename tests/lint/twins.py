"""tests/lint/twins.py: no two files of one program define the same type, template or inline function.

The linker keeps one of two such definitions and says nothing; the code that was written for the other then reads a
layout that is not there.
"""

import collections
import pathlib
import re
import subprocess
import sys

KIT = ("abi/kit", "frontends/cpp/include")
PROGRAMS = {  # what is linked together: every folder below these is a program of its own, or all of one is
    "core": False, "frontends/cli": False, "frontends/python/src": False, "frontends/cpp": False,
    "plugins": True, "extensions": True,
}  # fmt: skip
CODE = {".cpp", ".hpp", ".cuh", ".cu", ".h", ".c"}
NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n]){1,4}\'|^\s*#(?:[^\n\\]|\\.)*',
    re.S | re.M,
)
SPECIFIER = re.compile(
    r"\[\[.*?\]\]|\b(?:AJ_|HWY_)(?!NAMESPACE)[A-Z_]+\b(?:\([^()]*\))?|\balignas\([^()]*\)|__attribute__\s*\(\(.*?\)\)",
    re.S,
)
TYPE = re.compile(
    r"(?:typedef )?(?:struct|class|union|enum class|enum struct|enum) ([\w:]+(?: ?<.*>)?)(?: final)?(?: ?:.*)?$"
)
FUNCTION = re.compile(r"([\w:~]+|operator\W+) ?\((.*)\)")


def without_template(head):
    """The head without what stands in `template <...>` at its beginning."""
    while head.startswith("template"):
        depth = 0
        for at, sign in enumerate(head):
            depth += (sign == "<") - (sign == ">")
            if sign == ">" and depth == 0:
                head = head[at + 1 :].strip()
                break
        else:
            return ""
    return re.sub(r"^requires [^{]*?\b(?=struct|class|inline|auto|void)", "", head)


def definition(head):
    """What the text in front of a brace defines, if two of it would not be noticed; else None."""
    bare = without_template(head)
    found = TYPE.match(bare)
    if found and "(" not in found[1]:
        return found[1].replace(" ", "")
    merged = head.startswith("template") or re.search(r"\b(inline|constexpr|consteval)\b", bare)
    if merged and "=" not in bare.split("(")[0] and (found := FUNCTION.search(bare)) and "::" not in found[1]:
        parameters = re.sub(r"\w+(?=\s*(?:,|$|=))", "", found[2])  # their names do not matter
        return f"{found[1]}({re.sub(r' ', '', parameters)})"
    return None


def definitions(text):
    """(line, full name) of what a file defines in named namespaces."""
    text = NOISE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    open_names, start = [], 0  # a namespace's name, "" for an anonymous one, None for any other brace
    for found in re.finditer(r"[{};]", text):
        at = found.start()
        if found[0] == "{":
            head = " ".join(SPECIFIER.sub(" ", text[start:at]).split())
            space = re.match(r"(?:inline )?namespace\b ?([\w:]*)$", head)
            if space:
                name = space[1]
            elif head == "extern":
                name = "extern"
            else:
                name = None
                if None not in open_names and "" not in open_names and " static " not in f" {head} ":
                    what, named = definition(head), [n for n in open_names if n != "extern"]
                    if what and named:  # a file without a namespace is a part of those that include it
                        yield text.count("\n", 0, at) + 1, "::".join([*named, what])
            open_names.append(name)
        elif found[0] == "}" and open_names:
            open_names.pop()
        start = at + 1


def programs(files):
    """{program: its files}."""
    found = collections.defaultdict(list)
    for path in files:
        for root, each in PROGRAMS.items():
            place = pathlib.PurePath(root)
            if place in path.parents and "templates" not in path.parts and "examples" not in path.parts:
                parts = path.relative_to(place).parts
                found[f"{root}/{parts[0]}" if each and len(parts) > 1 else root].append(path)
    return found


def findings(files):
    kit = [path for path in files if str(path).startswith(KIT)]
    known = {}
    for path in files:
        known[path] = list(definitions(path.read_text(encoding="utf-8")))
    for program, parts in programs(files).items():
        places = collections.defaultdict(dict)
        for path in {*kit, *parts}:
            for line, name in known[path]:
                places[name].setdefault(path, line)
        for name, where in sorted(places.items()):
            if len(where) > 1 and any(path in parts for path in where):
                told = ", ".join(f"{path}:{line}" for path, line in sorted(where.items()))
                yield f"{program}: {name} is defined in several files: {told}"


def tried():
    """The check itself: what it must see, and what it must not."""
    seen = [name for _, name in definitions(
        'namespace a::b { struct S { struct In {}; }; namespace { struct No {}; } template <class T> void f(T x) {}\n'
        "enum class E : int { k }; static inline void g() {} void h() {} // struct Gone {}\n}"
    )]  # fmt: skip
    assert seen == ["a::b::S", "a::b::f(T)", "a::b::E"], seen


def main():
    tried()
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    files = [pathlib.Path(line) for line in out.stdout.splitlines()]
    found = list(findings([path for path in files if path.suffix in CODE and path.is_file()]))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
