"""tests/python/distributed/dtensor_test.py: a call with DTensors computes what it would of the whole tensors, wherever parts lie."""

COMMON = """
import copy, torch, torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
dist.init_process_group()
rank, n = dist.get_rank(), dist.get_world_size()
mesh = dist.init_device_mesh("cpu", (n,))
torch.manual_seed(0)

def placed(t, *p, on=mesh):
    return distribute_tensor(t, on, p)

def close(x, y, *what):
    x = x.full_tensor() if isinstance(x, DTensor) else x
    assert x.shape == y.shape and (x - y).abs().max() < 1e-12, what
"""


def test_parts_go_wherever_they_are_wanted(good):
    body = (
        COMMON
        + """
for t in (torch.randn(7, 5, dtype=torch.float64), torch.arange(6).reshape(1, 6)):
    kinds = (Shard(0), Shard(1), Replicate(), Partial())
    for a in kinds[:3]:
        for b in kinds:
            moved = placed(t, a).redistribute(mesh, [b])
            assert moved.placements == (b,) and moved.shape == t.shape
            for c in kinds[:3]:
                assert moved.redistribute(mesh, [c]).full_tensor().equal(t), (a, b, c)
rows = placed(torch.arange(7.0), Shard(0))
assert rows.to_local().tolist() == [[0, 1, 2], [3, 4, 5], [6]][rank] and rows.shape == (7,)
w = torch.full((2, 2), float(rank + 1), requires_grad=True)
for p, q, want in ((Partial(), Replicate(), 1.0), (Shard(0), Replicate(), 1.0), (Replicate(), Shard(0), 1.0)):
    w.grad = None
    whole = DTensor.from_local(w, mesh, [p])
    other = whole.redistribute(mesh, [q])
    (other * 1.0).sum().backward()
    assert w.grad.tolist() == [[want] * 2] * 2, (p, q, w.grad)
made = DTensor.from_local(w, mesh, [Partial()])
assert made.sum().item() == 4 * sum(range(1, n + 1))
assert (placed(torch.ones(3), Replicate()) + 1).full_tensor().tolist() == [2, 2, 2]
try:
    made + torch.ones(2, 2)
except RuntimeError as error:
    assert "got mixed torch.Tensor and DTensor" in str(error)
else:
    raise AssertionError
from torch.distributed.tensor import ones, rand, zeros
from torch.distributed.tensor.experimental import implicit_replication
with implicit_replication():
    assert (made * torch.ones(2, 2)).full_tensor()[0, 0] == sum(range(1, n + 1))
torch.manual_seed(4)
part = rand(5, 3, device_mesh=mesh, placements=[Shard(0)])
torch.manual_seed(4)
assert part.full_tensor().equal(torch.rand(5, 3))
assert zeros(4, device_mesh=mesh).sum().item() == 0 and ones((5, 2), device_mesh=mesh, placements=[Shard(1)]).sum().item() == 10
p, before = nn.Parameter(part), part.full_tensor()
again = copy.deepcopy(p)
assert isinstance(again, nn.Parameter) and again.to_local().equal(p.to_local()) and "placements" in repr(p)
with torch.no_grad():
    p.zero_(), again.add_(placed(torch.ones(5, 3), Replicate()))
assert p.full_tensor().sum() == 0 and again.full_tensor().equal(before + 1) and part.sum().item() == 0
torch.manual_seed(6), nn.init.normal_(p), torch.manual_seed(6)
assert p.full_tensor().equal(nn.init.normal_(torch.empty(5, 3)))  # the place in the whole says the number
print("ok", rank)
"""
    )
    assert good(3, body) == ["ok 0", "ok 1", "ok 2"]


def test_layers_and_their_gradients(good):
    body = (
        COMMON
        + """
cases = [
    (lambda: nn.Linear(6, 4), (4, 6), 0), (lambda: nn.Linear(6, 4, bias=False), (2, 3, 6), 0), (lambda: nn.LayerNorm(6), (4, 3, 6), 0),
    (lambda: nn.Conv2d(2, 4, 3), (4, 2, 6, 6), 0), (lambda: nn.BatchNorm2d(2), (4, 2, 3, 3), 0),
    (lambda: nn.GroupNorm(2, 4), (4, 4, 3), 0), (lambda: nn.Embedding(7, 6), (4, 3), 7), (lambda: nn.RMSNorm(6), (4, 3, 6), 0),
    (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (4, 3, 8), 0), (lambda: nn.PReLU(), (4, 3), 0),
    (lambda: nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(2), nn.Dropout(0.5), nn.Softmax(-1)), (4, 2, 4, 4), 0),
]
quiet = 0
for make, shape, ints in cases:
    module = make().double()
    x = torch.randint(0, ints, shape) if ints else torch.randn(shape, dtype=torch.float64)

    def run(net, x):
        torch.manual_seed(5)
        y = net(x)
        if list(net.parameters()):
            (y * y).mean().backward()
        return y
    alone = copy.deepcopy(module)
    want = run(alone, x)
    for of_input in (Shard(0), Replicate()):
        for of_weights in (Replicate(), Shard(0), Shard(1)):
            def cut(name, part, mesh):
                for key, p in list(part._parameters.items()):
                    if p is not None:
                        fits = not isinstance(of_weights, Shard) or p.dim() > of_weights.dim
                        part.register_parameter(key, nn.Parameter(placed(p.data, of_weights if fits else Replicate())))
            net = distribute_module(copy.deepcopy(module), mesh, cut)
            with CommDebugMode() as comm:
                got = run(net, placed(x, of_input))
            close(got, want, module, of_input, of_weights)
            for (name, a), b in zip(net.named_parameters(), alone.parameters()):
                close(a.grad, b.grad, module, name, of_input, of_weights)
            if of_input == Shard(0) and of_weights == Replicate() and not isinstance(module, nn.BatchNorm2d):
                assert "all_gather" not in comm.get_comm_counts(), (module, comm.get_comm_counts())
                quiet += 1
assert quiet == len(cases) - 1
print("ok", rank)
"""
    )
    assert good(2, body) == ["ok 0", "ok 1"]
