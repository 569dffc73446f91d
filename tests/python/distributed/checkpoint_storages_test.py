"""tests/python/distributed/checkpoint_storages_test.py: checkpoints elsewhere than in a folder of pieces: storages of one's own, model hubs' files."""

import pytest

import adjoin
import adjoin.distributed.checkpoint as dcp


def test_a_dict_as_one_object(tmp_path):
    """flatten_state_dict=False: what lies below the first level is saved and loaded as it is, keys and tuples too."""
    w = adjoin.arange(6.0).reshape(2, 3)
    state = {"w": w, "deep": {3: {"t": adjoin.ones(2), "pair": (w * 2, "a")}, "empty": {}}, "step": 4}
    planner = dcp.DefaultSavePlanner(flatten_state_dict=False)
    found = dcp.save(state, checkpoint_id=tmp_path / "a", planner=planner)
    assert sorted(found.state_dict_metadata) == ["deep", "step", "w"] and found.planner_data is None
    future = dcp.async_save(state, checkpoint_id=tmp_path / "b", planner=planner)
    state["deep"][3]["pair"][0].zero_()  # after the snapshot
    future.result()
    for name in "ab":
        other = {"w": adjoin.zeros(2, 3), "deep": None, "step": 0}
        place = other["w"]
        dcp.load(other, checkpoint_id=tmp_path / name, planner=dcp.DefaultLoadPlanner(flatten_state_dict=False))
        assert other["w"] is place and place.equal(w) and other["step"] == 4
        deep = other["deep"]
        assert deep.keys() == {3, "empty"} and deep["empty"] == {} and deep[3]["t"].tolist() == [1, 1]
        assert type(deep[3]["pair"]) is tuple and deep[3]["pair"][0].equal(w * 2) and deep[3]["pair"][1] == "a"
    dcp.save(state, checkpoint_id=tmp_path / "a")
    with pytest.raises(RuntimeError, match="Missing key in checkpoint state_dict: deep"):
        dcp.load(other, checkpoint_id=tmp_path / "a", planner=dcp.DefaultLoadPlanner(flatten_state_dict=False))


STORAGES = """
import os, pickle, sys
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import DefaultLoadPlanner, DefaultSavePlanner, StorageReader, StorageWriter
from torch.distributed.checkpoint.planner import LoadItemType, WriteItemType
from torch.distributed.checkpoint.storage import WriteResult
from torch.distributed.tensor import Shard, distribute_tensor
from torch.futures import Future
alone = len(sys.argv) > 2
if not alone:
    dist.init_process_group()
rank, n = (0, 1) if alone else (dist.get_rank(), dist.get_world_size())

class Keys(StorageWriter):  # a file for each piece: a store of keys and values
    calls = []
    def reset(self, checkpoint_id=None):
        self.base = checkpoint_id or self.base
        self.calls.append("reset")
    def set_up_storage_writer(self, is_coordinator):
        assert is_coordinator == (rank == 0)
        if is_coordinator:
            os.makedirs(self.base)
        self.calls.append("set_up")
    def prepare_local_plan(self, plan):
        self.calls.append("local")
        return plan
    def prepare_global_plan(self, plans):
        assert rank == 0 and len(plans) == n
        self.calls.append("global")
        return plans
    def write_data(self, plan, planner):
        self.calls.append("write")
        results = []
        for item in plan.items:
            data = planner.resolve_data(item)
            if item.type is WriteItemType.BYTE_IO:
                data = data.read()
            else:
                data = data.numpy().copy()
            name = f"{self.base}/{item.index.fqn}@{'-'.join(map(str, item.index.offset or ()))}"
            with open(name, "xb") as file:
                pickle.dump(data, file)
            results.append(WriteResult(item.index, 1, {"by": rank, "name": name}))
        future = Future()
        future.set_result(results)
        return future
    def finish(self, metadata, results):
        self.calls.append("finish")
        assert rank == 0 and len(results) == n
        metadata.storage_data = {r.index: r.storage_data for several in results for r in several}
        with open(self.base + "/all", "wb") as file:
            pickle.dump(metadata, file)
    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return True

class Values(StorageReader):
    def reset(self, checkpoint_id=None):
        self.base = checkpoint_id or self.base
    def read_metadata(self, *args, **kwargs):
        with open(self.base + "/all", "rb") as file:
            return pickle.load(file)
    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        assert kwargs["rank"] == rank
        self.where = metadata.storage_data
    def prepare_local_plan(self, plan):
        return plan
    def prepare_global_plan(self, plans):
        return plans
    def read_data(self, plan, planner):
        import io
        for item in plan.items:
            with open(self.where[item.storage_index]["name"], "rb") as file:
                data = pickle.load(file)
            if item.type is LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(data))
                continue
            part = torch.from_numpy(data)
            for dim, (begin, size) in enumerate(zip(item.storage_offsets, item.lengths)):
                part = part.narrow(dim, begin, size)
            target = planner.resolve_tensor(item)
            target.copy_(part)
            planner.commit_tensor(item, target)
        future = Future()
        future.set_result(None)
        return future
    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return True

W, base = torch.arange(15.0).reshape(5, 3), sys.argv[1]
def made(factor):
    w = W * factor if alone else distribute_tensor(W * factor, dist.init_device_mesh("cpu", (n,)), [Shard(0)])
    return {"w": w, "nested": {"b": torch.full((4,), 1.0 * factor)}, "step": 3 * factor}
def check(state):
    w = state["w"] if alone else state["w"].full_tensor()
    assert w.equal(W) and state["nested"]["b"].tolist() == [1] * 4 and state["step"] == 3, state
if not alone:
    dcp.save(made(1), checkpoint_id=base, storage_writer=Keys())
    assert Keys.calls == ["reset", "set_up", "local", "global", "write", "finish"] if rank == 0 else ["reset", "set_up", "local", "write"]
state = made(0)
dcp.load(state, checkpoint_id=base, storage_reader=Values())
check(state)
if alone:  # the whole state, as it was
    from torch.distributed.checkpoint.state_dict_loader import _load_state_dict
    from torch.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
    reader, state = Values(), {}
    reader.reset(base)
    _load_state_dict(state, storage_reader=reader, planner=_EmptyStateDictLoadPlanner(), no_dist=True)
    check(state)

class Marked(dcp.FileSystemWriter):  # a class over that of folders
    def write_data(self, plan, planner):
        self.mine = len(plan.items)
        return super().write_data(plan, planner)
    def finish(self, metadata, results):
        metadata.planner_data["by whom"] = ("marked",)
        super().finish(metadata, results)
class Lines(dcp.FileSystemReader):
    read = 0
    def read_data(self, plan, planner):
        self.read = len(plan.items)
        return super().read_data(plan, planner)
if not alone:
    writer, reader = Marked(base + "/folder"), Lines(base + "/folder")
    dcp.async_save(made(1), storage_writer=writer).result()
    assert writer.mine > 0 and "by whom" in reader.read_metadata().planner_data
    state = made(0)
    dcp.load(state, storage_reader=reader)
    check(state)
    assert reader.read == 3

    class Broken(Keys):
        def write_data(self, plan, planner):
            future = Future()
            future.set_exception(OSError("no room")) if rank == 1 else future.set_result([])
            return future
    class Unknown(Keys):
        def write_data(self, plan, planner):
            future = Future()
            future.set_result([lambda: rank])
            return future
    for kind, words in ((Broken, "rank 1: OSError: no room"), (Unknown, "does not pickle")):
        try:
            dcp.save(made(1), checkpoint_id=base + "/" + kind.__name__, storage_writer=kind())
        except dcp.CheckpointException as error:
            assert words in str(error), error
        else:
            raise AssertionError(words)
print("ok", rank)
"""


def test_storages_of_ones_own(good, tmp_path):
    """A store of keys and values by PyTorch's protocol: written by two processes, read by two and by one."""
    base = str(tmp_path / "kept")
    assert good(2, STORAGES, arguments=(base,)) == ["ok 0", "ok 1"]
    assert good(1, STORAGES, arguments=(base, "alone")) == ["ok 0"]


HUB = """
import json, os, sys
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.tensor import Shard, distribute_tensor
dist.init_process_group()
rank, n, base = dist.get_rank(), dist.get_world_size(), sys.argv[1]
mesh = dist.init_device_mesh("cpu", (n,))
W, B = torch.arange(15.0).reshape(5, 3), torch.arange(4).bfloat16()
def made(factor, dim=0):
    return {"w": distribute_tensor(W * factor, mesh, [Shard(dim)]), "b": B * factor}
def check(state):
    w = state["w"]
    assert (w.full_tensor() if hasattr(w, "full_tensor") else w).equal(W) and state["b"].equal(B), state
files = {"w": 1, "b": 2}
dcp.save(made(1), storage_writer=HuggingFaceStorageWriter(base + "/parts", files, save_distributed=True))
names = sorted(os.listdir(base + "/parts"))
assert all(name.startswith("shard-0000") for name in names) and len(names) == 3, names
dcp.save(made(1), storage_writer=HuggingFaceStorageWriter(base + "/both", files, save_distributed=True, enable_consolidation=True))
for folder in ("parts", "both/sharded", "both"):
    for dim in (0, 1):  # cut otherwise than it was
        state = made(0, dim)
        dcp.load(state, storage_reader=HuggingFaceStorageReader(f"{base}/{folder}"))
        check(state)
if rank == 0:
    dcp.save({"w": W, "b": B}, storage_writer=HuggingFaceStorageWriter(base + "/whole"), no_dist=True)
    for folder, several in (("whole", 1), ("both", 2)):
        index = json.load(open(f"{base}/{folder}/model.safetensors.index.json"))
        names = sorted(f for f in os.listdir(f"{base}/{folder}") if f.endswith("safetensors"))
        assert index["metadata"]["total_size"] == 68 and sorted(set(index["weight_map"].values())) == names and len(names) == several
        state = {"w": torch.zeros(5, 3), "b": torch.zeros(4).bfloat16()}
        dcp.load(state, storage_reader=HuggingFaceStorageReader(f"{base}/{folder}"), no_dist=True)
        check(state)
    for state, words in (({"w": W, "step": 3}, "step is no tensor"),):
        try:
            dcp.save(state, storage_writer=HuggingFaceStorageWriter(base + "/wrong"), no_dist=True)
        except ValueError as error:
            assert words in str(error)
    os.remove(f"{base}/parts/{sorted(os.listdir(base + '/parts'))[0]}")
    try:
        dcp.load({"w": W}, storage_reader=HuggingFaceStorageReader(base + "/parts"), no_dist=True)
    except ValueError as error:
        assert "the parts of 'w'" in str(error) and "do not make it" in str(error)
    else:
        raise AssertionError
dist.barrier()
try:
    dcp.save(made(1), storage_writer=HuggingFaceStorageWriter(base + "/no"))
except dcp.CheckpointException as error:
    assert "pass save_distributed=True" in str(error)
print("ok", rank)
"""


def test_files_of_model_hubs(good, tmp_path):
    """Safetensors files by names that hubs use: whole ones, parts of several processes, and whole ones made of these."""
    assert good(2, HUB, arguments=(str(tmp_path),)) == ["ok 0", "ok 1"]
    flat = adjoin.safetensors.load_file(tmp_path / "whole" / "model-00001-of-00001.safetensors")
    assert flat["w"].equal(adjoin.arange(15.0).reshape(5, 3))
