"""adjoin._vmap: a function over a dimension of its arguments, called once with tensors that hold all samples.

The levels and the rules of ops stand in extensions/transform; the first vmap loads them.
"""

import functools
import sys
import threading

from . import _C, random

__all__ = ["loops", "stack_module_state", "vmap"]


def _wraps(func):
    """functools.wraps(func), which takes longer than a small function."""
    return lambda made: _C.named_as(made, func) or functools.update_wrapper(made, func)


_LEAVES = (_C.Tensor, int, float, complex, str, type(None))


def _node(tree):
    """How a container that is none of Python's plain ones is taken apart, as utils._pytree knows it; None: it is a leaf."""
    if type(tree) in (tuple, list, dict) or isinstance(tree, _LEAVES):
        return None
    from .utils import _pytree

    return _pytree.SUPPORTED_NODES.get(type(tree))


def _spread(dims, tree, who):
    """The dimension of each leaf: dims may be one for a whole subtree."""
    if dims is None or isinstance(dims, int):
        return dims
    if (node := _node(tree)) is not None and type(dims) is type(tree):
        dims, tree = (list(node.flatten_fn(each)[0]) for each in (dims, tree))
    if isinstance(tree, dict) and isinstance(dims, dict) and tree.keys() == dims.keys():
        return {k: _spread(dims[k], v, who) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)) and isinstance(dims, (list, tuple)) and len(tree) == len(dims):
        return [_spread(d, v, who) for d, v in zip(dims, tree, strict=True)]
    raise ValueError(f"vmap: {who} {dims!r} does not have the structure of what it is for")


def _each(dims, tree, function):
    if (node := _node(tree)) is not None:
        children, context = node.flatten_fn(tree)
        dims = list(dims.values()) if isinstance(dims, dict) else dims
        return node.unflatten_fn(_each(dims, list(children), function), context)
    if isinstance(tree, dict):
        return {k: _each(dims[k] if isinstance(dims, dict) else dims, v, function) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        several = dims if isinstance(dims, list) else [dims] * len(tree)
        made = [_each(d, v, function) for d, v in zip(several, tree, strict=True)]
        return type(tree)(*made) if hasattr(tree, "_fields") else type(tree)(made)
    return function(dims, tree)


_STEPS = f"{__package__}._functorch.vmap"  # where libraries put theirs
_MODES = {"error": 0, "same": 1, "different": 2}


class _Levels(threading.local):
    """The levels of this thread's vmaps that are open, the outermost first."""

    def __init__(self):
        self.open = []


levels = _Levels()


def enter(size, randomness):
    """Opens a level of so many samples; gives its number."""
    level = _C.transform_enter(0, size, _MODES[randomness])
    levels.open.append(level)
    return level


def leave():
    """Closes the innermost level; gives its number."""
    level = levels.open.pop()
    _C.transform_leave(level)
    return level


def _opened(dims, result, level):
    """The results outside of the level, the samples in the dimensions that out_dims says."""

    def leaf(d, tensor):
        if d is None:
            if isinstance(tensor, _C.Tensor) and _C.transform_batched_at(tensor, level):
                raise ValueError(
                    "vmap: out_dims has None for a result that differs between the samples; say where they go"
                )
            return _C.transform_shared(tensor, level) if isinstance(tensor, _C.Tensor) else tensor
        if not isinstance(tensor, _C.Tensor):
            raise ValueError(f"vmap: the function must return tensors, not {type(tensor).__name__}")
        return _C.transform_unbatched(tensor, d, level)

    return _each(dims, result, leaf)


class _Mapped:
    """One function under vmap. It remembers how many random numbers a sample takes."""

    def __init__(self, func, out_dims, randomness):
        self.func, self.randomness, self.stride = func, randomness, 0
        self.out_dims = list(out_dims) if isinstance(out_dims, tuple) else out_dims

    def where(self, result):
        """The dimension of each result; one in a tuple will do for one tensor."""
        dims = self.out_dims
        if isinstance(result, _C.Tensor) and isinstance(dims, list) and len(dims) == 1:
            dims = dims[0]
        return _spread(dims, result, "out_dims")

    def once(self, dims, args, kwargs, size):
        level = enter(size, self.randomness)
        try:
            if self.stride:
                _C.transform_random_stride(level, self.stride)

            def inside(d, leaf):
                return _C.transform_batched(leaf, d, level) if d is not None and isinstance(leaf, _C.Tensor) else leaf

            result = self.func(*_each(dims, args, inside), **kwargs)
            return _opened(self.where(result), result, level)
        finally:
            leave()

    def directly(self, in_dims, args, size):
        """``once``, of tensors in no structure."""
        level = enter(size, self.randomness)
        try:
            result = self.func(*_C.transform_batch_all(args, in_dims, level))
            if isinstance(result, _C.Tensor) and type(self.out_dims) is int:
                return _C.transform_unbatched(result, self.out_dims, level)
            return _opened(self.where(result), result, level)
        finally:
            leave()

    def run(self, dims, args, kwargs, size):
        """As a loop over the samples: with randomness "different" each draws what its turn would have drawn. How many numbers a
        sample takes is known after a run; where it was not known before, the function runs again."""
        if self.randomness != "different":
            return self.once(dims, args, kwargs, size)
        generators = _generators(dims, args)
        before = [each._get() for each in generators]
        for _ in range(2):
            result = self.once(dims, args, kwargs, size)
            after = [each._get() for each in generators]
            taken = [now[1] - then[1] for now, then in zip(after, before, strict=True)]
            if max(taken) == self.stride or any(now[0] != then[0] for now, then in zip(after, before, strict=True)):
                break
            self.stride = max(taken)
            _set(generators, before)
        for each, own, (seed, _), (_, first) in zip(generators, taken, after, before, strict=True):
            if own:
                each._set(seed, first + self.stride * size)
        return result


def _generators(dims, args):
    """Those that a function of these arguments may draw from: the processor's and those of the arguments' devices."""
    found = {None: random._default()}

    def note(_, leaf):
        if isinstance(leaf, _C.Tensor) and leaf.device.type not in ("cpu", "meta"):
            found[leaf.device] = found.get(leaf.device) or _C.default_generator(leaf.device)

    _each(dims, args, note)
    return list(found.values())


def _set(generators, states):
    for each, state in zip(generators, states, strict=True):
        each._set(*state)


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function of stacked arguments: func of each slice along ``in_dims``, the results stacked along ``out_dims``.

    func runs once, on tensors that hold all samples and look like one; keyword arguments are the same for all samples. ``randomness``: "different", each sample draws numbers
    of its own, those that a loop over the samples would draw; "same", all draw the same; "error", none may draw.
    ``chunk_size``: so many samples at a time, which takes less memory. ``func.loops()`` tells which ops were called sample by
    sample.
    """
    if randomness not in _MODES:
        raise RuntimeError(f"vmap: randomness is {randomness!r}, 'error', 'different' or 'same' is wanted")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    inside = _Mapped(func, out_dims, randomness)

    plain = chunk_size is None and randomness != "different"

    @_wraps(func)
    def mapped(*args, **kwargs):
        steps = sys.modules.get(_STEPS)
        if steps is not None and steps.is_replaced():
            return steps.vmap_impl(func, in_dims, out_dims, randomness, chunk_size, *args, **kwargs)
        if plain and not kwargs and (size := _C.transform_size(args, in_dims)) is not None:
            return inside.directly(in_dims, args, size)
        dims = _spread(list(in_dims) if isinstance(in_dims, tuple) else in_dims, args, "in_dims")
        sizes = set()

        def measure(d, leaf):
            if d is not None and isinstance(leaf, _C.Tensor):
                if not -leaf.dim() <= d < leaf.dim():
                    raise ValueError(f"vmap: dimension {d} of a tensor of {leaf.dim()} dimensions")
                sizes.add(leaf.shape[d])
            elif d is not None:
                raise ValueError(
                    f"vmap: Got in_dim={d} for an input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor arguments, "
                    "please use None as the respective in_dim"
                )

        _each(dims, args, measure)
        if len(sizes) != 1:
            raise ValueError(f"vmap: the mapped dimensions have sizes {sorted(sizes)}, one size is wanted")
        size = sizes.pop()
        if chunk_size is None or size <= chunk_size:
            return inside.run(dims, args, kwargs, size)

        generators = _generators(dims, args) if randomness == "same" else []
        states = [each._get() for each in generators]

        def part(first):
            _set(generators, states)  # the samples of all parts draw the same

            def cut(d, leaf):
                many = min(chunk_size, size - first)
                return leaf.narrow(d, first, many) if d is not None and isinstance(leaf, _C.Tensor) else leaf

            return inside.run(dims, _each(dims, args, cut), kwargs, min(chunk_size, size - first))

        return _joined(out_dims, [part(first) for first in range(0, size, chunk_size)])

    return mapped


def _joined(out_dims, parts):
    """The results of all chunks as one."""
    dims = _spread(list(out_dims) if isinstance(out_dims, tuple) else out_dims, parts[0], "out_dims")
    leaves = []
    for part in parts:
        found = []
        _each(dims, part, lambda d, leaf, found=found: found.append(leaf))
        leaves.append(found)
    columns = iter(zip(*leaves, strict=True))

    def join(d, leaf):
        column = next(columns)
        return leaf if d is None else _C.find_op("cat")(list(column), d)

    return _each(dims, parts[0], join)


def loops(mode=None):
    """The ops that vmap called sample by sample in this process: a list of (op, reason, calls, samples, seconds).

    ``loops("error")``: such a call raises from now on; ``loops("allow")``: it does not.
    """
    if mode not in (None, "error", "allow"):
        raise ValueError(f"loops: mode is {mode!r}; 'error', 'allow' or nothing is wanted")
    if mode:
        _C.transform_loops_forbid(mode == "error")
    from .autograd._lowered import looped

    own = [(name, "a Function without vmap", calls, None, None) for name, calls in looped.items()]
    return _C.transform_loops() + own


def stack_module_state(models):
    """(parameters, buffers): dictionaries of the stacked parameters and buffers of models of one kind."""
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0")
    if len({type(m) for m in models}) != 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class")
    if len({m.training for m in models}) != 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode")
    stack = _C.find_op("stack")

    def stacked(named):
        all_of_them = [dict(n) for n in named]
        for k in all_of_them[0]:
            if len({n[k].requires_grad for n in all_of_them}) != 1:
                raise RuntimeError(f"stack_module_state: Expected {k!r} of each model to have the same .requires_grad")
        return {
            k: stack([n[k].detach() for n in all_of_them]).requires_grad_(v.requires_grad)
            for k, v in all_of_them[0].items()
        }

    return stacked(m.named_parameters() for m in models), stacked(m.named_buffers() for m in models)
