"""adjoin.autograd.functional: jacobians, hessians and products with them, of Python functions."""

from .. import _C
from .._C import Tensor, grad


def _tuple(x):
    return (x,) if isinstance(x, Tensor) else tuple(x)


def _fresh(inputs, create_graph):
    """Inputs that record, apart from the graph they come from unless create_graph is on."""
    return tuple(x.view_as(x) if create_graph and x.requires_grad else x._alias().requires_grad_() for x in inputs)


def _zeros(x):
    return _C.find_op("zeros_like")(x)


def _finish(results, create_graph):
    return tuple(r if create_graph else r._alias() for r in results)


def _grads(outputs, inputs, v, create_graph, strict, retain=None):
    got = grad(outputs, inputs, v, retain_graph=retain, create_graph=create_graph, allow_unused=True)
    if strict and any(g is None for g in got):
        raise RuntimeError("an output does not depend on one of the inputs, and strict is on")
    return tuple(_zeros(x) if g is None else g for g, x in zip(got, inputs))


def _grads_of_linked(outputs, inputs, v, create_graph, strict):
    """The gradients of those outputs that depend on anything."""
    linked = [(g, w) for g, w in zip(outputs, v, strict=True) if g.requires_grad]
    if not linked:
        return tuple(_zeros(x) for x in inputs)
    outputs, v = zip(*linked, strict=True)
    return _grads(outputs, inputs, v, create_graph, strict)


def _shaped(results, like):
    return results[0] if isinstance(like, Tensor) else results


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v times the Jacobian)."""
    with _C.enable_grad():
        xs = _fresh(_tuple(inputs), create_graph)
        out = func(*xs)
        outs = _tuple(out)
        vs = None if v is None else _tuple(v)
        got = _grads(outs, xs, vs, create_graph, strict)
    return _shaped(_finish(outs, create_graph), out), _shaped(_finish(got, create_graph), inputs)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), the Jacobian times v), by differentiating a vjp."""
    with _C.enable_grad():
        xs = _fresh(_tuple(inputs), create_graph)
        out = func(*xs)
        outs = _tuple(out)
        ones = _C.find_op("ones_like")
        vs = tuple(ones(x) for x in xs) if v is None else _tuple(v)
        dummies = tuple(ones(o).requires_grad_() for o in outs)  # not zeros, where a derivative's own ops have edges
        first = _grads(outs, xs, dummies, True, strict)
        got = _grads_of_linked(first, dummies, vs, create_graph, strict)
    return _shaped(_finish(outs, create_graph), out), _shaped(_finish(got, create_graph), out)


def _jacobian_of(out, xs, create_graph, strict):
    rows = []
    flat = out.reshape(-1)
    for i in range(flat.numel()):
        rows.append(_grads(flat[i], xs, None, create_graph, strict, retain=True))
    stack = _C.find_op("stack")
    return tuple(
        stack([row[k] for row in rows]).reshape(tuple(out.shape) + tuple(x.shape))
        if rows
        else _C.find_op("zeros")(tuple(out.shape) + tuple(x.shape), dtype=x.dtype)
        for k, x in enumerate(xs)
    )


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy=None):
    """The derivative of each element of each output with respect to each element of each input.

    ``strategy``: "reverse-mode", or "forward-mode", which takes one pass for each input and is better where inputs are few.
    """
    if strategy not in (None, "reverse-mode", "forward-mode"):
        raise ValueError(f"jacobian: strategy is {strategy!r}; 'reverse-mode' or 'forward-mode' is wanted")
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, create_graph, strict)
    with _C.enable_grad():
        xs = _fresh(_tuple(inputs), create_graph)
        out = func(*xs)
        outs = _tuple(out)
        rows = tuple(_finish(_jacobian_of(o, xs, create_graph, strict), create_graph) for o in outs)
    rows = tuple(_shaped(r, inputs) for r in rows)
    return rows[0] if isinstance(out, Tensor) else rows


def _forward_jacobian(func, inputs, create_graph, strict):
    from .._forward import jacfwd

    if strict:
        raise RuntimeError(
            "jacobian: strict is not there in forward mode; leave it out, or use strategy='reverse-mode'"
        )
    xs = _tuple(inputs) if create_graph else tuple(x._alias() for x in _tuple(inputs))
    kind = []

    def tensors(*xs):
        out = func(*xs)
        kind.append(isinstance(out, Tensor))
        return _tuple(out)

    rows = jacfwd(tensors, tuple(range(len(xs))))(*xs)
    rows = tuple(_shaped(_finish(r, create_graph), inputs) for r in rows)
    return rows[0] if kind[0] else rows


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy=None):
    """The second derivatives of a function with one result."""
    single = isinstance(inputs, Tensor)

    def gradient(*xs):
        with _C.enable_grad():
            xs = tuple(x if x.requires_grad else x._alias().requires_grad_() for x in xs)
            out = func(*xs)
            if not isinstance(out, Tensor) or out.numel() != 1:
                raise RuntimeError("hessian: the function must return a single element")
            return _grads(out.reshape(()), xs, None, True, strict)

    result = jacobian(gradient, inputs, create_graph=create_graph, strict=strict, strategy=outer_jacobian_strategy)
    return result[0] if single else result


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v times the Hessian)."""
    return _hessian_product(func, inputs, v, create_graph, strict)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), the Hessian times v), which is the same: Hessians are symmetric."""
    return _hessian_product(func, inputs, v, create_graph, strict)


def _hessian_product(func, inputs, v, create_graph, strict):
    with _C.enable_grad():
        xs = _fresh(_tuple(inputs), create_graph)
        out = func(*xs)
        first = _grads(out, xs, None, True, strict)
        ones = _C.find_op("ones_like")
        vs = tuple(ones(x) for x in xs) if v is None else _tuple(v)
        got = _grads_of_linked(first, xs, vs, create_graph, strict)
    return out if create_graph else out._alias(), _shaped(_finish(got, create_graph), inputs)


def _grad_of_each(outputs, inputs, grad_outputs, create_graph, allow_unused, materialize_grads):
    """What grad(is_grads_batched=True) gives: a gradient for each slice of grad_outputs, stacked. The graph is kept."""
    outputs, given = _tuple(outputs), () if grad_outputs is None else _tuple(grad_outputs)
    sizes = {g.shape[0] for g in given if g is not None and g.dim()}
    if len(sizes) != 1:
        raise RuntimeError(
            f"grad: is_grads_batched wants grad_outputs of one first dimension, the sizes are {sorted(sizes)}"
        )
    rows = [
        _C.grad(
            outputs, inputs, tuple(None if g is None else g[i] for g in given), retain_graph=True, create_graph=create_graph,
            allow_unused=allow_unused, materialize_grads=materialize_grads,
        )
        for i in range(sizes.pop())
    ]  # fmt: skip
    stack = _C.find_op("stack")
    return tuple(None if column[0] is None else stack(column) for column in zip(*rows, strict=True))
