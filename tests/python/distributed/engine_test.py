"""tests/python/distributed/engine_test.py: an engine that a stranger wrote in C trains, and its faults are told as any other's."""

import os
import pathlib
import subprocess

import pytest

import adjoin

PROGRAM = """
import os, signal, torch, torch.distributed as dist
from torch import nn
dist.init_process_group("over_store")
rank, n = dist.get_rank(), dist.get_world_size()
assert dist.get_backend() == "over_store" and dist.is_backend_available("over_store")
x = torch.ones(3).double() * (rank + 1)
dist.all_reduce(x)
assert x.tolist() == [3.0] * 3
places = [torch.empty(2) for _ in range(n)]
dist.all_gather(places, torch.full((2,), float(rank)))
assert [p[0].item() for p in places] == [0, 1]
dist.send(x, 1) if rank == 0 else dist.recv(x, 0)
for f, words in ((lambda: dist.all_reduce(torch.ones(1)), "does not compute it in float32"),
                 (lambda: dist.gather(x, [x, x] if rank == 0 else None), "gather: the engine over_store does not have it")):
    try:
        f()
    except NotImplementedError as error:
        assert words in str(error)
    else:
        raise AssertionError
torch.manual_seed(rank)
net = nn.parallel.DistributedDataParallel(nn.Linear(2, 1).double())
net(torch.ones(1, 2).double() * (rank + 1)).sum().backward()
assert net.module.weight.grad.tolist() == [[1.5, 1.5]]
try:
    dist.all_reduce(torch.ones(2 + rank).double())
except dist.DistBackendError as error:
    print(rank, "the processes disagree" in str(error))
"""


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "plugins"
    made.mkdir()
    source = pathlib.Path(__file__).parent / "over_store.c"
    flags = subprocess.run(["adjoin", "config", "--cflags"], capture_output=True, text=True, check=True).stdout.split()
    command = [
        "cc",
        "-std=c99",
        "-O1",
        "-Wall",
        "-shared",
        "-fPIC",
        *flags,
        str(source),
        "-o",
        str(made / "libaj_over_store.so"),
    ]
    subprocess.run(command, check=True)
    return made


def test_a_strangers_engine(good, folder):
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("ADJOIN_PLUGIN_PATH")]))
    assert good(2, PROGRAM, ADJOIN_PLUGIN_PATH=path) == ["0 True", "1 True"]


def test_an_engine_that_is_not_there(monkeypatch):
    with pytest.raises(ValueError, match="no plugin offers the engine 'ucc'"):
        adjoin.distributed._group._engine("ucc")
    monkeypatch.setenv("ADJOIN_NCCL", "/none")
    monkeypatch.setenv("ADJOIN_RCCL", "/none")
    assert not adjoin.distributed.is_nccl_available()
    assert adjoin.distributed._group._engine("cpu:gloo,cuda:nccl")[0] == "gloo"
