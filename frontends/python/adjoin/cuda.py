"""adjoin.cuda: what programs ask of the CUDA device; the device itself is a plugin's."""

from . import _accelerator

globals().update(_accelerator.make("cuda"))
CUDAGraph = globals()["Graph"]
