"""memory.py: does a result hold what was in memory before? The case runs twice, with other bytes in what it is likely to be given."""

import adjoin

from .case import run
from .compare import Difference, is_tensor, parts

SIZES = [1, 8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096, 16384, 65536]
DEEP = 4
BYTES = (0x01, 0xFF)


def dirty(byte):
    """Fills blocks of every size with a byte and frees them: who asks next gets them."""
    held = [adjoin.full((n,), byte, dtype=adjoin.uint8) for n in SIZES for _ in range(DEEP)]
    held.clear()


def bits(value):
    if not is_tensor(value):
        return repr(value)
    if not 0 < value.numel() <= 10_000:
        return tuple(value.shape), str(value.dtype)
    # A NaN is told apart from another one by no print, and need not be.
    return tuple(value.shape), str(value.dtype), repr(value.detach().tolist())


def outcome(case, byte):
    dirty(byte)
    done = run(adjoin, case)
    if done.error:
        return {"error": type(done.error).__name__, "line": done.line}, done
    return {name: bits(value) for name, value in parts(done).items()}, done


def unwritten(case):
    """The differences between two runs of one case."""
    (a, first), (b, second) = (outcome(case, byte) for byte in BYTES)
    if a == b:
        return []
    return [Difference(case, "unwritten", name, a.get(name), b.get(name), first, second)
            for name in {**a, **b} if a.get(name) != b.get(name)]  # fmt: skip
