"""tests/python/distributed/sharded_checkpoint_test.py: checkpoints of several processes: complete or not there, read by any number, PyTorch's."""

import base64
import builtins
import io
import lzma
import os
import pathlib
import pickle
import random
import shutil
import tarfile

import pytest

import adjoin
import adjoin.distributed.checkpoint as dcp
from adjoin.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
from adjoin.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from adjoin.distributed.checkpoint.state_dict_loader import whole

SEED = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(10**6)))
FULL = os.environ.get("ADJOIN_TEST_FULL") == "1"


def state_of(step):
    g = adjoin.Generator().manual_seed(step)
    return {
        "model": {"w": adjoin.randn(7, 3, generator=g), "b": adjoin.full((), float(step))},
        "half": adjoin.randn(5, generator=g).bfloat16(),
        "groups": [{"lr": 0.1 * step, "betas": (0.9, 0.999)}],
        "step": step,
        "names": ["a", None, True],
    }


def same(a, b):
    if isinstance(a, adjoin.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def test_what_is_saved_is_loaded(tmp_path):
    state = state_of(3)
    meta = dcp.save(state, checkpoint_id=tmp_path / "a")
    assert meta.state_dict_metadata["model.w"].size == (7, 3)
    assert same(whole(dcp.FileSystemReader(tmp_path / "a")), state)
    other = state_of(9)
    place = other["model"]["w"]
    dcp.load(other, checkpoint_id=tmp_path / "a")
    assert same(other, state) and other["model"]["w"] is place
    assert whole(dcp.FileSystemReader(tmp_path / "a"), keys={"model"}).keys() == {"model"}
    dcp_to_torch_save(tmp_path / "a", tmp_path / "a.pt")
    torch_save_to_dcp(tmp_path / "a.pt", tmp_path / "b")
    assert same(whole(dcp.FileSystemReader(tmp_path / "b")), state)
    dcp_to_torch_save(tmp_path / "a", tmp_path / "a.safetensors")
    assert adjoin.safetensors.load_file(tmp_path / "a.safetensors")["model.w"].equal(state["model"]["w"])


def test_models_and_optimizers_by_name(tmp_path):
    def made(seed):
        adjoin.manual_seed(seed)
        net = adjoin.nn.Sequential(adjoin.nn.Linear(3, 4), adjoin.nn.BatchNorm1d(4))
        optimizer = adjoin.optim.AdamW(net.parameters(), lr=0.1 + seed)
        net(adjoin.randn(5, 3)).square().sum().backward()
        optimizer.step()
        return net, optimizer

    net, optimizer = made(1)
    model, optim = get_state_dict(net, optimizer)
    assert list(optim["state"]) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    dcp.save({"model": model, "optim": optim}, checkpoint_id=tmp_path)
    for options in (None, StateDictOptions(flatten_optimizer_state_dict=True)):
        other, its = made(2)
        model, optim = get_state_dict(other, its)
        dcp.load({"model": model, "optim": optim}, checkpoint_id=tmp_path)
        if options is not None:
            set_state_dict(other, its, model_state_dict=model, optim_state_dict=optim)
            optim = get_state_dict(other, its, options=options)[1]
            assert optim["param_groups.1.bias.lr"] == 1.1
        set_state_dict(other, its, model_state_dict=model, optim_state_dict=optim)
        assert same(dict(other.state_dict()), dict(net.state_dict()))
        assert same(its.state_dict()["state"], optimizer.state_dict()["state"]) and its.param_groups[0]["lr"] == 1.1
    assert set(get_model_state_dict(net, submodules={net[1]}, options=StateDictOptions(keep_submodule_prefixes=False))) > {"weight", "bias"}  # fmt: skip
    fresh = adjoin.nn.Sequential(adjoin.nn.Linear(3, 4), adjoin.nn.BatchNorm1d(4))
    dcp.load({"model": fresh}, checkpoint_id=tmp_path)  # by its load_state_dict
    assert fresh[0].weight.equal(net[0].weight)


def test_what_does_not_fit_is_told(tmp_path):
    dcp.save({"a": adjoin.ones(2)}, checkpoint_id=tmp_path / "step-3")
    for state, kind, words in (
        ({"b": adjoin.ones(2)}, RuntimeError, "Missing key in checkpoint state_dict: b; .* has a"),
        ({"a": adjoin.ones(3)}, ValueError, r"Size mismatch between saved \(2,\) and current: \(3,\) for a"),
    ):
        with pytest.raises(kind, match=words):
            dcp.load(state, checkpoint_id=tmp_path / "step-3")
    kept = {"b": adjoin.zeros(2), "a": adjoin.zeros(2)}
    dcp.load(kept, checkpoint_id=tmp_path / "step-3", planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert kept["a"].tolist() == [1, 1] and kept["b"].tolist() == [0, 0]
    (tmp_path / "step-4").mkdir()
    with pytest.raises(FileNotFoundError, match="its save did not end; the newest complete one beside it is .*step-3"):
        dcp.load(kept, checkpoint_id=tmp_path / "step-4")
    with pytest.raises(RuntimeError, match="has a checkpoint already"):
        dcp.save(kept, storage_writer=dcp.FileSystemWriter(tmp_path / "step-3", overwrite=False))
    with pytest.raises(RuntimeError, match="pass checkpoint_id=FOLDER"):
        dcp.save(kept)

    with pytest.raises(TypeError, match="the planner is a DefaultLoadPlanner; wanted is a SavePlanner"):
        dcp.save(kept, checkpoint_id=tmp_path / "x", planner=dcp.DefaultLoadPlanner())
    with pytest.raises(TypeError, match="storage_writer is a str; wanted is a StorageWriter"):
        dcp.save(kept, storage_writer="x")


PLANNERS = """
import dataclasses, sys
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.planner import LoadItemType, SavePlanner, WriteItemType
from torch.distributed.checkpoint._nested_dict import flatten_state_dict
from torch.distributed.checkpoint._sharded_tensor_utils import _flatten_sharded_tensors
from torch.distributed.tensor import Shard, distribute_tensor
dist.init_process_group()
rank, n, base = dist.get_rank(), dist.get_world_size(), sys.argv[1]
mesh = dist.init_device_mesh("cpu", (n,))
W = torch.arange(15.0).reshape(5, 3) / 7

def made(factor):
    return {"w": distribute_tensor(W * factor, mesh, [Shard(0)]), "nested": {"b": torch.full((4,), 1.0 * factor)}, "step": 3 * factor,
            "half": torch.tensor(0.5 * factor)}

class Renames(dcp.DefaultSavePlanner):
    def set_up_planner(self, state_dict, storage_meta, is_coordinator):
        assert storage_meta.checkpoint_id and is_coordinator == (rank == 0)
        super().set_up_planner({"foo_" + k: v for k, v in state_dict.items()}, storage_meta, is_coordinator)

class Halves(dcp.DefaultSavePlanner):
    def create_local_plan(self):
        plan = super().create_local_plan()
        for p in plan.items:
            if p.tensor_data is not None:
                p.tensor_data.properties.dtype = torch.float16
        return plan
    def resolve_data(self, write_item):
        item = super().resolve_data(write_item)
        return item if write_item.type == WriteItemType.BYTE_IO else item.to(torch.float16)

class Kept(dcp.DefaultSavePlanner):  # rank 1 writes what both have; a word of each process goes into the metadata
    def create_local_plan(self):
        return dataclasses.replace(super().create_local_plan(), storage_data=f"of {rank}")
    def create_global_plan(self, all_plans):
        assert len(all_plans) == n
        shared = {i.index for i in all_plans[0].items} & {i.index for i in all_plans[1].items}
        first = dataclasses.replace(all_plans[0], items=[i for i in all_plans[0].items if i.index not in shared])
        plans, metadata = super().create_global_plan([first, *all_plans[1:]])
        return plans, dataclasses.replace(metadata, planner_data=[p.storage_data for p in plans])

class Renamed(dcp.DefaultLoadPlanner):
    def set_up_planner(self, state_dict, metadata, is_coordinator):
        self.original_state_dict = state_dict
        state_dict = {"foo_" + k: v for k, v in state_dict.items()}
        if self.flatten_sharded_tensors:
            state_dict = _flatten_sharded_tensors(state_dict)
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator
    def load_bytes(self, read_item, value):
        self.original_state_dict[read_item.dest_index.fqn[4:]] = torch.load(value, weights_only=False)

class Elsewhere(dcp.DefaultLoadPlanner):
    def resolve_tensor(self, read_item):
        assert read_item.type is LoadItemType.TENSOR
        self.places = getattr(self, "places", {})
        self.places[read_item.dest_index] = torch.empty_like(super().resolve_tensor(read_item))
        return self.places[read_item.dest_index]
    def commit_tensor(self, read_item, tensor):
        assert tensor is self.places[read_item.dest_index]
        self.state_dict["got " + read_item.dest_index.fqn] = tensor

def check(state, factor, close=0.0):
    assert (state["w"].full_tensor() - W * factor).abs().max() <= close and state["step"] == 3 * factor, state
    assert (state["nested"]["b"] - factor).abs().max() <= close and (state["half"] - 0.5 * factor).abs() <= close

dcp.save(made(1), checkpoint_id=base + "/renamed", planner=Renames())
names = sorted(dcp.FileSystemReader(base + "/renamed").read_metadata().state_dict_metadata)
assert names == ["foo_half", "foo_nested.b", "foo_step", "foo_w"], names
state = made(0)
dcp.load(state, checkpoint_id=base + "/renamed", planner=Renamed())
check(state, 1)

dcp.async_save(made(2), checkpoint_id=base + "/halves", planner=Halves()).result()
kept = dcp.FileSystemReader(base + "/halves").read_metadata().state_dict_metadata
assert kept["w"].properties.dtype is torch.float16
state = made(0)
dcp.load(state, checkpoint_id=base + "/halves")
check(state, 2, 2e-3)
assert not state["w"].full_tensor().equal(W * 2)

dcp.save(made(3), checkpoint_id=base + "/kept", planner=Kept())
found = dcp.FileSystemReader(base + "/kept").read_metadata()
assert found.planner_data == ["of 0", "of 1"]
files = {i.fqn: {info.relative_path for j, info in found.storage_data.items() if j.fqn == i.fqn} for i in found.storage_data}
assert files["nested.b"] == files["step"] == {"__1_0.distcp"} and files["w"] == {"__0_0.distcp", "__1_0.distcp"}, files
state = made(0)
planner = Elsewhere()
dcp.load(state, checkpoint_id=base + "/kept", planner=planner)
assert state["step"] == 9 and state["w"].full_tensor().abs().max() == 0 and planner.state_dict["got nested.b"].tolist() == [3] * 4
part = distribute_tensor(W * 3, mesh, [Shard(0)]).to_local()
assert torch.cat([v for k, v in planner.places.items() if k.fqn == "w"]).equal(part)

class Wrong(dcp.DefaultLoadPlanner):
    def resolve_tensor(self, read_item):
        return torch.empty(1, 1)
try:
    dcp.load(made(0), checkpoint_id=base + "/kept", planner=Wrong())
except dcp.CheckpointException as error:
    assert "Wrong.resolve_tensor gave (1, 1)" in str(error)
class Missing(SavePlanner):
    pass
try:
    Missing()
except TypeError as error:
    assert "create_local_plan" in str(error)
print("ok", rank)
"""


def test_planners_of_ones_own(good, tmp_path):
    """Those that PyTorch's manual has for examples, by their methods."""
    assert good(2, PLANNERS, arguments=(str(tmp_path),)) == ["ok 0", "ok 1"]


class Evil:
    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_nothing_of_a_file_is_run(tmp_path):
    dcp.save({"a": 1, "t": adjoin.ones(2)}, checkpoint_id=tmp_path)
    mark, meta = tmp_path / "ran", (tmp_path / ".metadata").read_bytes()
    evil = Evil()
    evil.path = mark
    (tmp_path / ".metadata").write_bytes(pickle.dumps(evil))
    with pytest.raises(
        pickle.UnpicklingError, match="names posix.system, which no checkpoint needs; nothing of the file was run"
    ):
        dcp.load({"a": 0}, checkpoint_id=tmp_path)
    (tmp_path / ".metadata").write_bytes(meta)
    file = io.BytesIO()
    adjoin.save({"x": 1}, file)
    piece = tmp_path / "__0_0.distcp"
    data = piece.read_bytes()
    g = random.Random(SEED)
    for _ in range(200 if FULL else 20):  # damage raises, or changes a value; it never ends the process
        hurt = bytearray(meta if g.random() < 0.5 else data)
        target = tmp_path / ".metadata" if len(hurt) == len(meta) else piece
        for _ in range(g.randrange(1, 4)):
            hurt[g.randrange(len(hurt))] = g.randrange(256)
        target.write_bytes(hurt[: g.randrange(1, len(hurt))] if g.random() < 0.3 else hurt)
        try:
            dcp.load({"a": 0, "t": adjoin.ones(2)}, checkpoint_id=tmp_path)
        except (
            pickle.UnpicklingError,
            RuntimeError,
            ValueError,
            TypeError,
            KeyError,
            OSError,
            AttributeError,
            NotImplementedError,
        ):
            pass
        (tmp_path / ".metadata").write_bytes(meta)
        piece.write_bytes(data)
    assert not mark.exists()
    (tmp_path / ".metadata").write_bytes(meta.replace(b"__0_0.distcp", b"../../x.dist"))
    with pytest.raises(ValueError, match="outside of"):
        dcp.load({"a": 0}, checkpoint_id=tmp_path)


def test_a_save_in_the_background(tmp_path):
    state = state_of(1)
    future = dcp.async_save(state, checkpoint_id=tmp_path / "a")
    state["model"]["w"].zero_()  # after the snapshot
    future.result()
    assert same(whole(dcp.FileSystemReader(tmp_path / "a")), state_of(1))
    (tmp_path / "file").write_text("")
    failing = dcp.async_save(state, checkpoint_id=tmp_path / "file")
    with pytest.raises(OSError):
        dcp.save(state, checkpoint_id=tmp_path / "b")  # nobody has asked the future
    dcp.save(state, checkpoint_id=tmp_path / "b")
    assert failing.exception() is not None


def test_a_crash_at_each_step_of_a_save_leaves_the_one_before(tmp_path):
    """The process ends at its n-th call of what touches files, for every n."""
    names, path = ("open", "fsync", "replace", "unlink", "listdir", "mkdir"), tmp_path / "step-1"

    def small(step):
        return {"w": adjoin.full((3,), float(step)), "step": step}

    dcp.save(small(1), checkpoint_id=path)
    for n in range(1, 100):
        child = os.fork()
        if not child:
            try:
                ends_at(names, n)
                dcp.save(small(2), checkpoint_id=tmp_path / "step-2")
                dcp.save(small(2), checkpoint_id=path)
                os._exit(0)
            except BaseException:
                os._exit(3)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        found = whole(dcp.FileSystemReader(path))
        assert same(found, small(found["step"]))
        newest = dcp.newest(tmp_path)
        assert newest == (tmp_path / "step-2" if (tmp_path / "step-2" / ".metadata").exists() else path)
        assert same(whole(dcp.FileSystemReader(newest)), small(1 if newest == path and found["step"] == 1 else 2))
        if code == 0:
            assert found["step"] == 2 and n > 12
            assert len(list(path.iterdir())) == 2  # what crashed saves left is gone
            return
        assert code == 9, n
        shutil.rmtree(tmp_path / "step-2", ignore_errors=True)
        if found["step"] == 2:
            dcp.save(small(1), checkpoint_id=path)
    raise AssertionError("the save never ended")


def ends_at(names, n):
    """The process is gone at its n-th call of these functions of os, or of open()."""
    left = [n]

    def counted(f):
        def call(*args, **kwargs):
            left[0] -= 1
            if left[0] == 0:
                os._exit(9)
            return f(*args, **kwargs)

        return call

    for name in names:
        setattr(os, name, counted(getattr(os, name)))
    builtins.open = counted(open)


@pytest.fixture(scope="module")
def by_pytorch(tmp_path_factory):
    """Checkpoints that PyTorch 2.15 has written with 2 and with 4 processes."""
    packed = base64.b64decode((pathlib.Path(__file__).parent / "written_by_pytorch.txt").read_text())
    where = tmp_path_factory.mktemp("pytorch")
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(packed))) as archive:
        archive.extractall(where, filter="data")
    return where


W = adjoin.arange(35, dtype=adjoin.float64).reshape(7, 5)


@pytest.mark.parametrize("n", [2, 4])
def test_what_pytorch_has_written_loads_equal(by_pytorch, n):
    found = whole(dcp.FileSystemReader(by_pytorch / f"ranks{n}"))
    wanted = {
        "rows": W,
        "columns": W * 2,
        "whole": W * 3,
        "copies": W * 4,
        "half": (W / 8).bfloat16(),
        "one": adjoin.tensor(3.5),
    }
    wanted |= {"few": adjoin.arange(2)} | ({"both": W * 5, "twice": W * 6} if n == 4 else {})
    assert all(same(found[key], value) for key, value in wanted.items())
    assert found["step"] == 7 and found["groups"] == [{"lr": 0.1, "betas": (0.9, 0.99)}] and found["name"] == "x"
    net = adjoin.nn.Sequential(adjoin.nn.Linear(3, 4), adjoin.nn.Linear(4, 2))
    optimizer = adjoin.optim.AdamW(net.parameters(), lr=1.0)
    model, optim = get_state_dict(net, optimizer)
    dcp.load({"model": model, "optim": optim}, checkpoint_id=by_pytorch / f"ranks{n}")
    set_state_dict(net, optimizer, model_state_dict=model, optim_state_dict=optim)
    assert optimizer.param_groups[0]["lr"] == 0.01 and optimizer.state[net[0].weight]["step"] == 1
    again = adjoin.nn.Sequential(adjoin.nn.Linear(3, 4), adjoin.nn.Linear(4, 2))
    for p in again.parameters():
        adjoin.nn.init.constant_(p, 1.5)
    its = adjoin.optim.AdamW(again.parameters(), lr=0.01)
    again(adjoin.ones(2, 3)).sum().backward()
    its.step()
    for a, b in zip(net.parameters(), again.parameters(), strict=True):
        assert (a - b).abs().max() < 1e-6 and (
            optimizer.state[a]["exp_avg"] - its.state[b]["exp_avg"]
        ).abs().max() < 1e-6


TOGETHER = """
import sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
dist.init_process_group()
rank, n = dist.get_rank(), dist.get_world_size()
mesh = dist.init_device_mesh("cpu", (n,))
W = torch.arange(35, dtype=torch.float64).reshape(7, 5)
def placed(f, placement):
    return distribute_tensor(W * f, mesh, [placement])
"""


def test_parts_are_saved_by_some_and_loaded_by_others(good, by_pytorch, tmp_path):
    body = (
        TOGETHER
        + """
folder, pytorch, saved = sys.argv[1:4]
state = {"rows": placed(1, Shard(0)), "columns": placed(2, Shard(1)), "copies": placed(4, Replicate()), "whole": W * 3, "step": 7}
state |= {f"only{rank}": torch.full((2,), float(rank))}  # what one process has
if saved == "no":
    future = dcp.async_save(state, checkpoint_id=folder)
    dist.barrier()  # the save's own talk is not in the way of collectives
    found = future.result()
    assert len(found.state_dict_metadata["rows"].chunks) == n and len(found.state_dict_metadata["copies"].chunks) == 1
    names = {info.relative_path for index, info in found.storage_data.items() if index.fqn == "copies"}
    assert len(names) == 1
    failures = []
    try:
        dcp.save({"a": torch.ones(2 + rank)}, checkpoint_id=folder + "x")
    except dcp.CheckpointException as error:
        assert "'a' is not the same on all ranks: rank 1" in str(error), error
        failures.append(error)
    assert failures
    before = found.storage_meta.save_id
else:
    for where, names in ((folder, ("rows", "columns", "copies", "whole")), (f"{pytorch}/ranks4", ("rows", "columns", "copies"))):
        for other in (Shard(1), Replicate()):
            fresh = {name: placed(0, other) for name in names if name != "whole"} | {"step": 0}
            dcp.load(fresh, checkpoint_id=where)
            for name, f in (("rows", 1), ("columns", 2), ("copies", 4)):
                assert (fresh[name].full_tensor() == W * f).all() and fresh[name].placements == (other,), (where, name)
            assert fresh["step"] == 7
print("ok", rank)
"""
    )
    arguments = (str(tmp_path / "step-1"), str(by_pytorch))
    assert good(2, body, arguments=(*arguments, "no")) == ["ok 0", "ok 1"]
    assert good(3, body, arguments=(*arguments, "yes")) == ["ok 0", "ok 1", "ok 2"]
    alone = whole(dcp.FileSystemReader(tmp_path / "step-1"))
    assert same(alone["rows"], W) and same(alone["whole"], W * 3) and alone["only1"].tolist() == [1, 1]


KILLED = """
import os, pathlib, random, signal, sys, threading, time
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed import simulation
from torch.distributed.rendezvous import end_servers
from torch.distributed.tensor import Shard, distribute_tensor
base, kills, g = pathlib.Path(sys.argv[1]), int(sys.argv[2]), random.Random(sys.argv[3])
os.environ.pop("ADJOIN_CONTROL", None)
W = torch.arange(35, dtype=torch.float64).reshape(7, 5)

def forked(f, *args):
    pid = os.fork()
    if pid:
        return pid
    code = 4
    try:
        f(*args)
        code = 0
    except dist.DistBackendError:  # the other one was killed
        code = 5
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)

def placed(f, mesh, placement):
    return distribute_tensor(W * f, mesh, [placement])

def save(rank, meet, first, after):
    dist.init_process_group(init_method=f"file://{meet}", rank=rank, world_size=2)
    mesh = dist.init_device_mesh("cpu", (2,))
    for step in range(first, first + 1000):
        if step == first + 1 and after is not None:
            threading.Thread(target=lambda: (time.sleep(after), os.kill(os.getpid(), 9)), daemon=True).start()
        dcp.save({"w": placed(step, mesh, Shard(0)), "v": placed(-step, mesh, Shard(1)), "step": step}, checkpoint_id=base / f"step-{step}")

def save_on_a_full_disk(rank, meet):
    dist.init_process_group(init_method=f"file://{meet}", rank=rank, world_size=2)
    if rank == 1:
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    try:
        dcp.save({"w": torch.ones(8), f"own{rank}": torch.ones(4096)}, checkpoint_id=base / "full-1000")
    except dcp.CheckpointException as error:
        assert set(error.failures) == {1} and "rank 1" in str(error) and "File too large" in str(error), error
    else:
        raise AssertionError("nothing was said")
    dist.destroy_process_group()
    end_servers(10000)  # rank 0 has the server: it waits for the other one, as the end of a program does

def check(newest, first, sizes):
    def process(rank):
        mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
        found = {"w": placed(0, mesh, Shard(1)), "v": placed(0, mesh, Shard(0)), "step": 0}
        dcp.load(found, checkpoint_id=newest)
        step = found["step"]
        assert newest.name == f"step-{step}" and step >= first, (newest, first)
        assert found["w"].full_tensor().equal(W * step) and found["v"].full_tensor().equal(-W * step), newest
    for n in sizes:
        simulation.run(process, n)

def ended(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

codes = [ended(p) for p in [forked(save_on_a_full_disk, rank, base / "meet") for rank in range(2)]]
assert codes == [0, 0], codes
assert dcp.newest(base) is None
step = 0
for kill in range(kills):
    killed, after = g.randrange(2), g.uniform(0, 0.2)
    pids = [forked(save, rank, base / f"meet{kill}", step, after if rank == killed else None) for rank in range(2)]
    codes = [ended(pid) for pid in pids]
    assert codes[killed] == -9 and codes[1 - killed] == 5, codes
    newest = dcp.newest(base)
    assert ended(forked(check, newest, step, (1, 2, 3, 4, 8) if kill == kills - 1 else (g.choice((1, 2, 3, 4, 8)),))) == 0
    step = int(newest.name.split("-")[1]) + 1
print("killed", kills, "saved", step)
"""


@pytest.mark.skipif(not FULL, reason="minutes: with --full")
def test_either_of_two_processes_killed_five_hundred_times(launch, tmp_path):
    """At random moments, either of them; the newest complete step loads, bit for bit, by any number. Before it a disk is full."""
    got = launch(1, KILLED, arguments=(str(tmp_path), "500", str(SEED)), timeout=6000)
    assert got.code == 0 and "killed" in got.out, (SEED, got.err)


def test_two_processes_killed_while_they_save(launch, tmp_path):
    """At random moments; the newest complete step loads, bit for bit."""
    body = (
        TOGETHER
        + """
import os, threading, time
base, first, after = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
begun = threading.Event()
def end():
    begun.wait(), time.sleep(after), os.kill(os.getpid(), 9)
if rank == n - 1:
    threading.Thread(target=end, daemon=True).start()
for step in range(first, first + 1000):
    dcp.save({"w": placed(step, Shard(0)), "v": placed(-step, Shard(1)), "step": step}, checkpoint_id=f"{base}/step-{step}")
    begun.set()
"""
    )
    g, step = random.Random(SEED), 0
    for _ in range(2):
        got = launch(2, body, arguments=(str(tmp_path), str(step), str(g.uniform(0, 0.2))), timeout=60)
        assert got.code != 0
        newest = dcp.newest(tmp_path)
        found = whole(dcp.FileSystemReader(newest))
        assert newest.name == f"step-{found['step']}" and found["step"] >= step, SEED
        step = found["step"]
        assert same(found["w"], W * step) and same(found["v"], -W * step), SEED
        step += 1


def test_a_killed_rank_resumes_from_the_newest_step(launch, tmp_path):
    """Under --max-restarts 1: the curve is that of a run that nobody killed."""
    body = """
    import os, sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
    from torch import nn
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    dist.init_process_group()
    rank, base, kills = dist.get_rank(), sys.argv[1], sys.argv[2] == "yes"
    again = os.environ["TORCHELASTIC_RESTART_COUNT"] != "0"
    torch.manual_seed(0)
    net = fully_shard(nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).double())
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.05)
    first = 0
    newest = dcp.newest(base) if os.path.isdir(base) else None
    assert (newest is not None) == again
    if newest:
        model, optim = get_state_dict(net, optimizer)
        state = {"model": model, "optim": optim, "step": 0, "random": torch.get_rng_state()}
        dcp.load(state, checkpoint_id=newest)
        set_state_dict(net, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
        torch.set_rng_state(state["random"])
        first = state["step"] + 1
        assert first == 4
    for step in range(first, 7):
        x = torch.randn(6, 4, dtype=torch.float64)
        loss = net(x[rank * 3 : rank * 3 + 3]).square().mean()
        optimizer.zero_grad(), loss.backward(), optimizer.step()
        if kills and not again and step == 4 and rank == 1:
            os.kill(os.getpid(), 9)
        model, optim = get_state_dict(net, optimizer)
        dcp.save({"model": model, "optim": optim, "step": step, "random": torch.get_rng_state()}, checkpoint_id=f"{base}/step-{step}")
    whole = net[0].weight.full_tensor()
    if rank == 0:
        print(whole.double().sum().item().hex())
    """
    got = [launch(2, body, "--max-restarts", "1", arguments=(str(tmp_path / kills), kills)) for kills in ("no", "yes")]
    assert [g.code for g in got] == [0, 0], got[1].err
    assert got[0].out.splitlines()[-1] == got[1].out.splitlines()[-1]
