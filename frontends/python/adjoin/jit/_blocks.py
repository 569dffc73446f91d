"""adjoin.jit's control flow that programs keep: cond, while_loop and scan."""

from .. import _C, int64, stack, tensor, zeros
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


def scan(combine_fn, init, xs, dim, reverse):
    leaves, carried = [], []
    form, carry_form = take_apart(xs, leaves), take_apart(init, carried)
    if not leaves:
        raise ValueError("scan: xs has no tensor to walk over")
    sizes = {t.shape[dim] for t in leaves}
    if len(sizes) > 1:
        raise ValueError(f"scan: the tensors of xs have sizes {sorted(sizes)} in dimension {dim}; they must be alike")
    n = leaves[0].shape[dim]
    if n == 0:
        raise ValueError(f"scan: dimension {dim} of xs is empty, so the form of the results is not known")
    form_y = None

    def turn(carried, rows):
        nonlocal form_y
        made = combine_fn(put_together(carry_form, carried), put_together(form, rows))
        if not isinstance(made, (tuple, list)) or len(made) != 2:
            raise TypeError(f"scan: combine_fn gives (carry, y), not {type(made).__name__}")
        carry, ys = [], []
        got, form_y = take_apart(made[0], carry), take_apart(made[1], ys)
        if got != carry_form:
            raise ValueError(f"scan: the carry is {carry_form} at first and {got} after a turn")
        return carry, ys

    if is_tracing():
        carried, rows = _scan_kept(turn, carried, leaves, n, dim, reverse)
    else:
        rows = []
        for i in reversed(range(n)) if reverse else range(n):
            carried, ys = turn(carried, [t.select(dim, i) for t in leaves])
            rows.append(ys)
        if reverse:
            rows.reverse()
        rows = [stack(row) for row in zip(*rows, strict=True)]
    rows = [r.movedim(0, dim) if 0 != dim < r.dim() else r for r in rows]
    return put_together(carry_form, carried), put_together(form_y, rows)


def _scan_kept(turn, carried, leaves, n, dim, reverse):
    """The first turn says what the results look like; a loop that a program keeps makes the others, each into its row."""
    last = n - 1
    carried, first = turn(carried, [t.select(dim, last if reverse else 0) for t in leaves])
    at = tensor([last if reverse else 0]) + zeros(1, dtype=int64)
    rows = [zeros((n, *y.shape), dtype=y.dtype, device=y.device).index_copy(0, at, y.unsqueeze(0)) for y in first]
    k, m = len(carried), len(rows)

    def more(i, *state):
        return (i > 0).squeeze(0) if reverse else (i < last).squeeze(0)

    def body(i, *state):
        i = i - 1 if reverse else i + 1
        carry, ys = turn(list(state[:k]), [t.index_select(dim, i).squeeze(dim) for t in leaves])
        kept = [r.index_copy(0, i, y.unsqueeze(0)) for r, y in zip(state[k : k + m], ys, strict=True)]
        return (i, *carry, *kept)

    done = while_loop(more, body, (at, *carried, *rows))
    return list(done[1 : 1 + k]), list(done[1 + k :])
