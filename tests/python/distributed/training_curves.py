"""tests/python/distributed/training_curves.py: small models trained in many ways by several processes; a line for each says how far its
curve and its parameters are from those of one process with the whole batch.

training_curves.py [--steps N] [WAY:MODEL ...]

TEST_ENGINE names the engine (of `simulated`, TEST_RANKS threads are the processes), TEST_DEVICE the device.
"""

import argparse
import functools
import os
import threading

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

DEVICE = os.environ.get("TEST_DEVICE", "cpu")
BATCH = 24
MADE = threading.Lock()  # of `simulated` the generator is that of all processes


# Models of pieces, whose number may be chosen: what 1, 2, 3, 4 and 8 processes divide evenly


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(6, 24), nn.Linear(24, 6)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(x)))


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Conv2d(2, 24, 3, padding=1), nn.Conv2d(24, 2, 3, padding=1)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(x)))


class Attention(nn.Module):
    width = 48

    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(self.width), nn.LayerNorm(self.width)
        self.q, self.k, self.v, self.o = (nn.Linear(self.width, self.width) for _ in range(4))
        self.up, self.down = nn.Linear(self.width, 2 * self.width), nn.Linear(2 * self.width, self.width)

    def forward(self, x):
        y = self.n1(x)
        q, k, v = (f(y).unflatten(-1, (-1, 2)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.n2(x))))


MODELS = {
    "mlp": (lambda: nn.Linear(5, 6), Wide, lambda: nn.Linear(6, 4)),
    "conv": (lambda: nn.Conv2d(1, 2, 3, padding=1), Convolutions, lambda: nn.Sequential(nn.Flatten(), nn.Linear(32, 4))),
    "transformer": (lambda: nn.Embedding(11, 48), Attention, lambda: nn.Linear(48, 11)),
}  # fmt: skip


class Net(nn.Module):
    """Pieces `first` to `last` of a model with `depth` of them between its ends."""

    def __init__(self, kind, depth, first=0, last=None):
        super().__init__()
        begin, middle, end = MODELS[kind]
        with MADE, torch.random.fork_rng():
            torch.manual_seed(3)
            made = [begin(), *(middle() for _ in range(depth)), end()]
        self.first, self.pieces = first, nn.ModuleList(made[first:last]).double().to(DEVICE)

    def forward(self, x):
        for piece in self.pieces:
            x = piece(x)
        return x


def data(kind):
    made = torch.Generator().manual_seed(1)
    if kind == "transformer":
        return (torch.randint(0, 11, (BATCH, 4), generator=made).to(DEVICE) for _ in range(2))
    shape = {"mlp": (5,), "conv": (1, 4, 4)}[kind]
    x, y = (torch.randn(BATCH, *s, dtype=torch.float64, generator=made) for s in (shape, (4,)))
    return x.to(DEVICE), y.to(DEVICE)


def loss_of(y, t):
    return F.cross_entropy(y.flatten(0, 1), t.flatten()) if t.dtype == torch.int64 else ((y - t) ** 2).mean()


def optimizer_of(kind, params, make=None):
    # Adam makes steps of gradients that are 0 but for rounding, as that of a key's bias is
    cls, more = (torch.optim.AdamW, {}) if kind == "mlp" else (torch.optim.SGD, {"momentum": 0.9})
    return make(params, cls, lr=0.01, **more) if make else cls(params, lr=0.01, **more)


def train(net, kind, x, y, steps, make=None):
    optimizer, losses = optimizer_of(kind, net.parameters(), make), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@functools.lru_cache
def alone(kind, depth, steps):
    """What one process gets with the whole batch."""
    net = Net(kind, depth)
    return train(net, kind, *data(kind), steps), net


# Ways: each gives (losses of this process or None, its pieces)


def parts_of(way, kind, mesh=None):
    x, y = data(kind)
    n, here = (dist.get_world_size(), dist.get_rank()) if mesh is None else (mesh.size(), mesh.get_local_rank())
    return x.chunk(n)[here], y.chunk(n)[here]


def wrapped(net, group=None):
    return DistributedDataParallel(net, process_group=group, bucket_cap_mb=0.0005)


def ddp(kind, steps):
    net = Net(kind, 2)
    return train(wrapped(net), kind, *parts_of("ddp", kind), steps), [net]


def zero(kind, steps):
    net = Net(kind, 2)
    return train(wrapped(net), kind, *parts_of("zero", kind), steps, ZeroRedundancyOptimizer), [net]


def sharded(net, mesh):
    for piece in net.pieces:
        fully_shard(piece, mesh=mesh)
    return fully_shard(net, mesh=mesh)


def shard(kind, steps):
    net = sharded(Net(kind, 2), dist.init_device_mesh(DEVICE, (dist.get_world_size(),)))
    return train(net, kind, *parts_of("shard", kind), steps), [net]


def hybrid(kind, steps):
    """Copies of parts."""
    net = sharded(Net(kind, 2), dist.init_device_mesh(DEVICE, (2, dist.get_world_size() // 2)))
    return train(net, kind, *parts_of("hybrid", kind), steps), [net]


def cut(net, mesh):
    """The layers of the pieces in parts."""
    for piece in net.pieces:
        if isinstance(piece, Convolutions):
            channels(piece, mesh)
        elif isinstance(piece, (Wide, Attention)):
            columns = ("q", "k", "v", "up") if isinstance(piece, Attention) else ("up",)
            rows = ("o", "down") if isinstance(piece, Attention) else ("down",)
            plan = {name: ColwiseParallel() for name in columns} | {name: RowwiseParallel() for name in rows}
            parallelize_module(piece, mesh, plan)
    return net


def channels(piece, mesh):
    """A convolution makes some of the channels, the next one takes them."""

    def own(name, module, mesh):
        cuts = {"up": {"weight": Shard(0), "bias": Shard(0)}, "down": {"weight": Shard(1), "bias": Replicate()}}
        for key, p in list(module.named_parameters(recurse=False)):
            module.register_parameter(key, nn.Parameter(distribute_tensor(p.data, mesh, [cuts[name][key]])))

    def whole(module, inputs, mesh):
        return tuple(DTensor.from_local(x, mesh, [Replicate()]) for x in inputs)

    def local(module, output, mesh):
        return output.redistribute(placements=[Replicate()]).to_local()

    distribute_module(piece, mesh, own, whole, local)


def tensor(kind, steps):
    net = cut(Net(kind, 2), dist.init_device_mesh(DEVICE, (dist.get_world_size(),), mesh_dim_names=("tp",)))
    return train(net, kind, *data(kind), steps), [net]


def grid(*names):
    """A mesh of two for each name; the last one has the rest."""
    sizes = [2] * (len(names) - 1)
    return dist.init_device_mesh(DEVICE, (*sizes, dist.get_world_size() // 2 ** len(sizes)), mesh_dim_names=names)


def shard_tensor(kind, steps):
    mesh = grid("dp", "tp")
    net = sharded(cut(Net(kind, 2), mesh["tp"]), mesh["dp"])
    return train(net, kind, *parts_of("shard", kind, mesh["dp"]), steps), [net]


def ddp_tensor(kind, steps):
    mesh = grid("dp", "tp")
    net = cut(Net(kind, 2), mesh["tp"])
    return train(wrapped(net, mesh["dp"].get_group()), kind, *parts_of("ddp", kind, mesh["dp"]), steps), [net]


def pipeline(kind, steps, schedule=Schedule1F1B, each=1, mesh=None, change=lambda net: net):
    """Stages on the processes of mesh["pp"] (or on all); `change` is done to each, the batch is cut over mesh["dp"]."""
    group = None if mesh is None else mesh["pp"].get_group()
    n, here = dist.get_world_size(group), dist.get_rank(group)
    count = n * each
    depth = max(count, 2)
    stages, nets = [], []
    for s in range(count):
        if schedule.place(s, n) != here:
            continue
        first, last = ((depth + 2) * k // count for k in (s, s + 1))
        nets.append(Net(kind, depth, first, last))
        stages.append(PipelineStage(change(nets[-1]), s, count, DEVICE, group=group))
    ends = any(stage.is_last for stage in stages)
    run = schedule(stages if each > 1 else stages[0], n, loss_fn=loss_of)
    dp = mesh["dp"] if mesh is not None and "dp" in mesh.mesh_dim_names else None
    x, y = parts_of("pp", kind, dp) if dp is not None else data(kind)
    optimizer, losses = optimizer_of(kind, [p for net in nets for p in net.parameters()]), []
    for _ in range(steps):
        optimizer.zero_grad()
        found = []
        run.step(*((x,) if here == 0 else ()), target=y if ends else None, losses=found)
        optimizer.step()
        losses.append(torch.stack(found).mean().item() if found else 0.0)
    return losses if ends else None, nets, depth


def ddp_pipeline(kind, steps):
    mesh = grid("dp", "pp")
    return pipeline(kind, steps, mesh=mesh, change=lambda net: wrapped(net, mesh["dp"].get_group()))


def shard_pipeline(kind, steps):
    mesh = grid("dp", "pp")
    return pipeline(kind, steps, ScheduleGPipe, mesh=mesh, change=lambda net: sharded(net, mesh["dp"]))


def ddp_v(kind, steps):
    mesh, schedule = grid("dp", "pp"), ScheduleZBVZeroBubble
    return pipeline(kind, steps, schedule, 2, mesh, lambda net: wrapped(net, mesh["dp"].get_group()))


def shard_halves(kind, steps):
    mesh, schedule = grid("dp", "pp"), ScheduleInterleavedZeroBubble
    return pipeline(kind, steps, schedule, 2, mesh, lambda net: sharded(net, mesh["dp"]))


def tensor_v(kind, steps):
    mesh = grid("pp", "tp")
    return pipeline(kind, steps, ScheduleZBVZeroBubble, 2, mesh, lambda net: cut(net, mesh["tp"]))


def tensor_pipeline(kind, steps):
    mesh = grid("pp", "tp")
    return pipeline(kind, steps, mesh=mesh, change=lambda net: cut(net, mesh["tp"]))


def all_three(kind, steps):
    mesh = grid("dp", "pp", "tp")
    return pipeline(kind, steps, mesh=mesh, change=lambda net: sharded(cut(net, mesh["tp"]), mesh["dp"]))


ANY, EVEN, CUBE = (1, 2, 3, 4, 8), (4, 8), (8,)
WAYS = {
    "ddp": (ddp, ANY),
    "zero": (zero, ANY),
    "shard": (shard, ANY),
    "hybrid": (hybrid, EVEN),
    "tensor": (tensor, ANY),
    "gpipe": (functools.partial(pipeline, schedule=ScheduleGPipe), ANY),
    "1f1b": (pipeline, ANY),
    "interleaved": (functools.partial(pipeline, schedule=ScheduleInterleaved1F1B, each=2), ANY),
    "breadth": (functools.partial(pipeline, schedule=ScheduleLoopedBFS, each=2), ANY),
    "halves": (functools.partial(pipeline, schedule=ScheduleInterleavedZeroBubble, each=2), ANY),
    "v": (functools.partial(pipeline, schedule=ScheduleZBVZeroBubble, each=2), ANY),
    "ddp+tensor": (ddp_tensor, EVEN),
    "shard+tensor": (shard_tensor, EVEN),
    "ddp+pipeline": (ddp_pipeline, EVEN),
    "shard+pipeline": (shard_pipeline, EVEN),
    "tensor+pipeline": (tensor_pipeline, EVEN),
    "ddp+v": (ddp_v, EVEN),
    "shard+halves": (shard_halves, EVEN),
    "tensor+v": (tensor_v, EVEN),
    "shard+tensor+pipeline": (all_three, CUBE),
}


def whole(p):
    return p.full_tensor() if isinstance(p, DTensor) else p


def difference(way, kind, steps):
    """(of the curves, of the parameters): the largest of all processes."""
    losses, nets, *depth = WAYS[way][0](kind, steps)
    want, model = alone(kind, *(depth or [2]), steps)
    told = torch.tensor(
        [*([0.0] * steps if losses is None else losses), float(losses is not None)], dtype=torch.float64
    )
    dist.all_reduce(told)
    far = (told[:-1] / told[-1] - torch.tensor(want, dtype=torch.float64)).abs().max().item()
    apart = 0.0
    with torch.no_grad():
        for net in nets:
            for i, piece in enumerate(net.pieces, net.first):
                for a, b in zip(piece.parameters(), model.pieces[i].parameters(), strict=True):
                    apart = max(apart, (whole(a) - b).abs().max().item())
    most = torch.tensor([far, apart], dtype=torch.float64)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    return most.tolist()


def cells(n, chosen=()):
    """WAY:MODEL for that many processes, all or the chosen ones."""
    every = [f"{way}:{kind}" for way, (_, sizes) in WAYS.items() if n in sizes for kind in MODELS]
    return [c for c in every if not chosen or c in chosen or c.split(":")[0] in chosen]


def main(rank, args):
    for cell in cells(dist.get_world_size(), args.cells):
        way, kind = cell.split(":")
        far, apart = difference(way, kind, args.steps)
        if rank == 0:
            print(f"CURVE {cell} {far:.1e} {apart:.1e}", flush=True)
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("cells", nargs="*")
    args = parser.parse_args()
    torch.set_num_threads(1)
    engine = os.environ.get("TEST_ENGINE")
    if engine == "simulated":
        from torch.distributed import simulation

        simulation.run(main, int(os.environ["TEST_RANKS"]), (args,))
    else:
        dist.init_process_group(engine)
        main(dist.get_rank(), args)
        dist.destroy_process_group()
