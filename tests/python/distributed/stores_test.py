"""tests/python/distributed/stores_test.py: stores, and the ways in which processes meet."""

import datetime
import os
import socket
import subprocess
import sys
import threading
import time

import pytest
from slowness import patience

import adjoin
from adjoin import distributed as dist

SHORT = datetime.timedelta(milliseconds=150)


def of_kind(kind, tmp_path):
    if kind == "hash":
        return dist.HashStore()
    if kind == "file":
        return dist.FileStore(str(tmp_path / "store"), 1)
    if kind == "prefix":
        return dist.PrefixStore("inner", dist.HashStore())
    return dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)


@pytest.mark.parametrize("kind", ["hash", "file", "prefix", "tcp"])
def test_a_store(kind, tmp_path):
    store = of_kind(kind, tmp_path)
    store.set("a", "one")
    store.set("bytes", b"\x00\xff")
    assert store.get("a") == b"one" and store.get("bytes") == b"\x00\xff"
    assert store.num_keys() == 2 + (kind == "file")  # which counts its processes in a key, as PyTorch's does
    assert store.add("n", 3) == 3 and store.add("n", -1) == 2 and store.get("n") == b"2"
    assert store.check(["a", "n"]) and not store.check(["a", "missing"])
    assert store.compare_set("a", "other", "two") == b"one" and store.compare_set("a", "one", "two") == b"two"
    assert store.compare_set("new", "", "made") == b"made" and store.get("new") == b"made"
    assert store.delete_key("new") and not store.delete_key("new")
    store.append("a", "!")
    store.multi_set(["x", "y"], ["1", "2"])
    assert store.get("a") == b"two!" and store.multi_get(["x", "y"]) == [b"1", b"2"]
    store.set_timeout(SHORT)
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="late"):
        store.get("late")
    with pytest.raises(dist.DistStoreError, match="late"):
        store.wait(["a", "late"])
    assert 0.3 < time.monotonic() - began < 1.5 * patience()
    store.set_timeout(datetime.timedelta(seconds=20))
    writer = threading.Timer(0.05, store.set, ("late", "here"))
    writer.start()
    assert store.get("late") == b"here"
    writer.join()
    store.barrier("once", 1)
    store.clone().queue_push("queue", "first")
    store.queue_push("queue", "second")
    assert store.queue_len("queue") == 2 and store.queue_pop("queue") == b"first"
    assert store.queue_pop("queue", block=False) == b"second" and store.queue_len("queue") == 0
    with pytest.raises(dist.QueueEmptyError, match="'queue' is empty"):
        store.queue_pop("queue", block=False)


def test_a_queue_gives_each_value_once():
    store, taken = dist.HashStore(), []
    takers = [threading.Thread(target=lambda: taken.extend(store.queue_pop("q") for _ in range(20))) for _ in range(4)]
    for t in takers:
        t.start()
    for i in range(80):
        store.queue_push("q", str(i))
    for t in takers:
        t.join(20)
    assert sorted(taken, key=int) == [str(i).encode() for i in range(80)]


def test_the_last_process_takes_the_file_away(tmp_path):
    path = str(tmp_path / "store")
    first, second = dist.FileStore(path, 2), dist.FileStore(path, 2)
    first.set("a", "1")
    del first
    assert second.get("a") == b"1" and os.path.exists(path)
    del second
    assert not os.path.exists(path)
    dist.FileStore(path).set("a", "1")  # nobody says how many there are: it stays
    assert dist.FileStore(path).get("a") == b"1"


def test_servers_and_who_waits_for_whom():
    with pytest.raises(ValueError, match="world size cannot be 0"):
        dist.TCPStore("localhost", 0, 0, is_master=True)
    with pytest.raises(dist.DistStoreError, match="waiting for clients. 1/2 clients joined"):
        dist.TCPStore("localhost", 0, 2, is_master=True, timeout=SHORT)
    held = socket.socket()
    held.bind(("localhost", 0))
    port = held.getsockname()[1]
    server = dist.TCPStore("localhost", port, 3, True, wait_for_workers=False, master_listen_fd=held.detach())
    assert server.port == port
    client = dist.TCPStore("localhost", port, 3, timeout=SHORT)  # the master alone waits for others
    client.set("a", "1")
    assert server.get("a") == b"1"
    one = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False, multi_tenant=True)
    with pytest.raises(dist.DistNetworkError, match="Address already in use"):
        dist.TCPStore("localhost", one.port, is_master=True)
    port = free_port()
    one, two = (dist.TCPStore("localhost", port, 1, True, multi_tenant=True) for _ in range(2))
    one.set("a", "1")
    del one
    assert two.get("a") == b"1"
    del two
    dist.TCPStore("localhost", port, 1, True)  # nobody has the server any more


def test_rendezvous(tmp_path, monkeypatch):
    (store, rank, size) = next(dist.rendezvous(f"file://{tmp_path}/meet?rank=0&world_size=1"))
    store.set("a", "1")
    assert isinstance(store, dist.FileStore) and (rank, size) == (0, 1)
    port = free_port()
    for name, value in {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}.items():
        monkeypatch.setenv(name, str(value))
    (store, rank, size) = next(dist.rendezvous("env://"))
    assert store.port == port and (rank, size) == (0, 1)
    monkeypatch.delenv("RANK")
    with pytest.raises(ValueError, match="RANK expected, but not set"):
        next(dist.rendezvous("env://"))
    with pytest.raises(ValueError, match="port number parameter missing"):
        next(dist.rendezvous("tcp://127.0.0.1?rank=0&world_size=1"))
    with pytest.raises(RuntimeError, match="handler for udp://"):
        dist.rendezvous("udp://x")
    asked = []

    def own(url, **options):
        asked.append(url)
        yield dist.HashStore(), 0, 1

    monkeypatch.setattr(sys.modules["adjoin.distributed.rendezvous"], "_handlers", {})
    dist.register_rendezvous_handler("own", own)
    with pytest.raises(RuntimeError, match="already registered"):
        dist.register_rendezvous_handler("own", own)
    dist.init_process_group(init_method="own://there")
    dist.destroy_process_group()
    assert asked == ["own://there"]


def test_a_port_that_is_taken_is_told_with_its_address():
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    with pytest.raises(dist.DistNetworkError, match=f"127.0.0.1:{taken.getsockname()[1]}.*another process"):
        dist.TCPStore("127.0.0.1", taken.getsockname()[1], is_master=True)
    with pytest.raises(dist.DistNetworkError, match="nobody answers at localhost:1 "):
        dist.TCPStore("localhost", 1, timeout=SHORT)


PROGRAM = """
import sys, adjoin
from adjoin import distributed as dist
how, rank = sys.argv[1], int(sys.argv[2])
if how.startswith("store:"):
    dist.init_process_group(store=dist.FileStore(how[6:], 2), rank=rank, world_size=2)
else:
    dist.init_process_group("gloo", init_method=how, rank=rank, world_size=2)
x = adjoin.ones(3) * (rank + 1)
dist.all_reduce(x)
assert x.tolist() == [3.0] * 3
if "again" in sys.argv:
    dist.destroy_process_group()
    dist.init_process_group("gloo", init_method=how, rank=rank, world_size=2)
    dist.barrier()
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.mark.skipif("gloo" not in adjoin.plugin.available(), reason="the plugin gloo was not built")
@pytest.mark.parametrize("how", ["tcp", "file", "store", "env"])
def test_ways_to_meet(how, tmp_path):
    port = free_port()
    method = {"tcp": f"tcp://127.0.0.1:{port}", "file": f"file://{tmp_path}/meet", "store": f"store:{tmp_path}/s"}.get(
        how, "env://"
    )
    env = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)} if how == "env" else dict(os.environ)
    if how == "file":  # what an earlier run has left
        (tmp_path / "meet").write_text("127.0.0.1 1\n")
    more = ["again"] if how in ("tcp", "env", "file") else []
    both = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, method, str(rank), *more], env=env, stderr=subprocess.PIPE, text=True
        )
        for rank in (1, 0)
    ]
    for process in both:
        assert process.communicate(timeout=60)[1] == "" and process.returncode == 0
    if how == "file":
        assert not (tmp_path / "meet").exists()


def test_who_is_missing_is_told(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    method = f"tcp://127.0.0.1:{free_port()}"
    with pytest.raises(dist.DistNetworkError, match="1 of 3 processes.*missing: rank 0, 2"):
        server = adjoin.distributed.store.serve("127.0.0.1", int(method.rpartition(":")[2]))
        dist.init_process_group(init_method=method, rank=1, world_size=3, timeout=SHORT)
    adjoin._C.dist_end_server(server[0], 0)
    with pytest.raises(ValueError, match="which one this is"):
        dist.init_process_group(world_size=2)
    with pytest.raises(ValueError, match="MASTER_ADDR"):
        dist.init_process_group(world_size=2, rank=0)
    with pytest.raises(ValueError, match="rank 5 in a world of 2"):
        dist.init_process_group(world_size=2, rank=5)
    with pytest.raises(ValueError, match="udp://"):
        dist.init_process_group(init_method="udp://x", world_size=2, rank=0)
    assert not dist.is_initialized()
