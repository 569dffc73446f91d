"""adjoin.jit._torchscript._code: TorchScript's code, parsed: classes and functions by their full names."""

import ast

DEEPEST = 150  # brackets in brackets, blocks in blocks
_KEPT = (
    ast.Module, ast.ClassDef, ast.FunctionDef, ast.arguments, ast.arg, ast.Assign, ast.AnnAssign, ast.Expr, ast.If, ast.While,
    ast.For, ast.Return, ast.Pass, ast.Break, ast.Continue, ast.With, ast.withitem, ast.Assert, ast.Constant, ast.Name,
    ast.Attribute, ast.Call, ast.keyword, ast.Subscript, ast.Slice, ast.List, ast.Tuple, ast.Dict, ast.UnaryOp, ast.USub,
    ast.Not, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.IfExp, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.Is, ast.IsNot,
    ast.Load, ast.Store, ast.Del, ast.Delete,
)  # fmt: skip


class ScriptError(RuntimeError):
    """Code that is no TorchScript, or more than is served."""


def parse(name, text):
    """The tree of a file's code. It is looked at, never compiled."""
    depth = deepest = 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        deepest = max(deepest, depth)
    longest = max((len(line) - len(line.lstrip(" ")) for line in text.split("\n")), default=0)
    if deepest > DEEPEST or longest > 2 * DEEPEST:
        raise ScriptError(f"jit.load: the code of {name} lies deeper than {DEEPEST}")
    try:
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if not isinstance(node, _KEPT):
                raise ScriptError(
                    f"jit.load: the code of {name} has a {type(node).__name__}, which TorchScript does not write"
                )
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ScriptError(f"jit.load: the code of {name} cannot be read: {error}") from None
    return tree


class Class:
    """A class of the code: its methods, and which attributes are parameters and buffers."""

    def __init__(self, name, node):
        self.name, self.methods = name, {}
        self.base = node.bases[0].id if node.bases and isinstance(node.bases[0], ast.Name) else ""
        self.parameters, self.buffers, self.fields, self.constants, self.members = set(), set(), [], {}, {}
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                self.methods[item.name] = item
            elif (
                isinstance(item, ast.Assign)
                and isinstance(item.targets[0], ast.Name)
                and isinstance(item.value, ast.List)
            ):
                names = {e.value for e in item.value.elts if isinstance(e, ast.Constant)}
                if item.targets[0].id == "__parameters__":
                    self.parameters = names
                elif item.targets[0].id == "__buffers__":
                    self.buffers = names
            elif isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
                self.members[item.targets[0].id] = item.value
            elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                self.fields.append(item.target.id)
                if item.value is not None:
                    self.constants[item.target.id] = item.value


class Code:
    """All code of an archive. A file is parsed when something of it is asked for."""

    def __init__(self, sources):
        self.sources, self.parsed, self.constants = sources, {}, []

    def unit(self, module):
        if module not in self.parsed:
            if module not in self.sources:
                raise ScriptError(f"jit.load: the archive has no code of {module}")
            found = {}
            for node in parse(module, self.sources[module]).body:
                if isinstance(node, ast.ClassDef):
                    found[node.name] = Class(f"{module}.{node.name}", node)
                elif isinstance(node, ast.FunctionDef):
                    found[node.name] = node
            self.parsed[module] = found
        return self.parsed[module]

    def find(self, name):
        """The class or function of a full name."""
        module, _, short = name.rpartition(".")
        found = self.unit(module).get(short)
        if found is None:
            raise ScriptError(f"jit.load: the code of {module} has no {short}")
        return found

    def check(self):
        """All of it is parsed."""
        for module in self.sources:
            self.unit(module)
