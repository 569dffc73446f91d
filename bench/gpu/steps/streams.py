"""bench/gpu/steps/streams.py: what streams, events and pinned memory promise: order where it is asked for, no waits where it is not."""

import time

import adjoin
from pieces import DEVICE, SIMULATED, figure, guarded

gpus = getattr(adjoin, DEVICE)
ROWS = 128 if SIMULATED else 4096
LONG = 5 if SIMULATED else 200  # products that keep a stream busy


def busy():
    """A stream that computes for a while, and what comes out at its end."""
    side = gpus.Stream()
    with gpus.stream(side):
        x = adjoin.ones(ROWS, ROWS, device=DEVICE)
        for _ in range(LONG):
            x = x @ x / ROWS
    return side, x


def order():
    """Another stream waits for an event, and so sees what was computed before it."""
    side, x = busy()
    with gpus.stream(side):
        done = gpus.Event()
        done.record()
    gpus.current_stream().wait_event(done)
    total = x.sum().item()
    assert total == ROWS * ROWS, f"the sum is {total}, not {ROWS * ROWS}"


def times():
    begin, end = gpus.Event(enable_timing=True), gpus.Event(enable_timing=True)
    begun = time.perf_counter()
    begin.record()
    busy()[0].synchronize()
    end.record()
    end.synchronize()
    card, host = begin.elapsed_time(end), 1e3 * (time.perf_counter() - begun)
    assert 0 < card < 1.1 * host + 1, f"events say {card:.2f} ms, the host's clock {host:.2f} ms"


def own_stream_alone():
    """A number waits for the stream that makes it, not for the card."""
    y = adjoin.ones(4, device=DEVICE)
    y.sum().item()
    side, x = busy()
    begun = time.perf_counter()
    assert y.sum().item() == 4
    took, still = time.perf_counter() - begun, not side.query()
    side.synchronize()
    figure("a number beside a busy stream", 1e3 * took, "ms", "that stream was still busy" if still else "it had ended")
    assert still or SIMULATED, "the side stream had ended: the number waited for it"


def pinned():
    here = adjoin.arange(1 << 20, dtype=adjoin.float32).pin_memory(DEVICE)
    there = here.to(DEVICE, non_blocking=True)
    back = adjoin.empty_like(here).pin_memory(DEVICE)
    back.copy_(there * 2, non_blocking=True)
    gpus.synchronize()
    assert here.is_pinned(), "pin_memory gave memory that is not pinned"
    assert adjoin.equal(back, here * 2), "what came back is not what was computed"


def memory_of_streams():
    """What one stream still reads is given to nobody else, though its name is gone."""
    for _ in range(20):
        side = gpus.Stream()
        x = adjoin.ones(1 << 16, device=DEVICE)
        side.wait_stream(gpus.current_stream())
        with gpus.stream(side):
            y = x * 2
            for _ in range(20):
                y = y + x
        del x
        adjoin.full((1 << 16,), 7.0, device=DEVICE)
        side.synchronize()
        assert y.sum().item() == 22 * (1 << 16), "memory was given away while a stream read it"


def threads():
    """Eight threads, a stream each."""
    import threading

    wrong = []

    def one(i):
        with gpus.stream(gpus.Stream()):
            x = adjoin.full((1000,), float(i), device=DEVICE)
            for _ in range(20):
                if (x * 2).sum().item() != 2000 * i:
                    wrong.append(i)

    jobs = [threading.Thread(target=one, args=(i,)) for i in range(8)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert not wrong, f"wrong sums in threads {sorted(set(wrong))}"


def main():
    for name, f in (
        ("a stream waits for an event of another", order),
        ("events' times are within the host's", times),
        ("a number waits for its own stream alone", own_stream_alone),
        ("pinned copies that do not block", pinned),
        ("memory that a stream reads stays its own", memory_of_streams),
        ("eight threads, a stream each", threads),
    ):
        with guarded(name):
            f()


main()
