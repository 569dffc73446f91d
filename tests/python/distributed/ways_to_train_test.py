"""tests/python/distributed/ways_to_train_test.py: means now and then, scaled gradients in parts, functions of parts, modules that are
replicated in place, the strategies of the older FSDP; each thread is a process."""

import copy
import functools
import io
import threading

import pytest

import adjoin
import adjoin.distributed as dist
from adjoin import futures, nn
from adjoin.distributed import simulation
from adjoin.distributed._composable.replicate import replicate
from adjoin.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from adjoin.distributed.algorithms.model_averaging.hierarchical_model_averager import HierarchicalModelAverager
from adjoin.distributed.fsdp import FullyShardedDataParallel as FSDP
from adjoin.distributed.fsdp import FSDPModule, ShardingStrategy, StateDictType, fully_shard
from adjoin.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from adjoin.distributed.fsdp.wrap import (
    CustomPolicy,
    ModuleWrapPolicy,
    _or_policy,
    enable_wrap,
    size_based_auto_wrap_policy,
    wrap,
)
from adjoin.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from adjoin.distributed.optim.apply_optimizer_in_backward import (
    _apply_optimizer_in_backward,
    _get_in_backward_optimizers,
)
from adjoin.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from adjoin.distributed.tensor.experimental import local_map
from adjoin.distributed.tensor.parallel import ColwiseParallel, loss_parallel, parallelize_module

if "simulated" not in adjoin.plugin.available():
    pytest.skip("NOT TESTED: the plugin simulated was not built", allow_module_level=True)


def test_means_of_parameters_now_and_then():
    def process(rank):
        p = nn.Parameter(adjoin.tensor([float(rank)]))
        plain = nn.Parameter(adjoin.tensor([float(rank)]))  # without a gradient: it is nobody's business
        inner = adjoin.optim.SGD([p, plain], lr=1.0)
        opt = PostLocalSGDOptimizer(inner, PeriodicModelAverager(period=2, warmup_steps=1))
        said = []
        for _ in range(4):
            opt.zero_grad()
            (p * (rank + 1)).sum().backward()
            opt.step()
            said.append(p.item())
        assert plain.item() == rank
        again = PostLocalSGDOptimizer(adjoin.optim.SGD([p, plain], lr=1.0), PeriodicModelAverager(2))
        again.load_state_dict(opt.state_dict())
        assert again.averager.step == 4
        by_size = HierarchicalModelAverager({1: 2, 2: 4})
        p.data.fill_(float(rank))
        by_size.average_parameters([p])  # step 0: it is time for both, and the larger one counts
        whole = p.item()
        p.data.fill_(float(rank))
        by_size.average_parameters([p])
        return said, whole, p.item()

    # Step 0 alone; the mean after steps 1 and 3: 1.5 - 2.5 for each step made.
    for rank, (said, whole, half) in enumerate(simulation.run(process, 4)):
        assert said == [-1.0, -3.5, -3.5 - (rank + 1), -8.5]
        assert whole == 1.5 and half == (0.5 if rank < 2 else 2.5)


def test_one_inf_leaves_the_step_out_everywhere():
    def process(rank):
        p = nn.Parameter(adjoin.ones(2))
        opt, scaler = adjoin.optim.SGD([p], lr=1.0), ShardedGradScaler("cpu", init_scale=4.0)
        scaler.scale((p * (float("inf") if rank == 1 else 1.0)).sum()).backward()
        if rank == 2:
            p.grad = None  # a process whose part has no gradient
        scaler.step(opt)
        scaler.update()
        skipped = p.tolist()
        opt.zero_grad()
        scaler.scale(p.sum()).backward()
        scaler.step(opt)
        scaler.update()
        return skipped, p.tolist(), scaler.get_scale()

    assert simulation.run(process, 3) == [([1.0, 1.0], [0.0, 0.0], 2.0)] * 3


def test_functions_of_parts():
    def process(rank):
        mesh = dist.init_device_mesh("cpu", (2,))
        x, w = adjoin.arange(8.0).reshape(4, 2), adjoin.arange(6.0).reshape(2, 3)
        rows, whole = [Shard(0)], [Replicate()]
        dx, dw = distribute_tensor(x, mesh, rows), distribute_tensor(w, mesh, whole)
        product = local_map(lambda a, b: a @ b, out_placements=rows, in_placements=(rows, whole))
        y = product(dx, dw)
        assert isinstance(y, DTensor) and y.placements == (Shard(0),) and y.full_tensor().equal(x @ w)
        cut = distribute_tensor(w, mesh, [Shard(0)])
        with pytest.raises(ValueError, match="set redistribute_inputs=True"):
            product(dx, cut)
        assert (
            local_map(lambda a, b: a @ b, rows, (rows, whole), redistribute_inputs=True)(dx, cut)
            .full_tensor()
            .equal(x @ w)
        )
        with pytest.raises(AssertionError, match="argument 1 is a DTensor, which expects placements"):
            local_map(lambda a, b: a @ b, rows, (rows, None))(dx, dw)
        assert product(x, w).equal(x @ w)  # no part among them
        dx.requires_grad_()
        dw.requires_grad_()
        f = local_map(lambda a, b: (a @ b, 7), (rows, None), (rows, whole), in_grad_placements=(rows, [Partial()]))
        y, seven = f(dx, dw)
        y.sum().backward()
        assert seven == 7 and dw.grad.full_tensor().equal(x.sum(0).unsqueeze(1).expand(2, 3))
        return True

    assert simulation.run(process, 2) == [True] * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.b(self.a(x).tanh())


def curve(model, batches, opt=None):
    opt = opt or adjoin.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for x in batches:
        opt.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def of_ranks(make, n=4):
    """The curve of one process with the whole batch, and the mean of all processes' curves."""
    generator = adjoin.Generator().manual_seed(3)
    net = Net().double()
    for p in net.parameters():
        p.data = adjoin.randn(p.shape, generator=generator, dtype=adjoin.float64)
    batches = [adjoin.randn(8, 3, generator=generator, dtype=adjoin.float64) for _ in range(4)]
    nets = [copy.deepcopy(net) for _ in range(n)]
    wanted = curve(net, batches)

    def process(rank):
        return curve(make(nets[rank], rank), [x.chunk(n)[rank] for x in batches])

    found = simulation.run(process, n)
    mean = [sum(step) / n for step in zip(*found, strict=True)]
    assert mean == pytest.approx(wanted, rel=1e-12)
    return net


def test_a_module_that_is_replicated_in_place():
    def whole(net, rank):
        made = replicate(net, bucket_cap_mb=1)
        assert made is net and list(net.state_dict()) == ["a.weight", "a.bias", "b.weight", "b.bias"]
        with pytest.raises(RuntimeError, match="replicated already"):
            replicate(net)
        return made

    def layers(net, rank):
        replicate(net.a)
        replicate(net.b)
        return net

    of_ranks(whole)
    of_ranks(layers)

    def without(rank):
        net = replicate(nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)), ignored_modules=[])
        own = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
        for p in own.parameters():
            p.data.fill_(1.0)
        replicate(own, ignored_modules=[own[0]])
        (own(adjoin.ones(1, 1) * rank)).sum().backward()
        return own[0].weight.grad.item(), own[1].weight.grad.item(), net is not own

    assert simulation.run(without, 2) == [(0.0, 0.5, True), (1.0, 0.5, True)]


@pytest.mark.parametrize("strategy", ["NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2", "FULL_SHARD"])
def test_strategies_of_fsdp(strategy, monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")

    def make(net, rank):
        policy = CustomPolicy(lambda m: {"sharding_strategy": ShardingStrategy.SHARD_GRAD_OP} if m is net.a else False)
        made = FSDP(net, sharding_strategy=ShardingStrategy[strategy], auto_wrap_policy=policy)
        rows = {"NO_SHARD": 4, "FULL_SHARD": 1}.get(strategy, 2)
        assert made.module.a.weight.to_local().shape == (rows, 3)
        assert (
            len(FSDP.fsdp_modules(made)) == 1
            and FSDP.get_state_dict_type(made).state_dict_type is StateDictType.FULL_STATE_DICT
        )
        return made

    of_ranks(make)


def groups(net, policy, **more):
    """The names of the parts of a module that the policy makes groups of their own."""
    wrapped = FSDP(net, auto_wrap_policy=policy, **more)
    return {name for name, m in wrapped.module.named_modules() if name and isinstance(m, FSDPModule)}


def test_which_parts_are_groups():
    def process(rank):
        def make():
            return nn.Sequential(  # of 110, 72, 63 and 24 elements
                nn.Linear(10, 10),
                nn.ModuleList([nn.Linear(8, 4), nn.Linear(8, 4)]),
                nn.Sequential(nn.Sequential(nn.Linear(2, 7), nn.Linear(7, 3)), nn.Linear(5, 3)),
                nn.MultiheadAttention(2, 1),
            )

        some = functools.partial(size_based_auto_wrap_policy, min_num_params=40)
        assert groups(make(), some) == {"0", "2.0"}  # the list is none; what is left of 2 is too small
        few = functools.partial(size_based_auto_wrap_policy, min_num_params=20)
        assert groups(make(), few) == {"0", "1.0", "1.1", "2.0.0", "2.0.1"}  # an attention is left whole
        leaves = {"force_leaf_modules": {nn.Linear}, "exclude_wrap_modules": {nn.ModuleList}}
        assert groups(make(), functools.partial(few, **leaves)) == {"2.0", "3"}
        assert groups(make(), {nn.Linear}) >= {"0", "1.0", "1.1", "2.0.0", "2.0.1", "2.1"}
        either = functools.partial(_or_policy, policies=[some, ModuleWrapPolicy({nn.MultiheadAttention})])
        assert groups(make(), either) == {"0", "2.0", "3"}
        net = make()
        assert groups(net, some, ignored_modules=[net[0]]) == {"2.0"}
        return True

    assert simulation.run(process, 2) == [True] * 2


def test_a_module_without_values_is_filled():
    asked = []

    def process(rank):
        def fill(module):
            asked.append(type(module).__name__)
            module.to_empty(device="cpu", recurse=False)
            with adjoin.no_grad():
                for p in module.parameters(recurse=False):
                    p.fill_(p.numel())

        net = nn.Sequential(
            nn.Linear(3, 4, device="meta"), nn.Sequential(nn.Linear(4, 2, device="meta")), nn.Linear(2, 1)
        )
        net = FSDP(net, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), param_init_fn=fill)
        with FSDP.summon_full_params(net):
            filled = [p.flatten()[0].item() for p in net.module[:2].parameters()]
        left = nn.Linear(2, 2, device="meta")
        with pytest.raises(ValueError, match="has left weight without values"):
            FSDP(left, param_init_fn=lambda m: None)
        return filled, net(adjoin.ones(2, 3)).shape

    assert simulation.run(process, 2) == [([12.0, 4.0, 8.0, 2.0], (2, 1))] * 2
    assert asked == ["Linear"] * 4


def test_parts_that_make_no_tensor_are_told():
    def process(rank):
        mesh = dist.init_device_mesh("cpu", (2, 2))
        cut = [Shard(0), Replicate()]
        part = adjoin.full((2,), float(rank))
        whole = DTensor.from_local(part, mesh, cut, run_check=True)
        assert whole.full_tensor().tolist() == [0.0, 0.0, 2.0, 2.0]
        for other in (part.double(), part.clone().requires_grad_()):
            mine = other if rank == 1 else part
            with pytest.raises(ValueError, match="rank 0 has .*float32; rank 1 has .*float(64|32 that requires)"):
                DTensor.from_local(mine, mesh, cut, run_check=True)
        return True

    assert simulation.run(process, 4) == [True] * 4


def test_wrapping_and_what_tutorials_call():
    def process(rank):
        net = Net()
        with enable_wrap(wrapper_cls=FSDP, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP):
            inner = wrap(net.a)
        assert isinstance(inner, FSDP) and wrap(net.b) is net.b
        model = Net()
        for layer in (model.a, model.b):
            fully_shard(layer)
        fully_shard(model)
        model.a.set_modules_to_forward_prefetch([model.b])
        model.b.set_modules_to_backward_prefetch([model.a])
        model.set_is_last_backward(True)
        with pytest.raises(ValueError, match="Linear is no FSDPModule"):
            model.a.set_modules_to_forward_prefetch([nn.Linear(1, 1)])
        mesh = dist.init_device_mesh("cpu", (2,))
        t = distribute_tensor(adjoin.empty(4, 2, device="meta"), mesh, [Shard(0)])
        assert t.is_meta and t.to_local().shape == (2, 2)
        t = adjoin.empty_like(t, device="cpu").fill_(3.0)
        assert t.full_tensor().tolist() == [[3.0] * 2] * 4
        with pytest.raises(RuntimeError, match="torch.distributed.checkpoint saves them"):
            adjoin.save(t, io.BytesIO())
        return True

    assert simulation.run(process, 2) == [True] * 2


def test_zero_takes_more_groups_and_what_a_step_notes():
    class Noting(adjoin.optim.SGD):
        def step(self, closure=None):
            for g in self.param_groups:
                g["noted"] = g.get("noted", 0) + 1
            return super().step(closure)

    def process(rank):
        params = [nn.Parameter(adjoin.ones(n)) for n in (1, 2, 3)]
        opt = ZeroRedundancyOptimizer(params[:1], Noting, lr=1.0)
        opt.add_param_group({"params": params[1:], "lr": 0.5})
        for p in params:
            p.grad = adjoin.ones_like(p)
        opt.step()
        opt.consolidate_state_dict()
        owned = [p.numel() for g in opt.optim.param_groups for p in g["params"]]
        return [p[0].item() for p in params], [g["noted"] for g in opt.param_groups], owned

    assert simulation.run(process, 2) == [([0.0, 0.5, 0.5], [1, 1], [1, 2]), ([0.0, 0.5, 0.5], [1, 1], [3])]


def test_steps_in_backward():
    net = Net()
    before = copy.deepcopy(net)
    _apply_optimizer_in_backward(adjoin.optim.SGD, net.parameters(), {"lr": 0.1})
    x = adjoin.ones(2, 3)
    for _ in range(2):
        net(x).sum().backward()
        assert all(p.grad is None for p in net.parameters())
    opt = adjoin.optim.SGD(before.parameters(), lr=0.1)
    for _ in range(2):
        opt.zero_grad()
        before(x).sum().backward()
        opt.step()
    assert all(a.equal(b) for a, b in zip(net.parameters(), before.parameters(), strict=True))
    assert len(_get_in_backward_optimizers(net)) == 4


def test_plain_targets_and_the_mesh_around():
    logits, target = adjoin.arange(12.0).reshape(3, 4) / 3, adjoin.tensor([0, 3, 1])
    whole = logits.clone().requires_grad_()
    nn.functional.cross_entropy(whole, target).backward()

    def process(rank):
        with dist.init_device_mesh("cpu", (2,)) as mesh:
            cut = distribute_tensor(logits, placements=[Shard(1)]).requires_grad_()
            assert cut.device_mesh is mesh
            layer = parallelize_module(nn.Linear(4, 4), parallelize_plan=ColwiseParallel())
            assert layer.weight.device_mesh is mesh and layer.weight.to_local().shape == (2, 4)
        if rank == 0:  # filters of warnings are the process's
            with pytest.warns(UserWarning, match="No parallelize_plan"):
                assert parallelize_module(layer, mesh) is layer
        with loss_parallel():
            loss = nn.functional.cross_entropy(cut, target)
            loss.backward()
        return loss.full_tensor().item(), cut.grad.full_tensor().sub(whole.grad).abs().max().item()

    for loss, apart in simulation.run(process, 2):
        assert loss == pytest.approx(nn.functional.cross_entropy(logits, target).item(), rel=1e-6) and apart < 1e-7


def test_futures_of_collectives():
    def process(rank):
        x, y = adjoin.ones(2), adjoin.full((1,), float(rank))
        first = dist.all_reduce(x, async_op=True).get_future()
        second = dist.all_reduce_coalesced([y, y], async_op=True)
        assert isinstance(first, futures.Future)
        told = threading.Event()
        first.add_done_callback(lambda f: told.set())
        both = futures.collect_all([first, second]).wait()
        assert told.wait(20) and [f.wait()[0].tolist() for f in both] == [[2.0, 2.0], [1.0]]
        assert first.then(lambda f: f.value()[0] / 2).wait().tolist() == [1.0, 1.0]
        return True

    assert simulation.run(process, 2) == [True] * 2
