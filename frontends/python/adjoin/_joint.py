"""adjoin._joint: a function and its derivative as two programs: forward keeps what backward cannot compute again for less."""

import re
from collections import deque
from time import perf_counter_ns as now

from . import _C, enable_grad, ones
from ._lazy import new_memory
from .autograd import Function, grad
from .jit._traced import RESULT, put_together, take_apart

KEEP = 8  # AJ_LAZY_KEEP of abi/lazy.h
CHEAP = {"unary", "unary_float", "unary_bool", "binary", "binary_float", "compare", "pointwise", "view"}
DEEP = 8  # calls that are made again in a row before the next value is kept
WIN = 0.9  # of the bytes, above which nothing is computed again
LINE = re.compile(r"  (?:(.*?) = )?([\w:.]+)\((.*)\) : (.*?)(?: no_grad)?(?: @\d+)?$")
INTO = re.compile(r"  ([\w:.]+\(.*\)) into %(\d+)(?: no_grad)?$")
VALUE = re.compile(r"%(\d+)")
TYPE = re.compile(r"(\w+)\[([\d, ]*)\]")
BYTES = {"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "float16": 2, "bfloat16": 2, "int32": 4, "float32": 4}


class NoJoint(RuntimeError):
    """The function is no program of calls with a derivative that is one."""


def bytes_of(kind):
    dtype, sizes = TYPE.match(kind).groups()
    n = BYTES.get(dtype, 8)
    for size in sizes.split(","):
        n *= int(size) if size.strip() else 1
    return n


class Call:
    def __init__(self, line):
        found = LINE.match(line)
        if not found or " effect" in line:
            raise NoJoint(f"a call draws, writes, or is no call: {line.strip()}")
        self.line, self.name = line, found[2]
        self.gives = [int(v) for v in VALUE.findall(found[1] or "")]
        self.takes = [int(v) for v in VALUE.findall(found[3])]
        self.kinds = ["{}[{}]".format(*t) for t in TYPE.findall(found[4])]
        kind = "view" if self.name == "detach" else _C.op_kind(self.name)
        self.cheap, self.view = kind in CHEAP, kind == "view"


class Whole:
    """The calls of both directions, as one program's text."""

    def __init__(self, text):
        lines = text.splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("fn "))
        self.types = {int(v): kind for v, kind in re.findall(r"%(\d+): (\w+\[[\d, ]*\])", lines[start])}
        self.inputs = list(self.types)
        self.calls, self.maker, self.names = [], {}, {}
        shares = set()  # values that share memory with others
        for line in lines[start + 1 :]:
            if line.startswith(("  return", "}")):
                continue
            line = VALUE.sub(lambda found: f"%{self.now(int(found[1]))}", re.sub(r" @\d+$", "", line))
            if written := INTO.match(line):  # the tape adds up gradients where they stand
                target = int(written[2])
                if target in shares or target not in self.maker:
                    raise NoJoint(f"a call writes what others see: {line.strip()}")
                fresh = 1_000_000 + len(self.names)
                self.names[target] = fresh
                line = f"  %{fresh} = {written[1]} : {self.types[target]}"
            call = Call(line)
            self.calls.append(call)
            for v, kind in zip(call.gives, call.kinds, strict=True):
                self.types[v], self.maker[v] = kind, call
            if call.view:
                shares.update(call.gives, call.takes)

    def view_of(self, v, t, given, at):
        """A view of what is given, {place: tensor}, was made at once: now it is made by a call."""
        memory = t.untyped_storage().data_ptr()
        i = next((i for i, g in given.items() if g.numel() and g.untyped_storage().data_ptr() == memory), None)
        base = given.get(i)
        if (
            base is None
            or base.dtype != t.dtype
            or not base.is_contiguous()
            or t.storage_offset() < base.storage_offset()
        ):
            raise NoJoint("a tensor is read that is neither an argument nor a parameter")
        source = next((u for u, place in at.items() if place == i), None)
        if source is None:
            source = 2_000_000 + len(self.types)
            at[source], self.types[source] = i, f"{t.dtype}[{', '.join(map(str, base.shape))}]".removeprefix("adjoin.")
        skip, dtype = t.storage_offset() - base.storage_offset(), str(t.dtype).removeprefix("adjoin.")
        flat, rest = 3_000_000 + len(self.types), 3_000_001 + len(self.types)
        n = base.numel()
        lines = [
            f"  %{flat} = reshape(%{source}, [-1]) : {dtype}[{n}]",
            f"  %{rest} = narrow(%{flat}, 0, {skip}, {n - skip}) : {dtype}[{n - skip}]",
            f"  %{v} = as_strided(%{rest}, {list(t.shape)}, {list(t.stride())}) : {self.types[v]}",
        ]
        made = [Call(line) for line in lines]
        for call in made:
            self.types[call.gives[0]], self.maker[call.gives[0]] = call.kinds[0], call
        self.calls[:0] = made

    def now(self, v):
        """What a value is called after all writes to it."""
        while v in self.names:
            v = self.names[v]
        return v

    def after(self, values):
        """The calls that depend on these values."""
        reached, found = set(values), set()
        for call in self.calls:
            if any(v in reached for v in call.takes):
                found.add(call)
                reached.update(call.gives)
        return found

    def needed(self, results, known):
        """The calls, in order, that make the results when these values are known; and what of those they read."""
        wanted, read, found = set(results) - set(known), {v for v in results if v in known}, []
        for call in reversed(self.calls):
            if any(v in wanted for v in call.gives):
                found.append(call)
                for v in call.takes:
                    (read if v in known else wanted).add(v)
        return found[::-1], read

    def late(self, calls, slopes):
        """The same calls, those of forward each right before they are needed: what they give dies soon."""
        wanted, made, order = set(calls), set(), []

        def make(call):
            if call in made or call not in wanted:
                return
            made.add(call)
            for v in call.takes:
                if v in self.maker:
                    make(self.maker[v])
            order.append(call)

        backward = self.after(slopes)
        for call in (c for c in calls if c in backward):
            make(call)
        for call in calls:
            make(call)
        return order

    def text(self, calls, inputs, results):
        head = ", ".join(f"%{v}: {self.types[v]}" for v in inputs)
        body = "\n".join(call.line for call in calls)
        return f"adjoin.program 1\nfn f({head}) {{\n{body}\n  return {', '.join(f'%{v}' for v in results)}\n}}\n"

    def saved(self, inputs, results, slopes, last):
        """The values that backward starts from: the fewest bytes, if cheap calls are made again."""
        backward = self.after(slopes)
        first = {v for call in self.calls if call not in backward for v in call.gives} | set(inputs)
        plain = {v for call in backward for v in call.takes if v in first} | {v for v in last if v in first}
        free = set(inputs) | set(results)

        def cost(values):
            return sum(bytes_of(self.types[v]) for v in values if v not in free)

        cut = self.cut(inputs, first, plain, free)
        return sorted(cut if cost(cut) <= WIN * cost(plain) else plain), cost(plain), cost(cut)

    def cut(self, inputs, first, ends, free):
        """A smallest set of values through which all ways to `ends` go, by flow: a value is an edge of its bytes."""
        edges = {}

        def edge(a, b, size):
            edges.setdefault(a, {})[b] = edges.get(a, {}).get(b, 0) + size
            edges.setdefault(b, {}).setdefault(a, 0)

        endless = 1 << 60
        deep = dict.fromkeys(inputs, 0)  # calls from the last value that is kept
        for call in self.calls:
            for v in call.gives if all(u in deep for u in call.takes) else ():
                most = max((deep[u] for u in call.takes), default=0) + (not call.view)
                deep[v] = most if call.cheap and most <= DEEP else 0
        for v in first:
            edge((v, 0), (v, 1), 1 if v in free else bytes_of(self.types[v]) + 1)
            call = self.maker.get(v)
            again = call is not None and call.cheap and (call.view or deep.get(v, 0) > 0)
            if not again:
                edge("source", (v, 0), endless)
            for u in call.takes if again else ():
                edge((u, 1), (v, 0), endless)
        for v in ends:
            edge((v, 1), "sink", endless)
        while True:
            way, waiting = {"source": None}, deque(["source"])
            while waiting and "sink" not in way:
                a = waiting.popleft()
                for b, room in edges.get(a, {}).items():
                    if room > 0 and b not in way:
                        way[b] = a
                        waiting.append(b)
            if "sink" not in way:
                break
            b, room = "sink", endless
            while (a := way[b]) is not None:
                room, b = min(room, edges[a][b]), a
            b = "sink"
            while (a := way[b]) is not None:
                edges[a][b] -= room
                edges[b][a] += room
                b = a
        return {v for v in first if (v, 0) in way and (v, 1) not in way}


class Joint:
    """run(given) gives what the function gives of its arguments and what it has read; the derivative is a program, too."""

    def __init__(self, call, leaves, tensors, program):
        given = [*leaves, *tensors]
        slopes = [
            ones(shape, dtype=dtype) if dtype.is_floating_point else None
            for _, dtype, shape in _C.program_values(program.handle, RESULT)
        ]
        self.wanted = [t.requires_grad for t in given]
        results, memory = [], new_memory()
        _C.lazy_enter(memory, KEEP)
        try:
            with enable_grad():
                self.form = take_apart(call(*leaves), results)
                self.slopes = [i for i, t in enumerate(results) if t.requires_grad]
                ys = [_C.lazy_value(t) for t in results]
                grads = grad(
                    [results[i] for i in self.slopes],
                    [t for t in given if t.requires_grad],
                    [slopes[i] for i in self.slopes],
                    allow_unused=True,
                )
                gs = [None if g is None else _C.lazy_value(g) for g in grads]
                early = _C.lazy_stats(memory)[2]
                _C.lazy_flush()
        finally:
            _C.lazy_leave()
        if early or None in ys or len(set(ys)) < len(ys) or not self.slopes:
            raise NoJoint("a value is asked for on the way, or a result is an argument")
        if any(g is not None and v is None for g, v in zip(grads, gs, strict=True)):
            raise NoJoint("a gradient is no result of a call")
        text, inputs = _C.lazy_kept(memory)
        whole = Whole(text)
        ys, gs = [whole.now(v) for v in ys], [None if v is None else whole.now(v) for v in gs]
        places = {id(t): i for i, t in enumerate(given)} | {id(slopes[i]): -1 - k for k, i in enumerate(self.slopes)}
        sources = dict(enumerate(given)) | {-1 - k: slopes[i] for k, i in enumerate(self.slopes)}
        at = {v: places[id(t)] for v, t in zip(whole.inputs, inputs, strict=True) if id(t) in places}
        for v, t in zip(whole.inputs, inputs, strict=True):
            if v not in at:
                whole.view_of(v, t, sources, at)
        order = list(at)
        mine, theirs = [v for v in order if at[v] >= 0], [v for v in order if at[v] < 0]
        ends = [v for v in gs if v is not None]
        saved, self.plain_bytes, self.saved_bytes = whole.saved(mine, ys, theirs, ends)
        forward, _ = whole.needed([*ys, *saved], set(mine))
        known = {*saved, *theirs}
        backward, read = whole.needed(ends, known)
        if missing := {v for call in backward for v in call.takes if v not in known and v not in whole.maker}:
            raise NoJoint(f"backward reads {missing}")
        self.saved = [v for v in saved if v in read or v in ends]
        self.own = [v for v in self.saved if v not in mine]  # those that forward makes
        self.places = [at[v] for v in mine]
        self.kept = [("made", self.own.index(v)) if v in self.own else ("given", at[v]) for v in self.saved]
        self.theirs = [-1 - at[v] for v in theirs]
        self.gs, self.results = gs, len(ys)
        self.forward = _C.program_parse(whole.text(forward, mine, [*ys, *self.own]))
        backward = whole.late(backward, theirs)
        self.backward = _C.program_parse(whole.text(backward, [*self.saved, *theirs], ends)) if ends else None
        self.original = program

    def run(self, given):
        results = Region.apply(self, *given)
        return put_together(self.form, results if isinstance(results, tuple) else (results,))

    def slopes_of(self, kept, slopes):
        """Gradients of what was given, by those of the results."""
        made = iter(
            _C.program_run(self.backward, [*kept, *(slopes[k] for k in self.theirs)], True) if self.backward else ()
        )
        found = iter([None if v is None else next(made) for v in self.gs])
        return tuple(next(found) if wanted else None for wanted in self.wanted)


class Region(Function):
    @staticmethod
    def forward(ctx, joint, *given):
        out = _C.program_run(joint.forward, [given[i] for i in joint.places], True)
        results, own = out[: joint.results], out[joint.results :]
        ctx.joint, ctx.given = joint, given
        ctx.save_for_backward(*(own[i] if kind == "made" else given[i] for kind, i in joint.kept))
        ctx.mark_non_differentiable(*(t for i, t in enumerate(results) if i not in joint.slopes))
        return tuple(results)

    @staticmethod
    def backward(ctx, *slopes):
        joint, kept = ctx.joint, ctx.saved_tensors
        slopes = [slopes[i] for i in joint.slopes]
        if _C.is_grad_enabled():  # a derivative of the derivative: by the calls themselves
            with enable_grad():
                results = []
                take_apart(joint.original.run(list(ctx.given[: len(joint.original.inputs)])), results)
                inputs = [t for t, wanted in zip(ctx.given, joint.wanted, strict=True) if wanted]
                outs = [results[i] for i in joint.slopes]
                found = iter(grad(outs, inputs, slopes, create_graph=True, allow_unused=True))
            return (None, *(next(found) if wanted else None for wanted in joint.wanted))
        return (None, *joint.slopes_of(kept, slopes))


def fastest(joint, program, leaves, tensors):
    """Does the joint program give the bits of the calls, and sooner?"""
    wanted = [t for t in (*leaves, *tensors) if t.requires_grad]

    def one(run):
        results = []
        begin = now()
        take_apart(run(), results)
        outs = [results[i] for i in joint.slopes]
        found = grad(outs, wanted, [ones(t.shape, dtype=t.dtype) for t in outs], allow_unused=True)
        return now() - begin, [*results, *found]

    ways = (lambda: program.run(leaves)), (lambda: joint.run([*leaves, *tensors]))
    least = [1 << 62, 1 << 62]
    for turn in range(8):
        told = [one(way) for way in ways]
        for k, (took, _) in enumerate(told):
            least[k] = min(least[k], took) if turn else least[k]
        if not turn and not all(same_bits(a, b) for a, b in zip(told[0][1], told[1][1], strict=True)):
            return False
    return least[1] <= 0.85 * least[0]  # clearly: the calls are as good where it is close


def same_bits(a, b):
    if a is None or b is None:
        return a is b
    from ._replay import bytes_of as contents

    return contents(a) == contents(b)
