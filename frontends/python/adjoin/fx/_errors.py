"""adjoin.fx._errors: where in the user's program a trace can't go on."""

import linecache
import os
import sys

import adjoin

__all__ = ["users_line", "users_stack"]

_PACKAGE = os.path.dirname(os.path.abspath(adjoin.__file__)) + os.sep


def _frames():
    frame = sys._getframe(1)
    while frame is not None:
        if not os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
            yield frame
        frame = frame.f_back


def users_line():
    """'file:line, in function: `text`' of the innermost frame that is not Adjoin's."""
    frame = next(_frames(), None)
    if frame is None:
        return "a place that is not known"
    file, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(file, line, frame.f_globals).strip()
    return f"{file}:{line}, in {frame.f_code.co_name}" + (f": `{text}`" if text else "")


def users_stack():
    """The frames that are not Adjoin's, outermost first, as a traceback shows them."""
    lines = []
    for frame in _frames():
        file, line = frame.f_code.co_filename, frame.f_lineno
        text = linecache.getline(file, line, frame.f_globals).strip()
        lines.append(f'  File "{file}", line {line}, in {frame.f_code.co_name}\n    {text}\n')
    return "".join(reversed(lines))
