"""tests/python/toplevel/wide_results_test.py: what packages of quantized weights reach for: out_dtype, schemas, tables, Triton."""

import importlib
import sys
import warnings

import adjoin
import numpy as np
import pytest
from adjoin._higher_order_ops.out_dtype import out_dtype

aten = adjoin.ops.aten


@pytest.fixture
def as_torch(monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", adjoin)
    yield
    for name in [n for n in sys.modules if n.startswith("torch.")]:
        del sys.modules[name]


@pytest.mark.parametrize("shape", [(3, 200, 5), (0, 4, 2), (2, 0, 3), (1, 1, 1)])
def test_small_numbers_are_summed_in_wide_ones(shape):
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, (m, k), np.int8), rng.integers(-128, 128, (k, n), np.int8)
    x, y = adjoin.from_numpy(a), adjoin.from_numpy(b)
    made = out_dtype(aten.mm.default, adjoin.int32, x, y)
    assert made.dtype is adjoin.int32 and np.array_equal(made.numpy(), a.astype("i4") @ b.astype("i4"))
    strided = out_dtype(aten.mm.default, adjoin.int32, adjoin.from_numpy(a.T.copy()).t(), y)
    assert strided.equal(made)
    product = out_dtype(aten.mul.Tensor, adjoin.int32, x, 100)
    assert product.dtype is adjoin.int32 and np.array_equal(product.numpy(), a.astype("i4") * 100)
    half = out_dtype(aten.div.Tensor, adjoin.int32, adjoin.from_numpy(a.astype("f4")), adjoin.tensor(2.0))
    assert np.array_equal(half.numpy(), np.trunc(a / 2).astype("i4"))


def test_products_of_groups_by_their_older_name():
    x, stack = adjoin.arange(12.0).view(6, 2), adjoin.arange(12.0).view(2, 2, 3)
    ends = adjoin.tensor([2, 6], dtype=adjoin.int32)
    wanted = np.concatenate([x[:2].numpy() @ stack[0].numpy(), x[2:].numpy() @ stack[1].numpy()])
    for product in (adjoin._grouped_mm, aten._grouped_mm.default):
        assert np.array_equal(product(x, stack, ends).numpy(), wanted)
        assert np.array_equal(product(x, stack, offs=ends).numpy(), wanted)


def test_wrong_ops_are_told():
    with pytest.raises(ValueError, match="must be an OpOverload, not Op"):
        out_dtype(adjoin.mm, adjoin.int32, adjoin.ones(1, 1), adjoin.ones(1, 1))
    with pytest.raises(ValueError, match="add_.Tensor writes an argument"):
        out_dtype(aten.add_.Tensor, adjoin.int32, adjoin.ones(1), adjoin.ones(1))


def test_paths_of_packages(as_torch):
    find = importlib.import_module
    schema = find("torch._library.infer_schema").infer_schema

    def scaled(x: adjoin.Tensor, by: float = 2.0) -> adjoin.Tensor:
        return x * by

    assert schema(scaled, mutates_args={}) == "(Tensor x, float by=2.0) -> Tensor"
    assert find("torch._library.custom_ops").CustomOpDef is adjoin.library.CustomOpDef
    table = find("torch.sparse._triton_ops_meta")
    assert table.get_meta("bsr_dense_addmm", (1, 2)) is None
    with pytest.raises(NotImplementedError, match="no sparse kernels of Triton's"):
        table.minimize(None)
    semi = find("torch.sparse.semi_structured")
    assert semi.to_sparse_semi_structured is adjoin.sparse.to_sparse_semi_structured
    assert find("torch.utils._triton").has_triton() is False
    register = find("torch._inductor.decomposition").register_decomposition
    assert register([aten.mm.default])(scaled) is scaled
    assert sys.modules["torch._inductor.decomposition"].decompositions.pop(aten.mm.default) is scaled


def test_a_warning_is_said_once():
    from adjoin._dynamo.utils import warn_once

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for _ in range(3):
            warn_once("said once in this process")
    assert [str(w.message) for w in heard] == ["said once in this process"]
    assert heard[0].filename.endswith("wide_results_test.py")
