"""adjoin.distributed.optim.apply_optimizer_in_backward: steps that are made as soon as a parameter has its gradient."""


def _apply_optimizer_in_backward(optimizer_class, params, optimizer_kwargs, register_hook=True):
    """Each parameter steps by an optimizer of its own in backward, and its gradient goes then: two of them are never there at once."""
    for p in params:
        known = vars(p).setdefault("_optimizer_classes", [])
        if not known:
            p._in_backward_optimizers, p._optimizer_kwargs = [], []
        known.append(optimizer_class)
        p._in_backward_optimizers.append(optimizer_class([p], **optimizer_kwargs))
        p._optimizer_kwargs.append(optimizer_kwargs)
        if register_hook and len(known) == 1:
            p.register_post_accumulate_grad_hook(_step)


def _step(p):
    for opt in p._in_backward_optimizers:
        opt.step()
    p.grad = None


def _get_in_backward_optimizers(module):
    """The optimizers of a module's parameters."""
    return [opt for p in module.parameters() for opt in getattr(p, "_in_backward_optimizers", ())]


__all__: list[str] = []
