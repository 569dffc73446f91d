"""adjoin.nn.modules._backward: hooks on a module's backward: gates that its inputs and outputs
pass."""

import functools

import adjoin
from adjoin.autograd import Function


class _Gate(Function):
    """The identity in forward; in backward, ``on_grads`` sees all gradients together and returns
    them. With ``zeros`` those that are not there are zeros, also of what records nothing."""

    @staticmethod
    def forward(ctx, on_grads, zeros, *tensors):
        ctx.on_grads = on_grads
        ctx.set_materialize_grads(zeros)
        ctx.mark_non_differentiable(*(t for t in tensors if not t.requires_grad))
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return (None, None, *ctx.on_grads(grads))


def _through_gate(on_grads, values, zeros):
    """Sends the tensors among ``values`` through one gate; returns the values and their places,
    or None."""
    places = [i for i, value in enumerate(values) if isinstance(value, adjoin.Tensor)]
    tensors = [values[i] for i in places]
    if not adjoin.is_grad_enabled() or not any(t.requires_grad for t in tensors):
        return values, None
    values = list(values)
    for place, tensor in zip(places, _Gate.apply(on_grads, zeros, *tensors), strict=True):
        values[place] = tensor
    return tuple(values), places


def _at_places(grads, places, count):
    full = [None] * count
    for place, grad in zip(places, grads, strict=True):
        full[place] = grad
    return tuple(full)


class BackwardGates:
    """Runs one call's full backward hooks: ``pre`` on the output gradients, ``hooks`` when those
    of the inputs are there."""

    def __init__(self, module, hooks, pre):
        self.module, self.hooks, self.pre = module, hooks, pre
        self.grad_outputs = None
        self.input_places, self.input_count = None, 0
        self.output_places, self.output_count = None, 0

    def take_inputs(self, args):
        self.input_count = len(args)
        args, self.input_places = _through_gate(self._on_input_grads, args, zeros=True)
        return args

    def take_outputs(self, result):
        single = not isinstance(result, tuple)
        values = (result,) if single else result
        self.output_count = len(values)
        # A gate needs its places before it runs, and they do not depend on whether it is there.
        self.output_places = [i for i, v in enumerate(values) if isinstance(v, adjoin.Tensor)]
        values, _ = _through_gate(self._on_output_grads, values, zeros=False)
        return values[0] if single else values

    def _on_output_grads(self, grads):
        full = _at_places(grads, self.output_places, self.output_count)
        for hook in self.pre:
            full = _replaced(hook(self.module, full), full, "Backward pre hook")
        self.grad_outputs = full
        if self.input_places is None:
            # No gradient goes on to an input, so nothing else would tell that the module is done.
            none = (None,) * self.input_count
            for hook in self.hooks:
                if hook(self.module, none, full) is not None:
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always "
                        "return None or None for all gradients."
                    )
        return tuple(full[place] for place in self.output_places)

    def _on_input_grads(self, grads):
        full = _at_places(grads, self.input_places, self.input_count)
        outputs = self.grad_outputs
        if outputs is not None:
            self.grad_outputs = None
            for hook in self.hooks:
                full = _replaced(hook(self.module, full, outputs), full, "Backward hook")
        return tuple(full[place] for place in self.input_places)


def _replaced(result, grads, what):
    if result is None:
        return grads
    result = result if isinstance(result, tuple) else (result,)
    if len(result) != len(grads):
        raise RuntimeError(f"{what} returned an invalid number of grads, got {len(result)}, but expected {len(grads)}")
    return result


def hook_first_node(module, hooks, args, result):
    """Attaches hooks of the old kind to the node that made the first tensor of ``result``."""
    while not isinstance(result, adjoin.Tensor):
        if isinstance(result, dict):
            result = next(v for v in result.values() if isinstance(v, adjoin.Tensor))
        else:
            result = result[0]
    if result.grad_fn is not None:
        for hook in hooks:
            bound = functools.partial(hook, module)
            functools.update_wrapper(bound, hook)
            result.grad_fn.register_hook(bound)
