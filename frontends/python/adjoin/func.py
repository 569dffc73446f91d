"""adjoin.func: modules as functions of their parameters, and derivatives as functions."""

import contextlib
import functools

import adjoin

from ._forward import _leaves, _map, jacfwd, jvp
from ._rearrange import rearrange
from ._vmap import loops, stack_module_state, vmap

__all__ = [
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "loops", "rearrange",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip


def debug_unwrap(tensor, *, recurse=True):
    """What a tensor inside of vmap, jvp or grad is made of, to look at: a batch with its samples along the first dimension, a dual
    without its tangent. ``recurse=False``: one level less."""
    from . import _C

    level = _C.transform_level(tensor)
    if level <= 0:
        return tensor
    batch = _C.transform_batched_at(tensor, level)
    below = _C.transform_unbatched(tensor, 0, level) if batch else _C.transform_undual(tensor, level)[0]
    return debug_unwrap(below) if recurse else below


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """``module(*args, **kwargs)`` with other parameters and buffers, given by name in one dictionary or several.

    What shares a tensor in the module shares the given one too, unless ``tie_weights`` is False. ``strict``: all
    names must be given and known.
    """
    given = parameter_and_buffer_dicts
    if not isinstance(given, dict):
        if not isinstance(given, (list, tuple)) or not all(isinstance(d, dict) for d in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for d in given for name in d]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {name: tensor for d in given for name, tensor in d.items()}
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    return _call_with(module, given, args, kwargs or {}, tie_weights, strict)


def _call_with(module, given, args, kwargs, tie_weights, strict):
    with replaced(module, given, tie_weights, strict):
        return module(*args, **kwargs)


@contextlib.contextmanager
def replaced(module, given, tie_weights, strict):
    """Inside, the tensors of ``given`` stand in the places of their names: {name: (dictionary, key)}."""
    places = _places(module)
    if strict:
        unknown, missing = sorted(given.keys() - places.keys()), sorted(places.keys() - given.keys())
        if unknown or missing:
            parts = [f"Unexpected key(s): {', '.join(unknown)}."] if unknown else []
            parts += [f"Missing key(s): {', '.join(missing)}."] if missing else []
            raise RuntimeError(f"Error(s) in strict functional_call: {' '.join(parts)}")
    chosen = dict(given)
    if tie_weights:
        chosen = _tied(places, chosen)
    with contextlib.ExitStack() as undo:
        for name, tensor in chosen.items():
            owner, key = places[name] = places[name] if name in places else _find(module, name)
            undo.callback(owner.__setitem__, key, owner[key])
            owner[key] = tensor
        yield {name: places[name] for name in chosen}


def _places(module):
    """{full name: (dictionary, key)} of all parameters and buffers."""
    found = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        for tensors in (part._parameters, part._buffers):
            for key, tensor in tensors.items():
                if tensor is not None:
                    found[f"{prefix}.{key}" if prefix else key] = tensors, key
    return found


def _find(module, name):
    *path, key = name.split(".")
    for part in path:
        module = getattr(module, part)
    for tensors in (module._parameters, module._buffers):
        if key in tensors:
            return tensors, key
    raise AttributeError(f"{type(module).__name__} has no attribute `{key}`")


def _tied(places, given):
    """``given`` with every other name of the same tensors."""
    names = {}
    for name, (tensors, key) in places.items():
        names.setdefault(id(tensors[key]), []).append(name)
    chosen = dict(given)
    for group in names.values():
        own = [name for name in group if name in given]
        if len({id(given[name]) for name in own}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(own)}, which are tied. "
                "Consider using tie_weights=False"
            )
        for name in group if own else ():
            chosen.setdefault(name, given[own[0]])
    return chosen


def _inputs(tree, leaves):
    """The tree as inputs of a derivative: views, so that what was recorded before goes on through them."""

    def fresh(tensor):
        tensor = adjoin._C.transform_lift(tensor, 0)  # inside of a vmap it is differentiated there
        leaf = tensor.view_as(tensor) if tensor.requires_grad else tensor._alias().requires_grad_()
        leaves.append(leaf)
        return leaf

    return _map(tree, fresh)


def _outputs(tree, recorded):
    """Without history, unless an argument had one (or a derivative around this one gave it one)."""
    return tree if recorded else _map(tree, lambda tensor: tensor._alias())


def _derivatives(outputs, leaves, weights=None):
    wanted = [x for x in outputs if x.requires_grad]
    if not wanted:
        return [adjoin.zeros_like(x) for x in leaves]
    weights = weights and [w for x, w in zip(outputs, weights, strict=True) if x.requires_grad]
    found = adjoin.autograd.grad(wanted, leaves, weights, create_graph=True, allow_unused=True)
    return [adjoin.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)]


class _Called:
    """A call of func whose arguments number ``argnums`` are inputs of derivatives; to be made, and used, with
    gradients enabled."""

    def __init__(self, func, argnums, has_aux, args, kwargs):
        self.single = isinstance(argnums, int)
        self.numbers = (argnums,) if self.single else tuple(argnums)
        self.recorded = any(x.requires_grad for x in _leaves((args, kwargs)))
        self.args, self.leaves = list(args), []
        for n in self.numbers:
            self.args[n] = _inputs(self.args[n], self.leaves)
        result = func(*self.args, **kwargs)
        self.result, self.aux = result if has_aux else (result, None)

    def by_argument(self, derivatives):
        """The leaves' derivatives as trees like the arguments."""
        found = iter(derivatives)
        made = tuple(_map(self.args[n], lambda _: next(found)) for n in self.numbers)
        return made[0] if self.single else made

    def outputs(self, *trees):
        return (_outputs(x, self.recorded) for x in trees)


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that returns the derivative of func, which returns one number, and that number.

    By the argument number ``argnums``, or by several; an argument may be a tree of tensors. With ``has_aux`` func
    returns a pair and its second part comes along: ``derivative, (value, aux)``.
    """

    @functools.wraps(func)
    def derivative(*args, **kwargs):
        with adjoin.enable_grad():
            call = _Called(func, argnums, has_aux, args, kwargs)
            value = call.result
            if not isinstance(value, adjoin.Tensor) or value.dim():
                told = f"shape {tuple(value.shape)}" if isinstance(value, adjoin.Tensor) else type(value).__name__
                raise RuntimeError(f"grad: func must return a tensor without dimensions, it returned {told}")
            made = call.by_argument(_derivatives([value], call.leaves))
        made, value, aux = call.outputs(made, value, call.aux)
        return made, ((value, aux) if has_aux else value)

    return derivative


def grad(func, argnums=0, has_aux=False):
    """A function that returns the derivative of func, which returns one number; see grad_and_value."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def derivative(*args, **kwargs):
        found, rest = both(*args, **kwargs)
        return (found, rest[1]) if has_aux else found

    return derivative


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None):
    """A function that returns the Jacobian of func: for each tensor of its result (and each of several ``argnums``) a
    tensor of the result's and the argument's dimensions. One backward pass takes all rows, or ``chunk_size`` of them."""
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"jacrev: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        with adjoin.enable_grad():
            call = _Called(func, argnums, has_aux, args, kwargs)

            def rows_of(output):
                columns = _rows(output, call.leaves, chunk_size)
                return call.by_argument(
                    column.reshape(output.shape + x.shape) for x, column in zip(call.leaves, columns, strict=True)
                )

            made = _map(call.result, rows_of)
        made, aux = call.outputs(made, call.aux)
        return (made, aux) if has_aux else made

    return jacobian


def _rows(output, leaves, chunk_size):
    """For each leaf the derivatives of all elements of the output, one below the other."""
    count = output.numel()
    if not count or not output.requires_grad:
        return [x.new_zeros((count, *x.shape)) for x in leaves]
    unit = adjoin.eye(count, dtype=output.dtype, device=output.device).reshape((count, *output.shape))
    step = chunk_size or count
    pull = vmap(lambda weight: _derivatives([output], leaves, [weight]), randomness="same")
    parts = [pull(unit[first : first + step]) for first in range(0, count, step)]
    return parts[0] if len(parts) == 1 else [adjoin.cat(column) for column in zip(*parts, strict=True)]


def hessian(func, argnums=0):
    """A function that returns the second derivatives of func: reverse over reverse mode, each one pass for all rows."""
    return jacrev(jacrev(func, argnums), argnums)


def linearize(func, *primals):
    """``func(*primals)`` and a function of tangents: the derivative there along them, without running func again."""
    result, back = vjp(func, *primals)
    with adjoin.enable_grad():
        weights, pulled = _transposed(result, back)

    def along(*tangents):
        with adjoin.enable_grad():
            moved = _moved(weights, pulled, tangents)
        return _outputs(moved, any(x.requires_grad for x in _leaves((primals, tangents))))

    return result, along


def _transposed(result, back):
    """Weights of the result, and what ``back`` makes of them. It is linear in them, so any weights would do; but the ops
    of a derivative (``xlogy``, a product with a mask) have edges at zero, so they are ones."""
    weights = _map(result, lambda x: adjoin.ones_like(x).requires_grad_(x.is_floating_point() or x.is_complex()))
    return weights, _leaves(back(weights))


def _moved(weights, pulled, tangents):
    """The derivative along the tangents: that of ``pulled`` by the weights."""
    inner = [w for w in _leaves(weights) if w.requires_grad]
    found = iter(_derivatives(pulled, inner, _leaves(tangents)))
    return _map(weights, lambda w: next(found) if w.requires_grad else adjoin.zeros_like(w))


def vjp(func, *primals, has_aux=False):
    """``func(*primals)`` and a function that takes gradients of the result and returns those of the primals."""
    for primal in primals:
        if isinstance(primal, (int, float, complex)):
            raise ValueError(f"vjp: a primal is the {type(primal).__name__} {primal}; a tensor is wanted")
    recorded = any(x.requires_grad for x in _leaves(primals))
    leaves = []
    with adjoin.enable_grad():
        inputs = _inputs(primals, leaves)
        result = func(*inputs)
        outputs, aux = result if has_aux else (result, None)
    ends = _leaves(outputs)

    def pull_back(cotangents):
        with adjoin.enable_grad():
            found = iter(_derivatives(ends, leaves, _leaves(cotangents)))
        made = _outputs(
            _map(inputs, lambda _: next(found)), recorded or any(x.requires_grad for x in _leaves(cotangents))
        )
        return made

    outputs = _outputs(outputs, recorded)
    return (outputs, pull_back, _outputs(aux, recorded)) if has_aux else (outputs, pull_back)


def replace_all_batch_norm_modules_(root):
    """Makes every batch norm of a module use the batch's own mean and variance, always; gives the module. Nothing writes in place
    then, as functions that are differentiated or batched need it."""
    for module in root.modules():
        if isinstance(module, adjoin.nn.modules.batchnorm._BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def functionalize(func, *, remove="mutations"):
    """A function that gives what ``func`` gives and writes to its arguments what ``func`` writes. Transforms here take functions
    that write in place as they are, so nothing has to be removed."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(f"functionalize: remove is {remove!r}; 'mutations' or 'mutations_and_views' is wanted")
    return functools.wraps(func)(lambda *args, **kwargs: func(*args, **kwargs))
