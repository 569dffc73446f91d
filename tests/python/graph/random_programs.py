"""tests/python/graph/random_programs.py: programs at random, a quarter of them with writes through views: `python random_programs.py
--cases 10000 --seed 1` runs each by eager, by the interpreter and fused, saved and loaded, in lazy scopes, compiled and replayed, and
compares bits, strides, versions, the generator and gradients."""

import argparse
import contextlib
import io
import random

import adjoin
from adjoin import _compile, _replay, jit
from adjoin.nn import functional as F

DTYPES = [adjoin.float32] * 4 + [adjoin.float64]
UNARY = [
    "abs",
    "neg",
    "square",
    "relu",
    "exp",
    "tanh",
    "sigmoid",
    "sin",
    "erf",
    "floor",
    "sqrt",
    "log1p",
    "silu",
    "gelu",
]
BINARY = ["add", "sub", "mul", "div", "maximum", "minimum"]
COMPARED = ["lt", "ge", "eq", "ne"]


class Maker:
    """A program as a list of steps; a step is a function of the values so far, which it appends to."""

    def __init__(self, rng):
        self.rng = rng
        self.dtype = rng.choice(DTYPES)
        self.last = rng.choice([1, 3, 8, 17, 64, 100, 200])
        self.rows = rng.choice([1, 2, 5, 12])
        self.writes = rng.random() < 0.25
        self.steps = []
        self.kinds = []  # of each value: "full", "row", "one", "mask", "line"

    def value(self, *kinds):
        """The place of a value of one of these kinds, the latest most often."""
        places = [i for i, k in enumerate(self.kinds) if k in kinds]
        return places[-1] if self.rng.random() < 0.5 else self.rng.choice(places)

    def add(self, kind, step, told):
        self.kinds.append(kind)
        self.steps.append((step, told))

    def unary(self):
        name, a = self.rng.choice(UNARY), self.value("full", "row")
        f = getattr(F, name) if name in ("silu", "gelu") else getattr(adjoin, name)
        fit = (lambda x: x.abs()) if name in ("sqrt", "log1p") else lambda x: x
        self.add(self.kinds[a], lambda v: f(fit(v[a])), f"{name} {a}")

    def binary(self):
        name, a = self.rng.choice(BINARY), self.value("full")
        f = getattr(adjoin, name)
        if self.rng.random() < 0.4:
            number = self.rng.choice([2, 0.5, -1.25, 3])
            if name in ("maximum", "minimum"):
                name, f = "mul", adjoin.mul
            return self.add("full", lambda v: f(v[a], number), f"{name} {a} {number}")
        b = self.value("full", "row", "line", "one")
        if self.rng.random() < 0.5:
            a, b = b, a
        return self.add(
            "full" if "full" in (self.kinds[a], self.kinds[b]) else self.kinds[a],
            lambda v: f(v[a], v[b]),
            f"{name} {a} {b}",
        )

    def compared(self):
        name, a, b = self.rng.choice(COMPARED), self.value("full"), self.value("full", "row", "one")
        f = getattr(adjoin, name)
        self.add("mask", lambda v: f(v[a], v[b]), f"{name} {a} {b}")

    def masked(self):
        if "mask" not in self.kinds:
            return self.compared()
        m, a, b = self.value("mask"), self.value("full"), self.value("full", "row")
        how = self.rng.randrange(3)
        if how == 0:
            return self.add("full", lambda v: adjoin.where(v[m], v[a], v[b]), f"where {m} {a} {b}")
        if how == 1:
            return self.add("full", lambda v: v[a] * v[m], f"mul {a} mask {m}")
        n = self.value("mask")
        return self.add("mask", lambda v: (v[m] & ~v[n]) | (v[a] > 0), f"masks {m} {n} {a}")

    def reduced(self):
        name, a = self.rng.choice(["sum", "mean", "amax", "amin"]), self.value("full")
        f = getattr(adjoin, name)
        self.add("row", lambda v: f(v[a], -1, keepdim=True), f"{name} {a}")

    def softmaxed(self):
        a = self.value("full")
        self.add("full", lambda v: adjoin.softmax(v[a], -1), f"softmax {a}")

    def product(self):
        a, n = self.value("full"), self.last
        self.add("full", lambda v: (v[a] @ v[a].t()) @ v[a], f"product {a} {n}")

    def dropped(self):
        a = self.value("full")
        self.add("full", lambda v: F.dropout(v[a], 0.3, True), f"dropout {a}")

    def viewed(self):
        a = self.value("full")
        self.add("full", lambda v: v[a].t().contiguous().t(), f"turned {a}")

    def joined(self):
        a, b, half = self.value("full"), self.value("full"), self.last // 2
        self.add("full", lambda v: adjoin.cat([v[a][:, half:], v[b][:, :half]], 1), f"cat {a} {b}")

    def written(self):
        a, b, r = self.value("full"), self.value("full"), self.rng.randrange(self.rows)
        how, last = self.rng.randrange(4), self.last

        def step(v):
            t = v[a]
            if how == 0:
                t[r].mul_(2)
            elif how == 1:
                t[:, : last // 2 + 1].add_(v[b][:, : last // 2 + 1])
            elif how == 2:
                t.clamp_(-2, 2)
            else:
                t[r] = v[b][0]
            return t.sum(-1, keepdim=True)

        self.add("row", step, f"write {how} {a} {b} {r}")

    def whole(self, length):
        r, n = self.rows, self.last
        shapes = [("full", (r, n))] * 3 + [("line", (n,)), ("row", (r, 1)), ("one", (1, 1)), ("one", ())]
        for kind, _ in shapes:
            self.kinds.append(kind)
        inputs = [adjoin.randn(s, dtype=self.dtype) for _, s in shapes]
        choices = [self.unary] * 6 + [self.binary] * 8 + [self.compared, self.masked, self.masked]
        choices += [self.reduced] * 2 + [self.softmaxed, self.product, self.dropped, self.viewed, self.joined]
        choices += [self.written] * (3 if self.writes else 0)
        while len(self.steps) < length:
            self.rng.choice(choices)()
        kept = sorted(self.rng.sample(range(len(shapes), len(self.kinds)), min(5, len(self.kinds) - len(shapes))))
        steps = [s for s, _ in self.steps]

        def f(*given):
            values = list(given)
            if self.writes:  # inputs are written where they stand, and values of the program are
                values = [v * 1 if i % 2 else v for i, v in enumerate(values)]
            for step in steps:
                values.append(step(values))
            return [values[i] for i in kept]

        return f, inputs


def bits(t):
    t = t.detach()
    if t.dtype.is_floating_point:  # which of two NaNs an operation gives is the compiler's choice
        t = adjoin.where(t.isnan(), adjoin.full_like(t, float("nan")), t)
    return str(t.dtype), tuple(t.shape), t.stride(), t.numpy().tobytes()


def outcome(run, inputs, seed):
    """What a run leaves: results, what it wrote to its inputs, versions, and where the generator stands."""
    given = [x.clone() for x in inputs]
    adjoin.manual_seed(seed)
    results = run(*given)
    drawn = adjoin.rand(1)
    return [bits(t) for t in [*results, *given, drawn]], [x._version for x in given]


def slopes(run, inputs, seed):
    """Gradients of what floats among the results sum up to, for inputs that nobody writes; None where there are none."""
    given = [x.clone().requires_grad_(x.dtype.is_floating_point) for x in inputs]
    adjoin.manual_seed(seed)
    results = [
        t
        for t in run(*[x * 1 if x.requires_grad else x for x in given])
        if t.dtype.is_floating_point and t.requires_grad
    ]
    if not results:
        return None
    total = sum((t.to(adjoin.float64).sum() for t in results[1:]), results[0].to(adjoin.float64).sum())
    try:
        total.backward()
    except RuntimeError as error:  # a value that the tape has saved was written
        return "in place" in str(error)
    return [x.grad for x in given]


def alike(a, b, exact):
    """Are gradients the same? Of a joint program sums of several may be taken in another order."""
    if not isinstance(a, list) or not isinstance(b, list):
        return a == b
    if exact:
        return [x if x is None else bits(x) for x in a] == [x if x is None else bits(x) for x in b]
    return all(
        x is y if x is None or y is None else adjoin.allclose(x, y, rtol=1e-4, atol=1e-5, equal_nan=True)
        for x, y in zip(a, b, strict=True)
    )


def in_a_scope(f, memory):
    """f in a lazy scope that has met what `memory` has."""
    from adjoin._compile import Compiled

    state = Compiled(f, 0)
    state.memory = memory
    return lambda *given: state.written_down(given, {})[0]


def training(f, inputs):
    """A step that takes gradients of f and goes along them, and the tensors that it moves."""
    params = [x.clone().requires_grad_(x.dtype.is_floating_point) for x in inputs]

    def step(rate):
        for p in params:
            p.grad = None
        results = [t for t in f(*[p * 1 for p in params]) if t.dtype.is_floating_point and t.requires_grad]
        if results:
            sum((t.to(adjoin.float64).sum() for t in results[1:]), results[0].to(adjoin.float64).sum()).backward()
        with adjoin.no_grad():
            for p in params:
                if p.grad is not None:
                    p.sub_(p.grad.nan_to_num(0, 1, -1).clamp(-1, 1) * rate)
        return results

    return step, params


@contextlib.contextmanager
def always():
    """Programs run, whether they are faster or not."""
    trials, scope = _replay.TRIALS, _compile.SCOPE
    _replay.TRIALS, _compile.SCOPE = 0, -(1 << 60)
    try:
        yield
    finally:
        _replay.TRIALS, _compile.SCOPE = trials, scope


def steps(f, inputs, seed, compiled, times=7):
    """What steps leave behind, one after the other."""
    step, params = training(f, inputs)
    run = adjoin.compile(step, replay=True) if compiled else step
    adjoin.manual_seed(seed)
    left = []
    try:
        with always():
            for i in range(times):
                results = run(adjoin.tensor(0.01 * (i + 1)))
                left.append([bits(t) for t in (*results, *params, *(p.grad for p in params if p.grad is not None))])
    except RuntimeError as error:  # a value that the tape has saved was written
        return left, "in place" in str(error)
    return left, bits(adjoin.rand(1)), run._state.verdict if compiled else ""


def every_door(f, inputs, seed, wanted, programs):
    """The door of compile's, of those that are entered several times, whose outcome is not eager's, with gradients, for
    which programs are asked, too; or None."""
    from adjoin._lazy import new_memory

    doors = {
        "scope": (in_a_scope(f, new_memory()), 3),
        "compiled": (adjoin.compile(f), 5),
        "replayed": (adjoin.compile(f, replay=True, dynamic=False), 5),
    }
    for name, (run, times) in doors.items():
        for _ in range(times):  # met for the first time, known, trusted
            with always():
                if outcome(run, inputs, seed) != wanted:
                    return name
    decided = adjoin.compile(f, replay=True, dynamic=False)
    for _ in range(3):  # the trials of the second call leave nothing behind
        if outcome(decided, inputs, seed) != wanted:
            return "decided"
    if steps(f, inputs, seed, False)[:2] != steps(f, inputs, seed, True)[:2]:
        return "stepped"
    slope = slopes(f, inputs, seed)
    for name, (run, times) in {**programs, **doors}.items():
        for _ in range(times if slope else 0):
            with always():
                same = alike(slopes(run, inputs, seed), slope, exact=name != "replayed")
            if not same:
                return name + " with gradients"
    return None


def differs(f, inputs, seed, saved=False, every=False):
    """The door whose outcome is not eager's, or None; and how many groups ran fused."""
    wanted = outcome(f, inputs, seed)
    adjoin.manual_seed(seed)
    traced = jit.trace(f, tuple(x.clone() for x in inputs))
    handle = traced._traced.program
    doors = {
        "interpreter": lambda *given: handle.run(list(given), False),
        "fused": lambda *given: handle.run(list(given), True),
    }
    if saved:
        memory = io.BytesIO()
        jit.save(traced, memory)
        doors["loaded"] = jit.load(io.BytesIO(memory.getvalue()))
    for name, run in doors.items():
        got = outcome(run, inputs, seed)
        if got != wanted:
            return name, traced.stats()
    outcome(doors["fused"], inputs, seed)
    stats = traced.stats()
    return every_door(f, inputs, seed, wanted, {k: (run, 1) for k, run in doors.items()}) if every else None, stats


def case(seed):
    rng = random.Random(seed)
    adjoin.manual_seed(seed % 2**31)
    length = rng.randint(20, 60)
    maker = Maker(rng)
    f, inputs = maker.whole(length)
    return maker, f, inputs


def shrunk(seed, most=60):
    """The shortest beginning of the case that still differs, as the text of its program."""
    for length in range(1, most + 1):
        rng = random.Random(seed)
        adjoin.manual_seed(seed % 2**31)
        rng.randint(20, 60)
        maker = Maker(rng)
        f, inputs = maker.whole(length)
        door, _ = differs(f, inputs, seed % 1000, every=True)
        if door:
            return door, [told for _, told in maker.steps], jit.trace(f, tuple(inputs)).graph
    return None, [], ""


def sweep(seed, cases, told=None, every=8):
    """The seeds that differ, and the share of programs in which a group ran fused."""
    bad, fused = [], 0
    for i in range(cases):
        s = seed * 1_000_003 + i
        _, f, inputs = case(s)
        door, stats = differs(f, inputs, s % 1000, saved=i % 8 == 0, every=i % every == 0)
        fused += stats["groups"] > 0
        if door:
            bad.append((s, door))
        if told and i % 100 == 99:
            told(f"{i + 1} programs, {len(bad)} differ, {fused} with a fused group")
    return bad, fused / max(1, cases)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="each n-th program goes through the doors of compile, too")
    a = parser.parse_args()
    bad, fused = sweep(a.seed, a.cases, lambda text: print(text, flush=True), a.every)
    for s, door in bad[:5]:
        door, steps, code = shrunk(s)
        print(f"seed {s}: {door} differs after {len(steps)} steps\n" + "\n".join(steps) + "\n" + code)
    print(f"{a.cases} programs, {len(bad)} differ, {fused:.0%} with a fused group")
    raise SystemExit(bool(bad))
