"""adjoin.distributed.launcher: a function, or a program, in several processes, from Python; `adjoin launch` does it from a shell."""

from .api import LaunchConfig, elastic_launch  # noqa: F401
