"""adjoin.func: modules as functions of their parameters, and derivatives as functions."""

import functools

import adjoin

from . import _C
from ._forward import _argnums, _checked, _fill, _leaves, _map, _only_tensors, _real, jacfwd, jvp
from ._rearrange import rearrange
from ._vmap import _wraps, loops, stack_module_state, vmap
from ._vmap import enter as enter_batch
from ._vmap import leave as leave_batch

__all__ = [
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "loops", "rearrange",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip


def debug_unwrap(tensor, *, recurse=True):
    """What a tensor inside of vmap, jvp or grad is made of, to look at: a batch with its samples along the first dimension, a dual
    without its tangent. ``recurse=False``: one level less."""
    level = _C.transform_level(tensor)
    if level <= 0:
        return tensor
    batch = _C.transform_batched_at(tensor, level)
    below = _C.transform_unbatched(tensor, 0, level) if batch else _C.transform_undual(tensor, level)[0]
    return debug_unwrap(below) if recurse else below


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """``module(*args, **kwargs)`` with other parameters and buffers, given by name in one dictionary or several.

    What shares a tensor in the module shares the given one too, unless ``tie_weights`` is False. A name that the module lacks is an
    attribute during the call. What the call puts into a place (``self.running = ...``) is found in the dictionary afterwards.
    ``strict``: all names must be given and known.
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
    return adjoin.nn.utils.stateless._functional_call(
        module, given, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _outputs(tree, recorded, recording=False, leaves=()):
    """Without history, unless an argument had one (or a derivative around this one gave it one), or a tensor depends on what the
    function closes over."""
    if recorded:
        return tree
    return _C.tree_freed(tree, leaves) if recording else _C.tree_detached(tree)


def _derivatives(outputs, leaves, weights=None, recorded=True, again=True):
    """recorded: they have a history themselves; again: the outputs will be asked for more."""
    wanted = [x for x in outputs if x.requires_grad]
    if not wanted:
        return [adjoin.zeros_like(x) for x in leaves]
    weights = weights and [w for x, w in zip(outputs, weights, strict=True) if x.requires_grad]
    found = _C.grad(wanted, leaves, weights, recorded or again, recorded, True)
    return [adjoin.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)]


def _with_aux(result, name):
    if not (isinstance(result, tuple) and len(result) == 2):
        told = f"a tuple of {len(result)}" if isinstance(result, tuple) else f"a {type(result).__name__}"
        raise RuntimeError(
            f"{name}: output of function f should be a tuple (output, aux) if has_aux is True, it is {told}"
        )
    return result[0], _only_tensors(result[1], name)


class _Called:
    """A call of a function, a part of whose arguments are inputs of derivatives; to be used with gradients enabled."""

    def __init__(self, argnums, args, leaves, recording, recorded, closes, result, aux=None):
        self.single = isinstance(argnums, int)
        self.numbers = (argnums,) if self.single else tuple(argnums)
        self.args, self.leaves = args, leaves
        self.recording = recording  # were they enabled around the call?
        self.recorded, self.closes = recorded, closes  # does it depend on what the function closes over?
        self.result, self.aux = result, aux

    @classmethod
    def of(cls, func, argnums, has_aux, args, kwargs, recording, name="grad_and_value"):
        """func of the arguments, those number ``argnums`` as inputs."""
        recorded = recording and (_C.tree_recorded(args) or _C.tree_recorded(kwargs))
        numbers = _argnums(argnums, len(args), name)
        args, leaves = list(args), []
        for n in numbers:
            args[n] = _C.transform_inputs(args[n], leaves)
        result = func(*args, **kwargs)
        result, aux = _with_aux(result, f"{name}(f)(*args)") if has_aux else (result, None)
        closes = recording and not recorded and _C.tree_reaches(result, leaves)
        return cls(argnums, args, leaves, recording, recorded, closes, result, aux)

    def depended_on(self):
        """Is a derivative of it to be recorded: at its own level, or at one around?"""
        return self.recorded or self.closes or _C.transform_recorded(self.result)

    def by_argument(self, derivatives):
        """The leaves' derivatives as trees like the arguments."""
        if self.single:
            return _fill(self.args[self.numbers[0]], derivatives)
        return _fill(tuple(self.args[n] for n in self.numbers), derivatives)

    def outputs(self, *trees):
        if self.closes or self.aux is not None:
            trees = _outputs(trees, self.recorded, self.recording, self.leaves)
        elif not self.recorded:
            return _C.tree_detached(trees)
        for x in self.leaves:  # who looks for leaves in what is kept shall not find ours
            if x.is_leaf:
                x.requires_grad_(False)
        return trees


def _derivative(call):
    """(derivative, value, aux) of a call whose result is one number."""
    value = call.result
    if not isinstance(value, adjoin.Tensor) or value.dim():
        told = f"shape {tuple(value.shape)}" if isinstance(value, adjoin.Tensor) else type(value).__name__
        raise RuntimeError(f"grad: func must return a tensor without dimensions, it returned {told}")
    made = call.by_argument(_derivatives([value], call.leaves, None, call.depended_on(), again=False))
    return call.outputs(made, value, call.aux)


def _differentiated(func, argnums, has_aux, args, kwargs):
    recording = _C.is_grad_enabled()
    with adjoin.enable_grad():
        return _derivative(_Called.of(func, argnums, has_aux, args, kwargs, recording))


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that returns the derivative of func, which returns one number, and that number.

    By the argument number ``argnums``, or by several; an argument may be a tree of tensors. With ``has_aux`` func
    returns a pair and its second part comes along: ``derivative, (value, aux)``.
    """

    @_wraps(func)
    def derivative(*args, **kwargs):
        made, value, aux = _differentiated(func, argnums, has_aux, args, kwargs)
        return made, ((value, aux) if has_aux else value)

    return derivative


def grad(func, argnums=0, has_aux=False):
    """A function that returns the derivative of func, which returns one number; see grad_and_value."""

    plain = type(argnums) is int and not has_aux

    def rest(*parts):
        return _derivative(_Called(argnums, *parts))[0]

    @_wraps(func)
    def derivative(*args, **kwargs):
        if plain and (made := _C.gradient_of(func, argnums, args, kwargs, rest)) is not None:
            return made
        made, _, aux = _differentiated(func, argnums, has_aux, args, kwargs)
        return (made, aux) if has_aux else made

    return derivative


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """A function that returns the Jacobian of func: for each tensor of its result (and each of several ``argnums``) a
    tensor of the result's and the argument's dimensions. One backward pass takes all rows, or ``chunk_size`` of them."""
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"jacrev: chunk_size should be None or greater than 0. (got {chunk_size})")

    plain = type(argnums) is int and not has_aux and chunk_size is None

    def derivative(call):
        _real("jacrev", "inputs", call.leaves)
        _real("jacrev", "outputs", _checked(call.result, "jacrev: vjp(f, *primals)"))
        recorded = call.depended_on()

        def rows_of(output):
            rows = _rows(output, call.leaves, chunk_size, recorded)
            return call.by_argument([_shaped(r, output, x) for r, x in zip(rows, call.leaves, strict=True)])

        return call.outputs(_map(call.result, rows_of), call.aux)

    def rest(*parts):
        return derivative(_Called(argnums, *parts))[0]

    @_wraps(func)
    def jacobian(*args, **kwargs):
        if plain and (made := _C.jacobian_of(func, argnums, args, kwargs, rest)) is not None:
            return made
        recording = _C.is_grad_enabled()
        with adjoin.enable_grad():
            made, aux = derivative(_Called.of(func, argnums, has_aux, args, kwargs, recording, "jacrev"))
        return (made, aux) if has_aux else made

    return jacobian


def _shaped(rows, output, x):
    """Rows, one for each element of the output, as a tensor of the output's and the argument's dimensions."""
    if output.dim() == x.dim() == 1 and rows.dim() == 2:  # of one element they are as the argument
        return rows
    return rows.reshape(output.shape + x.shape)


def _rows(output, leaves, chunk_size, recorded):
    """For each leaf the derivatives of all elements of the output, one below the other."""
    count = output.numel()
    if not count or not output.requires_grad:
        return [x.new_zeros((count, *x.shape)) for x in leaves]
    if count == 1:
        return _derivatives([output], leaves, [adjoin.ones_like(output)], recorded)
    unit = adjoin.eye(count, dtype=output.dtype, device=output.device)
    if output.dim() != 1:
        unit = unit.reshape((count, *output.shape))
    if chunk_size is None or chunk_size >= count:
        return _pulled(output, leaves, unit, recorded)
    chunks = (unit[first : first + chunk_size] for first in range(0, count, chunk_size))
    parts = [_pulled(output, leaves, chunk, recorded) for chunk in chunks]
    return [adjoin.cat(column) for column in zip(*parts, strict=True)]


def _pulled(output, leaves, weights, recorded):
    """One backward pass for all weights, which lie one below the other."""
    level = enter_batch(weights.shape[0], "same")
    try:
        found = _derivatives([output], leaves, [_C.transform_batched(weights, 0, level)], recorded)
        return [_C.transform_unbatched(x, 0, level) for x in found]
    finally:
        leave_batch()


def hessian(func, argnums=0):
    """A function that returns the second derivatives of func: reverse over reverse mode, each one pass for all rows."""
    return jacrev(jacrev(func, argnums), argnums)


def linearize(func, *primals):
    """``func(*primals)`` and a function of tangents: the derivative there along them, without running func again."""
    result, back = vjp(func, *primals)
    with adjoin.enable_grad():
        weights, pulled = _transposed(result, back)

    def along(*tangents):
        recorded = _C.is_grad_enabled() and _C.tree_recorded((primals, tangents, result))
        with adjoin.enable_grad():
            moved = _moved(weights, pulled, tangents)
        return _outputs(moved, recorded)

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


def _alike(tree, other):
    """Have two trees the same form?"""
    if isinstance(tree, adjoin.Tensor):
        return isinstance(other, adjoin.Tensor)
    from .utils import _pytree as pytree

    return pytree.tree_structure(tree) == pytree.tree_structure(other)


def _form(tree):
    return str(_map(tree, lambda _: "*")).replace("'*'", "*")


def vjp(func, *primals, has_aux=False):
    """``func(*primals)`` and a function that takes gradients of the result and returns those of the primals."""
    for primal in primals:
        if isinstance(primal, (int, float, complex)):
            raise ValueError(f"vjp: a primal is the {type(primal).__name__} {primal}; a tensor is wanted")
    recording = _C.is_grad_enabled()
    recorded = recording and _C.tree_recorded(primals)
    leaves = []
    with adjoin.enable_grad():
        inputs = _C.transform_inputs(primals, leaves)
        result = func(*inputs)
        outputs, aux = _with_aux(result, "vjp(f, *primals)") if has_aux else (result, None)
    _checked(outputs, "vjp(f, *primals)")
    ends, around = _leaves(outputs), _C.transform_recorded(outputs)
    outputs, aux = _outputs((outputs, aux), recorded, recording, leaves)
    closes = recorded or _C.tree_recorded(outputs)

    def pull_back(cotangents, retain_graph=True, create_graph=None):
        recording = _C.is_grad_enabled() if create_graph is None else create_graph
        given = _leaves(cotangents)
        if len(given) != len(ends) or not _alike(outputs, cotangents):
            raise RuntimeError(
                f"vjp: Expected pytree structure of cotangents to be the same as that of the outputs: they are {_form(cotangents)}, "
                f"the outputs {_form(outputs)}"
            )
        with adjoin.enable_grad():
            kept = recording and (closes or _C.tree_recorded(cotangents))
            along = kept or around or _C.transform_recorded(cotangents)
            found = _fill(inputs, _derivatives(ends, leaves, given, along))
        return _outputs(found, kept)

    return (outputs, pull_back, aux) if has_aux else (outputs, pull_back)


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
