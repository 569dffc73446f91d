"""adjoin._joint: a function and its derivative as two programs: forward keeps what backward cannot compute again for less."""

from collections import deque

from . import _C, enable_grad, ones
from ._compile import now
from ._lazy import new_memory
from .autograd import Function, grad
from .jit._traced import INPUT, RESULT, put_together, take_apart

KEEP = 8  # AJ_LAZY_KEEP of abi/lazy.h
EFFECT, CHEAP, VIEW = 1, 2, 4  # AJ_CALL_... of abi/passes.h
DEEP = 8  # calls that are made again in a row before the next value is kept
WIN = 0.9  # of the bytes, above which nothing is computed again


class NoJoint(RuntimeError):
    """The function is no program of calls with a derivative that is one."""


class Call:
    def __init__(self, place, flags, takes, gives):
        self.place, self.takes, self.gives = place, takes, gives
        self.view = bool(flags & VIEW)
        self.cheap = self.view or bool(flags & CHEAP)


class Whole:
    """The calls of both directions. sources: what is given, {place: tensor}; what the program was given are these or views of them."""

    def __init__(self, program, inputs, sources):
        self.program = program
        inputs, places = list(inputs), {id(t): i for i, t in sources.items()}
        for t in [t for t in inputs if id(t) not in places]:
            self.take(t, inputs, sources)
        names = [int(name) for name, _, _ in _C.program_values(program, INPUT)]
        self.at = {v: places[id(t)] for v, t in zip(names, inputs, strict=True)}
        self.calls, self.maker, self.bytes = [], {}, {}
        for place, (flags, takes, gives, sizes) in enumerate(_C.program_calls(program)):
            if flags & EFFECT:
                raise NoJoint("a call draws, writes what others see, or is no call")
            call = Call(place, flags, takes, gives)
            self.calls.append(call)
            self.maker.update(dict.fromkeys(gives, call))
            self.bytes.update(zip(gives, sizes, strict=True))

    def take(self, t, inputs, sources):
        """A view of what is given was made at once: now the program makes it."""
        memory = t.untyped_storage().data_ptr()
        base = next((g for g in sources.values() if g.numel() and g.untyped_storage().data_ptr() == memory), None)
        if (
            base is None
            or base.dtype != t.dtype
            or not base.is_contiguous()
            or t.storage_offset() < base.storage_offset()
        ):
            raise NoJoint("a tensor is read that is neither an argument nor a parameter")
        i = next(i for i, s in enumerate(inputs) if s is t)
        del inputs[i]
        k = next((k for k, s in enumerate(inputs) if s is base), len(inputs))
        if k == len(inputs):
            inputs.append(base)
        _C.program_view(self.program, i, k, base, t)

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

    def cut_out(self, calls, inputs, results):
        return _C.program_cut(self.program, [call.place for call in calls], list(inputs), list(results))

    def saved(self, inputs, results, slopes, last):
        """The values that backward starts from: the fewest bytes, if cheap calls are made again."""
        backward = self.after(slopes)
        first = {v for call in self.calls if call not in backward for v in call.gives} | set(inputs)
        plain = {v for call in backward for v in call.takes if v in first} | {v for v in last if v in first}
        free = set(inputs) | set(results)

        def cost(values):
            return sum(self.bytes[v] for v in values if v not in free)

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
            edge((v, 0), (v, 1), 1 if v in free else self.bytes[v] + 1)
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
        kept, inputs = _C.lazy_program(memory)
        if kept is None:
            raise NoJoint("a call was made at once")
        whole = Whole(kept, inputs, dict(enumerate(given)) | {-1 - k: slopes[i] for k, i in enumerate(self.slopes)})
        at = whole.at
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
        self.forward = whole.cut_out(forward, mine, [*ys, *self.own])
        backward = whole.late(backward, theirs)
        self.backward = whole.cut_out(backward, [*self.saved, *theirs], ends) if ends else None
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


def fastest(joint, program, call, leaves, tensors, limits):
    """The shortest times, ns, of the program's calls, of the joint program, and of the function, each with its derivative; None
    where the bits differ. limits: the most turns, the fewest, and nanoseconds after which no more are begun."""
    wanted = [t for t in (*leaves, *tensors) if t.requires_grad]

    def one(run):
        results = []
        begin = now()
        take_apart(run(), results)
        outs = [results[i] for i in joint.slopes]
        found = grad(outs, wanted, [ones(t.shape, dtype=t.dtype) for t in outs], allow_unused=True)
        return now() - begin, [*results, *found]

    ways = (lambda: program.run(leaves)), (lambda: joint.run([*leaves, *tensors])), (lambda: call(*leaves))
    least, spent = [1 << 62] * 3, 0
    for turn in range(limits[0]):
        told = [one(way) for way in ways]
        for k, (took, _) in enumerate(told):
            least[k] = min(least[k], took) if turn else least[k]
            spent += took
        if not turn and not all(same_bits(a, b) for a, b in zip(told[0][1], told[1][1], strict=True)):
            return None
        if turn + 1 >= limits[1] and spent > limits[2]:
            break
    return least


def wins(times):
    """Is it worth to run two programs? Clearly: the calls are as good where it is close."""
    return times is not None and times[1] <= 0.85 * min(times[0], times[2])


def same_bits(a, b):
    if a is None or b is None:
        return a is b
    from ._replay import bytes_of as contents

    return contents(a) == contents(b)
