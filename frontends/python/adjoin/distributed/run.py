"""python -m adjoin.distributed.run, torchrun's other name: `adjoin launch`."""

import sys

from .. import _C


def main(args=None):
    """Runs a program in several processes; its exit code."""
    return _C.dist_launch(list(sys.argv[1:] if args is None else args))


if __name__ == "__main__":
    sys.exit(main())
