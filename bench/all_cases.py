"""bench/all_cases.py: the table of cases, filled: importing the modules that hold cases is what fills it."""

import cases  # noqa: F401
import functions  # noqa: F401
import kernels  # noqa: F401
import layers  # noqa: F401
import linalg  # noqa: F401
import loading  # noqa: F401
import sparse  # noqa: F401
import training  # noqa: F401
import transforms  # noqa: F401
from table import CASES

__all__ = ["CASES"]
