"""adjoin.utils.trainer: the loop that trains, with plugins that watch it: ``Trainer(model, criterion, optimizer, dataset).run(epochs)``."""

from . import plugins  # noqa: F401
from .trainer import Trainer  # noqa: F401
