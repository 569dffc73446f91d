"""adjoin.jit's control flow that programs keep: cond and while_loop."""

from .. import _C
from .._C import Tensor
from . import is_tracing
from ._traced import put_together, take_apart


def _block(function, args):
    """The form of what function(*args) gives; its calls and tensors are a block of the program."""
    results = []
    _C.program_open()
    form = take_apart(function(*args), results)
    _C.program_close(results)
    return form, len(results)


def cond(pred, true_fn, false_fn, operands):
    if not is_tracing() or not isinstance(pred, Tensor):
        return (true_fn if pred else false_fn)(*operands)
    (form, n), (other, _) = _block(true_fn, operands), _block(false_fn, operands)
    if form != other:
        raise ValueError(f"cond: the branches give results of other forms: {form} and {other}")
    return put_together(form, _C.program_branch(pred, n))


def while_loop(cond_fn, body_fn, carried):
    carried = tuple(carried)
    if not is_tracing():
        while cond_fn(*carried):
            carried = body_fn(*carried)
            carried = tuple(carried) if isinstance(carried, (tuple, list)) else (carried,)
        return carried
    _C.program_open()
    inside = [_C.program_carry(t) for t in carried]
    decides = cond_fn(*inside)
    if not isinstance(decides, Tensor):
        raise TypeError(
            f"while_loop: cond_fn gives a {type(decides).__name__}; in a trace it gives a tensor of one element"
        )
    _C.program_close([decides])
    _C.program_open()
    made = body_fn(*inside)
    _C.program_close(made if isinstance(made, (tuple, list)) else [made])
    return tuple(_C.program_loop(list(carried)))
