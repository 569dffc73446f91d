"""gradients.py: cases with a backward pass, once or twice: the gradient of each input is compared."""

from ..case import Case
from ..draw import Draw
from . import indexing, pointwise, reductions, shapes

SOURCES = [pointwise.unary, pointwise.unary, pointwise.binary, pointwise.binary, pointwise.ternary, pointwise.functional, reductions.sums,
           reductions.one, reductions.pairs, reductions.scans, reductions.spread, reductions.norms, reductions.ordered, reductions.quantiles,
           reductions.soft, reductions.differences, shapes.products, shapes.joined, shapes.of_nothing, shapes.repeated, indexing.read,
           indexing.along, indexing.scattered, indexing.indexed, indexing.masks, indexing.put, indexing.pieces, indexing.moved]  # fmt: skip
FLOATING = ("float32", "float64", "complex64", "complex128")
# Weights that differ from place to place, so that a gradient at a wrong place shows.
WEIGH = "w = t.arange(1, {r}.numel() + 1).reshape({r}.shape).to({r}.dtype) * 0.25"


class Narrow(Draw):
    """Draws floating dtypes most of the time: the others have no gradients."""

    def dtype(self, among=None):
        if among is None or len(among) > 8:
            return self.pick(["float64", "float64", "float64", "float32", "complex128", "int64"])
        return self.pick(among)


def make(seed, index):
    d = Narrow("gradients", seed, index)
    case = d.pick(SOURCES)(d)
    call = case.call
    if call is None or call.name in ("resize_",):
        return make(seed, f"{index}'")
    leaves = []
    for k, line in enumerate(d.setup):
        name, made = line.split(" = ", 1)
        if any(f"dtype=t.{f})" in made for f in FLOATING) and d.chance(0.8):
            leaf = f"{name}0"
            # An in-place op needs something that is no leaf.
            d.setup[k] = f"{leaf} = {made}.clone().requires_grad_(); {name} = {leaf} * 1"
            leaves.append(leaf)
    result = call.args[0] if isinstance(call, indexing.At) and call.kind == "set" else "r"
    steps = [call]
    if leaves:
        steps.append(f"q = {result}[0] if isinstance({result}, tuple) else {result}")
        steps += [WEIGH.format(r="q"), "s = (q * w).sum()", "s = s.real if s.is_complex() else s"]
        if d.chance(0.25):
            steps.append(
                f"g = t.autograd.grad(s, [{', '.join(leaves)}], create_graph=True, allow_unused=True) if s.requires_grad else ()"
            )
            steps.append("h = sum((p * p.conj()).sum() for p in g if p is not None)")
            steps.append("h = h.real if t.is_tensor(h) and h.is_complex() else h")
            steps.append(
                f"k = t.autograd.grad(h, [{', '.join(leaves)}], allow_unused=True) if t.is_tensor(h) and h.requires_grad else ()"
            )
        else:
            steps.append(f"g = t.autograd.grad(s, [{', '.join(leaves)}], allow_unused=True) if s.requires_grad else ()")
    return Case("gradients", call.name, d.setup, steps, call)
