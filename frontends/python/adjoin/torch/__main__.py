"""python -m adjoin.torch, and `adjoin run`: runs a Python program whose ``import torch`` is Adjoin."""

import argparse
import os
import sys

from . import environment


def main():
    parser = argparse.ArgumentParser(
        prog="adjoin run",
        usage="adjoin run [-m] PROGRAM [argument]...",
        description="Runs a Python program for which `import torch` is Adjoin, as python would run it: the same arguments, "
        "the same exit code. Programs that it starts with Python find Adjoin, too. A PyTorch that is installed is not loaded.",
        epilog="adjoin run train.py --epochs 1      adjoin run -m package.module",
    )
    parser.add_argument("-m", dest="module", action="store_true", help="PROGRAM is a module, as with python -m")
    parser.add_argument("program", metavar="PROGRAM", help="a file, or - for standard input")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="are the program's own")
    given = parser.parse_args()
    if not given.module and given.program != "-" and not os.path.exists(given.program):
        parser.error(f"there is no file {given.program!r}; a module is run with -m")
    command = [sys.executable, *(["-m"] if given.module else []), given.program, *given.arguments]
    sys.stdout.flush()
    os.execve(sys.executable, command, environment())


if __name__ == "__main__":
    main()
