"""adjoin.torch._started: python _started.py PROGRAM [argument]...: what `adjoin run` starts where a program is too old for Python."""

import sys

from adjoin.torch import _source

if __name__ == "__main__":
    _source.run(sys.argv[1], sys.argv[2:])
