"""adjoin.utils.benchmark: times of statements: warmed up, on a given number of threads, as medians of several runs; tables of them."""

from .compare import Compare
from .timer import Measurement, TaskSpec, Timer

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer"]
