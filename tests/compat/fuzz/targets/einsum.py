"""einsum.py: products by random equations: labels that stand twice or are summed, sizes of 1, ellipses, lists in place of letters."""

from ..case import Call
from ..draw import Draw

KINDS = ["float32", "float32", "float64", "float64", "int64", "complex64", "complex128", "bool", "float16", "uint8"]
LETTERS = "abcdeIJz"


def make(seed, index):
    d = Draw("einsum", seed, index)
    kind, labels = d.pick(KINDS), d.rng.sample(LETTERS, d.int(1, 5))
    sizes = {c: d.pick([0, 1, 2, 2, 3, 3, 4, 5]) if d.chance(0.1) else d.int(1, 4) for c in labels}
    dots = [d.int(1, 3) for _ in range(d.int(0, 2))] if d.chance(0.3) else None
    terms, operands = [], []
    for _ in range(d.pick([1, 1, 2, 2, 2, 2, 3, 3, 4])):
        term = [d.pick(labels) for _ in range(d.int(0, 3))]
        if d.chance(0.75):
            term = list(dict.fromkeys(term))
        shape = [sizes[c] for c in term]
        if term and d.chance(0.1):  # broadcast along a label
            shape[d.int(0, len(term) - 1)] = 1
        if dots is not None and d.chance(0.8):
            at, kept = d.int(0, len(term)), dots[d.int(0, len(dots)) :]
            term.insert(at, "...")
            shape[at:at] = [s if d.chance(0.8) else 1 for s in kept]
        if shape and d.chance(0.02):
            shape[d.int(0, len(shape) - 1)] += 1
        terms.append(term)
        other = kind if d.chance(0.97) else d.dtype()
        operands.append(d.tensor(other, shape, layout=0.3))
    used = sorted({c for term in terms for c in term if c != "..."})
    result = None
    if d.chance(0.7):
        result = d.rng.sample(used, d.int(0, len(used)))
        if any("..." in term for term in terms) and d.chance(0.95):
            result.insert(d.int(0, len(result)), "...")
        if d.chance(0.02):
            result.append(d.pick(LETTERS))
    if d.chance(0.15):
        return d.case(Call("einsum", by_numbers(operands, terms, result)))
    space = d.pick(["", "", " "])
    equation = f"{space},{space}".join("".join(t) for t in terms)
    equation += "" if result is None else f"{space}->{space}" + "".join(result)
    return d.case(Call("einsum", [repr(equation), *operands]))


def by_numbers(operands, terms, result):
    def numbers(term):
        return "[" + ", ".join("..." if c == "..." else str(LETTERS.find(c) if c in LETTERS else 9) for c in term) + "]"

    made = [part for x, term in zip(operands, terms, strict=True) for part in (x, numbers(term))]
    return made if result is None else [*made, numbers(result)]
