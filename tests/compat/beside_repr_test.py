"""tests/compat/beside_repr_test.py: tensors of all dtypes, shapes and magnitudes print as PyTorch's, under many options."""

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import adjoin

DTYPES = "float32 float64 float16 bfloat16 int64 int32 uint8 int8 int16 bool complex64 complex128".split()
SHAPES = [
    (),
    (1,),
    (3,),
    (0,),
    (2, 0),
    (2, 3),
    (40,),
    (2, 2, 2),
    (1, 1, 1, 1),
    (1001,),
    (30, 40),
    (3, 4, 100),
    (1200, 1),
]
OPTIONS = [
    {}, {"precision": 2}, {"linewidth": 40}, {"edgeitems": 1, "threshold": 5}, {"sci_mode": True}, {"sci_mode": False},
    {"profile": "short"}, {"profile": "full"}, {"precision": 8, "linewidth": 120},
]  # fmt: skip


def values(rng, shape, kind):
    x = rng.standard_normal(shape)
    if kind == 1:
        x = np.round(x * 3)
    elif kind == 2:
        x = x * 10.0 ** rng.randint(-6, 9)
    elif kind == 3:
        x = x * 10.0 ** rng.uniform(-5, 5, shape)
    elif kind == 4:
        chance = rng.rand(*shape)
        x = np.where(chance < 0.2, np.nan, np.where(chance < 0.4, np.inf, np.where(chance < 0.5, -np.inf, x)))
    elif kind == 5:
        x = np.where(rng.rand(*shape) < 0.5, 0, x)
    return x


def text(tensor):
    """Where a line was too long for one more word does not matter: adjoin is a letter longer than torch."""
    return re.sub(r",\s+(dtype|size)", r", \1", repr(tensor).replace("torch.", "adjoin."))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_same_text(dtype, options):
    rng = np.random.RandomState(1)
    try:
        for lib in (torch, adjoin):
            lib.set_printoptions(**options)
        for shape in SHAPES:
            for kind in range(6) if options in OPTIONS[:3] else (0, 3, 4):
                if options.get("profile") == "full" and np.prod(shape) > 500:
                    continue
                x = values(rng, shape, kind)
                x = x + 1j * values(rng, shape, kind % 3) if "complex" in dtype else x
                if "int" in dtype or dtype == "bool":
                    x = np.nan_to_num(x, posinf=5, neginf=2) % (2 if dtype == "bool" else 100) - 30 * (dtype[0] == "i")
                theirs = torch.tensor(x).to(getattr(torch, dtype))
                plain = theirs.float() if dtype == "bfloat16" else theirs
                mine = adjoin.from_numpy(np.array(plain.numpy())).to(getattr(adjoin, dtype))
                assert text(mine) == text(theirs)
    finally:
        for lib in (torch, adjoin):
            lib.set_printoptions(profile="default", sci_mode=None)


def test_options_are_told():
    assert adjoin.get_printoptions() == torch._tensor_str.get_printoptions()
    with adjoin.printoptions(precision=1):
        assert repr(adjoin.tensor(1.25)) == "tensor(1.2)"
    assert repr(adjoin.tensor(1.25)) == "tensor(1.2500)"
