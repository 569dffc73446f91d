"""adjoin._dynamo.utils: what libraries ask of the tracer."""

import functools
import warnings
from collections import defaultdict

counters = defaultdict(lambda: defaultdict(int))  # nothing counts: nothing is compiled


def is_compile_supported(device_type):
    """Whether compile() fuses calls on the device: on the processor."""
    return str(device_type) == "cpu"


@functools.cache
def warn_once(msg, stacklevel=1):
    """A warning that each text is said once of."""
    warnings.warn(msg, stacklevel=stacklevel + 1)
