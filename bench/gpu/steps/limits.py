"""bench/gpu/steps/limits.py: what this card reaches at most, the limits beside which other figures stand."""

import math
import time

import adjoin
from pieces import DEVICE, SIMULATED, figure, guarded
from timing import milliseconds, seconds

gpus = getattr(adjoin, DEVICE)


def sizes():
    """(bytes of an array, rows of a square matrix): large enough to fill this card, small enough for it."""
    if SIMULATED:
        return 1 << 20, 64
    array = min(1 << 30, gpus.mem_get_info()[1] >> 6)
    return array, min(8192, 1 << int(math.log2(math.sqrt(array / 16))))


def copies(array):
    n = array // 4
    x, y, z = (adjoin.rand(n, device=DEVICE) for _ in range(3))
    for name, f, moved in (
        ("fill", lambda: y.fill_(1.0), 4),
        ("copy", lambda: y.copy_(x), 8),
        ("sum of two, into a third", lambda: adjoin.add(x, z, out=y), 12),
    ):
        figure(name, moved * n / milliseconds(f, gpus) / 1e6, "GB/s", f"float32, arrays of {array >> 20} MiB")


def products(rows):
    for dtype in (adjoin.bfloat16, adjoin.float16, adjoin.float32):
        a, b = (adjoin.randn(rows, rows, device=DEVICE).to(dtype) for _ in range(2))
        rate = 2 * rows**3 / milliseconds(lambda: a @ b, gpus) / 1e9
        figure(f"product {str(dtype).split('.')[-1]}", rate, "TFLOP/s", f"{rows} rows")


def host(array):
    n = array // 16
    there = adjoin.rand(n, device=DEVICE)
    for kind, here in (("", adjoin.rand(n)), ("pinned ", adjoin.rand(n).pin_memory(DEVICE))):
        for name, f in (
            (f"{kind}host to card", lambda: there.copy_(here)),
            (f"card to {kind}host", lambda: here.copy_(there)),
        ):
            figure(name, 4 * n / seconds(lambda: (f(), gpus.synchronize())) / 1e9, "GB/s", f"{n >> 18} MiB")


def calls():
    """What the host needs for a call while the card keeps up, and for one whose answer it waits for."""
    x, y = adjoin.ones(64, device=DEVICE), adjoin.ones(64, device=DEVICE)

    def many():
        for _ in range(100):
            adjoin.add(x, y)

    figure("a call of add, 64 elements", 1e4 * seconds(many), "µs")
    figure("a number from the card", 1e6 * seconds(lambda: x.sum().item()), "µs")


def main():
    array, rows = sizes()
    for part, *arguments in ((copies, array), (products, rows), (host, array), (calls,)):
        begun = time.monotonic()
        with guarded(part.__name__):
            part(*arguments)
            gpus.synchronize()
        print(f"{part.__name__}: {time.monotonic() - begun:.1f} s", flush=True)


main()
