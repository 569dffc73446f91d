"""adjoin.backends.cpu: the host's instruction set, as the kernel tells it."""


def _flags():
    try:
        with open("/proc/cpuinfo") as f:
            for line in f:
                if line.startswith(("flags", "Features")):
                    return set(line.split(":", 1)[1].split())
    except OSError:
        pass
    return set()


def get_cpu_capability():
    """AVX512, AVX2 or DEFAULT."""
    flags = _flags()
    return "AVX512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "DEFAULT"


def is_available():
    """Always true."""
    return True
