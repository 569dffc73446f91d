"""adjoin.quasirandom: points that fill a cube evenly: Sobol's sequence. Its direction numbers are SciPy's, which has to be installed."""

import adjoin


class SobolEngine:
    """``draw(n)`` gives the next n points of [0, 1)^dimension; with ``scramble`` they are shuffled by Owen's way, by a seed."""

    MAXBIT, MAXDIM = 30, 21201

    def __init__(self, dimension, scramble=False, seed=None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"SobolEngine: dimension is {dimension}; supported are 1 to {self.MAXDIM}")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self._begin()

    def _begin(self):
        try:
            from scipy.stats import qmc
        except ImportError:
            raise ImportError("SobolEngine: SciPy has the direction numbers of Sobol's sequence; install it") from None
        seed = self.seed
        if self.scramble and seed is None:
            seed = int(adjoin.randint(2**62, ()).item())
        self._points = qmc.Sobol(self.dimension, scramble=self.scramble, bits=self.MAXBIT, rng=seed)
        self.num_generated = 0

    def draw(self, n=1, out=None, dtype=None):
        """The next n points, a row each."""
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that n is no power of two
            points = self._points.random(n)
        self.num_generated += n
        made = adjoin.from_numpy(points).to(dtype or adjoin.get_default_dtype())
        return made if out is None else out.resize_(made.shape).copy_(made)

    def draw_base2(self, m, out=None, dtype=None):
        """The next 2**m points; so many have to be a power of two in all."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"draw_base2: {self.num_generated} points were drawn, and with {n} more they are {total}, which is no power of two; draw() "
                "takes any number"
            )
        return self.draw(n, out, dtype)

    def fast_forward(self, n):
        """Leaves out n points."""
        self._points.fast_forward(n)
        self.num_generated += n
        return self

    def reset(self):
        """Begins again."""
        self._begin()
        return self

    def __repr__(self):
        seed = f", seed={self.seed}" if self.seed is not None else ""
        return f"SobolEngine(dimension={self.dimension}{', scramble=True' if self.scramble else ''}{seed})"
