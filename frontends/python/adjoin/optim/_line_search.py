"""adjoin.optim._line_search: a step length that meets Wolfe's strong conditions (Nocedal and Wright,
Numerical Optimization, 2006, algorithms 3.5 and 3.6)."""

import math
from collections import namedtuple

# length: how far along the direction; slope: the gradient's part along it there.
Point = namedtuple("Point", "length loss grad slope")

_DECREASE, _CURVATURE, _LEAST, _TRIES = 1e-4, 0.9, 1e-9, 25


def strong_wolfe(at, length, size, start):
    """The Point to go to and how many were tried; ``at(length)`` tries one, ``size`` is the largest
    element of the direction, ``start`` the Point where it begins."""
    bracket, tries, done = _bracket(at, length, start)
    if not done:
        bracket, tries = _zoom(at, size, start, bracket, tries)
    return min(bracket, key=lambda p: p.loss), tries


def _too_high(point, start):
    return point.loss > start.loss + _DECREASE * point.length * start.slope


def _flat_enough(point, start):
    return abs(point.slope) <= -_CURVATURE * start.slope


def _bracket(at, length, start):
    """One Point that is good, or two with a good one between them."""
    before, point = start, at(length)
    for tries in range(1, _TRIES + 1):
        if _too_high(point, start) or (tries > 2 and point.loss >= before.loss):
            return [before, point], tries, False
        if _flat_enough(point, start):
            return [point], tries, True
        if point.slope >= 0:
            return [before, point], tries, False
        reach = point.length + 0.01 * (point.length - before.length), point.length * 10
        before, point = point, at(_cubic(before, point, reach))
    return [start, point], _TRIES + 1, False


def _zoom(at, size, start, bracket, tries):
    """Narrows a bracket until one of its ends is good."""
    crowded = False  # the last point lay close to an end
    while tries <= _TRIES:
        left, right = sorted(p.length for p in bracket)
        if (right - left) * size < _LEAST:
            break
        length, margin = _cubic(*bracket), 0.1 * (right - left)
        if min(right - length, length - left) >= margin:
            crowded = False
        elif crowded or not left < length < right:
            length = right - margin if abs(length - right) < abs(length - left) else left + margin
            crowded = False
        else:
            crowded = True
        point = at(length)
        tries += 1
        low = 0 if bracket[0].loss <= bracket[1].loss else 1
        high = 1 - low
        if _too_high(point, start) or point.loss >= bracket[low].loss:
            bracket[high] = point
            continue
        if _flat_enough(point, start):
            return [point], tries
        if point.slope * (bracket[high].length - bracket[low].length) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = point
    return bracket, tries


def _cubic(a, b, bounds=None):
    """Where the cubic through two points with their slopes is least, within the bounds."""
    left, right = bounds or sorted((a.length, b.length))
    bend = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.length - b.length)
    root = bend * bend - a.slope * b.slope
    if root < 0:
        return (left + right) / 2
    root = math.sqrt(root)
    a, b = sorted((a, b), key=lambda p: p.length)
    width, below = b.length - a.length, b.slope - a.slope + 2 * root
    if below == 0:
        return (left + right) / 2
    return min(max(b.length - width * (b.slope + root - bend) / below, left), right)
