"""adjoin.utils._selective: checkpoints that keep the results of some ops and compute the others again."""

import collections
import enum
import threading

import adjoin
from adjoin import _C
from adjoin.autograd import Function
from adjoin._overridden import as_op
from adjoin.overrides import TorchFunctionMode

from ._pytree import tree_flatten, tree_unflatten


class CheckpointPolicy(enum.Enum):
    """What becomes of an op's result: kept for the second run (_SAVE), or computed again in it, as results to be kept
    elsewhere (_CPU_OFFLOAD) are too. MUST and PREFER mean the same."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVING = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


class SelectiveCheckpointContext:
    """What a policy is told beside the op: its result, and whether this is the second run."""

    def __init__(self, *, is_recompute, op_output=None):
        self.is_recompute, self.op_output = is_recompute, op_output


_OP, _METHOD = type(_C.find_op("add")), type(_C.Tensor.add)
SAC_IGNORED_OPS = (
    set()
)  # no policy is asked about these; programs add theirs (detach, device and the like are no ops here)
_AGAIN, _USED = object(), object()  # entries of ops that are run again, and of those whose result was taken
_CHANGED = "the function has to call the same ops both times"


class _Running(threading.local):
    """The checkpointed calls that this thread is in, the innermost last."""

    def __init__(self):
        self.frames = []


_running = _Running()


class running:
    """Within, the function of a frame runs."""

    def __init__(self, frame):
        self.frame = frame

    def __enter__(self):
        _running.frames.append(self.frame)

    def __exit__(self, *error):
        _running.frames.pop()


def _op_of(function):
    """The op that a function of the protocol calls, or None."""
    function, _ = as_op(function, ())
    if isinstance(function, _OP):
        return function
    return _C.find_op(function.__name__) if isinstance(function, _METHOD) else None


# Ops of programs that PyTorch computes by an op of aten, which lists of what is kept name.
_BY_ATEN = {
    "mm": ("mm", "matmul", "nn::linear"), "addmm": ("addmm", "nn::linear"), "bmm": ("bmm", "matmul"),
    "convolution": ("nn::conv1d", "nn::conv2d", "nn::conv3d", "nn::conv_transpose1d", "nn::conv_transpose2d", "nn::conv_transpose3d"),
    "_scaled_dot_product_flash_attention": ("nn::scaled_dot_product_attention",),
    "_scaled_dot_product_efficient_attention": ("nn::scaled_dot_product_attention",),
    "_scaled_dot_product_flash_attention_for_cpu": ("nn::scaled_dot_product_attention",),
}  # fmt: skip


def _ops_of(given):
    """The ops that an entry of a list means."""
    name = getattr(given, "_qualified", getattr(given, "_qualified_op_name", ""))
    if name.startswith("aten::"):
        short = name.removeprefix("aten::")
        own = getattr(given, "_op", None)
        found = {_C.find_op(op) for op in _BY_ATEN.get(short, ())} | ({own} if isinstance(own, _OP) else set())
        return found - {None}
    op = _op_of(given)
    return set() if op is None else {op}


def _tensors(*trees):
    return [leaf for leaf in tree_flatten(trees)[0] if isinstance(leaf, _C.Tensor)]


def _same(a, b):
    return (
        a.dtype is b.dtype and a.shape == b.shape and a.stride() == b.stride() and a.storage_offset() == b.storage_offset()
        and a._storage_info()[3] == b._storage_info()[3]
    )  # fmt: skip


class _Tied(Function):
    """A kept result that requires grad, as the op's own did; the second run goes forward only."""

    @staticmethod
    def forward(ctx, anchor, kept):
        return kept._alias()

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError("checkpoint: a result that was kept has no history")


class _Entry:
    """The result of one call, and what the tape saved of it: an argument, a result or something else."""

    def __init__(self, inputs, result, saved, random):
        leaves, self.form = tree_flatten(result)
        self.inputs, self.random = len(inputs), random
        self.leaves = [self._leaf(leaf, inputs) for leaf in leaves]
        results = [leaf for leaf in leaves if isinstance(leaf, _C.Tensor)]
        self.saved = [self._place(tensor, inputs, results) for tensor in saved]

    @staticmethod
    def _leaf(leaf, inputs):
        if not isinstance(leaf, _C.Tensor):
            return "value", leaf, None, False
        given = next((i for i, tensor in enumerate(inputs) if tensor is leaf), None)
        if given is not None:
            return "input", given, None, False
        return "kept", leaf._alias(), leaf._version, leaf.requires_grad

    @staticmethod
    def _place(tensor, inputs, results):
        for kind, among in (("input", inputs), ("result", results)):
            found = next((i for i, other in enumerate(among) if _same(tensor, other)), None)
            if found is not None:
                return kind, found
        return "kept", tensor._alias()

    def result(self, inputs, may_be_written):
        """The result, as the op gave it."""
        made = []
        for kind, leaf, version, trained in self.leaves:
            if kind == "kept" and leaf._version != version and not may_be_written:
                raise RuntimeError(
                    "checkpoint: a result that the policy keeps was written in place afterwards; let that op be computed again, "
                    "or give allow_cache_entry_mutation=True if the second run shall see what was written"
                )
            if kind == "kept" and trained:
                leaf = _Tied.apply(adjoin.empty(0, requires_grad=True), leaf)
            made.append(inputs[leaf] if kind == "input" else leaf)
        return tree_unflatten(made, self.form)

    def tell(self, keep, inputs, result):
        """Hands on what the tape would save."""
        results = _tensors(result)
        for kind, place in self.saved:
            keep(place if kind == "kept" else (inputs if kind == "input" else results)[place])


class _Mode(TorchFunctionMode):
    def __init__(self, entries):
        self.entries, self.frame = entries, None

    def __enter__(self):
        self.frame = _running.frames[-1] if _running.frames else None
        self.counts = collections.Counter()
        return super().__enter__()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, op = kwargs or {}, _op_of(func)
        inside = self.frame is not None and _running.frames and _running.frames[-1] is self.frame
        if op is None or op in SAC_IGNORED_OPS or not inside:  # what an inner checkpoint runs is its own
            return func(*args, **kwargs)
        number = self.counts[op]
        self.counts[op] += 1
        return self.call(func, op, (op, number), args, kwargs)


class _First(_Mode):
    def __init__(self, entries, policy):
        super().__init__(entries)
        self.policy = policy

    def call(self, func, op, key, args, kwargs):
        inputs = _tensors(args, kwargs)
        versions, random = [t._version for t in inputs], self.frame.random
        before = random and random.now()
        with self.frame.watching() as saved:
            result = func(*args, **kwargs)
        policy = self.policy(SelectiveCheckpointContext(is_recompute=False, op_output=result), op, *args, **kwargs)
        if isinstance(policy, bool):
            policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
        if policy in _SAVING and versions == [t._version for t in inputs]:  # what writes in place has to write again
            after = random and random.now()
            self.entries[key] = _Entry(inputs, result, saved, after if after != before else None)
        else:
            self.entries[key] = _AGAIN
        return result


class _Second(_Mode):
    def __init__(self, entries, may_be_written):
        super().__init__(entries)
        self.may_be_written = may_be_written

    def call(self, func, op, key, args, kwargs):
        entry = self.entries.get(key)
        if entry is None:
            raise RuntimeError(
                f"checkpoint: the second run calls {op} {key[1] + 1} times, the first did not; {_CHANGED}"
            )
        if entry is _USED:
            raise RuntimeError(
                "checkpoint: Trying to backward an extra time; what a policy keeps serves one backward alone: call the function again"
            )
        if entry is _AGAIN:
            return func(*args, **kwargs)
        inputs = _tensors(args, kwargs)
        if len(inputs) != entry.inputs:
            raise RuntimeError(
                f"checkpoint: {op} gets {len(inputs)} tensors in the second run, not {entry.inputs}; {_CHANGED}"
            )
        self.entries[key] = _USED
        if entry.random is not None:
            self.frame.random.set(entry.random)
        result = entry.result(inputs, self.may_be_written)
        entry.tell(self.frame.keep, inputs, result)
        return result


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    """The contexts of a checkpoint that keeps the results of some ops: for its ``context_fn``, by functools.partial.

    ``policy(context, op, *args, **kwargs)`` gives a CheckpointPolicy for each call of an op, as programs call it:
    ``adjoin.matmul``, ``nn.functional.linear``; a list has the ops that are kept. An op that writes in place is always run again.
    """
    policy = policy_fn_or_list
    if isinstance(policy, (list, tuple, set)):
        kept = set()
        for given in policy:
            kept |= (ops := _ops_of(given))
            if not ops:
                raise ValueError(
                    f"create_selective_checkpoint_contexts: {given!r} in the list is no op; ops are adjoin.mm, "
                    "adjoin.nn.functional.linear, adjoin.ops.NAME"
                )

        def policy(context, op, *args, **kwargs):
            return CheckpointPolicy.MUST_SAVE if op in kept else CheckpointPolicy.PREFER_RECOMPUTE

    elif not callable(policy):
        raise TypeError(
            f"create_selective_checkpoint_contexts: a function or a list of ops is wanted, not {type(policy).__name__}"
        )
    entries = {}
    return _First(entries, policy), _Second(entries, allow_cache_entry_mutation)
