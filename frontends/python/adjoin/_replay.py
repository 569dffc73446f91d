"""adjoin._replay: compile(fn, replay=True): after equal recordings of a function its program runs in its place, as long as what
the function has read is the same."""

import re
from time import perf_counter_ns as now

from . import _C, compiler, no_grad, uint8
from ._compile import CHECK, WHOLE, _all
from ._dynamo import config
from ._lazy import new_memory, scope_is_open
from ._looked_at import Looked, contents
from .jit import is_tracing
from .jit._traced import CONSTANT, capture, capture_dynamic, put_together

EQUAL = 3  # recordings before a program is trusted
KINDS = 64  # of arguments that are remembered
SYMBOLS = 3  # sizes that may vary in one program
TRIALS = 24  # runs of a step, in turns with its calls, before it is known what is faster; the first four warm up
GUARD = 4_000  # nanoseconds that a call costs before its program runs
MORE = 4  # a look is a recording, which costs as much as some steps do: each comes after so many times as many runs
GAIN = 0.95  # of the time of its calls, above which a step's program is not worth its looks


class Known:
    """Recordings that were alike. calls: of a program for all sizes, what they have in common."""

    def __init__(self, text, calls=None):
        self.text, self.calls, self.equal, self.runs = text, calls, 0, 1
        self.program, self.sizes, self.joint, self.step = None, [], None, None
        self.trials, self.least = 0, [1 << 60, 1 << 60]  # nanoseconds of calls, of the program


class Replayed:
    """A function whose recorded program runs in its place; `look` makes the calls that no program serves."""

    def __init__(self, function, flags, dynamic=None):
        if flags & ~(WHOLE | CHECK):
            raise ValueError("compile: replay=True runs fused programs; options={'fused': False} contradicts it")
        self.function, self.check, self.dynamic = function, bool(flags & CHECK), dynamic is not False
        self.face = _C.compiled(function, self.look)
        self.reset()
        _all.add(self)

    def reset(self):
        self.face.plans_clear()
        self.known, self.shapes, self.refused, self.calls = {}, {}, set(), 0
        self.memories, self.others = {}, 0
        self.looks, self.steps = {}, {}  # of steps, by kinds of arguments
        self.verdict = "it was not called yet"

    def look(self, args, kwargs):
        if scope_is_open() or is_tracing() or compiler._stance == "force_eager" or config.disable:
            return self.function(*args, **kwargs)
        self.calls += 1
        expected = self.face.plan_take(args, kwargs)
        leaves = []
        form = template((args, kwargs), leaves)
        if len({id(t) for t in leaves}) != len(leaves):  # a program could not tell them apart
            return self.function(*args, **kwargs)
        kind = kind_of(form, leaves)
        looked = self.looks.get(kind)
        if looked is None or not looked.stands():
            looked = Looked(self.function, args, kwargs)
        if looked.trains and _C.is_grad_enabled():
            return self.step(form, leaves, args, kwargs, looked, expected, kind)
        result, program, text, writes = self.record(form, leaves, looked)
        if expected is not None:
            if (calls_of(text) != expected.calls) if expected.calls else (text != expected.text):
                raise RuntimeError(self.difference(expected, program.handle, text))
            if expected.calls:
                self.trust(expected, expected.program, args, kwargs, looked, writes)
                return result
        elif self.dynamic and self.generalized(form, leaves, args, kwargs, looked, text, writes):
            return result
        key = kind, text
        known = self.known[key] = self.known.pop(key, None) or Known(text)  # the last one
        while len(self.known) > KINDS:
            del self.known[next(iter(self.known))]
        known.equal += 1
        if known.equal < EQUAL:
            self.verdict = f"recorded {known.equal} times alike; it is trusted after {EQUAL}"
        else:
            self.trust(known, program, args, kwargs, looked, writes)
        return result

    def trust(self, known, program, args, kwargs, looked, writes):
        """From now on the program runs for such calls, MORE times as often as before."""
        form = program.form_out
        flat = isinstance(form, dict) and form == {"t": list(range(len(form.get("t", ()))))}
        together = None if form == 0 else True if flat else lambda results: put_together(form, results)
        known.program = program
        joint = None if known.sizes or writes else self.joint_of(known, args, kwargs, looked)
        known.runs = 1 if self.check else known.runs * MORE
        tensors = [t for _, t in looked.tensors]
        handle, together = (None, lambda given: joint.run([*given, *tensors])) if joint else (program.handle, together)
        self.face.plan_add(handle, args, kwargs, looked.watched, together, writes, known.runs - 1, known, known.sizes)
        self.verdict = f"its program runs, and is looked at again after {known.runs - 1} runs"

    def step(self, form, leaves, args, kwargs, looked, expected, kind):
        """A call that finds gradients: with what it writes, it is one program."""
        from ._stepped import NoStep, Written

        if _C.leaf_hooks([*leaves, *(t for _, t in looked.tensors)]):
            self.verdict = "runs as it is: a tensor has hooks, which no program would call"
            return self.function(*args, **kwargs)
        if expected is not None and not expected.step.fits():
            expected = None  # settings or gradients are of another kind
        memory = self.memories.setdefault(kind, new_memory())
        with looked.watching():
            written = Written(self.call_of(form), leaves, [t for _, t in looked.tensors], memory)
        while len(self.looks) > KINDS:
            del self.looks[next(iter(self.looks))]
        self.looks.pop(kind, None)
        if [contents(w) for w in looked.moving] != looked.begun:  # its state was begun
            return written.result
        self.looks[kind] = looked.remembered()
        try:
            step = written.step(looked.open_settings(), self.steps)
        except NoStep as why:
            return self.pass_on(str(why), written.result)
        if expected is not None and expected.text != step.text:
            raise RuntimeError(self.difference(expected, step.program, step.text))
        known = self.known.setdefault((kind, step.text), Known(step.text))
        known.equal += 1
        self.others += 1
        if known.equal >= EQUAL:
            known.runs, self.others = 1 if self.check else known.runs * MORE, 0
            step = known.step = known.step if known.step and known.step.is_as(step) else step
            moving = [part for w in looked.moving for part in step.watched(w)]
            watched, together = [*looked.watched, *moving], Stepped(self, known, form)
            self.face.plan_add(None, args, kwargs, watched, together, True, known.runs - 1, known, [])
            self.verdict = f"its program runs, and is looked at again after {known.runs - 1} runs"
        elif self.others > 8:
            return self.pass_on("its calls are others each time", written.result)
        return written.result

    def pass_on(self, why, result):
        """The function runs as it is for a while; each time for longer."""
        self.face.plain = n = max(13, 3 * self.calls)
        self.calls += n
        self.others = 0
        self.verdict = f"runs as it is: {why}"
        return result

    def joint_of(self, known, args, kwargs, looked):
        """The program with its derivative, made once, where that is faster than the calls with theirs; or None."""
        leaves, tensors = [], [t for _, t in looked.tensors]
        form = template((args, kwargs), leaves)
        taped = _C.is_grad_enabled() and any(t.requires_grad for t in (*leaves, *tensors))
        if not taped or known.joint is False or "draw" in known.text[0].partition("{")[0] or "effect" in known.text[0]:
            return None
        read = [(t.shape, t.dtype, t.requires_grad) for t in tensors]
        if known.joint is None or read != known.joint.read:
            from ._joint import Joint, fastest

            try:
                known.joint = Joint(self.call_of(form), leaves, tensors, known.program)
                known.joint.read = read
                if not fastest(known.joint, known.program, self.call_of(form), leaves, tensors):
                    known.joint = False
            except (RuntimeError, TypeError):  # not of calls that have such a derivative
                known.joint = False
        return known.joint or None

    def generalized(self, form, leaves, args, kwargs, looked, text, writes):
        """When a call comes with other sizes, a program for these and all others. False: there is none."""
        key = kind_of(form, leaves, sizes=False)
        first = self.shapes.setdefault(key, [tuple(t.shape) for t in leaves])
        names, places, dynamic = {}, [], {}
        for i, (before, t) in enumerate(zip(first, leaves, strict=True)):
            for d, (a, b) in enumerate(zip(before, t.shape, strict=True)):
                if a != b:
                    symbol = names.setdefault((a, b), len(names))
                    places.append((i, d, symbol))
                    dynamic.setdefault(i, {})[d] = f"n{symbol}"
        if not places or len(names) > SYMBOLS or key in self.refused or any(min(pair) < 2 for pair in names):
            return False
        stand = Stand([*leaves, *(t for _, t in looked.tensors)], leaves[0].device, True)
        try:
            program = capture_dynamic(self.call_of(form), tuple(leaves), {}, looked.tensors, 0, dynamic)
        except (RuntimeError, ValueError, TypeError):  # no formula of the sizes: each has a program of its own
            self.refused.add(key)
            return False
        finally:
            stand.back()
        known = Known(text, calls_of(text))
        known.sizes = places
        self.trust(known, program, args, kwargs, looked, writes)
        return True

    def call_of(self, form):
        def call(*given):
            args, kwargs = rebuilt(form, given)
            return self.function(*args, **kwargs)

        return call

    def record(self, form, leaves, looked):
        """The function's result, its program, what says that two programs are the same, and whether it writes an argument."""
        kept, tensors = [], [*leaves, *(t for _, t in looked.tensors)]
        taped = _C.is_grad_enabled() and any(t.requires_grad for t in tensors)
        stand = Stand(tensors, leaves[0].device if leaves else None, taped)
        name = getattr(self.function, "__name__", "forward")
        name = name if name.isidentifier() else "forward"
        with looked.watching():
            program = capture(self.call_of(form), name, tuple(leaves), {}, looked.tensors, 0, kept)
        written = stand.written()
        text = _C.program_text(program.handle), tuple(bytes_of(t) for _, t in program.weights(CONSTANT))
        result = kept[0]
        if taped:  # again, so that the tape sees it
            stand.back()
            result = program.run(leaves)
        return result, program, text, any(t is w for t in leaves for w in written)

    def difference(self, known, program, text):
        """Where a recording differs from the one that was trusted."""
        old, new = known.text[0].splitlines(), text[0].splitlines()
        at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        was, now = (lines[at].strip() if at < len(lines) else "nothing" for lines in (old, new))
        if known.text[0] == text[0]:
            was, now = "a constant", "the same constant with other values"
        line = now.rpartition("@")[2]
        place = f" at {_C.program_source(program, int(line))}" if line.isdigit() else ""
        return (
            f"compile(replay=True): the function made other calls than those that were replayed: recorded was `{was}`, now it "
            f"is `{now}`{place}; it depends on more than its arguments, modules and numbers: leave replay out"
        )

    def explain(self):
        """What became of the function; it prints."""
        return Told(self.verdict, self.calls)


class Stepped:
    """Runs a step's program, where the gradients are as they were and it is the faster way."""

    def __init__(self, replayed, known, form):
        self.replayed, self.known, self.step, self.form = replayed, known, known.step, form

    def __call__(self, given):
        if not self.step.fits():
            return self.calls(given)
        known = self.known
        if known.trials >= TRIALS:
            if known.least[1] + GUARD <= GAIN * known.least[0] or not TRIALS:
                return self.step.run(given)
            return self.replayed.pass_on("its program is not faster than its calls", self.calls(given))
        way, begin = known.trials % 2, now()
        result = self.step.run(given) if way else self.calls(given)
        took = now() - begin
        if known.trials >= 4:
            known.least[way] = min(known.least[way], took)
        known.trials += 1
        return result

    def calls(self, given):
        args, kwargs = rebuilt(self.form, given)
        return self.replayed.function(*args, **kwargs)


class Told:
    def __init__(self, verdict, recorded):
        self.verdict, self.recorded = verdict, recorded
        self.regions = self.breaks = ()

    def __str__(self):
        return f"{self.verdict}; {self.recorded} calls were recorded"

    __repr__ = __str__


class Stand:
    """Tensors and the generator as they are before a recording."""

    def __init__(self, tensors, device, keep):
        from . import default_generator

        self.tensors = [(t, t._version, t.detach().clone() if keep else None) for t in tensors]
        self.generator = default_generator if device is None or device.type == "cpu" else _C.default_generator(device)
        self.state = self.generator.get_state() if keep else None

    def written(self):
        return [t for t, version, _ in self.tensors if t._version != version]

    def back(self):
        """What was written and drawn is as it was."""
        with no_grad():
            for t, version, copy in self.tensors:
                if t._version != version:
                    t.copy_(copy)
        self.generator.set_state(self.state)


def bytes_of(t):
    flat = t.detach().cpu().contiguous().view(-1)
    return str(t.dtype), tuple(t.shape), bytes(memoryview(flat.view(uint8))) if t.numel() else b""


def calls_of(text):
    """The calls of a program's text, without what depends on sizes."""
    lines = (re.sub(r" : .*", "", line) for line in text[0].splitlines()[2:])
    return [re.sub(r"(?<![\w.%])-?\d+(?![\w.])", "0", line) for line in lines]


class Leaf(int):
    """The place of a tensor in the leaves."""


def template(o, leaves):
    """Nested arguments with places instead of tensors."""
    if isinstance(o, _C.Tensor):
        leaves.append(o)
        return Leaf(len(leaves) - 1)
    if type(o) in (tuple, list):
        return type(o)(template(x, leaves) for x in o)
    if type(o) is dict:
        return {k: template(v, leaves) for k, v in o.items()}
    return o


def rebuilt(form, given):
    if type(form) is Leaf:
        return given[form]
    if type(form) in (tuple, list):
        return type(form)(rebuilt(x, given) for x in form)
    if type(form) is dict:
        return {k: rebuilt(v, given) for k, v in form.items()}
    return form


def kind_of(form, leaves, sizes=True):
    """What tells kinds of calls apart; modules and the like by identity."""

    def hashed(o):
        if type(o) in (tuple, list):
            return type(o).__name__, tuple(map(hashed, o))
        if type(o) is dict:
            return "d", tuple((k, hashed(v)) for k, v in o.items())
        if o is None or isinstance(o, (bool, int, float, str)):
            return type(o).__name__, repr(o)
        return id(o)

    return (
        hashed(form),
        tuple((t.dtype, tuple(t.shape) if sizes else t.ndim, t.device, t.requires_grad) for t in leaves),
        _C.is_grad_enabled(),
    )
