"""tests/python/distributed/sharded_test.py: fully_shard and plans for layers in parts train as one process does with the whole batch."""

import pytest

COMMON = """
import torch, torch.distributed as dist
from torch import nn
import torch.nn.functional as F
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
dist.init_process_group()
rank, n = dist.get_rank(), dist.get_world_size()

class Block(nn.Module):
    def __init__(self, width=8, heads=2):
        super().__init__()
        self.heads, self.n1, self.n2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
    def forward(self, x):
        y = self.n1(x)
        b, s, _ = y.shape
        q, k, v = (f(y).view(b, s, -1, 4).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, s, -1))
        return x + self.down(F.gelu(self.up(self.n2(x))))

class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.blocks, self.head = nn.Embedding(6, 8), nn.ModuleList(Block() for _ in range(2)), nn.Linear(8, 6)
    def forward(self, x):
        x = self.tok(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)

def made(kind):
    torch.manual_seed(3)
    if kind == "mlp":
        return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 4)).double()
    if kind == "conv":
        return nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 4)).double()
    return Transformer().double()

def data(kind):
    torch.manual_seed(1)
    if kind == "transformer":
        return torch.randint(0, 6, (12, 4)), torch.randint(0, 6, (12, 4))
    shape = {"mlp": (12, 6), "conv": (12, 1, 4, 4)}[kind]
    return torch.randn(shape, dtype=torch.float64), torch.randn(12, 4, dtype=torch.float64)

def loss_of(y, t):
    return F.cross_entropy(y.flatten(0, 1), t.flatten()) if t.dtype == torch.int64 else ((y - t) ** 2).mean()

def train(net, x, y, steps=8, lr=0.05, clip=None):
    # Adam makes steps of gradients that are 0 but for rounding, as that of a key's bias is
    kind = torch.optim.SGD if y.dtype == torch.int64 else torch.optim.AdamW
    optimizer = kind(net.parameters(), lr=lr, **({"momentum": 0.9} if y.dtype == torch.int64 else {}))
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        losses.append(loss.item())
    return losses, optimizer

def whole(p):
    return p.full_tensor() if isinstance(p, DTensor) else p

def alike(net, alone):
    for (name, a), b in zip(net.named_parameters(), alone.parameters()):
        assert (whole(a) - b).abs().max() < 1e-12, name
def mean(losses):
    t = torch.tensor(losses, dtype=torch.float64)
    dist.all_reduce(t, dist.ReduceOp.AVG)
    return t
"""


@pytest.mark.parametrize("n", [2, 3])
def test_fully_shard_has_the_curve_of_the_whole_batch(good, n):
    body = (
        COMMON
        + """
for kind in ("mlp", "conv", "transformer"):
    x, y = data(kind)
    alone, net = made(kind), made(kind)
    want, _ = train(alone, x, y, clip=0.5)
    parts = [net[0]] if kind != "transformer" else list(net.blocks)
    for part in parts:
        fully_shard(part)
    fully_shard(net)
    assert all(isinstance(p, DTensor) and isinstance(p, nn.Parameter) for p in net.parameters())
    assert sum(p.to_local().numel() for p in net.parameters()) < sum(p.numel() for p in alone.parameters())
    got, optimizer = train(net, x.chunk(n)[rank], y.chunk(n)[rank], clip=0.5)
    assert (mean(got) - torch.tensor(want, dtype=torch.float64)).abs().max() < 1e-12, kind
    alike(net, alone)
    assert all(isinstance(s["exp_avg"] if "exp_avg" in s else s["momentum_buffer"], DTensor) for s in optimizer.state.values())
print("ok", rank)
"""
    )
    assert good(n, body) == [f"ok {r}" for r in range(n)]


def test_layers_in_parts_have_the_curve_of_whole_ones(good):
    body = (
        COMMON
        + """
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import (
    ColwiseParallel, PrepareModuleInput, PrepareModuleInputOutput, PrepareModuleOutput, RowwiseParallel, SequenceParallel, loss_parallel,
    parallelize_module,
)
mesh = dist.init_device_mesh("cpu", (n,), mesh_dim_names=("tp",))
x, y = data("transformer")
alone = made("transformer")
want, _ = train(alone, x, y)
block = {"q": ColwiseParallel(), "k": ColwiseParallel(), "v": ColwiseParallel(), "o": RowwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()}
plan = {f"blocks.*.{name}": style for name, style in block.items()}

# the layers' products in parts, all else on each process
net = parallelize_module(made("transformer"), mesh, plan | {"tok": RowwiseParallel(input_layouts=Replicate()), "head": ColwiseParallel(output_layouts=Replicate())})
assert net.blocks[0].q.weight.to_local().shape == (8 // n, 8) and net.blocks[0].down.weight.placements == (Shard(1),)
got, _ = train(net, x, y)
assert max(abs(a - b) for a, b in zip(got, want)) < 1e-12
alike(net, alone)

# norms and sums of a part of the sequence, and the loss of a part of the classes
net = made("transformer")
for b in net.blocks:
    parallelize_module(b, mesh, {
        "n1": SequenceParallel(), "n2": SequenceParallel(),
        "q": ColwiseParallel(input_layouts=Shard(1)), "k": ColwiseParallel(input_layouts=Shard(1)), "v": ColwiseParallel(input_layouts=Shard(1)),
        "o": RowwiseParallel(output_layouts=Shard(1)), "up": ColwiseParallel(input_layouts=Shard(1)),
        "down": RowwiseParallel(output_layouts=Shard(1)),
    })
parallelize_module(net, mesh, {"tok": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))})
parallelize_module(net.head, mesh, ColwiseParallel(input_layouts=Shard(1), use_local_output=False))

def forward(net, x):
    h = net.tok(x)
    for b in net.blocks:
        m = b.n1(h)
        q, k, v = (f(m).view(x.shape[0], x.shape[1], -1, 4).transpose(1, 2) for f in (b.q, b.k, b.v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + b.o(a.transpose(1, 2).reshape(x.shape[0], x.shape[1], -1))
        h = h + b.down(F.gelu(b.up(b.n2(h))))
    return net.head(h)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
losses = []
for _ in range(8):
    optimizer.zero_grad()
    with loss_parallel():
        logits = forward(net, x)
        assert logits.placements == (Shard(2),)
        target = distribute_tensor(y.flatten(), mesh, [Replicate()])
        with CommDebugMode() as comm:
            loss = F.cross_entropy(logits.flatten(0, 1), target)
        assert "all_gather" not in comm.get_comm_counts()
        loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert max(abs(a - b) for a, b in zip(losses, want)) < 1e-12, (losses, want)
alike(net, alone)

class Two(nn.Module):
    def forward(self, a, b=None):
        return a * 2, b
seen = []
two = parallelize_module(Two(), mesh, PrepareModuleInput(
    input_layouts=(Shard(0),), desired_input_layouts=(Replicate(),), input_kwarg_layouts={"b": Replicate()},
    desired_input_kwarg_layouts={"b": Shard(0)}, use_local_output=True))
parallelize_module(two, mesh, PrepareModuleOutput(output_layouts=(Replicate(), None), desired_output_layouts=(Shard(0), None)))
a, b = two(torch.full((1, 2), float(rank)), b=torch.arange(2 * n))
assert a.tolist() == [[2.0 * rank] * 2] and b.tolist() == [2 * rank, 2 * rank + 1]
both = parallelize_module(nn.Identity(), mesh, PrepareModuleInputOutput(
    input_layouts=(Shard(0),), desired_input_layouts=(Replicate(),), output_layouts=(Replicate(),), desired_output_layouts=(Shard(1),)))
assert both(torch.full((1, 2), float(rank))).shape == (n, 2 // n)
try:
    parallelize_module(Two(), mesh, {"nobody": ColwiseParallel()})
except ValueError as error:
    assert "no module has the path 'nobody'" in str(error)
else:
    raise AssertionError
print("ok", rank)
"""
    )
    assert good(2, body) == ["ok 0", "ok 1"]


def test_policies_of_fully_shard(good):
    body = (
        COMMON
        + """
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy, StateDictType
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
import functools
x, y = data("mlp")
mine_x, mine_y = x.chunk(n)[rank], y.chunk(n)[rank]

# dtypes: parameters in use, gradients that are reduced, results
net = fully_shard(made("mlp").float(), mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32, torch.float64))
seen = []
net[0].register_forward_hook(lambda m, args, out: seen.append((m.weight.dtype, args[0].dtype, out.dtype)))
out = net(mine_x.float())
out.sum().backward()
assert seen == [(torch.bfloat16,) * 3] and out.dtype == torch.float64
assert net[0].weight.dtype == net[0].weight.grad.dtype == torch.float32

# whole parameters are let go after forward, or kept; backward gathers them again
import gc, weakref
from torch.distributed import _collectives
calls = []
real = _collectives.all_gather_into_tensor
_collectives.all_gather_into_tensor = lambda *args, **more: calls.append(1) or real(*args, **more)
for reshard in (True, False):
    net = fully_shard(made("mlp"), reshard_after_forward=reshard)
    held = []
    net[2].register_forward_hook(lambda m, args, out: held.append(weakref.ref(m.weight)))
    calls.clear()
    loss = net(mine_x.clone().requires_grad_()).square().sum()
    gc.collect()
    assert len(calls) == 1
    loss.backward()
    assert len(calls) == (2 if reshard else 1), (reshard, calls)

# gradients of several passes, reduced once
net, alone = fully_shard(made("mlp")), made("mlp")
net.set_requires_gradient_sync(False)
loss_of(net(mine_x[:3]), mine_y[:3]).backward()
assert all(p.grad is None for p in net.parameters())
net.set_requires_gradient_sync(True)
loss_of(net(mine_x[3:]), mine_y[3:]).backward()
for r in range(n):
    a, b = x.chunk(n)[r], y.chunk(n)[r]
    ((loss_of(alone(a[:3]), b[:3]) + loss_of(alone(a[3:]), b[3:])) / n).backward()
for p, q in zip(net.parameters(), alone.parameters()):
    assert (p.grad.full_tensor() - q.grad).abs().max() < 1e-12
net.unshard()
assert net[0].weight.shape == (9, 6) and not isinstance(net[0].weight, DTensor)
net.reshard()
assert isinstance(net[0].weight, DTensor)

# the older class
want, _ = train(made("mlp"), x, y)
net = FSDP(made("mlp"), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), use_orig_params=True)
assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
got, _ = train(net, mine_x, mine_y)
assert (mean(got) - torch.tensor(want, dtype=torch.float64)).abs().max() < 1e-12
state = net.state_dict()
assert not isinstance(state["0.weight"], DTensor) and state["0.weight"].shape == (9, 6)
with FSDP.state_dict_type(net, StateDictType.SHARDED_STATE_DICT):
    assert isinstance(net.state_dict()["0.weight"], DTensor)
other = FSDP(made("mlp"), sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)
other.load_state_dict(state)
for p, q in zip(other.parameters(), net.parameters()):
    assert p.full_tensor().equal(q.full_tensor())
with FSDP.summon_full_params(other):
    other.module[0].weight.data.fill_(2.0)
assert (other.module[0].weight.full_tensor() == 2).all()
with other.no_sync():
    other(mine_x).sum().backward()
assert other.module[0].weight.grad is None
print("ok", rank)
"""
    )
    assert good(2, body) == ["ok 0", "ok 1"]


def test_meshes_of_two_dimensions(good, tmp_path):
    """Copies of parts, and parts of layers in parts; a checkpoint of one is one of the other."""
    body = (
        COMMON
        + """
import sys, torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
x, y = data("transformer")
alone = made("transformer")
want, _ = train(alone, x, y, clip=0.5)
grid = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))

net = made("transformer")
for part in (*net.blocks, net):
    fully_shard(part, mesh=grid)
assert net.head.weight.placements == (Replicate(), Shard(0)) and net.head.weight.to_local().shape == (3, 8)
got, _ = train(net, x.chunk(4)[rank], y.chunk(4)[rank], clip=0.5)
assert (mean(got) - torch.tensor(want, dtype=torch.float64)).abs().max() < 1e-12
alike(net, alone)

def both():
    net = made("transformer")
    plan = {name: ColwiseParallel() for name in ("q", "k", "v", "up")} | {name: RowwiseParallel() for name in ("o", "down")}
    for block in net.blocks:
        fully_shard(parallelize_module(block, grid["tp"], plan), mesh=grid["dp"])
    return fully_shard(net, mesh=grid["dp"])
net, place = both(), grid["dp"].get_local_rank()
assert net.blocks[0].up.weight.placements == (Shard(0), Shard(0)) and net.blocks[0].up.weight.to_local().shape == (4, 8)
got, optimizer = train(net, x.chunk(2)[place], y.chunk(2)[place], clip=0.5)
assert (mean(got) - torch.tensor(want, dtype=torch.float64)).abs().max() < 1e-12
alike(net, alone)
model, optim = get_state_dict(net, optimizer)
dcp.save({"model": model, "optim": optim}, checkpoint_id=sys.argv[1])
again = both()
its = torch.optim.SGD(again.parameters(), lr=1.0, momentum=0.9)
model, optim = get_state_dict(again, its)
dcp.load({"model": model, "optim": optim}, checkpoint_id=sys.argv[1])
set_state_dict(again, its, model_state_dict=model, optim_state_dict=optim)
for a, b in zip(again.parameters(), net.parameters()):
    assert a.to_local().equal(b.to_local())
    assert its.state[a]["momentum_buffer"].to_local().equal(optimizer.state[b]["momentum_buffer"].to_local())
plain = made("transformer")
dcp.load({"model": plain}, checkpoint_id=sys.argv[1], no_dist=True)
alike(plain, alone)
print("ok", rank)
"""
    )
    assert good(4, body, arguments=(str(tmp_path / "c"),)) == [f"ok {r}" for r in range(4)]


def test_modules_that_are_made_elsewhere_or_run_twice(good):
    body = (
        COMMON
        + """
import copy, pickle
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, FullStateDictConfig, StateDictType
from torch.utils.checkpoint import checkpoint
x, y = data("mlp")
mine_x, mine_y = x.chunk(n)[rank], y.chunk(n)[rank]
alone = made("mlp")
loss_of(alone(x), y).backward()

class Wrapped(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        return self.inner[2](checkpoint(lambda x: self.inner[1](self.inner[0](x)), x, use_reentrant=False))
net = Wrapped(made("mlp"))  # what is computed again gathers again
fully_shard(net.inner[0]), fully_shard(net)
loss_of(net(mine_x), mine_y).backward()
for a, b in zip(net.parameters(), alone.parameters()):
    assert (a.grad.full_tensor() - b.grad).abs().max() < 1e-12

with torch.device("meta"):
    net = made("mlp")
fully_shard(net)
assert net[0].weight.device.type == "meta"
net.to_empty(device="cpu")
with torch.no_grad():
    for a, b in zip(net.parameters(), alone.parameters()):
        a.copy_(distribute_tensor(b.detach(), a.device_mesh, a.placements))
loss_of(net(mine_x), mine_y).backward()
for a, b in zip(net.parameters(), alone.parameters()):
    assert (a.grad.full_tensor() - b.grad).abs().max() < 1e-12
net = fully_shard(made("mlp").float()).double()
assert net(mine_x).dtype == torch.float64 and net[0].weight.dtype == torch.float64

# states of the older class's optimizers
net = FSDP(made("mlp"))
_, optimizer = train(net, mine_x, mine_y, steps=2)
state = FSDP.optim_state_dict(net, optimizer)
assert list(state["state"]) == ["0.weight", "0.bias", "2.weight", "2.bias"] and not isinstance(state["state"]["0.weight"]["exp_avg"], DTensor)
again = FSDP(made("mlp"))
other = torch.optim.AdamW(again.parameters(), lr=1.0)
other.load_state_dict(FSDP.optim_state_dict_to_load(again, other, state))
for a, b in zip(net.parameters(), again.parameters()):
    assert optimizer.state[a]["exp_avg"].to_local().equal(other.state[b]["exp_avg"].to_local())
assert other.param_groups[0]["lr"] == 0.05
whole = FSDP.full_optim_state_dict(net, optimizer)  # in process 0 alone
assert whole if rank == 0 else whole == {}
every, parts = FSDP.full_optim_state_dict(net, optimizer, rank0_only=False), FSDP.sharded_optim_state_dict(net, optimizer)
assert every["state"]["0.weight"]["exp_avg"].equal(parts["state"]["0.weight"]["exp_avg"].full_tensor())
for taken in (FSDP.scatter_full_optim_state_dict(whole or None, again, optim=other), FSDP.shard_full_optim_state_dict(every, again, optim=other)):
    other.load_state_dict({"state": {}, "param_groups": other.state_dict()["param_groups"]})
    other.load_state_dict(taken)
    for a, b in zip(net.parameters(), again.parameters()):
        assert optimizer.state[a]["exp_avg"].to_local().equal(other.state[b]["exp_avg"].to_local())
FSDP.set_state_dict_type(net, StateDictType.FULL_STATE_DICT, FullStateDictConfig(rank0_only=True))
assert len(net.state_dict()) == (4 if rank == 0 else 0)
try:
    pickle.dumps(net.module[0].weight)
except RuntimeError as error:
    assert "torch.distributed.checkpoint saves them" in str(error)
else:
    raise AssertionError
try:
    copy.deepcopy(net)
except RuntimeError as error:
    assert "build another one" in str(error)
else:
    raise AssertionError
print("ok", rank)
"""
    )
    assert good(2, body) == ["ok 0", "ok 1"]
