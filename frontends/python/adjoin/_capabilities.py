"""adjoin._capabilities: what the processor can do, as the kernel of the system tells it."""

import functools
import platform
import types

# Where the system's word is another than the one that programs ask for.
_OTHER_WORDS = {
    "pni": "sse3", "fma": "fma3", "sha_ni": "sha", "abm": "lzcnt", "asimd": "neon", "asimdhp": "fp16_arith", "asimddp": "dot",
    "avx512f": "avx512_f", "avx512cd": "avx512_cd", "avx512dq": "avx512_dq", "avx512bw": "avx512_bw", "avx512vl": "avx512_vl",
    "avx512ifma": "avx512_ifma", "avx512vbmi": "avx512_vbmi",
}  # fmt: skip


@functools.cache
def get_capabilities():
    """{name: True} of the instruction sets that the processor has (``avx2``, ``avx512_f``, ``neon``), and its ``architecture``."""
    found = {"architecture": platform.machine()}
    try:
        with open("/proc/cpuinfo") as file:
            lines = [line.partition(":") for line in file]
    except OSError:
        lines = []
    words = next((value.split() for name, _, value in lines if name.strip() in ("flags", "Features")), [])
    found.update((_OTHER_WORDS.get(word, word), True) for word in words)
    return types.MappingProxyType(found)


class StreamContext:
    """A with statement in which ops go to a stream of the host; None changes nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        return None if self.stream is None else self.stream.__enter__()

    def __exit__(self, *error):
        return None if self.stream is None else self.stream.__exit__(*error)
