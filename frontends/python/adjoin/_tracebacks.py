"""adjoin._tracebacks: an error that nobody caught is shown at the user's own line.

Frames of this package that stand below a user's line are left out of the traceback, and those of the standard library that it
called; a user's own functions in between (a forward(), a hook, a dataset) stay. ``ADJOIN_FULL_TRACEBACK=1`` leaves all as it is.
Nothing here runs before an error has ended the program, or a cell of a notebook.
"""

import builtins
import os
import sys

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_STARTS = tuple(_STANDARD + "multiprocessing" + os.sep + name for name in ("spawn.py", "forkserver.py"))
_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


def _is_ours(file):
    return file.startswith(_OURS)


def _is_pythons(file):
    return file.startswith("<frozen ") or file.startswith(_STANDARD) and not any(part in file for part in _INSTALLED)


def _first_of_a_child(files):
    """The place after the frames with which multiprocessing begins a process and runs the user's file, else 0."""
    own = [i for i, file in enumerate(files) if i and not _is_ours(file) and not _is_pythons(file)]
    return max((i + 1 for i, file in enumerate(files) if file.startswith(_STARTS) and own and i < own[0]), default=0)


def _own_lines(tb, keep):
    """The traceback without what lies around the user's lines; where none is the user's, all of it or nothing."""
    frames = []
    while tb is not None:
        frames.append(tb)
        tb = tb.tb_next
    files = [one.tb_frame.f_code.co_filename for one in frames]
    ours = [_is_ours(file) for file in files]
    users = [not our and not _is_pythons(file) for our, file in zip(ours, files, strict=True)]
    if True not in users:
        return frames[0] if keep else None
    begin = _first_of_a_child(files)
    frames, files, ours, users = frames[begin:], files[begin:], ours[begin:], users[begin:]
    inside = begin > 0 or True in ours[: users.index(True)]  # `adjoin run` stands above the program
    kept = []
    for one, our, user in zip(frames, ours, users, strict=True):
        inside = our or inside and not user
        if not inside:
            kept.append(one)
    for one, following in zip(kept, [*kept[1:], None], strict=True):
        one.tb_next = following
    return kept[0]


def shorten(error):
    """Leaves the frames of the package out of an exception's traceback, and of those it came from; adds what to do."""
    if isinstance(
        error, (ImportError, OSError)
    ):  # not at Ctrl-C: after an import Python forgets that it has to end by the signal
        from ._advice import advice

        told = advice(error)
        if told and told not in getattr(error, "__notes__", ()):
            error.add_note(told)
    if isinstance(error, AttributeError) and "; did you mean" in str(error):
        error.name = None  # Python would look for another
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if one.__traceback__ is not None:
            one.__traceback__ = _own_lines(one.__traceback__, keep=one is error)
        waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return error


def shown_as_text():
    """The exception that is being handled, as a program that it ended would show it: for another process."""
    import traceback

    error = sys.exc_info()[1]
    return "".join(traceback.format_exception(error if asked_for() else shorten(error)))


def asked_for():
    """Does the user want to see everything?"""
    return os.environ.get("ADJOIN_FULL_TRACEBACK", "0") not in ("", "0")


def install():
    """Python's own way to show an error, and a notebook's, after a shortening."""
    show = sys.excepthook

    def shown(kind, error, tb):
        if not asked_for():
            shorten(error)
            tb = error.__traceback__
        show(kind, error, tb)

    sys.excepthook = shown
    shell = getattr(builtins, "get_ipython", lambda: None)()
    if hasattr(shell, "set_custom_exc") and not getattr(shell, "custom_exceptions", ()):
        shell.set_custom_exc((Exception,), _in_cell)


def _in_cell(shell, kind, error, tb, tb_offset=None):
    if not asked_for():
        shorten(error)
        tb = error.__traceback__
    shell.showtraceback((kind, error, tb), tb_offset=tb_offset)
