"""tests/python/distributed/parallel_test.py: DistributedDataParallel trains as one process does with the whole batch."""

import os
import random

import pytest

# How many processes the curve is compared in, over which engines; curves_test.py has other ways to train over all of them.
CASES = [(n, engine) for n in (1, 2, 3, 4, 8) for engine in ("gloo", "shm", "mpi")]
if os.environ.get("ADJOIN_TEST_FULL") != "1":
    CASES = list(
        zip(
            (2, 3),
            random.Random(os.environ.get("ADJOIN_TEST_SEED", "0")).sample(("gloo", "shm", "mpi"), 2),
            strict=True,
        )
    )
TRAIN = """
import os, sys, torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

def made(kind):
    torch.manual_seed(3)
    if kind == "mlp":
        return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 4)).double()
    if kind == "conv":
        return nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 4)).double()
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Linear(6, 8), layer, nn.Flatten(), nn.Linear(24, 4)).double()

shapes = {"mlp": (12, 6), "conv": (12, 1, 4, 4), "transformer": (12, 3, 6)}

def train(net, x, y, steps=20):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

dist.init_process_group(os.environ.get("TEST_ENGINE"))
rank, n = dist.get_rank(), dist.get_world_size()
"""


@pytest.mark.parametrize("n, engine", CASES, indirect=["engine"])
def test_the_curve_is_that_of_the_whole_batch(good, n, engine):
    body = (
        TRAIN
        + """
for kind, shape in shapes.items():
    torch.manual_seed(1)
    x, y = torch.randn((24, *shape[1:]), dtype=torch.float64), torch.randn(24, 4, dtype=torch.float64)
    alone = made(kind)
    want = train(alone, x, y)
    torch.manual_seed(100 + rank)
    net = made(kind)
    with torch.no_grad():
        for p in net.parameters():
            p.add_(rank)  # rank 0's count
    net = DDP(net, bucket_cap_mb=0.0003)
    assert len(net.reducer.buckets) > 1 or kind == "conv"
    got = torch.tensor(train(net, x.chunk(n)[rank], y.chunk(n)[rank]), dtype=torch.float64)
    dist.all_reduce(got, dist.ReduceOp.AVG)
    assert (got - torch.tensor(want, dtype=torch.float64)).abs().max() < 1e-12, kind
    for a, b in zip(net.module.parameters(), alone.parameters()):
        assert (a - b).abs().max() < 1e-12, kind
    assert list(net.state_dict())[0].startswith("module.")
print("ok", rank)
"""
    )
    assert good(n, body, engine=engine) == [f"ok {r}" for r in range(n)]


def test_accumulation_hooks_buffers_and_samplers(good):
    body = (
        TRAIN
        + """
torch.manual_seed(1)
x, y = torch.randn(12, 6, dtype=torch.float64), torch.randn(12, 4, dtype=torch.float64)

# no_sync: gradients of several passes, reduced in the last one
alone, net = made("mlp"), DDP(made("mlp"))
mine_x, mine_y = x.chunk(n)[rank].chunk(3), y.chunk(n)[rank].chunk(3)
with net.no_sync():
    for a, b in list(zip(mine_x, mine_y))[:2]:
        ((net(a) - b) ** 2).mean().backward()
apart = [None] * n
dist.all_gather_object(apart, net.module[0].weight.grad.sum().item())
assert len(set(apart)) == n
((net(mine_x[2]) - mine_y[2]) ** 2).mean().backward()
((alone(x) - y) ** 2).mean().mul(3).backward()
for a, b in zip(net.parameters(), alone.parameters()):
    assert (a.grad - b.grad).abs().max() < 1e-12

# the processes of a mesh's dimension: all, or this one alone
grid = dist.init_device_mesh("cpu", (n, 1), mesh_dim_names=("dp", "tp"))
for name in ("dp", "tp"):
    net = DDP(made("mlp"), device_mesh=grid[name])
    ((net(x.chunk(n)[rank]) - y.chunk(n)[rank]) ** 2).mean().backward()
    far = max((3 * a.grad - b.grad).abs().max() for a, b in zip(net.parameters(), alone.parameters()))
    assert (far < 1e-12) == (name == "dp"), (name, far)
for more, words in (({"device_mesh": grid}, "pass one of them: mesh[NAME]"),
                    ({"device_mesh": grid["dp"], "process_group": dist.group.WORLD}, "pass one of them")):
    try:
        DDP(made("mlp"), **more)
    except RuntimeError as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)

# a hook of the user's in place of the mean
seen = []
def hook(state, bucket):
    seen.append((state, bucket.index(), bucket.is_last()))
    work = dist.all_reduce(bucket.buffer().div_(n), async_op=True)
    return work.get_future().then(lambda f: f.value()[0])
net = DDP(made("mlp"))
net.register_comm_hook("state", hook)
((net(x.chunk(n)[rank]) - y.chunk(n)[rank]) ** 2).mean().backward()
for a, b in zip(net.parameters(), alone.parameters()):
    assert (3 * a.grad - b.grad).abs().max() < 1e-12
assert seen == [("state", 0, True)]

# a part that only some processes use; one that nobody uses
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.common, self.first, self.never = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)
    def forward(self, x, first):
        x = self.common(x)
        return self.first(x) if first else x
net = DDP(Two(), find_unused_parameters=True)
for _ in range(2):
    net.zero_grad()
    net(torch.ones(1, 3), rank == 0).sum().backward()
    assert net.module.never.weight.grad is None
    grads = [None] * n
    dist.all_gather_object(grads, net.module.first.weight.grad.tolist())
    assert grads[0] == grads[1] and any(any(row) for row in grads[0])
net = DDP(Two())
net(torch.ones(1, 3), True).sum().backward()
try:
    net(torch.ones(1, 3), True)
except RuntimeError as error:
    assert "never.weight, never.bias" in str(error).replace("never.bias, never.weight", "never.weight, never.bias")
    assert "find_unused_parameters=True" in str(error)
else:
    raise AssertionError
with torch.no_grad():
    net(torch.ones(1, 3), True)

# buffers are those of rank 0; SyncBatchNorm sees one batch
torch.manual_seed(5)
x, y = torch.randn(12, 4, 3, dtype=torch.float64), torch.randn(12, 4, 3, dtype=torch.float64)
alone = nn.Sequential(nn.Conv1d(4, 4, 1), nn.BatchNorm1d(4)).double()
net = nn.Sequential(nn.Conv1d(4, 4, 1), nn.BatchNorm1d(4)).double()
net.load_state_dict(alone.state_dict())
net = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(net))
want = train(alone, x, y, 5)
got = torch.tensor(train(net, x.chunk(n)[rank], y.chunk(n)[rank], 5), dtype=torch.float64)
dist.all_reduce(got, dist.ReduceOp.AVG)
assert (got - torch.tensor(want, dtype=torch.float64)).abs().max() < 1e-12
assert (net.module[1].running_var - alone[1].running_var).abs().max() < 1e-12
plain = nn.BatchNorm1d(2)
net = DDP(plain)
net(torch.randn(4, 2) + 10 * rank), net(torch.randn(4, 2))
means = [None] * n
dist.all_gather_object(means, plain.running_mean.tolist())
net(torch.randn(4, 2))
assert plain.num_batches_tracked == 3

# each rank its part of a data set
sampler = torch.utils.data.DistributedSampler(range(10), shuffle=False)
parts = [None] * n
dist.all_gather_object(parts, list(sampler))
assert sorted(sum(parts, [])) == list(range(10))

# modules that differ are refused on every rank
try:
    DDP(nn.Linear(2 + rank, 1))
except RuntimeError as error:
    assert "rank 0 has ('weight', (1, 2)" in str(error) and "rank 1 has ('weight', (1, 3)" in str(error)
else:
    raise AssertionError
print("ok", rank)
"""
    )
    assert good(2, body) == ["ok 0", "ok 1"]


@pytest.mark.parametrize("place", ["bfloat16", "emulated"])
def test_gradients_that_are_no_floats_of_the_processor(good, place):
    """Halves, and tensors of a device that no engine serves: they go through the memory of the processor."""
    import adjoin

    if place == "emulated" and place not in adjoin.plugin.available():
        pytest.skip("NOT TESTED: the plugin emulated was not built")
    body = (
        TRAIN
        + f"""
place = torch.{"bfloat16" if place == "bfloat16" else 'device("emulated")'}
near = 3e-2 if place is torch.bfloat16 else 1e-12
torch.manual_seed(1)
x, y = torch.randn(12, 6, dtype=torch.float64), torch.randn(12, 4, dtype=torch.float64)
alone, net = made("mlp"), DDP(made("mlp").to(place), bucket_cap_mb=0.0003)
for _ in range(2):  # then the gradient lies in its bucket
    ((alone(x) - y) ** 2).mean().backward()
    ((net(x.chunk(n)[rank].to(place)) - y.chunk(n)[rank].to(place)) ** 2).mean().backward()
    for a, b in zip(alone.parameters(), net.parameters()):
        assert (a.grad - b.grad.cpu().double()).abs().max() < near * max(1, a.grad.abs().max())
    alone.zero_grad(), net.zero_grad()
print("ok", rank)
"""
    )
    assert good(2, body, engine="shm") == ["ok 0", "ok 1"]
