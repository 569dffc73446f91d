"""adjoin._compile: compile(fn): its calls are written down and matched with those of earlier times; where that wins nothing,
the function runs as it is."""

import functools
import inspect
import weakref
from time import perf_counter_ns, thread_time_ns

from . import _C, compiler, get_num_threads
from ._dynamo import config
from ._lazy import CHECK, TIMED, WHOLE, Explanation, new_memory, scope_is_open
from .jit import is_tracing
from .nn.modules.module import Module

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
BACKENDS = ("", "adjoin", "inductor")  # whatever compiles: it is this one
AS_IT_IS = ("eager", "aot_eager")
OWN = {"check": False, "fused": True}
TRIES = 3  # calls of each kind that are timed before it is decided
CLEAR, CLOSE = 0.8, 1.05  # of eager's time: between them it takes more tries
GAIN = 0.98  # of eager's time, above which it is not worth it
CLEAR_GAIN = 0.95  # of the time of its calls alone, that fused ones have to take before that is known
MISSES = 4  # times that it made other calls than before, one after the other, until it is left alone
CALL, SCOPE = 250, 3_000  # nanoseconds that writing down a call and a scope cost at first, about
WARM = 3  # calls that are made together, one after the other, when it is tried again
APART = 400  # calls at least until then, of which these may cost some as they are
_all = weakref.WeakSet()  # what reset() reaches
_C.compile_switches([(vars(compiler), "_stance"), (vars(config), "disable")])


def now():
    """Nanoseconds. Where one thread computes they are its own: other programs may share the processor."""
    return thread_time_ns() if get_num_threads() == 1 else perf_counter_ns()


def list_options():
    """The names that options takes: our own, and the switches of `_inductor.config`, which change no result."""
    from ._inductor.config import names

    return sorted([*OWN, *names()])


def list_mode_options(mode=None):
    """The options of each mode, or of one: none, modes change nothing here."""
    return {m: {} for m in MODES} if mode is None else {}


def _checked(backend, mode, options):
    from ._dynamo.exc import InvalidBackend

    if callable(backend):
        raise NotImplementedError(
            "compile: a backend of one's own gets a graph of torch.fx's, which is not made here; leave backend out, or use "
            "fx.symbolic_trace(fn) and call it by yourself"
        )
    if backend not in BACKENDS + AS_IT_IS:
        raise InvalidBackend(backend)
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"compile: mode is {mode!r}; it is one of {', '.join(MODES)}")
    own = dict(OWN)
    for name, value in (options or {}).items():
        if name not in OWN and name not in list_options():
            raise RuntimeError(f"compile: there is no option {name!r}; options are {', '.join(list_options())}")
        if name in OWN:
            own[name] = value
    return own


def compile(model, *, fullgraph, dynamic, backend, mode, options, disable, check, replay):
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable,
            check=check, replay=replay,
        )  # fmt: skip
    if not callable(model):
        raise TypeError(f"compile: a function or module is wanted, not {type(model).__name__}")
    own = _checked(backend, mode, options)
    if disable or backend in AS_IT_IS:
        return model
    flags = (WHOLE if fullgraph else 0) | (CHECK if check or own["check"] else 0) | (0 if own["fused"] else 2)
    if isinstance(model, Module):
        from ._dynamo.eval_frame import OptimizedModule

        return OptimizedModule(model, flags, replay, dynamic)
    return compiled_function(model, flags, replay, dynamic)


class Compiled:
    """A function in a lazy scope, as long as that wins."""

    def __init__(self, function, flags):
        self.function, self.flags = function, flags
        self.face = _C.compiled(function, self.look)
        self.reset()
        _all.add(self)

    def reset(self):
        self.memory = None
        # Calls that are made as they are, or in a scope, before the next look.
        self.face.plain = self.face.together = 0
        self.calls = 0
        self.lazy = self.eager = None  # the shortest times, ns
        self.tries = self.misses = self.warm = 0
        self.weighed = False  # were its programs timed by themselves?
        self.known, self.rest = set(), 0  # fullgraph: kinds of arguments that were looked at
        self.verdict = "it was not called yet"

    def look(self, args, kwargs):
        """A call that is not made as it is."""
        self.calls += 1
        # Inside of another scope it is a part of that; a trace writes down by itself.
        if scope_is_open() or is_tracing() or compiler._stance == "force_eager" or config.disable:
            return self.function(*args, **kwargs)
        if self.flags & CHECK:
            return self.written_down(args, kwargs)[0]
        if self.flags & WHOLE:
            kind = kinds((args, tuple(kwargs.items())))
            if kind not in self.known:
                result = self.written_down(args, kwargs)[0]
                self.known.add(kind)
                return result
            if self.rest:
                self.rest -= 1
                return self.function(*args, **kwargs)
        apart = self.calls & (self.calls - 1) == 0 if self.decided() else self.calls & 1
        if self.lazy is not None and apart and not self.warm:
            return self.compared(args, kwargs)
        weigh = not self.weighed and self.calls > 1 >= self.misses and not self.flags
        result, fresh, groups, took, calls, (together, apart) = self.written_down(args, kwargs, TIMED if weigh else 0)
        if not groups:
            return self.pass_on("no calls were fused", result)
        if fresh:  # calls that were met for the first time: no measure
            self.misses += 1
            return self.pass_on("its calls are others each time", result) if self.misses > MISSES else result
        self.misses, self.warm = 0, max(0, self.warm - 1)
        if weigh and apart:
            self.weighed, price = True, CALL * calls + SCOPE + (1 - CLEAR_GAIN) * apart
            if apart - together < price:
                told = f"its calls take {apart / 1e3:.1f} µs, fused {together / 1e3:.1f}, and to write them down takes time, too"
                return self.pass_on(told, result)
            self.together()
            return result
        self.lazy = took if self.lazy is None else min(self.lazy, took)
        if self.decided() and not self.flags:
            self.together()
        return result

    def decided(self):
        """What is close takes more tries: somebody else may have had the processor."""
        if self.tries < TRIES or self.lazy is None:
            return False
        return self.tries >= 3 * TRIES or not CLEAR < self.lazy / self.eager < CLOSE

    def together(self):
        """The next calls are made in a scope, up to the next one that is compared."""
        self.face.memory, self.face.flags = self.memory, self.flags
        self.face.together = n = (1 << self.calls.bit_length()) - self.calls - 1
        self.calls += n

    def compared(self, args, kwargs):
        """A call as it is, beside those that are carried out together: the shortest of each counts."""
        begin = now()
        result = self.function(*args, **kwargs)
        took = now() - begin
        self.eager = took if self.eager is None else min(self.eager, took)
        self.tries += 1
        # One time alone may be somebody else's.
        limit = GAIN if self.decided() else CLOSE
        if self.lazy > limit * self.eager:
            return self.pass_on(f"together {self.lazy / 1e3:.1f} µs, one by one {self.eager / 1e3:.1f}", result)
        if self.tries > 3 * TRIES:  # other sizes may come
            self.lazy, self.tries = None, 0
        self.verdict = (
            f"fused: {self.lazy / 1e3:.1f} µs, one by one {self.eager / 1e3:.1f}" if self.lazy else self.verdict
        )
        return result

    def pass_on(self, why, result):
        """The function runs as it is for a while; each time for longer."""
        n = max(APART, 3 * self.calls)
        self.calls += n
        if self.flags & WHOLE:  # the kind of its arguments is looked at each time
            self.rest = n
        else:
            self.face.plain = n
        self.lazy = self.eager = None
        self.tries, self.misses, self.warm, self.weighed = 0, 0, WARM, True
        self.verdict = f"runs as it is: {why}"
        return result

    def written_down(self, args, kwargs, more=0):
        """Its result, new calls, fused groups, nanoseconds, calls; with TIMED in more, what its programs take, fused and call by call."""
        if self.memory is None:
            self.memory = new_memory()
        memory = self.memory
        before = _C.lazy_stats(memory)
        begin = now()
        _C.lazy_enter(memory, self.flags | more)
        try:
            result = self.function(*args, **kwargs)
        except BaseException:
            try:
                _C.lazy_leave()
            except Exception:
                pass
            raise
        _C.lazy_leave()
        took = now() - begin
        after = _C.lazy_stats(memory)
        if after[6] > 20_000:
            _C.lazy_forget(memory)
        new, groups, calls, together, apart = (after[i] - before[i] for i in (6, 4, 0, 8, 9))
        return result, new, groups, took, calls, (together, apart)

    def explain(self):
        """What the last call that was written down was, and what became of the function: it prints."""
        told = Explanation(self.memory or new_memory())
        told.verdict = self.verdict
        return told


def compiled_function(function, flags, replay=False, dynamic=None):
    """The function that compile gives, with the name and the signature of the one that it was given."""
    if replay:
        from ._replay import Replayed

        state = Replayed(function, flags, dynamic)
    else:
        state = Compiled(function, flags)
    compiled = functools.update_wrapper(state.face, function)
    compiled.explain, compiled._state = state.explain, state
    compiled._torchdynamo_orig_callable = function
    try:
        compiled.__signature__ = inspect.signature(function)
    except (TypeError, ValueError):
        pass
    return compiled


def kinds(o):
    """What of arguments decides about a program: dtypes and shapes, and what is no tensor."""
    if isinstance(o, _C.Tensor):
        return o.dtype, tuple(o.shape), o.requires_grad
    if isinstance(o, (tuple, list)):
        return tuple(map(kinds, o))
    if isinstance(o, dict):
        return tuple((k, kinds(v)) for k, v in o.items())
    return o if isinstance(o, (bool, int, str, type(None))) else type(o)


def reset():
    """Every compiled function forgets what it has met."""
    for state in _all:
        state.reset()
