"""adjoin.distributed.tensor._cut: how an op is computed in parts: letters for dimensions, and what is chosen of them.

A rule gives each dimension of each tensor a letter. Dimensions of one letter can be cut together, and then each process computes its
part alone. A letter that no result has is summed over: a process has a summand then. None stands for what must be whole.
"""

import dataclasses

import adjoin

from ... import _aten, _C
from ._utils import part
from .placement_types import Partial, Replicate, Shard


class Call:
    """A call of an op: its row, its arguments by name, and its tensors in their order."""

    def __init__(self, name, args):
        self.name, self.args = name, args
        self.row = row(name)
        self.tensors = [a for value in args for a in (value if isinstance(value, (list, tuple)) else (value,)) if isinstance(a, adjoin.Tensor)]  # fmt: skip

    def __getitem__(self, word):
        at = self.row.words.index(word)
        return self.args[at] if at < len(self.args) else None

    def get(self, word, otherwise=None):
        """An argument, or the other value where the op has none of that name."""
        return self[word] if word in self.row.words else otherwise

    def first(self):
        """The first tensor."""
        return self.tensors[0]


class Row:
    """What the registry says of an op."""

    def __init__(self, name):
        info = _C.op_info(name)[0]
        self.name, self.kind, self.tags, self.composite = name, info["kind"], info["tags"].split(), info["composite"]
        signature = _aten._signature(name)
        self.words = [word for word, *_ in signature]
        self.keywords = [keyword for _, _, keyword, _, _ in signature]
        self.dims = [word for word, _, _, base, _ in signature if base == "dim"]
        op = _C.find_op(name)
        self.random = "Generator" in info["schema"] or any(
            word in name for word in ("dropout", "bernoulli", "normal", "rrelu")
        )
        self.gives_tensors = "Tensor" in info["schema"].rpartition("->")[2]
        self.writes = [at for at, p in enumerate(_aten._parameters(name)[0]) if p.written]
        self.hides = _aten._hides(op)
        self.op = op
        self.written = op if name.partition(".")[0].endswith("_") else _C.find_op(f"{name}_")

    def __call__(self, args, in_place=False):
        """Calls the op with arguments in the row's order; all results, those for formulas among them."""
        places = [a for a, k in zip(args, self.keywords, strict=False) if not k]
        words = {w: a for w, a, k in zip(self.words, args, self.keywords, strict=False) if k and a is not None}
        if in_place:
            return self.written(*places, **words)
        return _C.call_all(self.op, *places, **words) if self.hides else self.op(*places, **words)


_rows = {}


def row(name):
    """The row of that name."""
    found = _rows.get(name)
    if found is None:
        found = _rows[name] = Row(name)
    return found


@dataclasses.dataclass
class Cut:
    """``ins``: letters of each tensor, in the order of the call. ``outs``: letters of each result; a result that is a list has them
    for each of its tensors. ``sums``: letters that results lack, and how what is computed of parts is joined ("same": it is the same). ``linear``: "all" if
    summands of all tensors give summands, "one" if those of any one do, "first" if those of the first. ``call(call, local)``: (name,
    arguments) instead, where sizes are arguments; local(shape, letters) gives those of a part. ``shapes``: of results whose sizes no
    letter says. ``even``: letters of dimensions that must be cut into equal parts, and the size that is to be divided. ``loose``: parts
    may be empty. ``adds``: places of tensors that are added to a sum: one process alone adds them. ``compute(call, choice, mesh,
    arguments)``: the results of a part, where the op alone does not give them.
    """

    ins: list
    outs: list
    sums: dict = dataclasses.field(default_factory=dict)
    linear: str | None = None
    call: object = None
    shapes: list | None = None
    even: dict = dataclasses.field(default_factory=dict)
    loose: bool = False
    adds: tuple = ()
    compute: object = None


def _without(joined):
    return Replicate() if joined == "same" else Partial(joined)


class Choice:
    """What is computed where: placements that the tensors must have, and those that results have."""

    def __init__(self, cut, tensors, placements, sizes, forced=None):
        self.cut, self.sizes = cut, sizes
        self.shapes = [tuple(t.shape) for t in tensors]
        self.length = {}
        for letters, t in zip(cut.ins, tensors, strict=True):
            for letter, n in zip(letters, t.shape, strict=True):
                if letter is not None:
                    self.length.setdefault(letter, n)
        self.wanted = [[] for _ in tensors]
        self.given = [[] for _ in cut.outs]
        self.cuts = []  # the letter of each dimension of the mesh
        for m in range(len(sizes)):
            self._choose(m, [p[m] for p in placements], None if forced is None else forced[m])

    def _may(self, letter, m):
        """Whether the dimensions of a letter can be cut by the mesh's dimension m."""
        lacks = any(letter not in out for out in self.cut.outs)
        if lacks and (letter not in self.cut.sums or letter in self.cuts):
            return False
        n = self.length[letter]
        for k, taken in enumerate(self.cuts):
            if taken == letter:
                n = part(n, self.sizes[k], self.sizes[k] - 1)[1]
        parts = self.sizes[m]
        counted = self.cut.even.get(letter, n) if letter not in self.cuts else n
        if letter in self.cut.even or self.cut.sums.get(letter) == "avg":
            return letter not in self.cuts and counted % parts == 0
        return self.cut.loose or part(n, parts, parts - 1)[1] > 0

    def _letter(self, m, now):
        weights = {}
        for letters, p, shape in zip(self.cut.ins, now, self.shapes, strict=True):
            if isinstance(p, Shard) and letters[p.dim] is not None and self._may(letters[p.dim], m):
                count = 1
                for n in shape:
                    count *= n
                weights[letters[p.dim]] = weights.get(letters[p.dim], 0) + count
        return max(weights, key=weights.get, default=None)

    def _passes(self, now):
        """The placement of results, if summands pass through the op."""
        held = [p for p in now if isinstance(p, Partial)]
        if not held or self.cut.linear is None or held[0].reduce_op not in ("sum", "avg"):
            return None
        if self.cut.linear == "all":
            return held[0] if all(p == held[0] for p in now) else None
        if any(isinstance(p, Shard) for p in now) or len(held) != 1:
            return None
        return held[0] if self.cut.linear == "one" or isinstance(now[0], Partial) else None

    def _choose(self, m, now, forced):
        letter = through = None
        if isinstance(forced, Shard):
            letters = self.cut.outs[0]
            letter = letters[forced.dim] if forced.dim < len(letters) else None
            letter = letter if letter is not None and self._may(letter, m) else None
        elif forced is None or isinstance(forced, Partial):
            through = self._passes(now)
            letter = None if through else self._letter(m, now)
        self.cuts.append(letter)
        lacks = letter is not None and all(letter not in out for out in self.cut.outs[:1])
        for k, (want, letters, p) in enumerate(zip(self.wanted, self.cut.ins, now, strict=True)):
            if through is not None:
                want.append(p)
            elif lacks and k in self.cut.adds:
                want.append(Partial(self.cut.sums[letter]))
            else:
                want.append(Shard(letters.index(letter)) if letter is not None and letter in letters else Replicate())
        for given, letters in zip(self.given, self.cut.outs, strict=True):
            if through is not None:
                given.append(through)
            elif letter is None:
                given.append(Replicate())
            else:
                given.append(Shard(letters.index(letter)) if letter in letters else _without(self.cut.sums[letter]))

    def shape(self, k, local):
        """The sizes of result k, of which a process has ``local``."""
        if self.cut.shapes is not None:
            return tuple(self.cut.shapes[k])
        letters = self.cut.outs[k]
        if not letters or len(letters) != 1 and tuple(local) == (0,):  # in place of a gradient that nobody needs
            return tuple(local)
        return tuple(self.length.get(letter, n) if letter in self.cuts and letter is not None else n for letter, n in zip(letters, local, strict=True))  # fmt: skip


def whole(c):
    """Every tensor whole."""
    return Cut([[None] * t.dim() for t in c.tensors], [[]] * 4)


def own(mesh, choice, letter, size):
    """(begin, size) of this process's part of the dimension of a letter."""
    begin = 0
    for m, taken in enumerate(choice.cuts):
        if taken == letter:
            more, size = part(size, mesh.size(m), mesh.get_local_rank(m))
            begin += more
    return begin, size
