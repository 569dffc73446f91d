"""adjoin.quasirandom: Sobol's sequence, points that fill a cube more evenly than random ones."""

import pathlib

import adjoin

from . import _C

_MAXBIT = 30


def _lines():
    text = pathlib.Path(__file__).with_name("_sobol_directions.txt").read_text()
    return [[int(n) for n in line.split()] for line in text.splitlines() if not line.startswith("#")]


def _directions(dimension):
    """The direction numbers, (dimension, bits): what a bit of a point's number does to each coordinate."""
    rows = []
    for polynomial, *first in _lines()[:dimension]:
        degree = polynomial.bit_length() - 1
        numbers = list(first) if degree else [1] * _MAXBIT  # the first coordinate: bits in reverse order
        for j in range(len(numbers), _MAXBIT):
            new = numbers[j - degree] ^ (numbers[j - degree] << degree)
            for k in range(1, degree):
                if polynomial >> (degree - k) & 1:
                    new ^= numbers[j - k] << k
            numbers.append(new)
        rows.append([n << (_MAXBIT - 1 - j) for j, n in enumerate(numbers)])
    return adjoin.tensor(rows, dtype=adjoin.int64)


class SobolEngine:
    """Draws points of Sobol's sequence in [0, 1)**dimension, in the order of Gray's code; the first one is the origin.

    ``scramble``: bits are mixed by random triangular matrices and shifted, ``seed`` says by which; the points stay as even.
    """

    MAXBIT = _MAXBIT
    MAXDIM = 1111

    def __init__(self, dimension, scramble=False, seed=None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}], dimension is {dimension}"
            )
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        self.num_generated = 0
        self.sobolstate = _directions(dimension)
        self.shift = adjoin.zeros(dimension, dtype=adjoin.int64)
        if scramble:
            self._scramble()

    def _scramble(self):
        generator = None
        if self.seed is not None:
            generator = adjoin.Generator()
            generator.manual_seed(self.seed)

        def bits(*shape):
            return adjoin.randint(2, shape, generator=generator)

        places = 1 << adjoin.arange(_MAXBIT)
        self.shift = (bits(self.dimension, _MAXBIT) * places).sum(-1)
        # Row i of a matrix says which higher bits of a number are added to its bit i, the highest first.
        rows = bits(self.dimension, _MAXBIT, _MAXBIT).tril(-1) + adjoin.eye(_MAXBIT, dtype=adjoin.int64)
        high = places.flip(0)
        digits = (self.sobolstate.unsqueeze(-1) & high).ne(0).long()
        mixed = (digits @ rows.transpose(1, 2)) % 2
        self.sobolstate = (mixed * high).sum(-1)

    def draw(self, n=1, out=None, dtype=None):
        """The next n points, (n, dimension)."""
        if n < 0:
            raise ValueError(f"SobolEngine.draw: n must not be negative, it is {n}")
        dtype = dtype or _C.get_default_dtype()
        numbers = adjoin.arange(self.num_generated, self.num_generated + n)
        if self.num_generated + n > 1 << _MAXBIT:
            raise ValueError(f"SobolEngine.draw: the sequence has 2**{_MAXBIT} points")
        gray = numbers ^ (numbers >> 1)
        points = self.shift.repeat(n, 1)
        for bit in range((self.num_generated + n).bit_length()):
            points ^= (gray >> bit & 1).unsqueeze(-1) * self.sobolstate[:, bit]
        self.num_generated += n
        made = points.to(dtype) / 2.0**_MAXBIT
        return made if out is None else out.resize_(made.shape).copy_(made)

    def draw_base2(self, m, out=None, dtype=None):
        """The next 2**m points; together with those before they must be a power of two."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}={total}: "
                "use draw(n) or reset()"
            )
        return self.draw(2**m, out=out, dtype=dtype)

    def reset(self):
        """Begins anew, with the same scrambling."""
        self.num_generated = 0
        return self

    def fast_forward(self, n):
        """Leaves n points out."""
        self.num_generated += n
        return self

    def __repr__(self):
        words = [f"dimension={self.dimension}"]
        if self.scramble:
            words.append("scramble=True")
        if self.seed is not None:
            words.append(f"seed={self.seed}")
        return f"SobolEngine({', '.join(words)})"
