"""adjoin._graphed: functions and modules that run as captured graphs, with their backward passes: make_graphed_callables."""

import contextlib

from . import _C
from .autograd import Function, grad
from .nn.modules.module import Module
from .utils._pytree import tree_flatten, tree_unflatten


def graphed(Graph, callables, sample_args, warmups, allow_unused, pool):
    """The callables, captured in order, or the one callable that was given."""
    single = not isinstance(callables, tuple)
    functions = (callables,) if single else callables
    samples = (sample_args,) if single else sample_args
    if len(functions) != len(samples):
        raise ValueError(f"make_graphed_callables: {len(functions)} callables, but sample_args for {len(samples)}")
    plans = [_Plan(f, args, allow_unused) for f, args in zip(functions, samples, strict=True)]
    for plan in plans:
        plan.warm_up(warmups)
    for plan in plans:
        pool = plan.capture_forward(Graph, pool)
    for plan in reversed(plans):
        pool = plan.capture_backward(Graph, pool)
    made = tuple(_put_in(plan) for plan in plans)
    return made[0] if single else made


class _Plan:
    """A callable, its static inputs and results, its two graphs."""

    def __init__(self, function, args, allow_unused):
        self.function, self.allow_unused = function, allow_unused
        flat, self.shape = tree_flatten(args)
        wrong = [type(x).__name__ for x in flat if not isinstance(x, _C.Tensor)]
        if wrong:
            raise TypeError(f"make_graphed_callables: sample_args are tensors, and not {', '.join(sorted(set(wrong)))}")
        self.parameters = ()
        if isinstance(function, Module):
            if any(buffer.requires_grad for buffer in function.buffers()):
                raise RuntimeError(
                    "make_graphed_callables: a buffer of the module requires a gradient; a graph gives it none"
                )
            self.parameters = tuple(function.parameters())
            self.training = function.training
        self.arguments = tuple(flat)
        self.inputs = (*self.arguments, *self.parameters)
        self.wanted = [x for x in self.inputs if x.requires_grad]
        self.backward = None

    def run(self):
        """(flat results, how they belong together)."""
        return tree_flatten(self.function(*tree_unflatten(self.arguments, self.shape)))

    def grads(self, results, given):
        return grad(results, self.wanted, given, allow_unused=self.allow_unused)

    def warm_up(self, times):
        """What the first calls do (workspaces, choices of libraries) is no part of the graph."""
        for _ in range(times):
            results, _ = self.run()
            differ = [y for y in results if y.requires_grad]
            if differ and self.wanted:
                self.grads(differ, [y.detach().clone() for y in differ])

    def capture_forward(self, Graph, pool):
        self.forward = Graph()
        with _captured(self.forward, pool):
            results, self.results_shape = self.run()
        self.results = tuple(results)
        return pool if pool is not None else self.forward.pool()

    def capture_backward(self, Graph, pool):
        self.differ = tuple(y.requires_grad for y in self.results)
        differ = [y for y in self.results if y.requires_grad]
        self.given = tuple(y.detach().clone() if y.requires_grad else None for y in self.results)
        found = iter(())
        if differ and self.wanted:
            self.backward = Graph()
            with _captured(self.backward, pool):
                found = iter(self.grads(differ, [g for g in self.given if g is not None]))
        # In the order of the inputs; None for what needs none.
        self.found = tuple(next(found, None) if x.requires_grad else None for x in self.inputs)
        self.results = tuple(y.detach() for y in self.results)
        return pool


@contextlib.contextmanager
def _captured(graph, pool):
    graph.capture_begin(pool)
    try:
        yield
    finally:
        graph.capture_end()


class _Replay(Function):
    """One call of a plan: its inputs are copied in, its graph runs, what it wrote is what is returned."""

    @staticmethod
    def forward(ctx, plan, *inputs):
        ctx.plan = plan
        for to, x in zip(plan.arguments, inputs, strict=False):
            if to.data_ptr() != x.data_ptr():
                if to.shape != x.shape or to.dtype is not x.dtype:
                    raise RuntimeError(
                        f"make_graphed_callables: an input of shape {tuple(x.shape)} and {x.dtype}, where the sample had "
                        f"{tuple(to.shape)} and {to.dtype}"
                    )
                to.detach().copy_(x)
        plan.forward.replay()
        results = tuple(y.detach() for y in plan.results)
        ctx.mark_non_differentiable(*(y for y, differs in zip(results, plan.differ, strict=True) if not differs))
        return results

    @staticmethod
    def backward(ctx, *grads):
        plan = ctx.plan
        for to, g in zip(plan.given, grads, strict=True):
            if to is not None and to.data_ptr() != g.data_ptr():
                to.copy_(g)
        plan.backward.replay()
        return (None, *(g if g is None else g.detach() for g in plan.found))


def _put_in(plan):
    """The callable that replays; a module keeps its class, and runs eagerly where training is another than was captured."""

    def replayed(*args):
        flat, _ = tree_flatten(args)
        if len(flat) != len(plan.arguments):
            raise TypeError(f"make_graphed_callables: {len(flat)} inputs, where the samples were {len(plan.arguments)}")
        return tree_unflatten(list(_Replay.apply(plan, *flat, *plan.parameters)), plan.results_shape)

    module = plan.function
    if not isinstance(module, Module):
        return replayed
    eager = module.forward

    def forward(*args):
        return (replayed if module.training == plan.training else eager)(*args)

    module.forward = forward
    return module
