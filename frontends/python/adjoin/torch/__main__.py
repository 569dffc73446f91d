"""python -m adjoin.torch, and `adjoin run`: runs a Python program whose ``import torch`` is Adjoin."""

import argparse
import os
import pathlib
import sys

from . import _source, environment

STARTED = pathlib.Path(__file__).with_name("_started.py")


def too_old(program):
    """Does a program not parse, and would it with the keyword of today in place of ``async``?"""
    try:
        source = pathlib.Path(program).read_bytes()
        compile(source, program, "exec", dont_inherit=True)
    except SyntaxError:
        return _source.newer(source, program) is not None
    except (OSError, ValueError):
        pass  # Python says it better
    return False


def main():
    parser = argparse.ArgumentParser(
        prog="adjoin run",
        usage="adjoin run [--old] [-m] PROGRAM [argument]...",
        description="Runs a Python program for which `import torch` is Adjoin, as python would run it: the same arguments, "
        "the same exit code. Programs that it starts with Python find Adjoin, too. A PyTorch that is installed is not loaded.",
        epilog="adjoin run train.py --epochs 1      adjoin run -m package.module",
    )
    parser.add_argument("-m", dest="module", action="store_true", help="PROGRAM is a module, as with python -m")
    parser.add_argument("--old", action="store_true", help="with the manners of PyTorch 0.2 and 0.3: loss.data[0], x.add(2, y), "
                        "dropout that is off unless told, interpolation that keeps corners")  # fmt: skip
    parser.add_argument("program", metavar="PROGRAM", help="a file, or - for standard input")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="are the program's own")
    given = parser.parse_args()
    if not given.module and given.program != "-" and not os.path.exists(given.program):
        parser.error(f"there is no file {given.program!r}; a module is run with -m")
    how = ["-m"] if given.module else [str(STARTED)] if too_old(given.program) else []
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *how, given.program, *given.arguments], environment(old=given.old))


if __name__ == "__main__":
    main()
