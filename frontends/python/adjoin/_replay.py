"""adjoin._replay: compile(fn, replay=True): after equal recordings of a function its program runs in its place, as long as what
the function has read is the same."""

import re

from . import _C, compiler, no_grad, uint8
from ._compile import CHECK, WHOLE, _all, now
from ._dynamo import config
from ._lazy import new_memory, scope_is_open
from ._looked_at import Looked, contents
from .jit import is_tracing
from .jit._traced import CONSTANT, capture, capture_dynamic, put_together

EQUAL = 2  # recordings before a program is trusted
KINDS = 64  # of arguments that are remembered
SYMBOLS = 3  # sizes that may vary in one program
TRIALS = 24  # pairs, of the function and of its program, that are timed at most; 0: programs run, whatever they take
ENOUGH = 30_000_000  # nanoseconds of trials, after which none is begun, if there were LEAST
LEAST = 4
CALLS, RUNS = 2, 4  # of what writes, which is not done twice: calls of the program's user that are timed
GUARD = 4_000  # nanoseconds that a step costs before its program runs
MORE = 4  # a look is a recording: each comes after so many times as many runs, and when these have saved its time
GAIN = 0.95  # of the time of its calls, above which a program is not worth its looks
# Before a function that runs as it is is looked at again come calls that last SHARE times as long as a look does, MOST at most.
SHARE, MOST = 50, 100_000


class Known:
    """Recordings that were alike. calls: of a program for all sizes, what they have in common."""

    def __init__(self, text, calls=None):
        self.text, self.calls, self.equal, self.runs = text, calls, 0, 1
        self.program, self.sizes, self.joint, self.step = None, [], None, None
        self.least, self.took = [1 << 60, 1 << 60], 1 << 60  # nanoseconds: of calls, of the program; of a look
        self.turns, self.rehearsed = 0, 0  # of calls that are timed; nanoseconds of a program that nobody waited for
        self.entry = None  # what is to be served if these calls say so

    @property
    def timed(self):
        return self.least[1] < 1 << 60

    def wins(self, guard=0):
        return self.least[1] + guard <= GAIN * self.least[0]

    def told(self):
        return f"its program takes {self.least[1] / 1e3:.1f} µs, its calls {self.least[0] / 1e3:.1f}"


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
        self.trying, self.recorded = False, 0
        self.verdict = "it was not called yet"

    def look(self, args, kwargs):
        if self.trying or scope_is_open() or is_tracing() or compiler._stance == "force_eager" or config.disable:
            return self.function(*args, **kwargs)
        begin = now()
        expected = self.face.plan_take(args, kwargs)
        if expected is not None and expected.entry:
            return self.decided(expected, args, kwargs)
        self.calls, self.recorded = self.calls + 1, self.recorded + 1
        leaves = []
        form = template((args, kwargs), leaves)
        if len({id(t) for t in leaves}) != len(leaves):  # a program could not tell them apart
            return self.function(*args, **kwargs)
        kind = kind_of(form, leaves)
        looked = self.looks.get(kind)
        if looked is None or not looked.stands():
            looked = Looked(self.function, args, kwargs)
        if looked.trains and _C.is_grad_enabled():
            return self.step(form, leaves, args, kwargs, looked, expected, kind, begin)
        result, program, text, writes, pure = self.record(form, leaves, looked)
        times = begin, now() - begin
        if expected is not None:
            if (calls_of(text) != expected.calls) if expected.calls else (text != expected.text):
                raise RuntimeError(self.difference(expected, program.handle, text))
            if expected.calls:
                return self.trust(expected, expected.program, args, kwargs, looked, writes, pure, result, times)
        elif self.dynamic and (known := self.generalized(form, leaves, looked, text)):
            return self.trust(known, known.program, args, kwargs, looked, writes, pure, result, times)
        key = kind, text
        known = self.known[key] = self.known.pop(key, None) or Known(text)  # the last one
        while len(self.known) > KINDS:
            del self.known[next(iter(self.known))]
        known.equal += 1
        if known.equal < EQUAL:
            self.verdict = f"recorded {known.equal} times alike; it is trusted after {EQUAL}"
            return result
        return self.trust(known, program, args, kwargs, looked, writes, pure, result, times)

    def trust(self, known, program, args, kwargs, looked, writes, pure, result, times):
        """From now on the program runs for such calls, where it is faster than they are."""
        form = program.form_out
        flat = isinstance(form, dict) and form == {"t": list(range(len(form.get("t", ()))))}
        together = None if form == 0 else True if flat else lambda results: put_together(form, results)
        known.program = program
        joint = None if known.sizes or writes else self.joint_of(known, args, kwargs, looked)
        tensors = [t for _, t in looked.tensors]
        handle, together = (None, lambda given: joint.run([*given, *tensors])) if joint else (program.handle, together)
        known.runs = 1 if self.check else known.runs * MORE
        entry = handle, looked.watched, together, writes
        begin, took = times
        known.took = min(known.took, took)
        if known.timed or not TRIALS or self.check:
            pass
        elif pure:
            self.times(known, entry, args, kwargs)
        else:  # what writes is done once: the next calls are timed
            return self.tried(known, entry, args, kwargs, lambda given: program.run(list(given)), result)
        if known.timed and not known.wins():
            return self.pass_on(known.told(), result, known, now() - begin)
        self.serve(known, entry, args, kwargs)
        return result

    def times(self, known, entry, args, kwargs):
        """The shortest times of the function and of its program, in turns; the first pair warms up."""
        self.face.plan_add(entry[0], args, kwargs, *entry[1:], 1 << 40, known, known.sizes)
        ways, spent, self.trying = (self.function, self.face), 0, True
        generator = generator_of(args, kwargs)
        state = generator.get_state()
        try:
            for turn in range(TRIALS):
                for k, way in enumerate(ways):
                    begin = now()
                    way(*args, **kwargs)
                    took = now() - begin
                    spent += took
                    if turn:
                        known.least[k] = min(known.least[k], took)
                if turn + 1 >= LEAST and spent > ENOUGH:
                    break
        finally:
            self.trying = False
            generator.set_state(state)
            self.face.plan_take(args, kwargs)

    def serve(self, known, entry, args, kwargs):
        """The program runs, until what it saves has paid for the next look."""
        saved = known.least[0] - known.least[1]
        runs = max(known.runs - 1, known.took // saved if saved > 0 else 0)
        known.entry = None
        self.face.plan_add(entry[0], args, kwargs, *entry[1:], runs, known, known.sizes)
        self.verdict = f"its program runs, and is looked at again after {runs} runs"

    def tried(self, known, entry, args, kwargs, run, result, fits=lambda: True):
        """The next calls are timed, some as they are, some by the program."""
        form, known.entry = template((args, kwargs), []), entry
        known.turns = 0
        timing = Tried(self, known, form, run, fits)
        self.face.plan_add(None, args, kwargs, entry[1], timing, entry[3], CALLS + RUNS, known, known.sizes)
        self.verdict = "its next calls are timed"
        return result

    def decided(self, known, args, kwargs):
        """What writes was timed, the function and its program."""
        entry, known.entry = known.entry, None
        if not known.wins(GUARD):
            return self.pass_on(known.told(), self.function(*args, **kwargs), known, 2 * known.took)
        self.serve(known, entry, args, kwargs)
        return self.face(*args, **kwargs)

    def step(self, form, leaves, args, kwargs, looked, expected, kind, begin):
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
        if known.equal < EQUAL:
            return self.pass_on("its calls are others each time", written.result) if self.others > 8 else written.result
        known.runs, self.others = 1 if self.check else known.runs * MORE, 0
        step = known.step = known.step if known.step and known.step.is_as(step) else step
        moving = [part for w in looked.moving for part in step.watched(w)]
        entry = None, [*looked.watched, *moving], Stepped(self, form, step), True
        known.took = min(known.took, now() - begin)
        if TRIALS and not self.check and not known.timed:
            known.rehearsed = step.rehearsed(leaves)
            return self.tried(known, entry, args, kwargs, step.run, written.result, step.fits)
        self.serve(known, entry, args, kwargs)
        return written.result

    def pass_on(self, why, result, known=None, took=0):
        """The function runs as it is for a while; each time for longer, beside what the next look will take."""
        n = max(13, 3 * self.calls)
        if known is not None:  # is measured again then
            n, known.least = max(n, min(SHARE * took // known.least[0], MOST)), [1 << 60, 1 << 60]
        self.face.plain = n
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
            from ._joint import Joint, fastest, wins

            try:
                known.joint = Joint(self.call_of(form), leaves, tensors, known.program)
                known.joint.read = read
                times = fastest(
                    known.joint, known.program, self.call_of(form), leaves, tensors, (TRIALS or LEAST, LEAST, ENOUGH)
                )
                if not wins(times):
                    known.joint = False
                if times is not None:
                    known.least = [times[2], min(times[:2] if known.joint else times[:1])]
            except (RuntimeError, TypeError):  # not of calls that have such a derivative
                known.joint = False
        return known.joint or None

    def generalized(self, form, leaves, looked, text):
        """When a call comes with other sizes, a program for these and all others, or None."""
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
            return None
        stand = Stand([*leaves, *(t for _, t in looked.tensors)], leaves[0].device, True)
        try:
            program = capture_dynamic(self.call_of(form), tuple(leaves), {}, looked.tensors, 0, dynamic)
        except (RuntimeError, ValueError, TypeError):  # no formula of the sizes: each has a program of its own
            self.refused.add(key)
            return None
        finally:
            stand.back()
        known = Known(text, calls_of(text))
        known.sizes, known.program = places, program
        return known

    def call_of(self, form):
        def call(*given):
            args, kwargs = rebuilt(form, given)
            return self.function(*args, **kwargs)

        return call

    def record(self, form, leaves, looked):
        """The function's result, its program, what says that two programs are the same, whether it writes an argument, and whether it writes nothing."""
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
        return result, program, text, any(t is w for t in leaves for w in written), not written

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
        return Told(self.verdict, self.recorded)


class Stepped:
    """Runs a step's program, where the gradients are as they were."""

    def __init__(self, replayed, form, step):
        self.replayed, self.form, self.step = replayed, form, step

    def __call__(self, given):
        return self.step.run(given) if self.step.fits() else self.calls(given)

    def calls(self, given):
        args, kwargs = rebuilt(self.form, given)
        return self.replayed.function(*args, **kwargs)


class Tried(Stepped):
    """Times calls: first some as they are, then the program, unless it was slower already when nobody waited for it."""

    def __init__(self, replayed, known, form, run, fits):
        self.replayed, self.known, self.form, self.run, self.fits = replayed, known, form, run, fits

    def __call__(self, given):
        if not self.fits():
            return self.calls(given)
        known = self.known
        way = known.turns >= CALLS
        if way and known.rehearsed > 1.1 * known.least[0]:
            known.least[1] = known.rehearsed
            return self.calls(given)
        begin = now()
        result = self.run(given) if way else self.calls(given)
        took = now() - begin
        if known.turns != CALLS:  # it may have compiled
            known.least[way] = min(known.least[way], took)
        known.turns += 1
        return result


class Told:
    def __init__(self, verdict, recorded):
        self.verdict, self.recorded = verdict, recorded
        self.regions = self.breaks = ()

    def __str__(self):
        return f"{self.verdict}; {self.recorded} calls were recorded"

    __repr__ = __str__


def generator_of(args, kwargs):
    """The one that calls of these draw from."""
    from ._stepped import generator_of

    leaves = []
    template((args, kwargs), leaves)
    return generator_of(leaves[0] if leaves else None)


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
