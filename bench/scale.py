#!/usr/bin/env python3
"""bench/scale.py: training on more processes than there are here, by the model of scale_model.py: first what it says beside what is
measured, then what it says of 4,096.

scale.py [--measure] [--ranks N] [--curves] [--machine FILE] [--out FOLDER]

--measure: the model is fitted to all_reduce of two processes over each engine, and says how long a step of DistributedDataParallel
takes there; and how long a step of 4, 8 and 16 threads takes over `simulated`, whose transfers sleep. --ranks: so many threads, each a
process of `simulated`, join one control server and make five steps. --curves: a GPT on 8 to 4,096 devices of a machine (--machine names
its numbers in TOML) by data parallelism, fully_shard and tensor parallelism, as a picture that says "simulated". Without a word: all.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

import scale_model as model

HERE = pathlib.Path(__file__).resolve()
SIZES = (4, 65536, 1 << 20, 4 << 20, 16 << 20)
WIDTH, DEPTH = 512, 6

# A host of eight devices; the numbers are those that makers print, times what is reached of them.
MACHINE = {
    "name": "8 devices a host",
    "flops": 400e12,  # a second and device, reached
    "latency": 12e-6,
    "rate": 40e9,  # bytes a second of a device's share of the network
    "per_host": 8,
    "inner_latency": 3e-6,
    "inner_rate": 300e9,
    "jitter": 0.02,
}
GPT = {"layers": 48, "width": 6144, "tokens": 2048, "vocabulary": 50304}


def in_processes(engine):
    """What two processes measure, and the seconds of a step."""
    command = ["adjoin", "launch", "--nproc-per-node", "2", str(HERE), "--worker", engine]
    got = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    for line in got.stdout.splitlines():
        if line.startswith("FOUND "):
            return json.loads(line[6:])
    raise SystemExit(got.stdout + got.stderr)


def worker(engine):
    """One of two processes."""
    import torch
    import torch.distributed as dist
    from torch import nn

    torch.set_num_threads(1)
    dist.init_process_group(engine)
    points = []
    for size in SIZES:
        x, samples = torch.zeros(size // 4), []
        for _ in range(12):
            dist.barrier()
            first = time.perf_counter()
            dist.all_reduce(x)
            samples.append(time.perf_counter() - first)
        points.append((size, statistics.median(samples)))
    torch.manual_seed(0)
    net = nn.Sequential(*[m for _ in range(DEPTH) for m in (nn.Linear(WIDTH, WIDTH), nn.Tanh())])
    x = torch.randn(64, WIDTH)
    marks = []

    def step(net):
        marks.clear()
        net.zero_grad()
        loss = net(x).sum()
        marks.append(time.perf_counter())
        loss.backward()

    def median(net, rounds=15):
        for _ in range(3):
            step(net)
        samples = []
        for _ in range(rounds):
            dist.barrier()
            first = time.perf_counter()
            step(net)
            samples.append(time.perf_counter() - first)
        return statistics.median(samples)

    alone = median(net)
    forwards, pieces = [], []
    handles = [
        p.register_post_accumulate_grad_hook(lambda p: marks.append(time.perf_counter())) for p in net.parameters()
    ]
    for _ in range(10):
        dist.barrier()
        first = time.perf_counter()
        step(net)
        forwards.append(marks[0] - first)
        pieces.append([b - a for a, b in zip(marks, marks[1:], strict=False)])
    for handle in handles:
        handle.remove()
    ddp = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=1)
    with_ddp = median(ddp)
    sizes = [b.buffer().numel() * 4 for b in ddp.reducer.buckets]
    counts = [len(b.parameters()) for b in ddp.reducer.buckets]
    if dist.get_rank() == 0:
        each = [statistics.median(p) for p in zip(*pieces, strict=True)]
        print("FOUND", json.dumps({"points": points, "alone": alone, "step": with_ddp, "forward": statistics.median(forwards),
                                   "pieces": each, "sizes": sizes, "counts": counts}), flush=True)  # fmt: skip
    dist.destroy_process_group()


def buckets_of(each, sizes, counts):
    """(seconds, bytes) of the backward pass, of seconds for each parameter."""
    found, at = [], 0
    for size, count in zip(sizes, counts, strict=True):
        found.append((sum(each[at : at + count]), size))
        at += count
    return found


def measured():
    """The model beside measurements."""
    print(f"{'':28} {'measured':>10} {'model':>10} {'error':>7}")
    wires = {}
    for engine in ("gloo", "shm"):
        got = in_processes(engine)
        wires[engine] = wire = model.fitted(got["points"])
        pieces = buckets_of(got["pieces"], got["sizes"], got["counts"])
        run = model.data_parallel(2, wire, got["forward"], pieces, at_once=len(os.sched_getaffinity(0)) > 2)
        told(f"2 processes over {engine}", got["step"], run.seconds())
    latency, gigabytes = 200, 0.25
    for n in (4, 8, 16):
        env = os.environ | {"ADJOIN_SIMULATED": f"{latency} {gigabytes}", "OMP_NUM_THREADS": "1"}
        got = subprocess.run(["adjoin", "run", str(HERE), "--slept", str(n)], capture_output=True, text=True, env=env)
        if not got.stdout.startswith("FOUND "):
            raise SystemExit(got.stdout + got.stderr)
        found = json.loads(got.stdout[6:])
        wire = Slept(latency * 1e-6, gigabytes * 1e9)
        run = model.data_parallel(
            n, wire, found["forward"], buckets_of(found["pieces"], found["sizes"], found["counts"])
        )
        told(f"{n} threads, slept transfers", found["step"], run.seconds())


class Slept(model.Wire):
    """What ADJOIN_SIMULATED orders, whatever the number of processes."""

    def all_reduce(self, n, size):
        return self.latency + size / self.rate


def told(what, real, predicted):
    print(f"{what:28} {real * 1e3:8.2f}ms {predicted * 1e3:8.2f}ms {(predicted / real - 1) * 100:+6.1f}%")


def slept(n):
    """DistributedDataParallel in n threads whose layers sleep: neither the processor nor the wire is shared."""
    import torch
    from torch import nn
    from torch.distributed import simulation

    torch.set_num_threads(1)
    forward, backward, layers, width = 0.01, 0.02, 6, 256

    class Sleeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            time.sleep(forward)
            return x + weight[0]

        @staticmethod
        def backward(ctx, g):
            time.sleep(backward)
            return g, g.new_zeros((width, width))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(width, width))

        def forward(self, x):
            return Sleeps.apply(x, self.weight)

    def process(rank):
        import torch.distributed as dist

        net = nn.parallel.DistributedDataParallel(nn.Sequential(*[Layer() for _ in range(layers)]), bucket_cap_mb=0.3)
        x, samples = torch.zeros(width), []
        for _ in range(7):
            dist.barrier()
            first = time.perf_counter()
            net(x).sum().backward()
            samples.append(time.perf_counter() - first)
        sizes = [b.buffer().numel() * 4 for b in net.reducer.buckets]
        return statistics.median(samples), sizes, [len(b.parameters()) for b in net.reducer.buckets]

    step, sizes, counts = simulation.run(process, n)[0]
    print("FOUND", json.dumps({"step": step, "forward": forward * layers, "pieces": [backward] * layers, "sizes": sizes, "counts": counts}))  # fmt: skip


def ranks(n):
    """(seconds, MB) of five steps of DistributedDataParallel by n threads, each a process of `simulated`."""
    import resource

    import torch
    from torch import nn
    from torch.distributed import simulation

    torch.set_num_threads(1)
    nets = [nn.Linear(16, 16) for _ in range(n)]

    def process(rank):
        net = nn.parallel.DistributedDataParallel(nets[rank])
        optimizer, x = torch.optim.SGD(net.parameters(), lr=0.1), torch.full((2, 16), float(rank))
        for _ in range(5):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()
        return net.module.weight.sum().item()

    first = time.perf_counter()
    found = simulation.run(process, n)
    took, memory = time.perf_counter() - first, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    assert len(set(found)) == 1, "the processes do not agree"
    return took, memory


def joins(n):
    """Seconds until so many clients of one control server, each with a thread and a connection of its own, have joined; until the last
    of them was told of a death; until all have left. They come as processes do, not one behind the other's answer: many at once."""
    from concurrent.futures import ThreadPoolExecutor

    from adjoin import _C

    server, port = _C.dist_serve("127.0.0.1", 0)

    def join(rank):
        link = _C.dist_connect("127.0.0.1", port, 20000)
        _C.dist_join(link, "bench", rank, n)
        return link

    with ThreadPoolExecutor(256) as pool:
        first = time.perf_counter()
        links = list(pool.map(join, range(n)))
    took, first = time.perf_counter() - first, time.perf_counter()
    _C.dist_disconnect(links.pop(0))  # without a word
    try:
        _C.dist_store_get(links[-1], "what nobody sets", 20000)  # the last one to be told
    except RuntimeError as error:
        assert "rank 0 " in str(error), error
    told, first = time.perf_counter() - first, time.perf_counter()
    for link in links:
        _C.dist_leave(link)
        _C.dist_disconnect(link)
    _C.dist_end_server(server, 0)
    return took, told, time.perf_counter() - first


def curves(machine, out):
    """Pictures of a GPT's step on up to 4,096 devices."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    wire = model.Wire(*(machine[k] for k in ("latency", "rate", "per_host", "inner_latency", "inner_rate")))
    layers, width, tokens = GPT["layers"], GPT["width"], GPT["tokens"]
    layer = 12 * width * width
    parameters = layers * layer + GPT["vocabulary"] * width
    forward = 2 * layer * tokens / machine["flops"]  # of a layer
    bucket = 25 << 20
    counts = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
    jitter = machine["jitter"]

    def data(n):
        number = max(1, round(2 * parameters / bucket))
        pieces = [(2 * layers * forward / number, bucket)] * number
        return model.data_parallel(n, wire, layers * forward, pieces, jitter)

    def shard(n):
        return model.sharded(n, wire, layers, forward, 2 * forward, 2 * layer, jitter)

    def tensor(n):
        degree = machine["per_host"]
        # so many tokens a device as elsewhere: those of the parts' copy come together
        parts = forward, 2 * forward, 2 * degree * tokens * width, 2 * parameters / degree
        return model.tensor_parallel(n, wire, degree, layers, *parts, jitter)

    ways = {"DistributedDataParallel": data, "fully_shard": shard, "tensor parallel in a host": tensor}
    ideal = 3 * layers * forward
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    print(f"simulated: {machine['name']}; a GPT of {parameters / 1e9:.1f} billion parameters")
    print(f"{'':24} " + " ".join(f"{n:>7}" for n in counts))
    for name, f in ways.items():
        runs = [f(n) for n in counts]
        share = [ideal / r.seconds() for r in runs]
        left.plot(counts, [r.seconds() * 1e3 for r in runs], marker="o", label=name)
        right.plot(counts, [100 * s for s in share], marker="o", label=name)
        print(f"{name + ', ms':24} " + " ".join(f"{r.seconds() * 1e3:7.1f}" for r in runs))
        print(f"{'  exposed, ms':24} " + " ".join(f"{r.exposed * 1e3:7.1f}" for r in runs))
        print(f"{'  efficiency':24} " + " ".join(f"{100 * s:6.1f}%" for s in share))
    for axis, text in ((left, "a step, ms"), (right, "efficiency, %")):
        axis.set_xscale("log", base=2)
        axis.set_xlabel("devices")
        axis.set_ylabel(text)
        axis.grid(alpha=0.3)
    left.set_yscale("log")
    right.set_ylim(0, 105)
    left.legend()
    figure.suptitle(
        f"simulated: {machine['name']}, a GPT of {parameters / 1e9:.1f} billion parameters, {tokens} tokens a device"
    )
    figure.tight_layout()
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "scale_simulated.png", dpi=110)
    print("the picture:", out / "scale_simulated.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--curves", action="store_true")
    parser.add_argument("--machine", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=HERE.parents[1] / "build/bench")
    parser.add_argument("--worker")
    parser.add_argument("--slept", type=int)
    parser.add_argument("--here", type=int)
    args = parser.parse_args()
    if args.worker:
        return worker(args.worker)
    if args.slept or args.here:
        if args.slept:
            return slept(args.slept)
        took, told, left = joins(args.here)
        print(
            f"{args.here} joins of one control server: {took:.2f} s of 3; a death is told to the last after {told:.2f} s of 1; all leave in {left:.1f} s"
        )
        took, memory = ranks(args.here)
        print(f"{args.here} simulated processes, 5 steps: {took:.1f} s of 60, {memory:.0f} MB of 2048")
        return None
    every = not (args.measure or args.ranks or args.curves)
    machine = MACHINE
    if args.machine:
        import tomllib

        machine = MACHINE | tomllib.loads(args.machine.read_text())
    if every or args.measure:
        measured()
    if every or args.ranks:
        subprocess.run(["adjoin", "run", str(HERE), "--here", str(args.ranks or 4096)], check=True)
    if every or args.curves:
        curves(machine, args.out)
    return None


if __name__ == "__main__":
    main()
