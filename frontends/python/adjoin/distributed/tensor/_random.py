"""adjoin.distributed.tensor._random: the random numbers of a part: those that the whole tensor has there, whoever makes them."""

import functools
import math

import adjoin

from ._cut import row
from ._utils import compute_local_shape_and_global_offset

_MOST = 1 << 20  # elements that are made at a time, where a part lies in pieces all over the whole
_PROBE = 256
_SURE = {"dropout_philox": (0.5,), "uniform_philox_": (0.0, 1.0), "normal_philox_": (0.0, 1.0)}


def serves(name):
    """Whether an op's numbers follow from a counter, so that a part can be made alone."""
    return name in _SURE or name == "randint_philox_"


@functools.cache
def _at_once(name, dtype, words):
    """How many elements a step of the counter makes."""

    def numbers(count, offset):
        return _called(name, adjoin.ones(count, dtype=dtype), words, 1, offset)

    first, later = numbers(2 * _PROBE, 0), numbers(_PROBE, 1)
    return next(n for n in (1, 2, 4, 8, 16) if first[n : n + _PROBE].equal(later))


def _called(name, t, words, seed, offset):
    return row(name)([t, *words, seed, offset], name.endswith("_"))


def part(name, words, seed, offset, shape, own, mesh, placements):
    """This process's part of what the op makes of a tensor of a shape, its counter at ``offset``; ``own`` is the part before."""
    sizes, begins = compute_local_shape_and_global_offset(shape, mesh, placements)
    if own.numel() == 0:
        return own.clone()
    step = _at_once(name, own.dtype, _SURE.get(name, words))
    # Dimensions before the first one that is cut are one of rows; without rows the part lies in one piece.
    first = next((d for d, (n, s) in enumerate(zip(shape, sizes, strict=True)) if n != s), 0)
    rows = math.prod(shape[:first])
    whole, box = [(rows, *shape[first:]), [(0, rows), *zip(begins[first:], sizes[first:], strict=True)]]
    if rows == 1 and first < len(shape):
        whole, box = whole[1:], box[1:]
    (begin, count), inner = box[0], math.prod(whole[1:])
    each = count if tuple(whole[1:]) == tuple(n for _, n in box[1:]) else max(1, _MOST // inner)
    own, made = own.reshape([n for _, n in box]), own.new_empty([n for _, n in box])
    for at in range(0, count, each):
        until = min(at + each, count)
        start = (begin + at) * inner // step * step  # the counter stands between steps alone
        ahead = (begin + at) * inner - start
        line = own.new_zeros(ahead + (until - at) * inner)
        _boxed(line, ahead, whole, box).copy_(own[at:until])
        made[at:until] = _boxed(_called(name, line, words, seed, offset + start // step), ahead, whole, box)
    return made.reshape(sizes)


def _boxed(line, ahead, whole, box):
    rows = line[ahead:].view(-1, *whole[1:])
    for dim, (begin, n) in enumerate(box[1:], 1):
        rows = rows.narrow(dim, begin, n)
    return rows
