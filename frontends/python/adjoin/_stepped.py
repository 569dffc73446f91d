"""adjoin._stepped: a function that finds gradients and writes what it has read, such as a step of training, as one program."""

import re

import adjoin

from . import _C, empty_strided, no_grad, zeros
from .autograd import Function
from .jit._traced import put_together, take_apart

KEEP, WRITES = 8, 16  # AJ_LAZY_... of abi/lazy.h
MOST = 1 << 20  # bytes of a constant
LINE = re.compile(r" @\d+$", re.MULTILINE)
INPUT = re.compile(r"%(\d+): (\w+\[[\d, ]*\])")


class NoStep(RuntimeError):
    """What the function does is no program that could run in its place."""


class Written:
    """One call of a function, carried out as one program: its result, and what the program takes, gives and leaves behind."""

    def __init__(self, call, leaves, tensors, memory):
        self.leaves, self.tensors = leaves, tensors
        self.params = [t for t in (*leaves, *tensors) if t.requires_grad and t.is_leaf]
        self.before = [t.grad for t in self.params]
        state, flushed = adjoin.default_generator._get(), _C.lazy_stats(memory)[2]
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
        if adjoin.default_generator._get() != state:
            self.why = "random numbers were drawn"
        if not self.why:
            self.text, self.inputs = _C.lazy_kept(memory)
            self.why = "" if self.text else "a call was made at once"

    def step(self):
        if self.why:
            raise NoStep(self.why)
        return Step(self)


class Step:
    """A program in the place of a function: run(given) gives its result and leaves gradients as it does."""

    def __init__(self, w):
        head, *lines = LINE.sub("", w.text).splitlines()[1:]
        types = dict(INPUT.findall(head))
        self.sources, self.names, self.calls, self.constants = [], [], [], []
        own = [*w.leaves, *w.tensors, *w.before]
        self.places, self.many = {id(t): i for i, t in enumerate(own) if t is not None}, len(w.leaves)
        self.own = [t for t in own if t is not None]
        for (name, kind), t in zip(types.items(), w.inputs, strict=True):
            self.take(name, kind, t)
        taken = {id(t) for t in self.sources}
        end = next(i for i, line in enumerate(lines) if line.startswith("  return") or line == "}")
        made = re.findall(r"%(\d+)", lines[end])
        at = {int(v): i for i, v in enumerate(made)}
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
        found = [i for i in (*self.results, *(i for _, i in self.grads)) if isinstance(i, int)]
        if len(set(found)) != len(found):
            raise NoStep("two results are one tensor")
        names = ", ".join(f"%{name}: {kind}" for name, kind in self.names)
        self.program_text = "\n".join(["adjoin.program 1", f"fn step({names}) {{", *self.calls, *lines]) + "\n"
        self.program = _C.program_parse(self.program_text)
        order = [self.places.get(id(t)) for t in self.sources]
        self.order = [i if i is not None and i < self.many else t for i, t in zip(order, self.sources, strict=True)]
        # What says that two calls were the same.
        said = [i if isinstance(i, int) else self.places[id(i)] for i in self.results]
        left = (
            [(self.places[id(p)], i) for p, i in self.grads],
            [(self.places[id(p)], g is None) for p, g in self.guards],
        )
        self.text = self.program_text, tuple(self.constants), repr((order, self.form, said, left))
        self.dummy = zeros(1, requires_grad=True)

    def take(self, name, kind, t):
        """One of what the calls were given becomes an input: itself, or what it is a view of."""
        base = t if id(t) in self.places else self.base_of(t)
        if base is None:
            once = t.detach()  # a slope of ones is one number, spread
            for d, stride in enumerate(t.stride()):
                once = once.narrow(d, 0, 1) if stride == 0 and t.shape[d] else once
            if t._version or once.numel() * t.itemsize > MOST:
                raise NoStep(
                    "a tensor is written or large that is neither an argument nor one that the function can reach"
                )
            from ._replay import bytes_of

            self.constants.append((bytes_of(once), t.stride()))
        if base is None or base is t:
            self.sources.append(t)
            self.names.append((name, kind))
            return
        source = next((k for k, s in enumerate(self.sources) if s is base), None)
        if source is None or not self.names[source][0].startswith("base"):
            source = len(self.sources)
            self.sources.append(base)
            dtype = str(base.dtype).removeprefix("adjoin.")
            self.names.append((f"base{source}", f"{dtype}[{', '.join(map(str, base.shape))}]"))
        from_, dtype = self.names[source][0], kind.partition("[")[0]
        skip, n = t.storage_offset() - base.storage_offset(), base.numel()
        if t.shape == base.shape[1:] and t.is_contiguous() and skip % max(t.numel(), 1) == 0:
            self.calls.append(f"  %{name} = select(%{from_}, 0, {skip // t.numel()}) : {kind}")
            return
        self.calls += [
            f"  %{name}flat = reshape(%{from_}, [-1]) : {dtype}[{n}]",
            f"  %{name}rest = narrow(%{name}flat, 0, {skip}, {n - skip}) : {dtype}[{n - skip}]",
            f"  %{name} = as_strided(%{name}rest, {list(t.shape)}, {list(t.stride())}) : {kind}",
        ]

    def base_of(self, t):
        """The tensor of which t is a view that was made at once."""
        memory = t.untyped_storage().data_ptr() if t.numel() else 0
        for b in self.own if memory else ():
            if b.numel() and b.untyped_storage().data_ptr() == memory:
                if b.dtype == t.dtype and b.is_contiguous() and t.storage_offset() >= b.storage_offset():
                    return b
                raise NoStep("a view is read that no call makes of what the function was given")
        return None

    def place_of(self, w, t, at):
        """Where a result comes from: its place in what the program gives, or the tensor itself."""
        v = w.values[id(t)]
        if v in at:
            return at[v]
        if v is None and id(t) in self.places and self.places[id(t)] >= self.many:
            return t
        raise NoStep("a result is an argument, or made by no call")

    def fits(self):
        """Are the gradients there that were there, and will nobody be called who is told of them?"""
        return all(p.grad is was for p, was in self.guards) and not _C.leaf_hooks(self.params)

    def run(self, given):
        with no_grad():
            for p in self.dropped:  # whose memory serves again
                p.grad = None
            out = _C.program_run(self.program, [given[s] if type(s) is int else s for s in self.order], True)
            for p, i in self.grads:
                p.grad = None if i is None else out[i] if type(i) is int else i
            for p in self.turned:
                p.grad = turned(p.grad, p)
        results = [out[i] if type(i) is int else i for i in self.results]
        for k, taped in enumerate(self.taped):
            if taped and not results[k].requires_grad:
                results[k] = Spent.apply(results[k], self.dummy)
        return put_together(self.form, results)


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
