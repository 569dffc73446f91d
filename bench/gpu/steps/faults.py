"""bench/gpu/steps/faults.py: what a program is told when something is wrong, and that it can go on after it."""

import os
import warnings

import adjoin
from pieces import DEVICE, check, guarded, told

gpus = getattr(adjoin, DEVICE)


def pick(x, i):
    return x.index_select(0, i)


def bad_index():
    """Told with op and line to whoever waits, once."""
    x = adjoin.ones(4, device=DEVICE)
    pick(x, adjoin.tensor([9], device=DEVICE))
    why = told(gpus.synchronize)
    assert why and "index 9 is out of range" in why, f"told: {why}"
    assert why.endswith("in pick"), f"the line of the call is not told: {why}"
    assert told(gpus.synchronize) is None and x.sum().item() == 4, "the device is not usable after a bad index"


def refused_memory():
    total = gpus.mem_get_info()[1]
    why = told(lambda: adjoin.empty(2 * total, dtype=adjoin.uint8, device=DEVICE))
    assert why and "out of memory" in why, f"told: {why}"
    assert adjoin.ones(1 << 10, device=DEVICE).sum().item() == 1 << 10, "the device is not usable after refused memory"


def cached_memory():
    """What the cache holds goes back before memory is refused."""
    part = gpus.mem_get_info()[0] // 5
    held = [adjoin.empty(part // 2, dtype=adjoin.uint8, device=DEVICE) for _ in range(6)]
    del held
    large = adjoin.empty(3 * part, dtype=adjoin.uint8, device=DEVICE).fill_(3)
    assert large[-1].item() == 3
    del large
    gpus.empty_cache()


def forked():
    """A child is told that the device does not survive a fork; its parent goes on."""
    x = adjoin.ones(4, device=DEVICE)
    x.sum().item()
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.write(writing, (told(lambda: (adjoin.ones(4, device=DEVICE) + 1).sum().item()) or "no error").encode())
        os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    why = os.read(reading, 1 << 16).decode()
    os.close(reading)
    assert status == 0, f"the child ended with status {status}"
    assert "fork" in why, f"the child was told: {why or 'nothing'}"
    assert (x + 1).sum().item() == 8, "the parent cannot go on"


def other_devices():
    """Two tensors of two devices, and a card that is not there."""
    why = told(lambda: adjoin.ones(2, device=DEVICE) + adjoin.ones(2))
    assert why and DEVICE in why and "cpu" in why, f"told: {why}"
    why = told(lambda: adjoin.ones(2, device=f"{DEVICE}:63"))
    assert why and "63" in why, f"told: {why}"


def main():
    for name, f in (
        ("a bad index is told with op and line", bad_index),
        ("memory that is not there is refused, and asked for again", refused_memory),
        ("the cache gives back before memory is refused", cached_memory),
        ("a forked child is told", forked),
        ("tensors of two devices, a card that is not there", other_devices),
    ):
        with guarded(name):
            f()
    check("the device serves after all of it", adjoin.ones(8, device=DEVICE).sum().item() == 8)


main()
