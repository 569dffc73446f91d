"""tests/compat/beside_rows_test.py: rows of sets, order, special functions, pieces and distances beside PyTorch's: values,
dtypes, shapes and gradients for the defaults, the keywords and odd shapes."""

import warnings

import pytest

torch = pytest.importorskip("torch")

import adjoin
import numpy as np
from beside import dtype_name, ours

X, Y, V, W = "r(3, 4)", "r(3, 4)", "r(4)", "r(5)"
AT = "i([[0, 1, 2, 0], [1, 1, 0, 2]])"
CALLS = [
    *(f"t.{name}({X})" for name in ("sinc", "i0", "frexp", "isreal", "diff", "cov", "corrcoef", "diagflat", "nanmedian", "mode",
                                   "unique", "unique_consecutive", "rot90", "atleast_3d")),  # fmt: skip
    *(f"t.special.{name}({X})" for name in ("i0e", "i1", "i1e", "erfcx", "ndtr", "log_ndtr", "entr", "expit", "psi", "gammaln",
                                            "modified_bessel_i1", "spherical_bessel_j0", "logit")),  # fmt: skip
    *(f"t.special.{name}({X}, 5)" for name in ("chebyshev_polynomial_t", "chebyshev_polynomial_v", "hermite_polynomial_h",
                                               "laguerre_polynomial_l", "legendre_polynomial_p",
                                               "shifted_chebyshev_polynomial_w")),  # fmt: skip
    *(f"t.{name}({X}, {V})" for name in ("logaddexp2", "copysign", "nextafter", "ldexp", "kron", "isin", "heaviside")),
    "t.gcd(k(3, 4), k(4))", "t.lcm(k(3, 4), k(4))", "t.copysign(k(3, 4), -1)", "t.special.zeta(p(4) + 1, p(4))",
    "t.special.zeta(2.5, p(4))", "t.special.xlog1py(p(4), 2.0)", "t.igamma(p(4), p(4))", "t.igammac(p(4), p(4))",
    "t.polygamma(2, p(4))", "p(4).polygamma(0)", "t.mvlgamma(p(4) + 2, 3)", "t.special.ndtri(p(4) / 6)",
    *(f"t.{name}({X}, {dim})" for name in ("cummax", "cummin", "logcumsumexp", "mode", "nanmedian") for dim in (0, -1)),
    *(f"t.quantile({X}, 0.3, 1, True, interpolation='{how}')" for how in ("linear", "lower", "higher", "midpoint", "nearest")),
    f"t.quantile({X}, t.tensor([0.1, 1.0]))", f"t.nanquantile({X}, t.tensor([0.1, 1.0]), dim=0, keepdim=True)",
    "t.searchsorted(r(5).sort()[0], r(2, 3), right=True, out_int32=True)", "t.bucketize(r(2, 3), r(5).sort()[0])",
    f"t.histc({X}, 5, -1, 2)", f"t.histogram({X}, 4, range=(-1.0, 2.0), density=True)", f"t.histogram({X}, r(5).sort()[0])",
    "t.unique(k(5, 2), return_inverse=True, return_counts=True, dim=0)", "k(9).unique(return_counts=True)",
    "t.unique_consecutive(k(9), return_inverse=True)", f"t.trapezoid({X}, {V})", f"t.cumulative_trapezoid({X}, dx=0.5, dim=0)",
    f"t.vander({V}, N=3, increasing=True)", f"t.linalg.vander({X})", "t.cross(r(4, 3), r(4, 3), dim=1)",
    "t.linalg.cross(r(4, 3), r(4, 3))", f"t.linalg.norm({X}, 1)", f"t.linalg.norm({X}, 'fro', keepdim=True)",
    f"t.linalg.norm({X}, float('inf'), dim=1)", f"t.linalg.matrix_norm({X}, -1)", f"t.linalg.vecdot({X}, {Y}, dim=0)",
    "t.linalg.matrix_power(r(3, 3), 3)", "t.linalg.multi_dot([r(3), r(3, 4), r(4, 2)])", "t.linalg.diagonal(r(2, 3, 4), offset=1)",
    "t.cdist(r(3, 4), r(5, 4))", "t.cdist(r(2, 30, 4), r(40, 4))", "t.cdist(r(3, 4), r(5, 4), p=1.0)",
    "t.cdist(r(3, 4), r(5, 4), p=3.5)", "t.nn.functional.pdist(r(4, 5), 1.5)", "t.hsplit(r(4, 6), [1, 3])", "t.vsplit(r(4, 6), 2)",
    "t.dsplit(r(2, 3, 4), 2)", "t.column_stack([r(4), r(4, 2)])", "t.dstack([r(4), r(4)])", "t.row_stack([r(4), r(2, 4)])",
    "t.block_diag(r(2, 3), r(4))", "t.cartesian_prod(r(2), r(3))", "t.combinations(r(4), 3, True)", f"t.renorm({X}, 2, 0, 1.5)",
    "t.tril_indices(3, 4, -1)", "t.triu_indices(4, 3, dtype=t.int32)", "r(9, 2).fill_diagonal_(3, True)", f"{X}.sum_to_size(1, 4)",
    f"t.select_scatter({X}, {V}, 0, 1)", f"t.slice_scatter({X}, r(2, 4), start=1)", f"t.diagonal_scatter({X}, r(3))",
    "t.narrow_copy(r(3, 4), 1, 1, 2)", "t.unfold_copy(r(7), 0, 3, 2)",
    *(f"t.scatter_reduce({X}, 0, {AT}, r(2, 4), '{how}', include_self={own})"
      for how in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)),
    *(f"t.index_reduce({X}, 0, i([0, 2, 0]), r(3, 4), '{how}', include_self={own})"
      for how in ("prod", "mean", "amax", "amin") for own in (True, False)),
    "t.put(r(3, 4), i([0, -1, 5]), r(3))", "r(3, 4).put_(i([0, 0, 5]), r(3), accumulate=True)", "t.nonzero_static(k(3, 4), size=20)",
    "t.kron(r(2, 3), r(4, 5, 6))", "t.diff(r(3, 4), prepend=r(1, 4), dim=0)",
]  # fmt: skip


class Maker:
    """The same numbers for both; what is floating asks for its gradient."""

    def __init__(self, framework):
        self.framework, self.rng, self.leaves = framework, np.random.default_rng(7), []

    def keep(self, array):
        t = torch.from_numpy(np.asarray(array))
        t = t if self.framework is torch else ours(t)
        if t.dtype.is_floating_point:
            self.leaves.append(t.requires_grad_())
            return t * 1
        return t

    def names(self):
        return {
            "t": self.framework,
            "r": lambda *shape: self.keep(self.rng.uniform(-3, 3, shape).astype(np.float32)),
            "p": lambda *shape: self.keep(self.rng.uniform(0.3, 5, shape).astype(np.float32)),
            "k": lambda *shape: self.keep(self.rng.integers(-6, 7, shape)),
            "i": lambda data: self.keep(np.array(data)),
        }


def flat(result):
    return [t for r in result for t in flat(r)] if isinstance(result, (tuple, list)) else [result]


def outcome(framework, call):
    made = Maker(framework)
    results = flat(eval(call, made.names()))
    smooth = [t for t in results if t.requires_grad]
    if smooth:
        try:
            sum((t * t).sum() for t in smooth).backward()
        except (NotImplementedError, RuntimeError):  # no derivative
            return results, None
    return results, [leaf.grad for leaf in made.leaves]


def near(got, expected, call):
    assert dtype_name(expected) == str(got.dtype).split(".")[1] and tuple(expected.shape) == tuple(got.shape), call
    np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), rtol=3e-4, atol=3e-5, err_msg=call)


@pytest.mark.parametrize("call", CALLS)
def test_same(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, expected_grads = outcome(torch, call)
    got, grads = outcome(adjoin, call)
    for g, e in zip(got, expected, strict=True):
        near(g, e, call)
    for g, e in zip(grads or [], expected_grads or [], strict=False):
        if e is not None and g is not None:
            near(g, e, call + ": gradient")
