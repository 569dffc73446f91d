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


def _in_the_way(program, is_module):
    """The file that an ``import torch`` of the program finds before Adjoin, or None."""
    folder = os.getcwd() if is_module or program == "-" else os.path.dirname(os.path.realpath(program))
    files = (os.path.join(folder, name) for name in ("torch.py", os.path.join("torch", "__init__.py")))
    return next((file for file in files if os.path.exists(file)), None)


def main():
    parser = argparse.ArgumentParser(
        prog="adjoin run",
        usage="adjoin run [--report[=FILE]] [--old] [-m] PROGRAM [argument]...",
        description="Runs a Python program for which `import torch` is Adjoin, as python would run it: the same arguments, "
        "the same exit code. Programs that it starts with Python find Adjoin, too. A PyTorch that is installed is not loaded.",
        epilog="adjoin run train.py --epochs 1      adjoin run -m package.module      adjoin run --report=used.json train.py",
    )
    parser.add_argument("-m", dest="module", action="store_true", help="PROGRAM is a module, as with python -m")
    parser.add_argument(
        "--report",
        action="store_true",
        help="afterwards tells what the program used of torch, what was missing and what fell back; with =FILE writes it there, as "
        "JSON if the name ends in .json",
    )
    parser.add_argument("--old", action="store_true", help="with the manners of PyTorch 0.2 and 0.3: loss.data[0], x.add(2, y), "
                        "dropout that is off unless told, interpolation that keeps corners")  # fmt: skip
    parser.add_argument("program", metavar="PROGRAM", help="a file, or - for standard input")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="are the program's own")
    words = sys.argv[1:]
    # --report takes no word of its own: what follows it is the program.
    end = next((i for i, word in enumerate(words) if not word.startswith("-") or word == "-"), len(words))
    files = [word.partition("=")[2] for word in words[:end] if word.startswith("--report=")]
    given = parser.parse_args(["--report" if w.startswith("--report=") else w for w in words[:end]] + words[end:])
    if not given.module and given.program != "-" and not os.path.exists(given.program):
        parser.error(f"there is no file {given.program!r}; a module is run with -m")
    if file := _in_the_way(given.program, given.module):
        parser.error(f"the program's `import torch` would find its own {file!r}, not Adjoin; give that another name")
    how = ["-m"] if given.module else [str(STARTED)] if too_old(given.program) else []
    command = [sys.executable, *how, given.program, *given.arguments]
    sys.stdout.flush()
    if given.report:
        from . import _report

        raise SystemExit(_report.run(command, command[1:], files[-1] if files else None))
    os.execve(sys.executable, command, environment(old=given.old))


if __name__ == "__main__":
    main()
