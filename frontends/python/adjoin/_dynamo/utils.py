"""adjoin._dynamo.utils: what libraries ask of the tracer."""

from collections import defaultdict

counters = defaultdict(lambda: defaultdict(int))  # nothing counts: nothing is compiled


def is_compile_supported(device_type):
    """Whether compile() fuses calls on the device: on the processor."""
    return str(device_type) == "cpu"
