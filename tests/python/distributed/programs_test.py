"""tests/python/distributed/programs_test.py: random programs of collectives, in threads that each are a process: each ends right,
or everybody names the first mistake."""

import os
import random
import threading

import pytest

import adjoin
from adjoin import _C
from adjoin.distributed import _collectives as c

if "simulated" not in adjoin.plugin.available():
    pytest.skip("NOT TESTED: the plugin simulated was not built", allow_module_level=True)

DTYPES = {"float32": adjoin.float32, "int64": adjoin.int64, "float64": adjoin.float64}
TOGETHER = 25  # programs at once: those with a mistake wait for half a second
KINDS = (c.BARRIER, c.BROADCAST, c.ALL_REDUCE, c.REDUCE, c.ALL_GATHER, c.REDUCE_SCATTER, c.ALL_TO_ALL)
NAMES = {c.BARRIER: "barrier", c.BROADCAST: "broadcast", c.ALL_REDUCE: "all_reduce", c.REDUCE: "reduce",
         c.ALL_GATHER: "all_gather", c.REDUCE_SCATTER: "reduce_scatter", c.ALL_TO_ALL: "all_to_all"}  # fmt: skip
ROOTED = (c.BROADCAST, c.REDUCE)
REDUCES = (c.ALL_REDUCE, c.REDUCE, c.REDUCE_SCATTER)


def step(rng, n, kind=None):
    kind = rng.choice(KINDS) if kind is None else kind
    return {
        "kind": kind,
        "dtype": rng.choice(sorted(DTYPES)),
        "count": rng.choice((1, 3, 500)),
        "op": rng.choice((0, 4)) if kind in REDUCES else 0,  # sum, max
        "root": rng.randrange(n) if kind in ROOTED else -1,
    }


def essence(s):
    """What all processes must agree on."""
    return (s["kind"],) if s["kind"] == c.BARRIER else tuple(s.values())


class Program:
    def __init__(self, number, seed):
        self.rng = rng = random.Random(f"{seed}/{number}")
        self.number, self.n = number, rng.randint(3, 8)
        steps = [step(rng, self.n) for _ in range(rng.randint(3, 9))]
        self.steps = [list(steps) for _ in range(self.n)]
        self.mistake, self.who, self.at = rng.choice((None, "other", "skip", "more", "raise", "leave")), None, None
        if self.mistake:
            self.who, self.at = rng.randrange(self.n), rng.randrange(len(steps))
            self.change(self.steps[self.who])
        self.said, self.wrong, self.here = [None] * self.n, [], threading.Barrier(self.n)

    def change(self, mine):
        if self.mistake == "skip":
            del mine[self.at]
        elif self.mistake == "more":
            mine.insert(self.at, step(self.rng, self.n))
        elif self.mistake == "other":
            before = essence(mine[self.at])
            while essence(mine[self.at]) == before:
                mine[self.at] = step(self.rng, self.n)

    def run(self, host, port):
        threads = [threading.Thread(target=self.rank, args=(r, host, port)) for r in range(self.n)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        if any(t.is_alive() for t in threads):
            self.wrong.append("a rank hangs")

    def rank(self, r, host, port):
        link = _C.dist_connect(host, port, 20000)
        world = f"program{self.number}"
        _C.dist_join(link, world, r, self.n)
        group = _C.dist_group_open(
            link, f"{world}/default", "default", "simulated", "cpu", 0, tuple(range(self.n)), r, 20000
        )
        self.here.wait(30)
        try:
            for i, s in enumerate(self.steps[r]):
                if r == self.who and i == self.at and self.mistake == "raise":
                    _C.dist_tell(link, "raised ValueError: mine at train.py:7")
                    return
                if r == self.who and i == self.at and self.mistake == "leave":
                    return
                self.one(group, r, s, i)
        except RuntimeError as error:
            self.said[r] = str(error)
        finally:
            _C.dist_leave(link)
            _C.dist_group_close(group)
            _C.dist_disconnect(link)

    def one(self, group, r, s, i):
        kind, count, n = s["kind"], s["count"], self.n
        dtype = DTYPES[s["dtype"]]
        parts = n if kind in (c.REDUCE_SCATTER, c.ALL_TO_ALL) else 1
        given = None if kind == c.BARRIER else adjoin.full((count * parts,), r + i, dtype=dtype)
        out = None
        if kind != c.BARRIER:
            out = adjoin.full((count * (n if kind in (c.ALL_GATHER, c.ALL_TO_ALL) else 1),), -1, dtype=dtype)
        work = _C.dist_start(
            group, kind, s["op"], s["root"], 0, count if given is not None else 0, given, out, None, None, 1.0
        )
        _C.dist_work_wait(work, -1)
        if kind == c.BARRIER:
            return
        total = sum(q + i for q in range(n)) if s["op"] == 0 else n - 1 + i
        want = {c.BROADCAST: [s["root"] + i] * count, c.REDUCE: [total if r == s["root"] else -1] * count}.get(kind)
        if want is None and kind in REDUCES:
            want = [total] * count
        elif want is None:
            want = [q + i for q in range(n) for _ in range(count)]
        if out.tolist() != want:
            self.wrong.append(f"rank {r}, {NAMES[kind]}, step {i}: {out.tolist()[:4]}, wanted {want[:4]}")

    def first_difference(self):
        """The number of the first collective in which who made the mistake does something else; None: he ends early, or late."""
        mine, theirs = self.steps[self.who], self.steps[(self.who + 1) % self.n]
        for i, (a, b) in enumerate(zip(mine, theirs, strict=False)):
            if essence(a) != essence(b):
                return i + 1
        return None

    def check(self):
        assert not self.wrong, self.wrong
        others = [text for r, text in enumerate(self.said) if r != self.who]
        if self.mistake is None:
            assert self.said == [None] * self.n, self.said
        elif self.mistake == "raise":
            assert all(
                t and f"rank {self.who} (host" in t and "raised ValueError: mine at train.py:7" in t for t in others
            ), self.said
        elif self.mistake == "leave":
            assert all(f"rank {self.who} has ended its part" in t for t in others), self.said
        elif (at := self.first_difference()) is not None:
            assert all("the processes disagree" in t and t.count(f" #{at}") >= 2 for t in self.said), (at, self.said)
            assert all(f"rank {self.who}" in t or f"(rank {self.who})" in t for t in self.said), self.said
        elif self.mistake == "skip":  # of equal ones: his are over before the others'
            assert all(f"rank {self.who} has ended its part" in t for t in others) and self.said[self.who] is None, (
                self.said
            )
        else:  # one more behind the last
            assert "has ended its part" in self.said[self.who] and not any(others), self.said


def test_programs():
    seed = os.environ.get("ADJOIN_TEST_SEED", "0")
    count = 1000 if os.environ.get("ADJOIN_TEST_FULL") == "1" else 150
    server, port = _C.dist_serve("127.0.0.1", 0)
    programs = [Program(i, seed) for i in range(count)]
    for begin in range(0, count, TOGETHER):
        some = programs[begin : begin + TOGETHER]
        threads = [threading.Thread(target=p.run, args=("127.0.0.1", port)) for p in some]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for p in some:
            p.check()
    _C.dist_end_server(server, 0)
    assert {p.mistake for p in programs} == {None, "other", "skip", "more", "raise", "leave"}
