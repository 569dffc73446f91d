"""adjoin.torch._source: programs from before ``async`` was a word of Python: ``x.cuda(async=True)`` is read as ``non_blocking=True``.

Only a text that does not parse is looked at, and it is changed only if it parses afterwards: a program that Python runs is
never touched.
"""

import importlib.machinery
import sys


def newer(source, name):
    """The text with the keyword of today, or None where that does not make it parse."""
    if b"async" not in source if isinstance(source, bytes) else "async" not in source:
        return None
    import io
    import tokenize  # late: hardly a program needs it

    try:
        text = (
            source.decode(tokenize.detect_encoding(io.BytesIO(source).readline)[0])
            if isinstance(source, bytes)
            else source
        )
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (SyntaxError, UnicodeDecodeError, tokenize.TokenError):
        return None
    lines, depth = list(io.StringIO(text)), 0
    found = []
    for token, following in zip(tokens, tokens[1:]):
        depth += {"(": 1, ")": -1}.get(token.string, 0) if token.type == tokenize.OP else 0
        if depth and token.string == "async" and following.string == "=":
            found.append(token.start)
    for row, column in reversed(found):
        line = lines[row - 1]
        lines[row - 1] = f"{line[:column]}non_blocking{line[column + len('async') :]}"
    made = "".join(lines)
    try:
        compile(made, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    return made if found else None


def compiled(source, name):
    """The code of a program; raises what Python raises where it does not parse."""
    try:
        return compile(source, name, "exec", dont_inherit=True)
    except SyntaxError:
        made = newer(source, name)
        if made is None:
            raise
    print(f"adjoin: {name}: async= is read as non_blocking=; async is a word of Python since 3.7", file=sys.stderr)
    return compile(made, name, "exec", dont_inherit=True)


def install():
    """From now on modules are read so, too."""
    loader = importlib.machinery.SourceFileLoader
    if getattr(loader.source_to_code, "of_adjoin", False):
        return
    before = loader.source_to_code

    def source_to_code(self, data, path, *args, **kwargs):
        try:
            return before(self, data, path, *args, **kwargs)
        except SyntaxError:
            return compiled(data, path)

    source_to_code.of_adjoin = True
    loader.source_to_code = source_to_code


def run(program, arguments):
    """Runs a file as Python does, in ``__main__``."""
    import os

    install()
    with open(program, "rb") as file:
        source = file.read()
    sys.argv = [program, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    names = vars(sys.modules["__main__"])
    for name in [name for name in names if not name.startswith("__")]:
        del names[name]
    names.update(__file__=program, __spec__=None, __doc__=None)
    exec(compiled(source, program), names)
