"""adjoin.autograd.gradcheck: gradients, first and second, against finite differences."""

import sys
import types

from .. import _C
from .._C import Tensor, grad
from . import _gradcheck_parts as parts
from ._directions import check as check_along


class GradcheckError(RuntimeError):
    """A gradient that is not the derivative."""


def _tuple(x):
    return (x,) if isinstance(x, Tensor) else tuple(x)


def _checked(inputs):
    """The inputs whose gradients are checked."""
    wanted = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise ValueError(
            "gradcheck: none of the inputs requires grad; it expects at least one input tensor to require gradient"
        )
    for x in wanted:
        if x.dtype not in (_C.float64, _C.complex128):
            import warnings

            warnings.warn(
                f"gradcheck: an input is {x.dtype}: differences in less than double precision will likely fail",
                stacklevel=4,
            )
    return wanted


def _outputs(func, inputs):
    return _differentiable(func(*inputs))


def _differentiable(out):
    return [o for o in _tuple(out) if isinstance(o, Tensor) and (o.is_floating_point() or o.is_complex())]


def _values(func, inputs, outs):
    """Every element of every output, as lists of Python numbers."""
    now = _outputs(func, inputs)
    parts.check_form(outs, now)
    return [o.detach().reshape(-1).tolist() for o in now]


def _numeric_columns(func, inputs, outs, x, eps):
    """For each real direction of x: the change of every output element."""
    flat = x.data.reshape(-1)
    shared = flat.data_ptr() == x.data_ptr()
    directions = [eps] if not x.is_complex() else [eps, eps * 1j]
    columns = []
    for i in range(x.numel()):
        for step in directions:
            sides = []
            for sign in (1, -1):
                old = flat[i].item()
                _put(x, flat, shared, i, old + sign * step)
                sides.append(_values(func, inputs, outs))
                _put(x, flat, shared, i, old)
            columns.append([[(a - b) / (2 * eps) for a, b in zip(up, down)] for up, down in zip(sides[0], sides[1])])
    return columns


def _put(x, flat, shared, i, value):
    flat[i] = value
    if not shared:
        x.data.copy_(flat.reshape(x.shape))


def _analytic_rows(out, x, retain=True):
    """For each real direction of out: the gradient of x, as a list of Python numbers."""
    rows = []
    seeds = [1.0] if not out.is_complex() else [1.0, 1j]
    zeros_like = _C.find_op("zeros_like")
    for i in range(out.numel()):
        for seed in seeds:
            v = zeros_like(out.detach()).contiguous()
            v.reshape(-1)[i] = seed
            (g,) = grad(out, (x,), v, retain_graph=retain, allow_unused=True)
            rows.append(None if g is None else g.detach().reshape(-1).tolist())
    return rows


def _parts(z):
    return (z.real, z.imag) if isinstance(z, complex) else (z,)


def _close(a, b, atol, rtol):
    return a == b or abs(a - b) <= atol + rtol * abs(b) or (a != a and b != b)


def _compare(rows, columns, which, x_complex, out_complex, atol, rtol):
    """Real Jacobians: rows hold d(out direction)/dx as gradients, columns d out/d(x direction)."""
    nx = 2 if x_complex else 1
    no = 2 if out_complex else 1
    for r, row in enumerate(rows):
        element, part = divmod(r, no)
        for c in range(len(columns)):
            i, direction = divmod(c, nx)
            numeric = _parts(columns[c][which][element])
            # g = dL/dRe z + i dL/dIm z with L = Re(conj(v) out): its parts are the real derivatives
            want = numeric[part] if out_complex else numeric[0]
            entry = 0.0 if row is None else row[i]
            got = _parts(entry)[direction] if x_complex and isinstance(entry, complex) else entry
            got = got.real if isinstance(got, complex) else got
            if not _close(got, want, atol, rtol):
                return (element, i, got, want)
    return None


def _raise_or_false(raise_exception, message):
    if raise_exception:
        raise GradcheckError(message)
    return False


def _check_nondeterminism(func, inputs, outs, wanted, tol):
    again = _outputs(func, inputs)
    for out, second in zip(outs, again):
        if not out.requires_grad:
            continue
        for x in wanted:
            for a, b in zip(_analytic_rows(out, x), _analytic_rows(second, x)):
                for p, q in zip(a or (), b or ()):
                    if abs(p - q) > tol:
                        return False
    return True


def _of_values(func, inputs):
    """A function of the values of sparse inputs, and those, for a function of sparse tensors."""
    if all(not isinstance(x, Tensor) or x.layout is _C.strided for x in inputs):
        return func, inputs
    from .._sparse import with_values

    templates = [x.detach() if isinstance(x, Tensor) and x.layout is not _C.strided else None for x in inputs]
    values = tuple(
        x if t is None else t._values().clone().requires_grad_(x.requires_grad)
        for x, t in zip(inputs, templates, strict=True)
    )

    def of_values(*args):
        made = func(*(x if t is None else with_values(t, x) for x, t in zip(args, templates, strict=True)))
        outs = made if isinstance(made, (tuple, list)) else (made,)
        dense = tuple(o.to_dense() if isinstance(o, Tensor) and o.layout is not _C.strided else o for o in outs)
        return dense if isinstance(made, (tuple, list)) else dense[0]

    return of_values, values


def gradcheck(
    func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0,
    check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
    check_batched_forward_grad=False, check_forward_ad=False, check_backward_ad=True,
    fast_mode=False, masked=None,
):  # fmt: skip
    """Whether the gradients of func at inputs agree with finite differences.

    ``check_forward_ad``: the derivatives in forward mode, too, or alone where ``check_backward_ad`` is off.
    ``fast_mode``: along a random direction of each input, where it is otherwise each element by each.
    ``check_batched_grad`` and ``check_batched_forward_grad``: of a batch of directions, too, as vmap takes them.
    ``check_grad_dtypes`` changes nothing: a gradient has its input's dtype.
    Of a sparse input the values are moved, and of a sparse result they are compared: zeros that are not kept stay zero, as with
    ``masked=True``.
    """
    func, inputs = _of_values(func, _tuple(inputs))
    wanted = _checked(inputs)
    parts.check_arguments(wanted, check_backward_ad, check_forward_ad, check_batched_grad, check_batched_forward_grad)
    for x in wanted:
        if not x.is_leaf:
            x.retain_grad()
    returned = func(*inputs)
    if not isinstance(returned, Tensor) and not len(returned):
        return True
    outs = _differentiable(returned)
    if not outs:
        return _raise_or_false(raise_exception, "gradcheck: the function returns no real or complex tensor")
    for number, x in enumerate(wanted):
        if fast_mode:
            told = check_along(
                _outputs, func, inputs, outs, wanted, number, eps=eps, atol=atol, rtol=rtol, nondet_tol=nondet_tol,
                forward=check_forward_ad, backward=check_backward_ad,
            )  # fmt: skip
            if told:
                return _raise_or_false(raise_exception, told)
            continue
        columns = _numeric_columns(func, inputs, outs, x, eps)
        if check_forward_ad and (message := _check_forward(func, inputs, wanted, x, number, columns, atol, rtol)):
            return _raise_or_false(raise_exception, message)
        if not check_backward_ad:
            continue
        for which, out in enumerate(outs):
            rows = (
                _analytic_rows(out, x) if out.requires_grad else [None] * (out.numel() * (2 if out.is_complex() else 1))
            )
            bad = _compare(rows, columns, which, x.is_complex(), out.is_complex(), atol, rtol)
            if bad:
                element, i, got, want = bad
                return _raise_or_false(
                    raise_exception,
                    f"gradcheck: Jacobian mismatch for output {which} with respect to input {number}: "
                    f"element {element} by element {i}: the derivative says {got}, differences say "
                    f"{want}",
                )
    if check_batched_forward_grad and (message := parts.batched_forward(_outputs, func, inputs, wanted)):
        return _raise_or_false(raise_exception, message)
    if not check_backward_ad:
        return True
    if check_batched_grad and (message := parts.batched(outs, wanted)):
        return _raise_or_false(raise_exception, message)
    if message := parts.of_zeros(outs, wanted):
        return _raise_or_false(raise_exception, message)
    if not fast_mode and not _check_nondeterminism(func, inputs, outs, wanted, nondet_tol):
        return _raise_or_false(
            raise_exception, "gradcheck: backward is not the same twice; raise nondet_tol if that is meant"
        )
    if check_undefined_grad and not _check_undefined(func, inputs, outs, wanted):
        return _raise_or_false(
            raise_exception, "gradcheck: backward of an undefined gradient must be undefined or zero"
        )
    return True


def _check_forward(func, inputs, wanted, x, number, columns, atol, rtol):
    """What is wrong with the derivatives along each direction of x in forward mode; None: nothing."""
    from .forward_ad import dual_level, make_dual, unpack_dual

    for c, column in enumerate(columns):
        element, imaginary = divmod(c, 2) if x.is_complex() else (c, 0)
        tangent = _C.find_op("zeros_like")(x.detach()).contiguous()
        tangent.reshape(-1)[element] = 1j if imaginary else 1.0
        with dual_level():
            given = parts.duals(make_dual, inputs, wanted, x, tangent)
            parted = [unpack_dual(o) for o in _outputs(func, given)]
        for which, (value, moved) in enumerate(parted):
            found = [0.0] * value.numel() if moved is None else moved.detach().reshape(-1).tolist()
            for i, (got, want) in enumerate(zip(found, column[which], strict=True)):
                if not _close(got, want, atol, rtol):
                    return (
                        f"gradcheck: Jacobian computed with forward mode mismatch for output {which} with respect to input {number}: "
                        f"element {i} by element {element}: the derivative says {got}, differences say {want}"
                    )
    return None


def _check_undefined(func, inputs, outs, wanted):
    """A function of several results must bear that only some of them are used."""
    used = [o for o in outs if o.requires_grad]
    if len(used) < 2:
        return True
    zeros_like = _C.find_op("zeros_like")
    for skipped in range(len(used)):
        rest = [o for i, o in enumerate(used) if i != skipped]
        got = grad(rest, wanted, [zeros_like(o) for o in rest], retain_graph=True, allow_unused=True)
        if any(g is not None and bool((g != 0).any()) for g in got):
            return False
    return True


def gradgradcheck(
    func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3, gen_non_contig_grad_outputs=False,
    raise_exception=True, nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False,
    check_batched_grad=False, check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False,
    masked=False,
):  # fmt: skip
    """Whether the gradients of func's gradients agree with finite differences."""
    func, inputs = _of_values(func, _tuple(inputs))
    places = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    outs = [o for o in _outputs(func, inputs) if o.requires_grad]
    if grad_outputs is None:
        randn_like = _C.find_op("randn_like")
        grad_outputs = tuple(randn_like(o.detach()).requires_grad_() for o in outs)
    else:
        grad_outputs = _tuple(grad_outputs)
    n = len(grad_outputs)

    def gradients(*args):
        xs, vs = args[:-n], args[-n:]
        # In forward mode the inputs come without a history.
        xs = tuple(
            (x.view_as(x) if x.requires_grad else x.requires_grad_()) if i in places else x for i, x in enumerate(xs)
        )
        found = [o for o in _outputs(func, xs) if o.requires_grad]
        with _C.enable_grad():
            got = grad(found, [xs[i] for i in places], vs, create_graph=_C.is_grad_enabled(), allow_unused=True)
        return tuple(g for g in got if g is not None)

    def recorded(*args):
        if _C.is_grad_enabled():
            return gradients(*args)
        with _C.enable_grad():  # differences need the inner graph, not the outer one
            return tuple(g.detach() for g in gradients(*args))

    return gradcheck(
        recorded, inputs + tuple(grad_outputs), eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )  # fmt: skip


class _Callable(types.ModuleType):
    """Importing this module puts it where the function of its name was: `adjoin.autograd.gradcheck` is both."""

    def __call__(self, *args, **kwargs):
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
