"""tests/python/distributed/simulation_test.py: threads that each are a process: their groups, their errors, their checkpoints."""

import pytest

import adjoin
import adjoin.distributed as dist
from adjoin.distributed import checkpoint, simulation

if "simulated" not in adjoin.plugin.available():
    pytest.skip("NOT TESTED: the plugin simulated was not built", allow_module_level=True)


def test_each_thread_is_a_process():
    def process(rank, times):
        assert dist.get_rank() == rank and dist.get_world_size() == 64 and dist.get_backend() == "simulated"
        half = dist.new_group(list(range(32)))
        x = adjoin.full((3,), float(rank))
        dist.all_reduce(x)
        if rank < 32:
            dist.all_reduce(x, group=half)
        return times * x[0].item()

    total = sum(range(64))
    assert simulation.run(process, 64, (2,)) == [2 * 32 * total] * 32 + [2 * total] * 32
    assert not dist.is_initialized()
    assert simulation.run(lambda rank: dist.get_world_size(), 1) == [1]
    with pytest.raises(ValueError, match="a world of 0"):
        simulation.run(print, 0)


def test_the_first_cause_is_raised_and_the_others_hear_of_it():
    heard = {}

    def process(rank):
        dist.all_reduce(adjoin.ones(1))
        if rank == 2:
            raise ValueError("mine alone")
        try:
            dist.all_reduce(adjoin.ones(1))
        except dist.DistBackendError as error:
            heard[rank] = str(error)
            raise

    with pytest.raises(ValueError, match="mine alone"):
        simulation.run(process, 4)
    assert sorted(heard) == [0, 1, 3]
    assert all("rank 2" in said and "raised ValueError: mine alone at" in said for said in heard.values()), heard


def test_a_checkpoint_of_threads(tmp_path):
    from adjoin.distributed.tensor import Shard, distribute_tensor

    whole = adjoin.arange(12.0).reshape(6, 2)

    def process(rank):
        mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
        part = distribute_tensor(whole, mesh, [Shard(0)])
        checkpoint.save({"x": part}, checkpoint_id=tmp_path / "c")
        again = distribute_tensor(adjoin.zeros(6, 2), mesh, [Shard(0)])
        checkpoint.load({"x": again}, checkpoint_id=tmp_path / "c")
        return again.full_tensor().equal(whole)

    assert simulation.run(process, 3) == [True] * 3
    alone = {"x": adjoin.zeros(6, 2)}
    checkpoint.load(alone, checkpoint_id=tmp_path / "c", no_dist=True)
    assert alone["x"].equal(whole)


def test_copies_of_layers_in_parts_refuse_what_they_do_not_do():
    from adjoin.distributed.tensor.parallel import ColwiseParallel, parallelize_module

    def process(rank):
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))

        def made(**more):
            net = adjoin.nn.Sequential(adjoin.nn.Linear(4, 4), adjoin.nn.Linear(4, 1))
            net = parallelize_module(net, mesh["tp"], {"0": ColwiseParallel()})
            return adjoin.nn.parallel.DistributedDataParallel(net, process_group=mesh["dp"].get_group(), **more)

        with pytest.raises(NotImplementedError, match="find_unused_parameters=True is not served for DTensors"):
            made(find_unused_parameters=True)
        net = made()
        with pytest.raises(NotImplementedError, match="communication hook is not served for DTensors; use fully_shard"):
            net.register_comm_hook(None, print)
        net.module[0](adjoin.ones(1, 4))
        net._arm(None)
        net.module[0].weight.sum().backward()
        with pytest.raises(RuntimeError, match=r"parameters got no gradient in the last backward pass: .*0.bias"):
            net(adjoin.ones(1, 4))

    simulation.run(process, 4)
