"""adjoin.utils.trainer.plugins: what watches a Trainer."""

from .files import SaverPlugin, SaverPlugin as Saver  # noqa: F401
from .logger import Logger, ProgressBar  # noqa: F401
from .monitors import AccuracyMonitor, LossMonitor, Monitor, ProgressMonitor, TimeMonitor, Validation  # noqa: F401
from .pictures import Plot, TensorBoard  # noqa: F401
from .plugin import Plugin  # noqa: F401
