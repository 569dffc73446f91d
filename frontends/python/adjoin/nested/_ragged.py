"""adjoin.nested._ragged: where the sequences of a batch stand in their values, and the size that has no one number."""

import itertools

from .. import _C
from .._symbolic import SymInt

_op = _C.find_op
_numbers = itertools.count(1)


class RaggedSize(int, SymInt):
    """A size that is another one for each sequence of a batch; it prints as j1, or 3*j1.

    Two are equal where the sequences are as long. As a number it is -1, the size that says so to those who read shapes.
    """

    def __new__(cls, ragged, factor=1):
        made = int.__new__(cls, -1)
        made.ragged, made.factor = ragged, factor
        return made

    def __repr__(self):
        name = f"j{self.ragged.number}"
        return name if self.factor == 1 else f"{self.factor}*{name}"

    __str__ = __repr__

    def __eq__(self, other):
        return isinstance(other, RaggedSize) and self.factor == other.factor and self.ragged.same(other.ragged)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(("ragged", self.factor))

    def __mul__(self, other):
        if not isinstance(other, int) or isinstance(other, RaggedSize):
            self._refuse()
        return RaggedSize(self.ragged, self.factor * other)

    __rmul__ = __mul__

    def __format__(self, spec):
        return format(repr(self), spec)

    def __reduce__(self):
        return RaggedSize, (self.ragged, self.factor)

    def _refuse(self, *_):
        raise TypeError(
            f"{self!r} is the size of a ragged dimension: each sequence has another one; nt.offsets().diff() has them"
        )


# Every operator of numbers but those above.
for _name in dir(int):
    if _name.startswith("__") and _name not in RaggedSize.__dict__ and _name not in object.__dict__:
        setattr(RaggedSize, _name, RaggedSize._refuse)
for _name in ("__lt__", "__le__", "__gt__", "__ge__"):
    setattr(RaggedSize, _name, RaggedSize._refuse)


class Ragged:
    """offsets: where each sequence begins, and where the last one ends; lengths: how long each is, if values lie between them.

    Tensors that were computed from one another share it. Numbers on the host are read once.
    """

    def __init__(self, offsets, lengths=None):
        self.offsets, self.lengths = offsets, lengths
        self.number = next(_numbers)
        self._host = None
        self._ids = self._twin = None

    def __len__(self):
        return self.offsets.shape[0] - 1

    @property
    def begins(self):
        """Where each sequence begins, as a list."""
        return self._on_host()[0]

    @property
    def sizes(self):
        """How long each sequence is, as a list."""
        return self._on_host()[1]

    def _on_host(self):
        if self._host is None:
            offsets = self.offsets.tolist()
            sizes = [b - a for a, b in itertools.pairwise(offsets)] if self.lengths is None else self.lengths.tolist()
            self._host = offsets[:-1], sizes
        return self._host

    @property
    def longest(self):
        return max(self.sizes, default=0)

    @property
    def total(self):
        return sum(self.sizes)

    def same(self, other):
        """Whether the sequences are as long as another's, so that numbers of both stand side by side."""
        if self is other or self._twin is other or other._twin is self:
            return True
        if self.sizes != other.sizes or (self.lengths is None) != (other.lengths is None):
            return False
        if self.lengths is not None and self.begins != other.begins:
            return False
        self._twin = other
        return True

    def check(self, values, at):
        """Refuses offsets and lengths that do not fit values."""
        for name, t in (("offsets", self.offsets), ("lengths", self.lengths)):
            if t is None:
                continue
            if t.dim() != 1 or t.dtype not in (_C.int32, _C.int64):
                raise ValueError(
                    f"nested tensor: {name} must be one dimension of int64 or int32, they are {t.dim()} of {t.dtype}"
                )
        if len(self) < 1:
            raise ValueError(
                "nested tensor: offsets need two numbers or more: where each sequence begins, and the end of the last"
            )
        if self.lengths is not None and self.lengths.shape[0] != len(self):
            raise ValueError(
                f"nested tensor: {len(self)} sequences by offsets, {self.lengths.shape[0]} by lengths; give one length each"
            )
        room = values.shape[at - 1]
        ends = self.offsets.tolist()[1:]
        for i, (begin, size, end) in enumerate(zip(self.begins, self.sizes, ends, strict=True)):
            if begin < 0 or size < 0 or begin > end or begin + size > room:
                raise ValueError(
                    f"nested tensor: sequence {i} begins at {begin} and has {size} elements, the values have {room}: "
                    "offsets must ascend and end in the values"
                )
        return self

    def ids(self):
        """The sequence of each element, for values without room between them."""
        if self._ids is None:
            counts = self.offsets.diff() if self.lengths is None else self.lengths
            self._ids = _op("repeat_interleave")(counts.long())
        return self._ids

    def rows(self):
        """Where the elements of the sequences stand in values that have room between them."""
        first = self.offsets[:-1].long()
        tight = self.lengths.long().cumsum(0) - self.lengths.long()
        return _op("arange")(self.total, device=self.offsets.device) + (first - tight)[self.ids()]

    def tight(self):
        """The same sequences without room between them."""
        if self.lengths is None:
            return self
        return from_lengths(self.lengths)

    def to(self, device):
        """The same on another device."""
        if self.offsets.device == device:
            return self
        lengths = None if self.lengths is None else self.lengths.to(device)
        made = Ragged(self.offsets.to(device), lengths)
        made._host = self._host
        return made

    def __reduce__(self):
        return Ragged, (self.offsets, self.lengths)


def from_lengths(lengths):
    """Sequences one after the other."""
    zero = _op("zeros")((1,), dtype=_C.int64, device=lengths.device)
    return Ragged(_op("cat")([zero, lengths.long().cumsum(0)]))
