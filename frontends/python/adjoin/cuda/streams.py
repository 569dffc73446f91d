"""adjoin.cuda.streams: streams and events of the CUDA device under the name of PyTorch's module."""

from . import Event, ExternalStream, Stream

__all__ = ["Event", "ExternalStream", "Stream"]
