"""adjoin.jit._script.source: a function's text as a tree, with the types that comments say: ``# type: (Tensor, int) -> Tensor``."""

import ast
import functools
import inspect
import re
import textwrap

from ..._names import is_ours

_SIGNATURE = re.compile(r"#\s*type:\s*(\(.*)")


@functools.lru_cache(maxsize=512)
def source_of(function):
    """(tree, first line); comments behind assignments have become annotations."""
    source, first = inspect.getsourcelines(function)
    text = textwrap.dedent("".join(source))
    try:
        tree = ast.parse(text, type_comments=True)
    except SyntaxError:
        tree = ast.parse(text)
    tree = tree.body[0]
    _Annotated().visit(tree)
    return tree, first


class _Annotated(ast.NodeTransformer):
    def visit_Assign(self, node):
        if (
            not node.type_comment
            or len(node.targets) != 1
            or not isinstance(node.targets[0], (ast.Name, ast.Attribute))
        ):
            return node
        try:
            said = ast.parse(node.type_comment, mode="eval").body
        except SyntaxError:
            return node
        made = ast.AnnAssign(node.targets[0], said, node.value, int(isinstance(node.targets[0], ast.Name)))
        for n in ast.walk(said):
            ast.copy_location(n, node)
        return ast.copy_location(made, node)


@functools.lru_cache(maxsize=512)
def comments_of(function):
    """{name: text} of the annotations that comments say; "return" is the result."""
    if not hasattr(function, "__code__") or function.__module__ is None or is_ours(function.__module__):
        return {}
    try:
        source, _ = inspect.getsourcelines(function)
        if not any("type:" in line for line in source):
            return {}
        tree, _ = source_of(function)
    except (OSError, TypeError, SyntaxError, IndentationError):
        return {}
    params = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]
    found = {p.arg: p.type_comment for p in params if p.type_comment}
    text = tree.type_comment
    if text is None:  # one that stands lower, among other comments
        lines = [m[1] for line in source[: tree.body[0].lineno + 1] if (m := _SIGNATURE.match(line.strip()))]
        text = lines[0] if len(lines) == 1 else None
    if text is not None:
        try:
            said = ast.parse(text, mode="func_type")
        except SyntaxError:
            return found
        kinds = [ast.unparse(t) for t in said.argtypes]
        if kinds == ["..."]:
            kinds = []
        elif len(kinds) == len(params) - 1:
            params = params[1:]  # without self
        found.update(zip((p.arg for p in params), kinds, strict=False))
        if found and "return" not in found:
            found["return"] = ast.unparse(said.returns)
    return found
