"""adjoin.utils.tensorboard: event files that TensorBoard shows."""

from .writer import SummaryWriter  # noqa: F401

__all__ = ["SummaryWriter"]
