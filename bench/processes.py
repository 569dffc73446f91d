#!/usr/bin/env python3
"""bench/processes.py: two processes that train together, beside PyTorch with Gloo.

processes.py [--rounds N] [--engines gloo,shm] [--large] [--json FILE]

Jobs of Adjoin and of PyTorch (BENCH_PYTHON, or a Python beside which `torch` is) take turns; each figure is the median over jobs, and
a ratio Adjoin / PyTorch stands beside what is wanted of it. One thread a process. `beyond` is the time of a step of
DistributedDataParallel less that of the same step of the bare module that ends in a barrier.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

# What is wanted, as ratios to PyTorch's Gloo; of shm and mpi in the second column.
WANTED = {
    "all_reduce 4 B": (0.55, 0.02),
    "all_reduce 1 MB": (0.43, 0.08),
    "all_reduce 64 MB": (0.7, 0.19),
    "beyond, MLP": (0.8, 0.3),
    "beyond, 102 tensors": (0.6, 0.15),
    "beyond, 19.7 M": (0.9, 0.25),
    "unused found, MLP": (1.0, 1.0),
    "launch to barrier": (0.35, 0.35),
    "init": (0.3, 0.3),
    "first wrap": (0.02, 0.02),
}


def worker(backend, large):
    began = time.time()
    import torch
    import torch.distributed as dist
    from torch import nn

    torch.set_num_threads(1)
    imported = time.time()
    dist.init_process_group(backend)
    inited = time.time()
    dist.barrier()
    got = {
        "launch to barrier": time.time() - float(os.environ["BENCH_BEGAN"]),
        "init": inited - imported,
        "import": imported - began,
    }

    def step(net, x):
        net.zero_grad()
        net(x).sum().backward()

    small = nn.Linear(2, 2)
    first = time.perf_counter()
    wrapped = nn.parallel.DistributedDataParallel(small)
    got["first wrap"] = time.perf_counter() - first
    step(wrapped, torch.ones(1, 2))
    for name, count in (("4 B", 1), ("1 MB", 1 << 18), ("64 MB", 1 << 24)):
        x = torch.ones(count)
        # Both must make as many samples: by count, not by time.
        dist.all_reduce(x)
        samples = []
        for _ in range(100 if count == 1 else 40 if count < 1 << 20 else 5):
            first = time.perf_counter()
            dist.all_reduce(x)
            samples.append(time.perf_counter() - first)
            x.fill_(1.0)
        got["all_reduce " + name] = statistics.median(samples)

    def stack(width, depth):
        return nn.Sequential(*[m for _ in range(depth) for m in (nn.Linear(width, width), nn.ReLU())])

    models = {"MLP": (stack(284, 3), 284), "102 tensors": (stack(64, 51), 64)}
    if large:
        models["19.7 M"] = (stack(1400, 10), 1400)
    for name, (net, width) in models.items():
        x = torch.randn(32, width)

        def bare(net=net, x=x):
            step(net, x)
            dist.barrier()

        rounds = 8 if name == "19.7 M" else 20

        def timed(f, rounds=rounds):
            f(), f()
            samples = []
            for _ in range(rounds):
                first = time.perf_counter()
                f()
                samples.append(time.perf_counter() - first)
            return statistics.median(samples)

        alone = timed(bare)
        ddp = nn.parallel.DistributedDataParallel(net)
        with_ddp = timed(lambda ddp=ddp, x=x: step(ddp, x))
        got["step, " + name], got["beyond, " + name] = alone, with_ddp - alone
        if name != "MLP":
            continue
        finds = nn.parallel.DistributedDataParallel(net, find_unused_parameters=True)
        got["unused found, " + name] = timed(lambda: step(finds, x)) - with_ddp
    dist.barrier()
    if dist.get_rank() == 0:
        print("RESULT", json.dumps(got), flush=True)
    dist.destroy_process_group()


def job(command, backend, large):
    """The figures of one job of two processes."""
    env = os.environ | {"BENCH_BEGAN": str(time.time()), "OMP_NUM_THREADS": "1"}
    line = [*command, os.path.abspath(__file__), "--worker", backend] + ["--large"] * large
    got = subprocess.run(line, env=env, capture_output=True, text=True, timeout=300)
    for text in got.stdout.splitlines():
        if "RESULT" in text:
            return json.loads(text.split("RESULT", 1)[1])
    raise SystemExit(f"{' '.join(line)} failed:\n{got.stdout}{got.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engines", default="gloo,shm")
    parser.add_argument("--large", action="store_true", help="a module of 19.7 million parameters, too")
    parser.add_argument("--json")
    parser.add_argument("--worker")
    args = parser.parse_args()
    if args.worker:
        return worker(args.worker, args.large)
    beside = os.environ.get("BENCH_PYTHON", sys.executable)
    jobs = {"PyTorch": ([beside, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"], "gloo")}
    for engine in args.engines.split(","):
        jobs[engine] = (["adjoin", "launch", "--nproc-per-node", "2"], engine)
    if "mpi" in jobs:
        jobs["mpi"] = (["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "adjoin", "run"], "mpi")
    figures = {name: [] for name in jobs}
    for _ in range(args.rounds):
        for name, (command, backend) in jobs.items():
            figures[name].append(job(command, backend, args.large))
    table = {
        name: {key: statistics.median(f[key] for f in all_of_it) for key in all_of_it[0]}
        for name, all_of_it in figures.items()
    }
    print(
        f"{'milliseconds':22} {'PyTorch':>10}"
        + "".join(f" {name:>10} {'ratio':>6} {'wanted':>6}" for name in jobs if name != "PyTorch")
    )
    for key, base in table["PyTorch"].items():
        line = f"{key:22} {base * 1e3:10.3f}"
        for name in table:
            if name == "PyTorch":
                continue
            mine, wanted = table[name][key], WANTED.get(key, (None, None))[name != "gloo"]
            ratio = mine / base if base > 0 else float("nan")
            mark = "*" if wanted is not None and ratio > wanted * 1.1 else " "
            line += f" {mine * 1e3:10.3f} {ratio:5.2f}{mark} {wanted if wanted is not None else '':>6}"
        print(line)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(figures, file)
    return None


if __name__ == "__main__":
    main()
