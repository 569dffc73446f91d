"""adjoin._stepped: a function that finds gradients and writes what it has read, such as a step of training, as one program."""

import adjoin

from . import _C, empty_strided, no_grad, zeros
from ._compile import now as clock
from .autograd import Function
from .autograd.graph import increment_version
from .jit._traced import RESULT, put_together, take_apart

KEEP, WRITES = 8, 16  # AJ_LAZY_... of abi/lazy.h
MOST = 1 << 20  # bytes of a constant
COPIED = 1 << 29  # bytes for a rehearsal
KEPT = 16  # steps that are known again
# Numbers that a call of an optimizer takes, and where they stand in its groups.
SETTINGS = {"lr": ("lr", None), "momentum": ("momentum", None), "beta1": ("betas", 0), "beta2": ("betas", 1)}


class NoStep(RuntimeError):
    """What the function does is no program that could run in its place."""


class Written:
    """One call of a function, carried out as one program: its result, and what the program takes, gives and leaves behind."""

    def __init__(self, call, leaves, tensors, memory):
        self.leaves, self.tensors, self.memory = leaves, tensors, memory
        self.params = [t for t in (*leaves, *tensors) if t.requires_grad and t.is_leaf]
        self.before = [t.grad for t in self.params]
        self.generator = generator_of(next(iter((*leaves, *tensors)), None))
        self.state, flushed = self.generator._get(), _C.lazy_stats(memory)[2]
        self.results, self.why = [], ""
        _C.lazy_limits(1 << 30, 1 << 60)
        _C.lazy_enter(memory, KEEP | WRITES)
        try:
            self.result = call(*leaves)
            try:
                self.form = take_apart(self.result, self.results)
            except TypeError as error:
                self.why = str(error)
            self.after = [t.grad for t in self.params]
            if _C.lazy_stats(memory)[2] != flushed:
                self.why = "a value or a size was asked for on the way"
            shown = [t for t in (*self.results, *self.after) if t is not None]
            self.values = {id(t): _C.lazy_value(t) for t in shown}
            self.taped = [t.requires_grad for t in self.results]
        finally:
            _C.lazy_limits(0, 0)
            _C.lazy_leave()
        self.turned = []
        for p, was in zip(self.params, self.before, strict=True):  # .grad lies as the leaf does
            if (g := p.grad) is not None and g is not was and g.stride() != p.stride():
                self.turned.append(id(p))
                p.grad = turned(g, p)
        seed, offset = self.generator._get()
        self.drawn = offset - self.state[1]
        if seed != self.state[0] or self.drawn < 0:
            self.why = "the generator was seeded"
        if not self.why:
            self.program, self.inputs = _C.lazy_program(memory)
            self.why = "" if self.program else "a call was made at once"
        own = [*leaves, *tensors, *self.before]
        self.places, self.many = {id(t): i for i, t in enumerate(own) if t is not None}, len(leaves)
        self.own = [t for t in own if t is not None]

    def step(self, groups, known):
        """Its program, or the one of a call that was the same. groups: of optimizers, whose settings nobody else reads."""
        if self.why:
            raise NoStep(self.why)
        key = self.key(groups)
        if key not in known:
            while len(known) >= KEPT:
                del known[next(iter(known))]
            known[key] = Step(self, groups)
        return known[key]

    def key(self, groups):
        """What says that two calls were the same, without a look at their programs."""

        def told(t):
            place = self.places.get(id(t))
            if place is not None:
                return place if place < self.many else ("own", id(t))
            if (base := self.base_of(t)) is not None:
                return told(base), tuple(t.shape), t.stride(), t.storage_offset() - base.storage_offset(), t.dtype
            return self.constant(t)

        def made(t):
            return None if t is None else self.values[id(t)] or id(t)

        grads = ((was is None, now is was, made(now)) for was, now in zip(self.before, self.after, strict=True))
        return (
            _C.lazy_stats(self.memory)[7],
            self.drawn,
            tuple(map(told, self.inputs)),
            tuple(map(made, self.results)),
            tuple(grads),
            repr(self.form),
            tuple(self.taped),
            tuple(self.turned),
            tuple(map(id, groups)),
        )

    def base_of(self, t):
        """The tensor of which t is a view that was made at once."""
        memory = t.untyped_storage().data_ptr() if t.numel() else 0
        for b in self.own if memory else ():
            if b.numel() and b.untyped_storage().data_ptr() == memory:
                if b.dtype == t.dtype and b.is_contiguous() and t.storage_offset() >= b.storage_offset():
                    return b
                raise NoStep("a view is read that no call makes of what the function was given")
        return None

    def constant(self, t):
        """What is no tensor of ours, by its values."""
        once = t.detach()  # a slope of ones is one number, spread
        for d, stride in enumerate(t.stride()):
            once = once.narrow(d, 0, 1) if stride == 0 and t.shape[d] else once
        if t._version or once.numel() * t.itemsize > MOST:
            raise NoStep("a tensor is written or large that is neither an argument nor one that the function can reach")
        from ._replay import bytes_of

        return bytes_of(once), t.stride()


class Step:
    """A program in the place of a function: run(given) gives its result and leaves gradients as it does."""

    def __init__(self, w, groups):
        self.program, self.sources, self.constants = w.program, list(w.inputs), []
        self.places, self.many = w.places, w.many
        self.held = w.own, groups  # who is known by its identity
        for t in w.inputs:
            if id(t) not in self.places:
                self.take(w, t)
        taken = {id(t) for t in self.sources}
        at = {int(name): i for i, (name, _, _) in enumerate(_C.program_values(self.program, RESULT))}
        self.form, self.taped, self.params = w.form, w.taped, w.params
        self.results = [self.place_of(w, t, at) for t in w.results]
        # What becomes of each gradient, and what has to be there before.
        self.grads, self.guards, self.dropped = [], [], []
        for p, was, now in zip(w.params, w.before, w.after, strict=True):
            if was is None or id(was) in taken:
                self.guards.append((p, was))
            elif now is not was:
                self.dropped.append(p)
            if now is None:
                self.grads.append((p, None))
            elif now is not was:
                self.grads.append((p, self.place_of(w, now, at)))
        self.turned = [p for p, _ in self.grads if id(p) in w.turned]
        # Sums are made where they stand or not: their versions are those that they have had.
        made = [*zip(w.results, self.results, strict=True), *((p.grad, i) for p, i in self.grads)]
        self.versions = [(i, t._version) for t, i in made if type(i) is int and t._version]
        found = [i for i in (*self.results, *(i for _, i in self.grads)) if isinstance(i, int)]
        if len(set(found)) != len(found):
            raise NoStep("two results are one tensor")
        self.generator, self.drawn, self.numbers = w.generator, w.drawn, {}
        self.lift_draws(w.state)
        self.settings = []  # (group, its place among them, key, place in the setting, is it something)
        self.lift_settings(groups)
        self.numbers_then = dict.fromkeys(self.numbers, (None, None))  # and their tensors
        order = [self.places.get(id(t)) for t in self.sources]
        self.order = [i if i is not None and i < self.many else t for i, t in zip(order, self.sources, strict=True)]
        # What says that two calls were the same.
        said = [i if isinstance(i, int) else self.places[id(i)] for i in self.results]
        left = (
            [(self.places[id(p)], i) for p, i in self.grads],
            [(self.places[id(p)], g is None) for p, g in self.guards],
        )
        numbers = self.drawn, list(self.numbers)
        self.text = _C.program_text(self.program), tuple(self.constants), repr((order, self.form, said, left, numbers))
        self.dummy = zeros(1, requires_grad=True)

    def take(self, w, t):
        """An input that is no tensor of ours becomes a view of one, or it is a constant."""
        base = w.base_of(t)
        if base is None:
            self.constants.append(w.constant(t))
            return
        i = next(i for i, s in enumerate(self.sources) if s is t)
        del self.sources[i]
        k = next((k for k, s in enumerate(self.sources) if s is base), len(self.sources))
        if k == len(self.sources):
            self.sources.append(base)
        _C.program_view(self.program, i, k, base, t)

    def lift(self, call, parameter, source):
        """That number is an input from now on, the same for all that come from there."""
        i = self.numbers.setdefault(source, len(self.numbers))
        _C.program_lift(self.program, call, parameter, len(self.sources) + i)

    def lift_draws(self, state):
        """Random numbers are those of the generator as it stands when the program runs."""
        seed, begin = signed(state[0]), state[1]
        offsets = {call: n for call, n, _ in _C.program_numbers(self.program, "offset")}
        for call, n, _ in _C.program_numbers(self.program, "seed"):
            skip = offsets.get(call, -1) - begin
            if n != seed or not 0 <= skip < self.drawn:
                raise NoStep("random numbers are drawn from another generator than the default one")
            self.lift(call, "seed", "seed")
            self.lift(call, "offset", skip)

    def lift_settings(self, groups):
        """What an optimizer's call is told of its group is asked for when the program runs."""
        for parameter, (key, place) in SETTINGS.items():
            for call, n, first in _C.program_numbers(self.program, parameter):
                p = None if first is None else self.sources[first]
                k = next((k for k, g in enumerate(groups) if any(p is q for q in g["params"])), None)
                if k is None:
                    continue  # of a group that is watched as a whole
                if setting(groups[k], key, place) != n:
                    raise NoStep(f"an optimizer is told another {parameter} than its group has")
                self.lift(call, parameter, (k, key, place))
                self.settings.append((groups[k], (k, key, place), n != 0))

    def watched(self, w):
        """What of a watched thing has to stand: of a group all but what the program asks for."""
        asked = {key for group, (_, key, _), _ in self.settings if group is w}
        return [(w, key) for key in w if key not in asked] if asked else [w]

    def numbers_now(self, drawn=True):
        """drawn=False: nobody will have drawn them."""
        seed, offset = self.generator._get()
        if self.drawn and drawn:
            self.generator._set(seed, offset + self.drawn)
        told = {source: setting(group, *source[1:]) for group, source, _ in self.settings}
        told["seed"] = signed(seed)
        for s, (n, _) in self.numbers_then.items():
            if (now := told[s] if s in told else offset + s) != n:
                self.numbers_then[s] = now, number(now)
        return [t for _, t in self.numbers_then.values()]

    def place_of(self, w, t, at):
        """Where a result comes from: its place in what the program gives, or the tensor itself."""
        v = w.values[id(t)]
        if v in at:
            return at[v]
        if v is None and id(t) in self.places and self.places[id(t)] >= self.many:
            return t
        raise NoStep("a result is an argument, or made by no call")

    def things(self):
        """What it takes, leaves and asks, in order; of constants the text has the values."""
        taken = (s for s in self.order if type(s) is int or id(s) in self.places)
        pairs = (x for pair in (*self.grads, *self.guards) for x in pair)
        groups = (group for group, _, _ in self.settings)
        return [*taken, *self.results, *pairs, *self.params, *self.dropped, *self.turned, *groups]

    def is_as(self, other):
        """May it run in the place of a step whose text is the same? Then what is compiled of it serves again."""
        mine, theirs = self.things(), other.things()
        return len(mine) == len(theirs) and all(
            a is b or (type(a) is int and a == b) for a, b in zip(mine, theirs, strict=True)
        )

    def fits(self):
        """Are the gradients there that were there, will nobody be called who is told of them, and are settings numbers?"""
        for group, (_, key, place), something in self.settings:
            n = setting(group, key, place)
            if n is None or (n != 0) != something:
                return False
        return all(p.grad is was for p, was in self.guards) and not _C.leaf_hooks(self.params)

    def rehearsed(self, given):
        """The nanoseconds that its program takes, made ready by that, on copies of what it is given."""
        with no_grad():
            inputs = [(given[s] if type(s) is int else s).detach() for s in self.order]
            if sum(t.numel() * t.itemsize for t in inputs) > COPIED:
                return 0
            inputs = [t.clone() for t in inputs] + (self.numbers_now(False) if self.numbers else [])
            least = 1 << 60
            for turn in range(4):
                begin = clock()
                _C.program_run(self.program, inputs, True)
                least = min(least, clock() - begin) if turn else least
        return least

    def run(self, given):
        with no_grad():
            for p in self.dropped:  # whose memory serves again
                p.grad = None
            inputs = [given[s] if type(s) is int else s for s in self.order]
            if self.numbers:
                inputs += self.numbers_now()
            out = _C.program_run(self.program, inputs, True)
            for i, version in self.versions:
                if (missing := version - out[i]._version) > 0:
                    increment_version([out[i]] * missing)
            for p, i in self.grads:
                p.grad = None if i is None else out[i] if type(i) is int else i
            for p in self.turned:
                p.grad = turned(p.grad, p)
        results = [out[i] if type(i) is int else i for i in self.results]
        for k, taped in enumerate(self.taped):
            if taped and not results[k].requires_grad:
                results[k] = Spent.apply(results[k], self.dummy)
        return put_together(self.form, results)


def generator_of(t):
    """The one that draws where t lies."""
    return adjoin.default_generator if t is None or t.device.type == "cpu" else _C.default_generator(t.device)


def signed(seed):
    """64 bits as an int64 has them."""
    return seed - (1 << 64) if seed >> 63 else seed


def number(n):
    """As a program takes one."""
    return adjoin.tensor(n, dtype=adjoin.float64 if type(n) is float else adjoin.int64, device="cpu")


def setting(group, key, place):
    """A group's setting, or one of several, where it is a number: as a float."""
    n = group.get(key)
    if place is not None:
        n = n[place] if type(n) in (tuple, list) and len(n) > place else None
    return float(n) if type(n) in (int, float) else None


def turned(g, leaf):
    """A gradient in the leaf's layout."""
    with no_grad():
        dense = leaf.is_contiguous() or 0 in leaf.stride()
        return (
            g.contiguous() if dense else empty_strided(g.shape, leaf.stride(), dtype=g.dtype, device=g.device).copy_(g)
        )


class Spent(Function):
    """A result whose derivative was taken already."""

    @staticmethod
    def forward(ctx, t, dummy):
        return t.view_as(t)

    @staticmethod
    def backward(ctx, slope):
        raise RuntimeError(
            "backward: the tensor was made by a step that compile(replay=True) runs as one program, its backward pass with it; "
            "take derivatives inside of the function, or leave replay out"
        )
