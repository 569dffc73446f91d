"""adjoin.autograd._old_style: functions of 2016: an instance that is called, whose forward and backward are methods and remember on self."""

import inspect


class Called:
    """What an instance of a Function has: ``Mine(settings)(x)`` runs ``forward(self, x)``, which may save tensors on itself."""

    def __init__(self, *args, **kwargs):
        kind = type(self)
        if isinstance(inspect.getattr_static(kind, "forward"), staticmethod):
            name = kind.__name__
            raise RuntimeError(f"{name}: a Function is not made but applied: {name}.apply(...)")

    def __call__(self, *inputs):
        kind = type(self)
        if isinstance(inspect.getattr_static(kind, "forward"), staticmethod):
            name = kind.__name__
            raise RuntimeError(
                f"{name}: its forward is a static method: {name}.apply(...) is wanted, not a call of an instance"
            )
        return _runner().apply(self, *inputs)

    def save_for_backward(self, *tensors):
        """Keeps tensors until backward asks for ``saved_tensors``."""
        vars(self)["_to_save"] = tensors

    def mark_dirty(self, *tensors):
        """Says that forward wrote into them."""
        vars(self)["_dirty"] = tensors

    def mark_non_differentiable(self, *tensors):
        """Says that no gradient comes for these results."""
        vars(self)["_not_differentiable"] = tensors

    @property
    def saved_tensors(self):
        """What was saved."""
        return vars(self).get("_saved") or vars(self).get("_to_save", ())


_made = None


def _runner():
    """A Function of today that calls methods of the instance; made late, for it is one itself."""
    global _made
    if _made is None:
        from .. import _C
        from .function import Function, _Once

        class OldStyle(Function):
            @staticmethod
            def forward(ctx, function, *inputs):
                own = vars(function)
                own["needs_input_grad"] = tuple(ctx.needs_input_grad)[1:]
                results = function.forward(*inputs)
                # The function keeps no tensors itself: ctx, which the graph has, keeps them.
                ctx.save_for_backward(*own.pop("_to_save", ()))
                ctx.mark_dirty(*own.pop("_dirty", ()))
                ctx.mark_non_differentiable(*own.pop("_not_differentiable", ()))
                ctx.function = function
                return results

            @staticmethod
            def backward(ctx, *grads):
                function = ctx.function
                vars(function)["_saved"] = ctx.saved_tensors
                try:
                    with _C.no_grad():
                        found = function.backward(*grads)
                finally:
                    vars(function).pop("_saved", None)
                found = found if isinstance(found, tuple) else (found,)
                if _C.is_grad_enabled():  # it was not recorded: a second derivative raises
                    once = lambda t: _Once.apply(t.detach().requires_grad_()) if isinstance(t, _C.Tensor) else t
                    found = tuple(map(once, found))
                return (None, *found)

        _made = OldStyle
    return _made
