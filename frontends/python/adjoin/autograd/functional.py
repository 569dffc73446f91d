"""adjoin.autograd.functional: jacobians, hessians and products with them, of Python functions."""

from .. import _C
from .._C import Tensor, grad


def _tuple(x):
    return (x,) if isinstance(x, Tensor) else tuple(x)


def _tensors(given, what, who):
    """A tensor, or a tuple or list of them, as a tuple."""
    all_of_them = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    for i, x in enumerate(all_of_them):
        if not isinstance(x, Tensor):
            where = f"the value at index {i}" if isinstance(given, (tuple, list)) else "it"
            raise TypeError(
                f"The {what} given to {who} must be either a Tensor or a tuple of Tensors, {where} is {type(x).__name__}"
            )
    return all_of_them


def _results(out, who):
    return _tensors(out, "outputs of the user-provided function", who)


def _one_number(out, who):
    """The only element of a function's only result."""
    _results(out, who)
    if not isinstance(out, Tensor):
        raise RuntimeError(f"The function given to {who} should return a single Tensor, it returned {len(out)}")
    if out.numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {who} should contain a single element, its shape is {list(out.shape)}"
        )
    return out.reshape(())


def _direction(v, like, who, whose):
    """``v`` as a tuple: as many tensors as ``like``, of the same shapes; None stands for a one."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"{who}: The vector v can only be None if {whose} a single Tensor with a single element; give one of its shape"
            )
        return tuple(_C.find_op("ones_like")(x) for x in like)
    vs = _tensors(v, "v", who)
    if len(vs) != len(like):
        raise RuntimeError(f"{who}: v is a tuple of invalid length: should be {len(like)} but got {len(vs)}")
    for i, (one, x) in enumerate(zip(vs, like, strict=True)):
        if one.shape != x.shape:
            place = f"Entry {i} in " if len(vs) > 1 else ""
            raise RuntimeError(f"{who}: {place}v has invalid size: should be {list(x.shape)} but got {list(one.shape)}")
    return vs


def _fresh(inputs, create_graph):
    """Inputs that record, apart from the graph they come from unless create_graph is on."""
    return tuple(x.view_as(x) if create_graph and x.requires_grad else x._alias().requires_grad_() for x in inputs)


def _zeros(x):
    return _C.find_op("zeros_like")(x)


def _finish(results, create_graph):
    return tuple(r if create_graph else r._alias() for r in results)


_FORBIDDEN = "This is not allowed in strict mode"


def _recorded(outs, strict):
    """With ``strict``, every output of a function must depend on something."""
    for i, out in enumerate(outs):
        if strict and not out.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. {_FORBIDDEN}: "
                "compute it from the inputs by differentiable ops"
            )


def _vary(grads, strict, what):
    """With ``strict``, derivatives must depend on the inputs."""
    for i, g in enumerate(grads):
        if strict and not g.requires_grad:
            raise RuntimeError(
                f"The {what} of the user-provided function with respect to input {i} is independent of the input. {_FORBIDDEN}: "
                "a linear function has such a one"
            )


def _grads(outputs, inputs, v, create_graph, strict, retain=None, whole="The output"):
    """The gradients of those outputs that depend on anything; zeros for inputs that they do not depend on, or with ``strict`` an error."""
    outputs = _tuple(outputs)
    linked = [(g, w) for g, w in zip(outputs, v or [None] * len(outputs), strict=True) if g.requires_grad]
    got = [None] * len(inputs)
    if linked:
        outputs, given = zip(*linked, strict=True)
        given = None if v is None else given
        got = grad(outputs, inputs, given, retain_graph=retain, create_graph=create_graph, allow_unused=True)
    for i, g in enumerate(got):
        if strict and g is None:
            raise RuntimeError(f"{whole} of the user-provided function is independent of input {i}. {_FORBIDDEN}")
        if strict and create_graph and not g.requires_grad:
            raise RuntimeError(
                f"The jacobian of the user-provided function is independent of input {i}. {_FORBIDDEN} when create_graph=True"
            )
    return tuple(_zeros(x) if g is None else g for g, x in zip(got, inputs, strict=True))


def _shaped(results, like):
    return results[0] if isinstance(like, Tensor) else results


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v times the Jacobian)."""
    with _C.enable_grad():
        xs = _fresh(_tensors(inputs, "inputs", "vjp"), create_graph)
        out = func(*xs)
        outs = _results(out, "vjp")
        _recorded(outs, strict)
        vs = _direction(v, outs, "vjp", "the user-provided function returns")
        got = _grads(outs, xs, vs, create_graph, strict)
    return _shaped(_finish(outs, create_graph), out), _shaped(_finish(got, create_graph), inputs)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), the Jacobian times v), by differentiating a vjp."""
    with _C.enable_grad():
        xs = _fresh(_tensors(inputs, "inputs", "jvp"), create_graph)
        vs = _direction(v, xs, "jvp", "the input to the user-provided function is")
        out = func(*xs)
        outs = _results(out, "jvp")
        _recorded(outs, strict)
        ones = _C.find_op("ones_like")
        dummies = tuple(ones(o).requires_grad_() for o in outs)  # not zeros, where a derivative's own ops have edges
        first = _grads(outs, xs, dummies, True, strict)
        got = _grads(first, dummies, vs, create_graph, strict)
    return _shaped(_finish(outs, create_graph), out), _shaped(_finish(got, create_graph), out)


def _jacobian_of(out, number, xs, create_graph, strict):
    rows = []
    flat = out.reshape(-1)
    for i in range(flat.numel()):
        rows.append(_grads(flat[i], xs, None, create_graph, strict, retain=True, whole=f"Output {number}"))
    stack = _C.find_op("stack")
    return tuple(
        stack([row[k] for row in rows]).reshape(tuple(out.shape) + tuple(x.shape))
        if rows
        else _C.find_op("zeros")(tuple(out.shape) + tuple(x.shape), dtype=x.dtype)
        for k, x in enumerate(xs)
    )


def _in_one_pass(out, xs, create_graph):
    """The rows of a jacobian as one batch."""
    basis = _C.find_op("eye")(out.numel(), dtype=out.dtype, device=out.device).reshape(out.numel(), *out.shape)
    found = _grad_of_each(out, xs, (basis,), create_graph, True, False)
    shapes = [tuple(out.shape) + tuple(x.shape) for x in xs]
    zeros = _C.find_op("zeros")
    return tuple(
        zeros(shape, dtype=x.dtype, device=x.device) if g is None else g.reshape(shape)
        for g, x, shape in zip(found, xs, shapes, strict=True)
    )


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy=None):
    """The derivative of each element of each output with respect to each element of each input.

    ``vectorize``: all rows in one pass, as a batch. ``strategy``: "reverse-mode", or "forward-mode", which takes one pass for each input and is better where inputs are few.
    """
    if strategy not in (None, "reverse-mode", "forward-mode"):
        raise ValueError(f"jacobian: strategy is {strategy!r}; 'reverse-mode' or 'forward-mode' is wanted")
    if strict and vectorize:
        raise RuntimeError(
            "jacobian: `strict=True` and `vectorize=True` are not supported together; leave one of them out"
        )
    xs = _tensors(inputs, "inputs", "jacobian")
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, create_graph, strict)
    with _C.enable_grad():
        xs = _fresh(xs, create_graph)
        out = func(*xs)
        outs = _results(out, "jacobian")
        _recorded(outs, strict)
        rows = tuple(
            _finish(_in_one_pass(o, xs, create_graph) if vectorize and o.numel() and o.requires_grad else
                    _jacobian_of(o, i, xs, create_graph, strict), create_graph)
            for i, o in enumerate(outs)
        )  # fmt: skip
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
    _tensors(inputs, "inputs", "hessian")

    def gradient(*xs):
        with _C.enable_grad():
            xs = tuple(x if x.requires_grad else x._alias().requires_grad_() for x in xs)
            out = _one_number(func(*xs), "hessian")
            _recorded([out], strict)
            first = _grads(out, xs, None, True, False)
            _vary(first, strict, "jacobian")
            return first

    result = jacobian(
        gradient,
        inputs,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return result[0] if single else result


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v times the Hessian)."""
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), the Hessian times v), which is the same: Hessians are symmetric."""
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(who, func, inputs, v, create_graph, strict):
    with _C.enable_grad():
        xs = _fresh(_tensors(inputs, "inputs", who), create_graph)
        vs = _direction(v, xs, who, "the input to the user-provided function is")
        out = func(*xs)
        number = _one_number(out, who)
        _recorded([number], strict)
        first = _grads(number, xs, None, True, False)
        _vary(first, strict, "jacobian")
        got = _grads(first, xs, vs, create_graph, strict, whole="The jacobian")
    return out if create_graph else out._alias(), _shaped(_finish(got, create_graph), inputs)


def _grad_of_each(outputs, inputs, grad_outputs, create_graph, allow_unused, materialize_grads):
    """What grad(is_grads_batched=True) gives: a gradient for each slice of grad_outputs, stacked. The graph is kept."""
    outputs, given = _tuple(outputs), () if grad_outputs is None else _tuple(grad_outputs)
    sizes = {g.shape[0] for g in given if g is not None and g.dim()}
    if len(sizes) != 1:
        raise RuntimeError(
            f"grad: is_grads_batched wants grad_outputs of one first dimension, the sizes are {sorted(sizes)}"
        )
    from .._vmap import vmap

    places = [i for i, g in enumerate(given) if g is not None]
    missing = []

    def of_one(*rows):
        one = [None] * len(given)
        for i, row in zip(places, rows, strict=True):
            one[i] = row
        found = _C.grad(
            outputs, inputs, tuple(one), retain_graph=True, create_graph=create_graph, allow_unused=allow_unused,
            materialize_grads=materialize_grads,
        )  # fmt: skip
        missing[:] = [g is None for g in found]
        return tuple(g for g in found if g is not None)

    found = iter(vmap(of_one)(*(given[i] for i in places)))
    return tuple(None if absent else next(found) for absent in missing)
