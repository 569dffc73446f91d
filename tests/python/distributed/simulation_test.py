"""tests/python/distributed/simulation_test.py: threads that each are a process: their groups, their errors, their checkpoints."""

import re
import threading

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
    heard, here = {}, threading.Barrier(4)

    def process(rank):
        dist.all_reduce(adjoin.ones(1))
        here.wait()  # who is slow would hear of the error in the first collective
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


def test_a_save_without_one_who_has_ended(tmp_path):
    def process(rank):
        if rank != 1:
            message = "rank 1 has ended its part.* every process must make the same saves"
            with pytest.raises(dist.DistBackendError, match=message if rank == 0 else "has ended its part"):
                checkpoint.save({"x": adjoin.ones(2)}, checkpoint_id=tmp_path / "c")

    simulation.run(process, 3)
    assert checkpoint.newest(tmp_path) is None


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


def test_groups_of_one_name_and_other_sizes_do_not_meet():
    from adjoin import _C
    from adjoin.distributed import _collectives, store

    server, port = store.serve("127.0.0.1", 0)
    links = [_C.dist_connect("127.0.0.1", port, 20000) for _ in range(3)]
    opened = [_C.dist_group_open(link, "same", "same", "simulated", "cpu", 0, tuple(range(size)), rank, 20000)
              for link, size, rank in zip(links, (1, 2, 2), (0, 0, 1), strict=True)]  # fmt: skip
    tensors = [adjoin.full((2,), float(i)) for i in range(3)]
    works = [_C.dist_start(native, _collectives.ALL_REDUCE, 0, -1, 0, 2, t, t, None, None, 1.0)
             for native, t in zip(opened, tensors, strict=True)]  # fmt: skip
    for work in works:
        _C.dist_work_wait(work, 20000)
    assert [t.tolist() for t in tensors] == [[0, 0], [3, 3], [3, 3]]
    for native, link in zip(opened, links, strict=True):
        _C.dist_group_close(native)
        _C.dist_disconnect(link)
    store.end(server)


def test_who_is_missing_among_many():
    said = {}

    def process(rank):
        if rank not in (3, 7):
            try:
                dist.all_reduce(adjoin.ones(1))
            except dist.DistBackendError as error:
                said[rank] = str(error)
            if len(said) == 10:
                all_have_said.set()
        all_have_said.wait(20)

    import datetime
    import threading

    all_have_said = threading.Event()
    simulation.run(process, 12, timeout=datetime.timedelta(seconds=1))
    for text in said.values():
        assert re.search(
            r"the others: rank 3 \(host \S+, pid \d+\), rank 7 \(host .*\): outside of collectives; ranks ", text
        ), text
        assert re.search(r"ranks [-, \d]+: all_reduce #1 sum float32\[1\] at .*simulation_test.py:\d+", text), text
    assert "; ranks 1, 2, 4-6, 8-11: " in said[0], said


def test_large_and_small_parameters_begin_as_those_of_rank_0():
    def process(rank):
        made = adjoin.Generator().manual_seed(rank)
        shapes = ((600, 500), (3,), (500, 600), (70, 70), (500, 600), (2, 2))
        net = adjoin.nn.ParameterList([adjoin.nn.Parameter(adjoin.rand(*s, generator=made)) for s in shapes])
        net[2].data = adjoin.rand(600, 500, generator=made).t()  # no place for a message
        net = adjoin.nn.parallel.DistributedDataParallel(net)
        other = adjoin.nn.Linear(2, 2 + rank % 2)
        with pytest.raises(RuntimeError, match=r"the modules differ: rank 0 has \('weight', \(2, 2\)"):
            adjoin.nn.parallel.DistributedDataParallel(other)
        return [p.detach() for p in net.module]

    first, *others = simulation.run(process, 3)
    assert first[2].std() > 0.2
    assert all(p.equal(q) for other in others for p, q in zip(first, other, strict=True))


def test_gradients_that_are_there_when_a_module_is_wrapped_lie_in_its_buckets():
    def process(rank):
        net = adjoin.nn.Sequential(adjoin.nn.Linear(3, 2), adjoin.nn.Linear(2, 1, bias=False))
        with adjoin.no_grad():
            for p in net.parameters():
                p.fill_(0.5)
        net[0](adjoin.ones(1, 3) * (rank + 1)).sum().backward()
        before = [None if p.grad is None else p.grad.clone() for p in net.parameters()]
        ddp = adjoin.nn.parallel.DistributedDataParallel(net)
        flat = ddp.reducer.buckets[0].buffer()
        ends = flat.data_ptr(), flat.data_ptr() + flat.numel() * flat.element_size()
        for p, held in zip(net.parameters(), before, strict=True):
            if held is None:
                assert p.grad is None
            else:
                assert adjoin.equal(p.grad, held) and ends[0] <= p.grad.data_ptr() < ends[1]
        ddp(adjoin.ones(1, 3)).sum().backward()  # the mean of what both have gathered
        return [p.grad.tolist() for p in net.parameters()]

    first, second = simulation.run(process, 2)
    assert first == second
    assert first[0] == [[2.0] * 3] * 2 and first[1] == [1.5] * 2 and first[2] == [[2.0] * 2]


def test_what_trainers_of_others_ask():
    assert dist.Backend.default_device_backend_map["cpu"] == "gloo" and "cpu" in dist.Backend.backend_capability["gloo"]
    assert dist.get_default_backend_for_device("cpu") in dist._group.engines()
    assert dist.get_default_backend_for_device(adjoin.device("cpu")) == dist.get_default_backend_for_device("cpu:0")

    def process(rank):
        net = adjoin.nn.parallel.DistributedDataParallel(adjoin.nn.Linear(2, 3), static_graph=True)
        said = net._get_ddp_logging_data()
        assert net.static_graph and said["bucket_sizes"] == "36" and said["total_parameter_size_bytes"] == 36
        return said["rank"], said["world_size"], said["can_set_static_graph"]

    assert simulation.run(process, 2) == [(0, 2, False), (1, 2, False)]


def test_mpi_is_there_for_what_mpirun_has_started(monkeypatch):
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert not dist.is_mpi_available()  # programs that take the first of several would fail with it
    monkeypatch.setenv("PMI_SIZE", "2")
    assert dist.is_mpi_available() == ("mpi" in adjoin.plugin.available())


def test_steps_together_and_later_by_groups():
    from adjoin.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook

    def process(rank):
        halves, _ = dist.new_subgroups(2)
        seen = []
        for alone in (False, True):
            net = adjoin.nn.parallel.DistributedDataParallel(adjoin.nn.Linear(1, 1, bias=False))
            net.register_comm_hook(PostLocalSGDState(None, halves, 2, not alone), post_localSGD_hook)
            for _ in range(3):
                net.zero_grad()
                net(adjoin.full((1, 1), float(rank))).sum().backward()
                seen.append(net.module.weight.grad.item())
        return seen

    assert simulation.run(process, 4) == [
        [1.5, 1.5, half, 1.5, 1.5, rank] for rank, half in enumerate((0.5, 0.5, 2.5, 2.5))
    ]
