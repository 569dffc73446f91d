"""bench/deterministic.py: the price of the deterministic mode: each case timed with it and without, in turn."""

import argparse
import statistics
import time

import adjoin
import adjoin.nn.functional as F


def product(m, n, k, dtype=adjoin.float32):
    a, b, out = adjoin.randn(m, k).to(dtype), adjoin.randn(k, n).to(dtype), adjoin.empty(m, n, dtype=dtype)
    return lambda: adjoin.mm(a, b, out=out)


def convolution():
    x = adjoin.randn(8, 64, 56, 56, requires_grad=True)
    weight = adjoin.randn(64, 64, 3, 3, requires_grad=True)

    def step():
        x.grad = weight.grad = None
        F.conv2d(x, weight, padding=1).sum().backward()

    return step


def training():
    nn = adjoin.nn
    model = nn.Sequential(
        *[nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2), nn.ReLU()],
        *[nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 7 * 7, 256), nn.ReLU(), nn.Linear(256, 10)],
    )
    optimizer = adjoin.optim.Adam(model.parameters(), lr=1e-3)
    x, y = adjoin.randn(64, 1, 28, 28), adjoin.arange(64) % 10

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def cases():
    rows = adjoin.randn(4096, 1000)
    yield "sum", rows.sum
    yield "softmax", lambda: adjoin.softmax(rows, 1)
    for size in (128, 512, 1024):
        yield f"product {size}", product(size, size, size)
    yield "product 1 x 4096 x 4096", product(1, 4096, 4096)
    yield "product 1024, bfloat16", product(1024, 1024, 1024, adjoin.bfloat16)
    yield "product 1024, complex64", product(1024, 1024, 1024, adjoin.complex64)
    yield "convolution and its gradients", convolution()
    yield "a training step of LeNet", training()


def seconds(f, times):
    begin = time.perf_counter()
    for _ in range(times):
        f()
    return (time.perf_counter() - begin) / times


def price(f, rounds):
    """Seconds without, and the median over rounds of the ratio of neighbours."""
    f()
    times = max(1, int(0.02 / seconds(f, 1)))
    plain, ratios = [], []
    for _ in range(rounds):
        adjoin.use_deterministic_algorithms(False)
        plain.append(seconds(f, times))
        adjoin.use_deterministic_algorithms(True)
        ratios.append(seconds(f, times) / plain[-1])
    adjoin.use_deterministic_algorithms(False)
    return statistics.median(plain), statistics.median(ratios)


def main():
    parser = argparse.ArgumentParser(description="Time in the deterministic mode divided by time without it.")
    parser.add_argument("--threads", type=int, default=adjoin.get_num_threads(), help="default: all")
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    adjoin.set_num_threads(args.threads)
    print(f"{args.threads} threads, median of {args.rounds} rounds")
    for name, f in cases():
        plain, ratio = price(f, args.rounds)
        print(f"{name:32} {plain * 1e6:10.1f} us  deterministic / not {ratio:5.2f}", flush=True)


if __name__ == "__main__":
    main()
