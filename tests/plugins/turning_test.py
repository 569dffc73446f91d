"""tests/plugins/turning_test.py: sine, cosine and tangent of floats as GPUs compute them, over all of their range, on the device
emulated, beside NumPy's of double."""

import adjoin
import numpy as np
import pytest

pytestmark = pytest.mark.skipif(
    not adjoin._C.find_op("emulated::configure"), reason="NOT TESTED: the plugin emulated is not built"
)
LIMITS = {"sin": 2, "cos": 2, "tan": 4}  # ULP


def off(got, wanted):
    """How far, in units of the last place of the float that is wanted."""
    return np.abs(got - wanted) / np.spacing(np.abs(wanted.astype(np.float32)))


@pytest.mark.parametrize("name", LIMITS)
def test_every_exponent(name):
    random = np.random.default_rng(3)
    x = np.concatenate([random.uniform(1, 2, 400) * 2.0**k for k in range(-30, 128)]).astype(np.float32)
    near = (np.arange(1, 4000) * (np.pi / 2)).astype(np.float32)  # quarters of a turn, where digits cancel
    x = np.concatenate([x, -x, near, -near])
    got = getattr(adjoin, name)(adjoin.from_numpy(x).to("emulated")).cpu().numpy()
    assert off(got, getattr(np, name)(x.astype(np.float64))).max() <= LIMITS[name]


@pytest.mark.parametrize("name", LIMITS)
def test_zeros_and_what_has_no_angle(name):
    x = np.array([0.0, -0.0, 1e-40, -1e-40, np.inf, -np.inf, np.nan], np.float32)
    got = getattr(adjoin, name)(adjoin.from_numpy(x).to("emulated")).cpu().numpy()
    with np.errstate(invalid="ignore"):
        wanted = getattr(np, name)(x)
    assert np.array_equal(got, wanted, equal_nan=True) and np.array_equal(np.signbit(got[:4]), np.signbit(wanted[:4]))


@pytest.mark.parametrize("dtype", [adjoin.float32, adjoin.float16, adjoin.bfloat16])
def test_sinc(dtype):
    x = adjoin.cat([adjoin.linspace(-9.25, 9.25, 300), adjoin.zeros(1)]).to(dtype)
    wanted = np.sinc(x.double().numpy())
    assert np.abs(x.to("emulated").sinc().cpu().double().numpy() - wanted).max() <= {4: 1e-6}.get(x.itemsize, 5e-3)
