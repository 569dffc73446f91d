"""tests/python/distributed/groups_test.py: groups by their own methods, collectives that give new tensors, parts of meshes; each
thread is a process."""

import datetime

import pytest

import adjoin
import adjoin.distributed as dist
from adjoin.distributed import _functional_collectives as funcol
from adjoin import futures, nn
from adjoin.distributed import simulation
from adjoin.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, register_ddp_comm_hook
from adjoin.nn.parallel import DistributedDataParallel

if "simulated" not in adjoin.plugin.available():
    pytest.skip("NOT TESTED: the plugin simulated was not built", allow_module_level=True)


def full(*numbers):
    return [adjoin.full((2,), float(n)) for n in numbers]


def test_a_groups_own_methods():
    def process(rank):
        pg = dist._get_default_group()
        assert dist._resolve_process_group(pg.group_name) is pg and dist.get_pg_count() == 1
        (x,) = full(rank + 1)
        assert pg.allreduce([x]).get_future().wait()[0] is x and x.tolist() == [6.0, 6.0]
        (x,) = full(rank + 1)
        pg.allreduce(x, dist.AllreduceOptions(reduceOp=dist.ReduceOp.MAX)).wait()
        assert x.tolist() == [3.0, 3.0]
        (x,) = full(rank + 1)
        pg.allreduce([x], dist.ReduceOp.MIN).wait()
        assert x.tolist() == [1.0, 1.0]
        x, y = full(rank, 10 * rank)
        pg.allreduce_coalesced([x, y, x]).wait()
        assert x.tolist() + y.tolist() == [3.0, 3.0, 30.0, 30.0]
        (x,) = full(rank)
        pg.broadcast([x], dist.BroadcastOptions(rootRank=2)).wait()
        assert x.tolist() == [2.0, 2.0]
        (x,) = full(rank)
        (pg.broadcast(x, 1) if rank else pg.broadcast(x, root=1)).wait()
        assert x.tolist() == [1.0, 1.0]
        (x,) = full(rank)
        pg.reduce([x], dist.ReduceOptions(rootRank=1, reduceOp=dist.ReduceOp.SUM)).wait()
        assert x.tolist() == [3.0 if rank == 1 else rank] * 2
        for places in ([full(9, 9, 9)], full(9, 9, 9)):
            pg.allgather(places, full(rank)).wait()
            flat = places[0] if isinstance(places[0], list) else places
            assert [p[0].item() for p in flat] == [0.0, 1.0, 2.0]
        places = [full(9, 9) for _ in range(3)]
        pg.allgather_coalesced(places, full(rank, rank + 10)).wait()
        assert [[t[0].item() for t in line] for line in places] == [[0.0, 10.0], [1.0, 11.0], [2.0, 12.0]]
        whole, places = adjoin.empty(6), full(9, 9, 9)
        pg._allgather_base(whole, full(rank)[0]).wait()
        assert whole.tolist() == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
        pg.gather([places] if rank == 2 else [], full(rank), dist.GatherOptions(rootRank=2)).wait()
        assert [p[0].item() for p in places] == ([0.0, 1.0, 2.0] if rank == 2 else [9.0] * 3)
        (x,) = full(9)
        pg.scatter([x], [full(5, 6, 7)] if rank == 0 else [], dist.ScatterOptions()).wait()
        assert x.tolist() == [5.0 + rank] * 2
        pg.reduce_scatter([x], [full(1, 2, 3)]).wait()
        assert x.tolist() == [3.0 * (rank + 1)] * 2
        pg._reduce_scatter_base(x, adjoin.arange(6.0)).wait()
        assert x.tolist() == [6.0 * rank, 6.0 * rank + 3]
        places = full(9, 9, 9)
        pg.alltoall(places, full(rank, rank + 10, rank + 20)).wait()
        assert [p[0].item() for p in places] == [10.0 * rank + r for r in range(3)]
        pg.alltoall_base(whole, adjoin.arange(6.0) + 100 * rank, [], []).wait()
        assert whole.tolist() == [100.0 * r + 2 * rank + i for r in range(3) for i in range(2)]
        if rank < 2:
            (x,) = full(rank)
            (pg.send([x], 1, 7) if rank == 0 else pg.recv([x], 0, 7)).wait()
            assert x.tolist() == [0.0, 0.0]
        pg.barrier(dist.BarrierOptions()).wait()
        pg.monitored_barrier()
        whole = adjoin.zeros(3, 2) if rank == 1 else None
        dist.gather_single(full(rank)[0], whole, dst=1)
        assert rank != 1 or whole.tolist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
        with pytest.raises(ValueError, match="invalid root rank: 3"):
            pg.broadcast([x], dist.BroadcastOptions(rootRank=3))
        with pytest.raises(ValueError, match="the list has 2 tensors"):
            pg.allreduce(full(1, 2))
        with pytest.raises(TypeError, match="there is no rootRank"):
            dist.AllreduceOptions(rootRank=1)
        part = dist.split_group(split_ranks=[[0, 2]])
        assert (part == dist.GroupMember.NON_GROUP_MEMBER) == (rank == 1)
        return True

    assert simulation.run(process, 3) == [True] * 3


def test_collectives_that_give_new_tensors():
    def process(rank):
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
        x = adjoin.arange(8.0).reshape(2, 4) + 10 * rank
        x.requires_grad_()
        total = funcol.all_reduce(x, "sum", dist.group.WORLD)
        assert total.tolist() == (4 * adjoin.arange(8.0).reshape(2, 4) + 60).tolist() and x[0, 0].item() == 10 * rank
        assert funcol.all_reduce(x, "max", (mesh, 1))[0, 0].item() == 10.0 * (rank | 1)
        assert funcol.all_reduce(x, "avg", mesh["a"])[0, 0].item() == 10.0 * (rank % 2 + 1)
        assert funcol.all_reduce(x, "sum", [[0, 1], [2, 3]])[0, 0].item() == 10.0 * (2 * (rank & 2) + 1)
        assert funcol.all_reduce(x, "sum", dist.group.WORLD.group_name)[0, 0].item() == 60.0
        joined = funcol.all_gather_tensor(x, 1, mesh["b"])
        assert joined.shape == (2, 8) and joined[0, 4].item() == 10.0 * (rank | 1)
        (joined * adjoin.arange(8.0)).sum().backward()  # both processes' losses have a share
        assert x.grad.tolist() == [[2.0 * (4 * (rank & 1) + i) for i in range(4)]] * 2
        x.grad = None
        part = funcol.reduce_scatter_tensor(x, "sum", 1, [0, 1, 2, 3])
        assert part.shape == (2, 1) and part.tolist() == [[60.0 + 4 * rank], [76.0 + 4 * rank]]
        (part * (rank + 1)).sum().backward()
        assert x.grad.tolist() == [[1.0, 2.0, 3.0, 4.0]] * 2
        with adjoin.no_grad():
            assert funcol.broadcast(x, 3, dist.group.WORLD)[0, 0].item() == 30.0
            assert funcol.permute_tensor(x, [1, 2, 3, 0], dist.group.WORLD)[0, 0].item() == 10.0 * ((rank - 1) % 4)
            rows = funcol.all_to_all_single(adjoin.arange(4.0) + 10 * rank, None, None, dist.group.WORLD)
            assert rows.tolist() == [10.0 * r + rank for r in range(4)]
            sizes = adjoin.tensor([1, 0, 2, 1]) if rank == 0 else adjoin.tensor([1, 1, 1, 1])
            taken = adjoin.tensor([[1, 1, 1, 1], [0, 1, 1, 1], [2, 1, 1, 1], [1, 1, 1, 1]][rank])
            given, out = adjoin.arange(4.0) + 10 * rank, adjoin.zeros(int(taken.sum()))
            dist.all_to_all_single(out, given, taken, sizes)
            assert out.tolist() == funcol.all_to_all_single(given, taken, sizes, dist.group.WORLD).tolist()
            assert out[-1].item() == 30.0 + rank
            parts = funcol.reduce_scatter_tensor_coalesced([x, x], "sum", [1, 1], dist.group.WORLD)
            assert [p.tolist() for p in parts] == [part.tolist()] * 2
            wholes = funcol.all_gather_into_tensor_coalesced([x, x], mesh["b"])
            assert all(w.shape == (4, 4) for w in wholes)
        with pytest.raises(ValueError, match="has 2 dimensions; say which"):
            funcol.all_reduce(x, "sum", mesh)
        with pytest.raises(ValueError, match="no 4 equal parts"):
            funcol.reduce_scatter_tensor(x, "sum", 0, dist.group.WORLD)
        with pytest.raises(ValueError, match="there are sum, avg"):
            funcol.all_reduce(x, "median", dist.group.WORLD)
        with pytest.raises(NotImplementedError, match="no derivative"):
            funcol.all_reduce(x, "max", dist.group.WORLD).sum().backward()
        return True

    assert simulation.run(process, 4) == [True] * 4


def test_parts_of_a_mesh():
    def process(rank):
        mesh = dist.init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("dp", "cp", "tp"))
        again = dist.DeviceMesh("cpu", adjoin.arange(8).reshape(2, 2, 2), mesh_dim_names=("dp", "cp", "tp"))
        assert mesh == again and hash(mesh) == hash(again) and mesh != mesh["dp"] and mesh["dp", "cp", "tp"] is mesh
        one = mesh["dp", "cp"]._flatten()
        assert one.mesh_dim_names == ("dp_cp",) and one.mesh.tolist() == [rank % 2 + 2 * i for i in range(4)]
        assert mesh["dp_cp"] is one and mesh["dp", "cp"]._flatten() is one
        assert mesh.get_group("dp_cp") is one.get_group()
        two = mesh["dp_cp", "tp"]
        assert two.mesh.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]] and two.get_local_rank("dp_cp") == rank // 2
        x = adjoin.ones(1) * rank
        dist.all_reduce(x, group=two.get_group("dp_cp"))
        assert x.item() == 12 + 4 * (rank % 2)
        assert mesh["dp", "tp"]._flatten("apart").mesh.tolist() == [(rank & 2) + r for r in (0, 1, 4, 5)]
        line = dist.DeviceMesh.from_group(one.get_group(), "cpu", mesh_dim_names=("x",))
        assert line.mesh.tolist() == one.mesh.tolist() and line.get_group() is one.get_group()
        grid = dist.DeviceMesh.from_group([mesh.get_group(1), mesh.get_group(2)], "cpu", mesh["cp", "tp"].mesh)
        assert grid.shape == (2, 2) and grid.get_local_rank(1) == rank % 2
        with pytest.raises(KeyError, match="no dimension 'pp'"):
            mesh["pp"]
        with pytest.raises(RuntimeError, match="there is no dimension 3"):
            mesh.get_group(3)
        with pytest.raises(RuntimeError, match="'tp' is the name of another"):
            mesh["dp", "cp"]._flatten("tp")
        with pytest.raises(ValueError, match="the grid of ranks is wanted"):
            dist.DeviceMesh.from_group([mesh.get_group(1), mesh.get_group(2)], "cpu")
        with pytest.raises(RuntimeError, match="must be unique"):
            dist.init_device_mesh("cpu", (2, 4), mesh_dim_names=("a", "a"))
        with pytest.raises(RuntimeError, match="without a number"):
            dist.init_device_mesh("cuda:0", (2, 4))
        return True

    assert simulation.run(process, 8) == [True] * 8


def test_a_world_of_one_has_a_store():
    for value in (b"1", b"2"):  # each world has its own
        dist.init_process_group(rank=0, world_size=1, timeout=datetime.timedelta(seconds=0.1))
        try:
            store = dist._get_default_store()
            with pytest.raises(dist.DistStoreError, match="'a'"):
                store.get("a")
            store.set("a", value)
            assert dist._get_default_store().get("a") == value
        finally:
            dist.destroy_process_group()


def test_members_alone_make_a_group():
    def process(rank):
        if rank == 1:
            assert dist.new_group([0, 2], use_local_synchronization=True) is None
            assert dist.new_group([0, 2]) == dist.GroupMember.NON_GROUP_MEMBER
            return 0.0
        made, again = dist.new_group([2, 0], use_local_synchronization=True), dist.new_group([0, 2])
        x = adjoin.full((1,), rank + 1.0)
        dist.all_reduce(x, group=made)
        dist.all_reduce(x, group=again)
        return x.item()

    assert simulation.run(process, 3) == [8.0, 0.0, 8.0]


def test_hooks_by_their_names():
    def gradient(rank, kind):
        net = nn.Linear(3, 2, bias=False).double()
        nn.init.ones_(net.weight)
        ddp = DistributedDataParallel(net)
        register_ddp_comm_hook(kind, ddp)
        ddp(adjoin.full((1, 3), rank + 1.0, dtype=adjoin.float64)).sum().backward()
        return net.weight.grad.unique().tolist()

    def process(rank):
        found = {kind: gradient(rank, kind) for kind in DDPCommHookType}
        assert found.pop(DDPCommHookType.NOOP) == [rank + 1.0] and len(found) == 7
        assert all(one == [1.5] for one in found.values()), found
        net = DistributedDataParallel(nn.Linear(1, 1))

        def other(state, bucket: int) -> futures.Future:
            return futures.Future()

        def nothing(state, bucket: dist.GradBucket) -> int:
            return 0

        def good(state, bucket: dist.GradBucket) -> futures.Future[adjoin.Tensor]:
            return futures.Future()

        for hook, words in ((other, "bucket annotation should be dist.GradBucket"), (nothing, "return annotation")):
            with pytest.raises(ValueError, match=words):
                net.register_comm_hook(None, hook)
        net.register_comm_hook(None, good)
        return True

    assert simulation.run(process, 2) == [True] * 2
