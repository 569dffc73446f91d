"""adjoin.autograd._mapped: a Function with generate_vmap_rule over samples: each of its parts sees one of them."""

from .. import _C, _vmap
from .function import Function, _default_setup_context


class _Sample:
    """What setup_context, backward and jvp of one sample see in place of ctx: attributes are kept, tensors too."""

    def __init__(self, ctx):
        object.__setattr__(self, "_ctx", ctx)
        object.__setattr__(self, "_kept", {"backward": (), "forward": (), "constant": ()})

    def save_for_backward(self, *tensors):
        self._kept["backward"] = tensors

    def save_for_forward(self, *tensors):
        self._kept["forward"] = tensors

    def mark_non_differentiable(self, *tensors):
        self._kept["constant"] = tensors

    def mark_dirty(self, *tensors):
        raise RuntimeError("a Function with generate_vmap_rule cannot write its arguments; define vmap")

    @property
    def saved_tensors(self):
        return self._kept["backward"]

    def __setattr__(self, name, value):
        if name in ("needs_input_grad", "saved_tensors"):
            raise AttributeError(f"ctx.{name} cannot be set")
        self.__dict__[name] = value

    def __getattr__(self, name):  # what it does not have itself is of the whole batch
        return getattr(self._ctx, name)


class _Level:
    """The level of the samples; knows again what it wrapped."""

    def __init__(self, size, randomness):
        self.size, self.randomness, self.known = size, randomness, {}

    def __enter__(self):
        self.number = _vmap.enter(self.size, self.randomness)
        return self

    def __exit__(self, *_):
        _vmap.leave()

    def inside(self, x, batched):
        if not isinstance(x, _C.Tensor):
            return x
        made = _C.transform_batched(x, 0, self.number) if batched else _C.transform_lift(x, self.number)
        self.known[id(made)] = (made, x, batched)
        return made

    def outside(self, x):
        """(what x stands for, whether it has the samples in front)."""
        if id(x) in self.known:
            return self.known[id(x)][1:]
        if not isinstance(x, _C.Tensor):
            return x, False
        if _C.transform_level(x) == self.number and not _C.transform_batched_at(x, self.number):
            return _C.transform_shared(x, self.number), False
        batched = _C.transform_level(x) == self.number
        return (_C.transform_unbatched(x, 0, self.number) if batched else x), batched

    def spread(self, x):
        """x with the samples in front, repeated where all share it."""
        return _C.transform_unbatched(x, 0, self.number) if isinstance(x, _C.Tensor) else x


def _several(x):
    return x if isinstance(x, tuple) else (x,)


def mapped(cls, dims, size, randomness):
    """cls of arguments whose samples stand in front where ``dims`` has a 0; its results have them in front."""
    if cls.setup_context is _default_setup_context:
        raise RuntimeError(
            f"{cls.__name__}: generate_vmap_rule wants forward without ctx, and setup_context(ctx, inputs, output)"
        )
    own = [d is not None for d in dims]

    def forward(*args):
        with _Level(size, randomness) as level:
            made = cls.forward(*(level.inside(x, b) for x, b in zip(args, own, strict=True)))
            outs = tuple(level.spread(x) for x in _several(made))
        return outs if isinstance(made, tuple) else outs[0]

    def setup_context(ctx, inputs, output):
        with _Level(size, randomness) as level:
            sample = _Sample(ctx)
            given = tuple(level.inside(x, b) for x, b in zip(inputs, own, strict=True))
            made = tuple(level.inside(x, True) for x in _several(output))
            cls.setup_context(sample, given, made if isinstance(output, tuple) else made[0])
            kept = {name: [level.outside(x) for x in tensors] for name, tensors in sample._kept.items()}
        ctx.save_for_backward(*(x for x, _ in kept["backward"]))
        ctx.save_for_forward(*(x for x, _ in kept["forward"]))
        if kept["constant"]:
            ctx.mark_non_differentiable(*(x for x, _ in kept["constant"]))
        ctx._batched = {name: [b for _, b in tensors] for name, tensors in kept.items()}
        ctx._shapes = [x.shape if isinstance(x, _C.Tensor) else None for x in given]
        ctx._attributes = {k: v for k, v in vars(sample).items() if k not in ("_ctx", "_kept")}

    def again(ctx, level, saved_for):
        sample = _Sample(ctx)
        vars(sample).update(ctx._attributes)
        kept = zip(ctx.saved_tensors, ctx._batched[saved_for], strict=True)
        sample._kept["backward"] = tuple(level.inside(x, b) for x, b in kept)
        return sample

    def backward(ctx, *grads):
        with _Level(size, randomness) as level:
            sample = again(ctx, level, "backward")
            found = _several(cls.backward(sample, *(level.inside(g, True) for g in grads)))
            made = []
            for g, shape, batched in zip(found, ctx._shapes, own, strict=True):
                if isinstance(g, _C.Tensor):
                    g = level.spread(g if g.shape == shape else g.sum_to_size(shape))
                    g = g if batched else g.sum(0)
                made.append(g)
        return tuple(made)

    def jvp(ctx, *tangents):
        with _Level(size, randomness) as level:
            sample = again(ctx, level, "forward" if ctx._batched["forward"] else "backward")
            moved = cls.jvp(sample, *(level.inside(t, b) for t, b in zip(tangents, own, strict=True)))
            outs = tuple(level.spread(x) for x in _several(moved))
        return outs if isinstance(moved, tuple) else outs[0]

    parts = {"forward": forward, "setup_context": setup_context, "backward": backward}
    if cls.jvp is not Function.jvp:
        parts["jvp"] = jvp
    parts = {name: staticmethod(part) for name, part in parts.items()}
    return type(cls.__name__, (Function,), {**parts, "generate_vmap_rule": True})
