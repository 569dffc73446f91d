"""tests/python/distributed/collectives_test.py: every collective between real processes, beside what one process computes."""

PROLOGUE = """
import os, torch, torch.distributed as dist
dist.init_process_group(os.environ["TEST_ENGINE"])
rank, n = dist.get_rank(), dist.get_world_size()

def raises(kind, words, f):
    try:
        f()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError("nothing was raised: " + words)
"""


def program(text):
    import textwrap

    return PROLOGUE + textwrap.dedent(text) + "\nprint('ok', rank)\n"


def test_reductions_in_every_dtype(good, engine):
    body = """
    kinds = "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 bool uint16 uint32 uint64"
    ops = {"SUM": lambda a, b: a + b, "PRODUCT": lambda a, b: a * b, "MIN": min, "MAX": max, "BAND": lambda a, b: a & b,
           "BOR": lambda a, b: a | b, "BXOR": lambda a, b: a ^ b}
    refused = set()
    for name in kinds.split():
        dtype = getattr(torch, name)
        for op, f in ops.items():
            rows = [[(r + i) % 2 if name == "bool" else (r + 2) * (i + 1) for i in range(5)] for r in range(n)]
            want = rows[0]
            for row in rows[1:]:
                if (name.startswith("complex") and op in ("MIN", "MAX")) or ("loat" in name or "complex" in name) and op[0] == "B":
                    continue
                want = [f(a, b) for a, b in zip(want, row)]
            x = torch.tensor(rows[rank]).to(dtype)
            try:
                dist.all_reduce(x, getattr(dist.ReduceOp, op))
            except NotImplementedError as error:
                refused.add((name, op))
                continue
            assert x.tolist() == torch.tensor(want).to(dtype).tolist(), (name, op, x, want)
    floats = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
    assert refused == {(f, op) for f in floats for op in ("BAND", "BOR", "BXOR")} | {
        (c, op) for c in ("complex64", "complex128") for op in ("MIN", "MAX")}, refused
    x = torch.tensor([rank + 1.0, 10.0])
    dist.all_reduce(x, dist.ReduceOp.AVG)
    assert x.tolist() == [(n + 1) / 2, 10.0]
    x = torch.ones(2)
    dist.all_reduce(x, dist._make_nccl_premul_sum(0.5))
    assert x.tolist() == [n / 2] * 2
    nan = torch.tensor([float("nan") if rank == 1 else 1.0])
    dist.all_reduce(nan, dist.ReduceOp.MAX)
    assert nan.isnan().all()
    """
    assert good(2, program(body), engine=engine) == ["ok 0", "ok 1"]


def test_collectives_of_three(good, engine):
    body = """
    def mine(*shape):
        return torch.arange(torch.Size(shape).numel()).reshape(shape).double() + 100 * rank

    def of(r, *shape):
        return torch.arange(torch.Size(shape).numel()).reshape(shape).double() + 100 * r

    for size in (0, 1, 7, 50_000):  # the last one is cut by the engine
        places = [torch.empty(size).double() for _ in range(n)]
        dist.all_gather(places, mine(size))
        assert all(p.equal(of(r, size)) for r, p in enumerate(places))
        whole = torch.empty(n * size).double()
        dist.all_gather_into_tensor(whole, mine(size))
        assert whole.equal(torch.cat([of(r, size) for r in range(n)]))
        for root in range(n):
            x = mine(size)
            dist.broadcast(x, root)
            assert x.equal(of(root, size))
            x = mine(size)
            dist.reduce(x, root)
            assert x.equal(sum(of(r, size) for r in range(n)) if rank == root else of(rank, size))
            got = [torch.empty(size).double() for _ in range(n)] if rank == root else None
            dist.gather(mine(size), got, dst=root)
            assert got is None or all(p.equal(of(r, size)) for r, p in enumerate(got))
            out = torch.empty(size).double()
            dist.scatter(out, [of(r, size) for r in range(n)] if rank == root else None, src=root)
            assert out.equal(of(rank, size))
        out = torch.empty(size).double()
        dist.reduce_scatter(out, [mine(size) + 1000 * r for r in range(n)])
        assert out.equal(sum(of(r, size) + 1000 * rank for r in range(n)))
        dist.reduce_scatter_tensor(out, torch.cat([mine(size)] * n), dist.ReduceOp.MAX)
        assert out.equal(of(n - 1, size))
        got = [torch.empty(size).double() for _ in range(n)]
        dist.all_to_all(got, [mine(size) + 1000 * r for r in range(n)])
        assert all(p.equal(of(r, size) + 1000 * rank) for r, p in enumerate(got))
        out = torch.empty(n * size).double()
        dist.all_to_all_single(out, torch.cat([mine(size) + 1000 * r for r in range(n)]))
        assert out.equal(torch.cat([of(r, size) + 1000 * rank for r in range(n)]))

    # parts of several sizes, of rows
    rows = [r + 1 for r in range(n)]
    places = [torch.empty(r, 2).double() for r in rows]
    dist.all_gather(places, mine(rank + 1, 2))
    assert all(p.equal(of(r, r + 1, 2)) for r, p in enumerate(places))
    out = torch.empty(n * (rank + 1), 2)
    dist.all_to_all_single(out, torch.full((sum(rows), 2), float(rank)), [rank + 1] * n, rows)
    assert out.tolist() == [[float(r)] * 2 for r in range(n) for _ in range(rank + 1)]

    # strided tensors, and steps of larger ones
    x = torch.arange(6.0).reshape(2, 3).t()
    dist.all_reduce(x)
    assert x.equal(n * torch.arange(6.0).reshape(2, 3).t()) and not x.is_contiguous()
    base = torch.zeros(6)
    dist.broadcast(base[::2], 1) if rank != 1 else dist.broadcast(torch.ones(6)[::2], 1)
    assert base.tolist() == ([1, 0] * 3 if rank != 1 else [0] * 6)
    got = [torch.empty(3, 2).t() for _ in range(n)]
    dist.all_gather(got, torch.full((2, 3), float(rank)))
    assert [g[0, 0].item() for g in got] == list(range(n))

    # a write is a write: what a tape has saved is checked
    w = torch.ones(2, requires_grad=True)
    held = w * 1
    loss = (held * held).sum()
    dist.all_reduce(held.detach())
    raises(RuntimeError, "inplace", loss.backward)

    works = [dist.all_reduce(torch.full((4,), float(i)), async_op=True) for i in range(5)]
    x = torch.full((4,), 2.0)
    work = dist.all_reduce(x, async_op=True)
    assert work.wait() and work.is_completed() and work.is_success() and x.tolist() == [2.0 * n] * 4
    assert work.get_future().then(lambda f: f.value()[0].sum().item()).wait() == 8.0 * n
    assert all(w.wait() for w in works)
    """
    assert good(3, program(body), engine=engine) == ["ok 0", "ok 1", "ok 2"]


def test_point_to_point_objects_and_groups(good, engine):
    body = """
    right, left = (rank + 1) % n, (rank - 1) % n
    # both directions at once, out of order, beside a collective
    got = [torch.empty(3) for _ in range(4)]
    receives = [dist.irecv(got[tag], left, tag=tag) for tag in reversed(range(4))]
    reduced = torch.ones(1)
    work = dist.all_reduce(reduced, async_op=True)
    sends = [dist.isend(torch.full((3,), 10.0 * rank + tag), right, tag=tag) for tag in range(4)]
    assert all(w.wait() for w in sends + receives) and work.wait() and reduced.item() == n
    assert [g[0].item() for g in got] == [10.0 * left + tag for tag in range(4)]
    x, nothing = torch.full((2, 2), float(rank)).t(), torch.empty(0)
    if rank == 0:
        dist.send(x, 1), dist.send(nothing, 1)
    elif rank == 1:
        assert dist.recv(x, src=0) == 0 and x.tolist() == [[0, 0], [0, 0]] and dist.recv(nothing, src=0) == 0
    y = torch.empty(2)
    ops = [dist.P2POp(dist.isend, torch.full((2,), float(rank)), right), dist.P2POp(dist.irecv, y, left)]
    for w in dist.batch_isend_irecv(ops):
        w.wait()
    assert y.tolist() == [left, left]

    objects = [None] * n
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
    assert objects == [{"rank": r, "text": "x" * r} for r in range(n)]
    objects = [rank, "of", [rank]] if rank == 1 else [None] * 3
    dist.broadcast_object_list(objects, src=1)
    assert objects == [1, "of", [1]]
    gathered = [None] * n if rank == 2 else None
    dist.gather_object((rank,), gathered, dst=2)
    assert gathered == ([(r,) for r in range(n)] if rank == 2 else None)
    place = [None]
    dist.scatter_object_list(place, [f"to {r}" for r in range(n)] if rank == 0 else None, src=0)
    assert place == [f"to {rank}"]
    if rank == 0:
        dist.send_object_list([1, "two"], 2)
    elif rank == 2:
        held = [None, None]
        assert dist.recv_object_list(held, 0) == 0 and held == [1, "two"]

    pair = dist.new_group([0, 2])
    again, alone = dist.new_group([2, 0]), dist.new_group([1])
    if rank == 1:
        assert pair == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(pair) == -1 and alone.size() == 1
        dist.all_reduce(reduced, group=alone)
        raises(ValueError, "not in the group", lambda: dist.all_reduce(reduced, group=pair))
    else:
        x = torch.tensor([float(rank)])
        dist.all_reduce(x, group=pair), dist.all_reduce(x, group=again)
        assert x.item() == 4 and dist.get_process_group_ranks(pair) == [0, 2] and dist.get_group_rank(pair, 2) == 1
        dist.broadcast(x, src=2, group=pair), dist.broadcast(x, group_src=1, group=pair)
        raises(ValueError, "not in the group", lambda: dist.broadcast(x, src=1, group=pair))
        dist.destroy_process_group(pair)
        raises(ValueError, "destroyed", lambda: dist.all_reduce(x, group=pair))
    mesh = dist.init_device_mesh("cpu", (3, 1), mesh_dim_names=("data", "model"))
    assert mesh.get_coordinate() == [rank, 0] and mesh["data"].size() == 3 and mesh["model"].get_group().size() == 1
    x = torch.ones(1)
    dist.all_reduce(x, group=mesh.get_group("data"))
    assert x.item() == 3

    raises(ValueError, "2 tensors", lambda: dist.all_gather([x, x], x))
    raises(ValueError, "shape", lambda: dist.all_gather([torch.ones(2)] * n, x))
    raises(TypeError, "dtypes", lambda: dist.all_gather([torch.ones(1).int()] * n, x))
    raises(ValueError, "7 is not in the group", lambda: dist.broadcast(x, 7))
    raises(TypeError, "ReduceOp", lambda: dist.all_reduce(x, "sum"))
    raises(ValueError, "this process", lambda: dist.send(x, rank))
    raises(ValueError, "twice", lambda: dist.init_process_group())
    dist.monitored_barrier()
    text = dist.group.WORLD.history()
    assert "done all_gather" in text and "program.py" in text, text
    dist.destroy_process_group()
    dist.init_process_group(os.environ["TEST_ENGINE"])  # again, by the same launcher
    dist.all_reduce(x)
    """
    assert good(3, program(body), engine=engine) == ["ok 0", "ok 1", "ok 2"]
