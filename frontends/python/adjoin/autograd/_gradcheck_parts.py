"""adjoin.autograd._gradcheck_parts: what gradcheck looks at besides numbers: its arguments, shapes that change, zeros, batches.

Each check gives what is wrong, or None.
"""

from .. import _C
from .._C import Tensor, grad

_op = _C.find_op


def check_arguments(wanted, backward, forward, batched, batched_forward):
    """Raises where a combination asks for nothing, or an input cannot be moved element by element."""
    if not (backward or forward):
        raise AssertionError("gradcheck: Expected at least one of check_forward_ad or check_backward_ad to be True")
    for batch, mode, name in ((batched, backward, "grad"), (batched_forward, forward, "forward_grad")):
        if batch and not mode:
            which = "backward" if name == "grad" else "forward"
            raise AssertionError(f"gradcheck: check_batched_{name}=True needs check_{which}_ad=True")
    for i, x in enumerate(wanted):
        if any(step == 0 and n > 1 for step, n in zip(x.stride(), x.shape, strict=True)):
            raise RuntimeError(
                f"gradcheck: The {i}th input has a dimension with stride 0, so several elements move at once; "
                "give x.contiguous().detach().requires_grad_()"
            )


def check_form(first, now):
    """Raises where the results of a moved input are others than before."""
    for what, of in (("number", len), ("shape", _shapes), ("dtype", _dtypes)):
        if of(first) != of(now):
            raise AssertionError(
                f"gradcheck: the function has to return outputs with the same {what} when inputs are perturbed: "
                f"{of(first)} became {of(now)}"
            )


def _shapes(outs):
    return [tuple(o.shape) for o in outs]


def _dtypes(outs):
    return [o.dtype for o in outs]


def of_zeros(outs, wanted):
    """A gradient is a multiple of what comes in, and lies as its input."""
    used = [o for o in outs if o.requires_grad]
    if not used:
        return None
    zeros = [_op("zeros_like")(o.detach()) for o in used]
    for i, (x, g) in enumerate(
        zip(wanted, grad(used, wanted, zeros, retain_graph=True, allow_unused=True), strict=True)
    ):
        if g is None:
            continue
        if g.layout is not x.layout:
            return f"gradcheck: grad is incorrect layout: {g.layout} for input {i}, which is {x.layout}"
        if not bool((g == 0).all()):
            return (
                f"gradcheck: backward not multiplied by grad_output: of zeros it gives input {i} {g.detach().tolist()}"
            )
    return None


_BATCH = 2
_FAILED = "gradcheck or gradgradcheck failed while testing batched gradient computation"


def _differ(got, want):
    return got.shape != want.shape or not bool(_op("isclose")(got, want, equal_nan=True).all())


def batched(outs, wanted):
    """Gradients of a batch of directions are those of each direction."""
    for which, out in enumerate(outs):
        if not out.requires_grad:
            continue
        directions = [_op("randn_like")(out.detach()) for _ in range(_BATCH)]
        ask = lambda v, **more: grad(out, wanted, v, retain_graph=True, allow_unused=True, **more)  # noqa: B023, E731
        one_by_one = [ask(v) for v in directions]
        try:
            together = ask(_op("stack")(directions), is_grads_batched=True)
        except RuntimeError as error:
            return f"gradcheck: {error}; {_FAILED}: output {which}. check_batched_grad=False leaves it out"
        for i, g in enumerate(together):
            rows = [row[i] for row in one_by_one]
            if g is not None and _differ(
                g, _op("stack")([_op("zeros_like")(wanted[i]) if r is None else r for r in rows])
            ):
                return f"gradcheck: {_FAILED}: output {which}, input {i}: other numbers than one by one"
    return None


def batched_forward(outputs, func, inputs, wanted):
    """Tangents of a batch of directions are those of each direction."""
    from .._vmap import vmap
    from .forward_ad import dual_level, make_dual, unpack_dual

    for i, x in enumerate(wanted):

        def moved(tangent):
            with dual_level():
                given = duals(make_dual, inputs, wanted, x, tangent)  # noqa: B023
                parts = [unpack_dual(o) for o in outputs(func, given)]
                return tuple(_op("zeros_like")(value) if t is None else t for value, t in parts)

        directions = [_op("randn_like")(x.detach()) for _ in range(_BATCH)]
        try:
            together = vmap(moved)(_op("stack")(directions))
        except RuntimeError as error:
            return f"gradcheck: {error}; {_FAILED} in forward mode: input {i}. check_batched_forward_grad=False leaves it out"
        for which, (got, *rows) in enumerate(zip(together, *map(moved, directions), strict=True)):
            if _differ(got.detach(), _op("stack")([r.detach() for r in rows])):
                return f"gradcheck: {_FAILED} in forward mode: output {which}, input {i}: other numbers than one by one"
    return None


def duals(make_dual, inputs, wanted, x, tangent):
    """The inputs of a function in forward mode: x has a tangent, the others whose gradients are checked have one of zeros."""
    made = []
    for y in inputs:
        if y is x:
            made.append(make_dual(y.detach(), tangent))
        elif any(y is w for w in wanted):
            made.append(make_dual(y.detach(), _op("zeros_like")(y.detach())))
        else:
            made.append(y.detach() if isinstance(y, Tensor) else y)
    return made
