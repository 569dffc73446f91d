"""adjoin._dynamo.utils: what libraries ask of the tracer."""

from collections import defaultdict

counters = defaultdict(lambda: defaultdict(int))  # nothing counts: nothing is compiled


def is_compile_supported(device_type):
    """False: nothing is compiled on any device."""
    return False
