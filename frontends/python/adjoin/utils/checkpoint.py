"""adjoin.utils.checkpoint: memory traded for time: a part of the forward is run again in the
backward.

Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016.
"""

import contextlib
import threading
import warnings

import adjoin
from adjoin import _C
from adjoin.autograd import Function
from adjoin.autograd.graph import saved_tensors_hooks

from ._selective import (  # noqa: F401
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
    running,
)
from ._states import (  # noqa: F401
    DefaultDeviceType,
    check_backward_validity,
    detach_variable,
    get_device_states,
    set_device_states,
)


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not save what the first one had saved."""


class _Enough(Exception):
    """Ends the second run once everything that was asked for has been saved."""


_forced = {}  # arguments of checkpoint that are the same for all its callers


@contextlib.contextmanager
def _forcing(name, value):
    before = _forced.get(name)
    _forced[name] = value
    try:
        yield
    finally:
        _forced[name] = before


def set_checkpoint_early_stop(enable):
    """Inside, checkpoint's ``early_stop`` is this, whatever its callers say."""
    return _forcing("early_stop", enable)


def set_checkpoint_debug_enabled(enabled):
    """Inside, checkpoint's ``debug`` is this, whatever its callers say."""
    return _forcing("debug", enabled)


def noop_context_fn():
    """Two contexts that do nothing: the default of ``context_fn``."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(function, *args, use_reentrant=False, context_fn=None, determinism_check="default",
               debug=False, early_stop=True, preserve_rng_state=True, **kwargs):  # fmt: skip
    """``function(*args, **kwargs)``, of which only the arguments are kept for backward.

    Backward runs the function again, from the same random state, to get what its ops save. The
    function has to compute the same the second time. ``use_reentrant=True`` runs a backward inside
    the backward: it needs an argument that requires grad, takes no keywords and cannot be
    differentiated twice. ``context_fn`` gives two contexts, for the first and the second run.
    """
    early_stop, debug = (
        given if _forced.get(name) is None else _forced[name]
        for name, given in (("early_stop", early_stop), ("debug", debug))
    )
    if use_reentrant is None:
        warnings.warn(
            "checkpoint: the use_reentrant parameter should be passed explicitly. "
            "use_reentrant=False is recommended, and is what None means here.", stacklevel=2,
        )  # fmt: skip
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    if use_reentrant:
        if kwargs:
            raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}; pass use_reentrant=False for them")
        if context_fn is not None or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    if not adjoin.is_grad_enabled():
        return function(*args, **kwargs)
    first, second = context_fn() if context_fn else (contextlib.nullcontext(),) * 2
    frame = _Frame(function, args, kwargs, second, preserve_rng_state, early_stop, determinism_check)
    if debug:
        frame.called = [], []
    with saved_tensors_hooks(frame.pack, frame.unpack), running(frame), frame.listed(0), first:
        return function(*args, **kwargs)


def checkpoint_sequential(functions, segments, input, use_reentrant=False, **kwargs):
    """Runs modules or functions in order, in ``segments`` of which all but the last are
    checkpointed."""
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
    if isinstance(functions, adjoin.nn.Sequential):
        functions = list(functions.children())
    size = len(functions) // segments

    def run(start, end):
        def forward(value):
            for function in functions[start:end]:
                value = function(value)
            return value

        return forward

    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(run(start, end), input, use_reentrant=use_reentrant,
                           preserve_rng_state=preserve)  # fmt: skip
    return run(end, len(functions))(input)


class GraphExecGroup:
    """Within, several backward passes over parts of one graph count as one: what a checkpoint has run again for one serves the
    others. It does so without a group too, as long as parts have nothing in common; a group cannot stand in another."""

    _entered = threading.local()

    def __enter__(self):
        if self._get_current_group() is not None:
            raise RuntimeError("GraphExecGroup: one is entered already, and they do not nest; leave it first")
        GraphExecGroup._entered.group = self
        return self

    def __exit__(self, *error):
        GraphExecGroup._entered.group = None

    @classmethod
    def _get_current_group(cls):
        return getattr(cls._entered, "group", None)


class _RandomState:
    """The states of the generators that a function may draw from, to be put back for its second
    run: the host's and those of its arguments' devices."""

    def __init__(self, args):
        places = {a.device for a in args if isinstance(a, adjoin.Tensor) and not (a.is_cpu or a.is_meta)}
        self.generators = [adjoin.default_generator, *(_C.default_generator(place) for place in places)]
        self.states = self.now()

    @contextlib.contextmanager
    def restored(self):
        now = self.now()
        self.set(self.states)
        try:
            yield
        finally:
            self.set(now)

    def now(self):
        return [g._get() for g in self.generators]

    def set(self, states):
        for generator, state in zip(self.generators, states, strict=True):
            generator._set(*state)


class _Autocast:
    """Which casts were on, to be the same in the second run."""

    def __init__(self, args):
        kinds = {"cpu"} | {a.device.type for a in args if isinstance(a, adjoin.Tensor)}
        self.states = {kind: _C.autocast_state(kind) for kind in kinds - {"meta"}}

    @contextlib.contextmanager
    def restored(self):
        with contextlib.ExitStack() as scopes:
            for kind, (enabled, dtype, keep, _) in self.states.items():
                scopes.enter_context(adjoin.autocast(kind, dtype=dtype, enabled=enabled, cache_enabled=keep))
            yield


class _Saved:
    """Stands for the n-th tensor that the function saved, and remembers what it looked like."""

    def __init__(self, number, tensor):
        self.number = number
        self.looks = _looks(tensor)


def _looks(tensor):
    return tuple(tensor.shape), tensor.dtype, str(tensor.device)


class _Frame:
    """One checkpointed call: hooks that save nothing, and that compute all when one is asked
    for."""

    def __init__(self, function, args, kwargs, context, preserve, early_stop, check):
        self.function, self.args, self.kwargs, self.context = function, args, kwargs, context
        self.random = _RandomState((*args, *kwargs.values())) if preserve else None
        self.autocast = _Autocast((*args, *kwargs.values()))
        self.early_stop, self.check = early_stop, check
        self.count, self.watched, self.keep = 0, None, None
        self.called = None  # with debug: the ops of both runs
        # Inside of vmap or jvp: what tapes of levels around keep is theirs. When they ask for it this level has ended,
        # and the function cannot run again.
        self.level = max((_C.transform_level(x) for x in (*args, *kwargs.values())), default=0)
        self.again = {}  # number -> tensor, filled by a second run, emptied as backward takes them

    def _is_of_others(self, tensor):
        return self.level and _C.transform_level(tensor) != self.level

    def pack(self, tensor):
        if self._is_of_others(tensor):
            return tensor
        saved = _Saved(self.count, tensor)
        self.count += 1
        if self.watched is not None:
            self.watched.append(tensor)
        return saved

    @contextlib.contextmanager
    def watching(self):
        """Gives a list of what is saved within."""
        self.watched = []
        try:
            yield self.watched
        finally:
            self.watched = None

    def unpack(self, saved):
        if not isinstance(saved, _Saved):
            return saved
        if saved.number not in self.again:
            self._run_again()
        if saved.number not in self.again:
            self._fail(
                f"A different number of tensors was saved: the first run saved {self.count} and the second {len(self.again)}"
            )
        tensor = self.again.pop(saved.number)
        if self.check == "default" and _looks(tensor) != saved.looks:
            self._fail(
                "Recomputed values for the following tensors have different metadata than in the first run: "
                f"saved tensor {saved.number} was {saved.looks} in the first run and is {_looks(tensor)} in the second"
            )
        return tensor

    def _fail(self, what):
        message = f"checkpoint: {what}; the function has to do the same both times"
        if self.called is None:
            raise CheckpointError(f"{message}. debug=True lists the ops of both runs")
        first, second = ("\n".join(f"  {i}. {name}" for i, name in enumerate(names)) for names in self.called)
        raise CheckpointError(
            f"{message}\nYou are seeing this error because you passed `debug=True` to checkpoint. Ops of the first "
            f"run:\n{first}\nOps of the second run, as far as it came:\n{second}"
        )

    def listed(self, run):
        """With debug: notes the ops that are called within."""
        return contextlib.nullcontext() if self.called is None else _listing(self.called[run])

    def _run_again(self):
        self.again = {}

        def keep(tensor):
            if self._is_of_others(tensor):
                return tensor
            number = len(self.again)
            self.again[number] = tensor._alias()
            if self.early_stop and len(self.again) == self.count:
                raise _Enough
            return tensor._alias()

        random = self.random.restored() if self.random else contextlib.nullcontext()
        hooks = saved_tensors_hooks(keep, lambda tensor: tensor)
        casts, self.keep = self.autocast.restored(), keep
        if self.called is not None:
            self.called[1].clear()
        try:
            with (
                adjoin.enable_grad(),
                random,
                casts,
                running(self),
                self.listed(1),
                self.context,
                hooks,
                contextlib.suppress(_Enough),
            ):
                self.function(*self.args, **self.kwargs)
        finally:
            self.keep = None  # it holds this frame, and with it all arguments
        if len(self.again) > self.count and self.check == "default":
            self._fail(
                f"trying to save more tensors during recomputation: the first run saved {self.count}, the second {len(self.again)}"
            )


def _listing(names):
    from ._python_dispatch import TorchDispatchMode

    class Listing(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    return Listing()


class CheckpointFunction(Function):
    """The checkpoint of ``use_reentrant=True``: apply(function, preserve_rng_state, *args)."""

    @staticmethod
    def forward(ctx, function, preserve, *args):
        ctx.function, ctx.random = function, _RandomState(args) if preserve else None
        places = [i for i, arg in enumerate(args) if isinstance(arg, adjoin.Tensor)]
        if not any(args[i].requires_grad for i in places):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=4)
        ctx.places, ctx.autocast = places, _Autocast(args)
        ctx.others = [None if i in places else arg for i, arg in enumerate(args)]
        ctx.save_for_backward(*(args[i] for i in places))
        with adjoin.no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx, *grads):
        if not _C.backward_is_whole():
            raise RuntimeError(
                "When use_reentrant=True, checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
                ".backward(): the pass inside fills .grad of the leaves. Set use_reentrant=False, or call .backward() "
                "without `inputs`."
            )
        args = list(ctx.others)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[place] = tensor._alias().requires_grad_(tensor.requires_grad)
        random = ctx.random.restored() if ctx.random else contextlib.nullcontext()
        with adjoin.enable_grad(), random, ctx.autocast.restored():
            outputs = ctx.function(*args)
        outputs = (outputs,) if isinstance(outputs, adjoin.Tensor) else outputs
        pairs = [
            (out, grad)
            for out, grad in zip(outputs, grads, strict=True)
            if isinstance(out, adjoin.Tensor) and out.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        adjoin.autograd.backward([out for out, _ in pairs], [grad for _, grad in pairs])
        return (None, None, *(a.grad if isinstance(a, adjoin.Tensor) else None for a in args))
