"""tests/ops/emulated_rows_test.py: every row on the emulated GPU beside the reference backend: dtypes and layouts by the
printed seed, refusals alike, whatever the size of a warp and the order of its threads."""

import random

import adjoin
import coverage_table as table
import pytest
import samples
from rows import ROWS, TENSOR_ROWS, name_of, on, run, same, some
from rows_test import FACTORIES, layouts, refused

configure = adjoin.ops.emulated.configure if adjoin._C.find_op("emulated::configure") else None
pytestmark = pytest.mark.skipif(configure is None, reason="the plugin emulated is not built: no Boost.Context")
DEVICE = f"emulated:{table.SEED % 2}"


@pytest.fixture(autouse=True, scope="module")
def another_order():
    configure(f"blocking=1 seed={table.SEED} warp={32 if table.SEED & 2 else 64}")
    yield
    configure("blocking=0 seed=0 warp=32")


def words(row, given, other):
    """What the call says where it is refused."""
    try:
        run(row, given, other)
    except (NotImplementedError, RuntimeError, TypeError) as error:
        return str(error)
    return ""


def beside_reference(row, given, other, dtype):
    if row.info["provider"] == "ops_linalg" and "no plugin has a kernel for" in words(row, on(given, DEVICE), other):
        return  # factorisations are the processor's: emulated_test.py has the list
    got, expected = refused(row, on(given, DEVICE), other), refused(row, on(given, "reference"), other)
    assert (got is None) == (expected is None), f"{dtype}: only one backend takes it"
    for g, e in zip(got or (), expected or (), strict=True):
        assert g.device == adjoin.device(DEVICE) or g.device.type == "cpu"
        same(row, [g], [e], name_of(g.dtype), 4)


@pytest.mark.parametrize("row", TENSOR_ROWS, ids=str)
def test_row(row):
    first, *others = row.dtypes()
    chosen = others if table.FULL else random.Random(f"{table.SEED}{row.name}").sample(others, min(2, len(others)))
    for dtype in (first, *chosen):
        for given, other in some(row, dtype, 2 if dtype == first else 1, dtype + "emulated"):
            beside_reference(row, given, other, dtype)


@pytest.mark.parametrize("row", TENSOR_ROWS, ids=str)
def test_layouts(row):
    for given, other in some(row, row.dtypes()[0], 1, "emulated"):
        which = (table.SEED + len(row.name)) % 2
        strided = samples.moved(given, lambda t: layouts(t)[which])
        beside_reference(row, strided, other, row.dtypes()[0])


@pytest.mark.parametrize("row", [r for r in ROWS if r in FACTORIES], ids=str)
def test_factory(row):
    for _, other in some(row, "float32", 2, "emulated"):
        same(row, run(row, {}, {**other, "device": DEVICE}), run(row, {}, {**other, "device": "reference"}), "float32")
