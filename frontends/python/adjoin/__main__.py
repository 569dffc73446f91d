"""python -m adjoin, and the command `adjoin` of a wheel: runs the program that was installed with the package."""

import os
import pathlib
import sys

from . import _plugin_folders


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
    # libadjoin looks beside its own package; where else this Python does, it cannot know.
    own = str(pathlib.Path(__file__).resolve().parents[1] / "adjoin_plugins")
    if others := [folder for folder in _plugin_folders if folder != own]:
        given = os.environ.get("ADJOIN_PLUGIN_PATH")
        os.environ["ADJOIN_PLUGIN_PATH"] = ":".join([given, *others] if given else others)
    os.execv(path, [path.name, *sys.argv[1:]])


if __name__ == "__main__":
    main()
