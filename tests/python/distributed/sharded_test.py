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
