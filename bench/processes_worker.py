"""bench/processes_worker.py: what each process of processes.py does, with either library; rank 0 prints the figures.

processes_worker.py BACKEND PART FOLDER
"""

import json
import os
import signal
import statistics
import sys
import time

# All figures, in the order in which they are printed, and their units.
NAMES = {
    "launch to barrier": "ms", "import": "ms", "init": "ms", "first wrap": "ms", "memory of the first wrap": "MB",
    "all_reduce 4 B": "ms", "all_reduce 1 MB": "ms", "all_reduce 64 MB": "ms",
    "step, MLP": "ms", "beyond, MLP": "ms", "unused found, MLP": "ms", "no_sync, MLP": "ms",
    "step, 102 tensors": "ms", "beyond, 102 tensors": "ms", "main thread, a parameter": "us",
    "step, 19.7 M": "ms", "beyond, 19.7 M": "ms", "memory beyond, 79 MB": "MB", "peak of it": "MB",
    "save 228 MB": "ms", "load 228 MB": "ms", "kill to new group": "ms", "300 join a store": "s",
    "4,096 join the server": "s", "a death told to them": "s",
    "4,096 simulated, 5 steps": "s", "memory of them": "MB",
}  # fmt: skip


def resident(what="VmRSS"):
    """Megabytes of this process's memory."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(what)) / 1024


def peak_begins():
    """From here on VmHWM counts anew."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def seconds(f, rounds, clock=time.perf_counter):
    samples = []
    for _ in range(rounds):
        first = clock()
        f()
        samples.append(clock() - first)
    return quarter(samples)


def quarter(samples):
    """The sample that a quarter of them lie below: others who use the machine are in the upper ones."""
    return sorted(samples)[len(samples) // 4]


class Bench:
    def __init__(self, backend, folder):
        began = time.time()
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        imported = time.time()
        dist.init_process_group(backend)
        inited = time.time()
        dist.barrier()
        self.torch, self.dist, self.folder = torch, dist, folder
        self.got = {
            "launch to barrier": 1e3 * (time.time() - float(os.environ["BENCH_BEGAN"])),
            "init": 1e3 * (inited - imported),
            "import": 1e3 * (imported - began),
        }

    def wrap(self, net, **more):
        return self.torch.nn.parallel.DistributedDataParallel(net, **more)

    @staticmethod
    def step(net, x):
        net.zero_grad()
        net(x).sum().backward()

    def stack(self, width, depth):
        nn = self.torch.nn
        return nn.Sequential(*[m for _ in range(depth) for m in (nn.Linear(width, width), nn.ReLU())])

    def small(self):
        torch, dist, got = self.torch, self.dist, self.got
        small, before, first = torch.nn.Linear(2, 2), resident(), time.perf_counter()
        wrapped = self.wrap(small)
        got["first wrap"] = 1e3 * (time.perf_counter() - first)
        got["memory of the first wrap"] = resident() - before
        self.step(wrapped, torch.ones(1, 2))
        for name, count in (("4 B", 1), ("1 MB", 1 << 18), ("64 MB", 1 << 24)):
            x = torch.ones(count)
            # Both must make as many samples: by count, not by time.
            dist.all_reduce(x)
            samples = []
            for _ in range(100 if count == 1 else 40 if count < 1 << 20 else 5):
                x.fill_(1.0)
                first = time.perf_counter()
                dist.all_reduce(x)
                samples.append(time.perf_counter() - first)
            got["all_reduce " + name] = 1e3 * quarter(samples)
        self.model("MLP", self.stack(284, 3), 284, 20)
        self.model("102 tensors", self.stack(64, 51), 64, 20)

    def large(self):
        torch, got = self.torch, self.got
        net, x = self.stack(1400, 10), torch.randn(32, 1400)
        for _ in range(3):
            self.step(net, x)
        before = resident()  # of the model and its gradients
        ddp = self.wrap(net)
        peak_begins()
        for _ in range(4):
            self.step(ddp, x)
        got["memory beyond, 79 MB"] = resident() - before
        got["peak of it"] = resident("VmHWM") - before
        del ddp
        self.model("19.7 M", net, 1400, 8)

    def model(self, name, net, width, rounds):
        dist, got, x = self.dist, self.got, self.torch.randn(32, width)

        def bare():
            self.step(net, x)
            dist.barrier()

        def timed(f, clock=time.perf_counter):
            f(), f()
            return 1e3 * seconds(f, rounds, clock)

        alone, own = timed(bare), timed(lambda: self.step(net, x), time.thread_time)
        ddp = self.wrap(net)
        whole = timed(lambda: self.step(ddp, x))
        got["step, " + name], got["beyond, " + name] = alone, whole - alone
        if name == "102 tensors":
            got["main thread, a parameter"] = (
                1e3 * (timed(lambda: self.step(ddp, x), time.thread_time) - own) / len(list(net.parameters()))
            )
        if name != "MLP":
            return
        net_alone = timed(lambda: self.step(net, x))

        def unsynced():
            with ddp.no_sync():
                self.step(ddp, x)

        got["no_sync, MLP"] = timed(unsynced) - net_alone
        finds = self.wrap(net, find_unused_parameters=True)
        with_both = []
        for _ in range(3):  # in turns: the difference is small
            with_both.append(timed(lambda: self.step(finds, x)) - timed(lambda: self.step(ddp, x)))
        got["unused found, MLP"] = statistics.median(with_both)

    def files(self):
        import torch.distributed.checkpoint as dcp

        state = {f"w{i}": self.torch.randn(1400, 1400) for i in range(29)}
        times = {"save 228 MB": [], "load 228 MB": []}
        for i in range(3):
            path = f"{self.folder}/{i}"
            for name, f in (("save 228 MB", dcp.save), ("load 228 MB", dcp.load)):
                self.dist.barrier()
                first = time.perf_counter()
                f(state, checkpoint_id=path)
                self.dist.barrier()
                times[name].append(1e3 * (time.perf_counter() - first))
        self.got |= {name: statistics.median(t) for name, t in times.items()}

    def killed(self):
        """Rank 1 is killed; how long until a new group has met."""
        rank, note = self.dist.get_rank(), f"{self.folder}/killed"
        if not os.path.exists(note):
            self.dist.barrier()
            if rank == 1:
                with open(note + ".part", "w") as file:
                    file.write(str(time.time()))
                os.rename(note + ".part", note)
                os.kill(os.getpid(), signal.SIGKILL)
            self.dist.barrier()
        with open(note) as file:
            self.got = {"kill to new group": 1e3 * (time.time() - float(file.read()))}


def store():
    """Clients of one store, each with a connection of its own, come in turn; each sets a key and reads it."""
    from torch.distributed import TCPStore

    server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    clients, first = [], time.perf_counter()
    for i in range(300):
        clients.append(TCPStore("127.0.0.1", server.port, wait_for_workers=False))
        clients[-1].set(str(i), "here")
        assert clients[-1].get(str(i)) == b"here"
    return {"300 join a store": time.perf_counter() - first}


def many():
    """4,096 processes of `simulated`, which PyTorch has nothing beside."""
    import scale

    took, told, _ = scale.joins(4096)
    steps, memory = scale.ranks(4096)
    return {
        "4,096 join the server": took, "a death told to them": told,
        "4,096 simulated, 5 steps": steps, "memory of them": memory,
    }  # fmt: skip


ALONE = {"store": store, "many": many}  # these begin no processes


def main():
    backend, part, folder = sys.argv[1:]
    if part in ALONE:
        print("RESULT", json.dumps(ALONE[part]()), flush=True)
        return
    bench = Bench(backend, folder)
    getattr(bench, part)()
    bench.dist.barrier()
    if bench.dist.get_rank() == 0:
        keep = bench.got if part == "small" else {k: v for k, v in bench.got.items() if k not in ("launch to barrier", "init", "import")}  # fmt: skip
        print("RESULT", json.dumps(keep), flush=True)
    bench.dist.destroy_process_group()


if __name__ == "__main__":
    main()
