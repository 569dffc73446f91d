"""adjoin.autograd._directions: gradients along random directions against one difference each: gradcheck's fast mode."""

from .. import _C
from .._C import grad
from ._gradcheck_parts import check_form, duals

_op = _C.find_op


def _direction(like, generator):
    """Positive numbers of length 1, so that sums do not cancel; drawn without the generator that the function may use."""
    kind = like.real.dtype if like.is_complex() else like.dtype
    draw = lambda: _op("rand")(tuple(like.shape), generator=generator, dtype=kind, device="cpu") + 0.1  # noqa: E731
    with _C.no_grad():
        made = (_op("complex")(draw(), draw()) if like.is_complex() else draw()).to(like.device)
        return made / made.abs().square().sum().sqrt()


def _along(a, b):
    """The real part of the product of two tensors, summed: how much of b lies along a."""
    with _C.no_grad():
        product = a.detach() * (b.detach().conj() if b.is_complex() else b.detach())
        return (product.real if product.is_complex() else product).sum().item()


def _changes(run, outs, x, direction, eps):
    """How each output moves where x goes along direction."""
    before, sides = x.detach().clone(), []
    for sign in (1, -1):
        x.data.copy_(before + sign * eps * direction)
        sides.append([o.detach().clone() for o in run()])
        check_form(outs, sides[-1])
        x.data.copy_(before)
    return [(a - b) / (2 * eps) for a, b in zip(*sides, strict=True)]


def _moved(outputs, func, inputs, wanted, x, direction):
    """The same, by forward mode; None where an output does not move."""
    from .forward_ad import dual_level, make_dual, unpack_dual

    with dual_level():
        given = duals(make_dual, inputs, wanted, x, direction)
        return [unpack_dual(o)[1] for o in outputs(func, given)]


def check(outputs, func, inputs, outs, wanted, number, *, eps, atol, rtol, nondet_tol, forward, backward):
    """What is wrong between input ``number`` and an output; None: nothing."""
    x = wanted[number]
    generator = _C.Generator().manual_seed(0)
    direction = _direction(x.detach(), generator)
    changes = _changes(lambda: outputs(func, inputs), outs, x, direction, eps)
    moved = _moved(outputs, func, inputs, wanted, x, direction) if forward else [None] * len(outs)
    reach = direction.abs().sum().item()
    for which, (out, change) in enumerate(zip(outs, changes, strict=True)):
        weights = _direction(out.detach(), generator)
        want = _along(change, weights)
        allowed = atol * reach * weights.abs().sum().item() + rtol * abs(want)
        found = {}
        if forward:
            found["forward mode"] = 0.0 if moved[which] is None else _along(moved[which], weights)
        if backward:
            found["the derivative"] = 0.0
            if out.requires_grad:
                first, second = (grad(out, (x,), weights, retain_graph=True, allow_unused=True)[0] for _ in range(2))
                if first is not None:
                    found["the derivative"] = _along(direction, first)
                    if (first - second).abs().max().item() > nondet_tol if first.numel() else False:
                        return "gradcheck: backward is not the same twice; raise nondet_tol if that is meant"
        for who, got in found.items():
            if not (abs(got - want) <= allowed or got != got and want != want):
                how = "computed with forward mode " if who == "forward mode" else ""
                return (
                    f"gradcheck: Jacobian {how}mismatch for output {which} with respect to input {number} along a random "
                    f"direction: {who} says {got}, differences say {want}; fast_mode=False names the element"
                )
    return None
