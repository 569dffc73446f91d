"""adjoin.cpu: the names that other devices' modules have, for the host."""

from . import _accelerator

globals().update(_accelerator.make("cpu"))
