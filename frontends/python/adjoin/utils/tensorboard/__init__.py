"""adjoin.utils.tensorboard: event files that TensorBoard shows."""

from . import summary  # noqa: F401
from ._file_writer import FileWriter, RecordWriter  # noqa: F401
from .writer import SummaryWriter  # noqa: F401

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
