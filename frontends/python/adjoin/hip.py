"""adjoin.hip: what programs ask of the HIP device; the device itself is a plugin's."""

from . import _accelerator

globals().update(_accelerator.make("hip"))
