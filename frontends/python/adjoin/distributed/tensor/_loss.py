"""adjoin.distributed.tensor._loss: the loss of classes in parts: of samples, and of classes inside of loss_parallel()."""

import threading

import adjoin

from ._cut import Cut, own, row, whole
from ._move import _reduced

_around = threading.local()  # a thread may be a process


def of_parts():
    """Whether this thread is inside of loss_parallel()."""
    return getattr(_around, "of_parts", False)


NAMES = ("_::softmax_nll", "_::softmax_nll_backward")  # whose targets every process has: they may be plain tensors


def _over(letter, choice, mesh, t, op="sum"):
    """Joined over the processes that a letter's dimension is cut for."""
    for m, taken in enumerate(choice.cuts):
        if taken == letter:
            t = _reduced(t, op, mesh, m)
    return t


def softmax_nll(c):
    """Each sample alone; of a mean each process gives its part, by the count of all."""
    t, target = c["input"], c["target"]
    if t.dim() != 2 or target.dim() != 1:
        return whole(c)
    backward, one = c.name.endswith("backward"), c["reduction"] == "none"
    n, v = ["n"], "v" if of_parts() else None
    ins = []
    for x in c.tensors:
        is_number = backward and not one and x is c["grad"]
        ins.append(["n", v] if x is t else [None] * x.dim() if is_number else n)
    if backward:
        return Cut(ins, [["n", v]], compute=_backward)
    return Cut(ins, [n if one else [], n], {"v": "same"} if one else {"n": "sum", "v": "same"}, compute=_forward)


def _parts(c, choice, mesh, args):
    """Arguments by name, the count of what counts, and where this process's classes begin."""
    at = dict(zip(c.row.words, args, strict=False))
    counts = at["target"] != at["ignore_index"]
    count = _over("n", choice, mesh, counts.sum()) if at["reduction"] == "mean" else None
    begin, size = own(mesh, choice, "v", c["input"].shape[1])
    return at, counts, count, begin, size


def _forward(c, choice, mesh, args):
    at, counts, count, begin, size = _parts(c, choice, mesh, args)
    if "v" not in choice.cuts:
        if count is None:
            return row(c.name)(args)
        at["reduction"] = "sum"
        out, logs = row(c.name)([at[w] for w in c.row.words])
        return out / count, logs
    x, target = at["input"], at["target"]
    most = _over("v", choice, mesh, x.amax(1), "max")
    logs = most + _over("v", choice, mesh, (x - most.unsqueeze(1)).exp().sum(1)).log()
    inside = (target >= begin) & (target < begin + size)
    found = x.gather(1, adjoin.where(inside, target - begin, 0).unsqueeze(1)).squeeze(1)
    found = _over("v", choice, mesh, adjoin.where(inside, found, 0))
    each = adjoin.where(counts, logs - found, 0)
    if at["reduction"] == "none":
        return each, logs
    return (each.sum() if count is None else each.sum() / count), logs


def _backward(c, choice, mesh, args):
    at, counts, count, begin, size = _parts(c, choice, mesh, args)
    if count is not None:
        at["grad"], at["reduction"] = at["grad"] / count, "sum"
    if "v" not in choice.cuts:
        return row(c.name)([at[w] for w in c.row.words])
    x, target = at["input"], at["target"]
    made = (x - at["logsumexp"].unsqueeze(1)).exp()
    inside = (target >= begin) & (target < begin + size)
    place = adjoin.where(inside, target - begin, 0).unsqueeze(1)
    made = made.scatter_add(1, place, -inside.to(x.dtype).unsqueeze(1))
    grad = at["grad"].unsqueeze(1) if at["grad"].dim() else at["grad"]
    return adjoin.where(counts.unsqueeze(1), made * grad, 0)
