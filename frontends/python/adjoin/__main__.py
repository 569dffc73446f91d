"""python -m adjoin, and the command `adjoin` of a wheel: runs the program that was installed with the package."""

import os
import pathlib
import sys


def program():
    """The file of the command that belongs to this package."""
    package = pathlib.Path(__file__).resolve().parent
    # In a wheel the package has all; beneath a prefix it is PREFIX/LIB/adjoin/python/adjoin.
    for folder in (package, *package.parents[:6]):
        file = folder / "bin" / "adjoin"
        # Not the script of a wheel, which comes back here.
        if file.is_file() and os.access(file, os.X_OK) and file.open("rb").read(2) != b"#!":
            return file
    raise FileNotFoundError(
        f"adjoin: the program is missing: none in bin/ of {package} or above; install the package again"
    )


def main():
    path = program()
    os.environ.setdefault("ADJOIN_PYTHON", sys.executable)  # whose package `adjoin doctor` looks at
    os.execv(path, [path.name, *sys.argv[1:]])


if __name__ == "__main__":
    main()
