"""tests/python/toplevel/old_doors_test.py: names that packages of several years still use: sparse types, switches of jit, classes."""

import adjoin
import pytest
from adjoin import _C

PLACES, VALUES = adjoin.tensor([[0, 1], [1, 0]]), adjoin.tensor([1.0, 2.0])


def test_sparse_tensors_by_their_types():
    made = adjoin.sparse.FloatTensor(PLACES, VALUES, adjoin.Size([3, 2]))
    assert made.layout is adjoin.sparse_coo and made.to_dense().tolist() == [[0, 1], [2, 0], [0, 0]]
    assert adjoin.sparse.FloatTensor(PLACES, VALUES).shape == (2, 2)
    assert adjoin.sparse.DoubleTensor(PLACES, VALUES.double(), (2, 2)).dtype is adjoin.float64
    empty = adjoin.sparse.LongTensor(2, 3)
    assert empty.shape == (2, 3) and empty.dtype is adjoin.int64 and empty.to_dense().eq(0).all()
    assert adjoin.sparse.HalfTensor(adjoin.Size([2])).shape == (2,) and adjoin.sparse.FloatTensor().shape == (0,)
    with pytest.raises(TypeError, match="indices and values are tensors"):
        adjoin.sparse.FloatTensor([[0]], [1.0])
    with pytest.raises(AttributeError, match="NoTensor"):
        adjoin.sparse.NoTensor  # noqa: B018


def test_sparse_types_have_their_tensors_as_instances():
    made = adjoin.sparse.FloatTensor(PLACES, VALUES)
    kind = adjoin.sparse.FloatTensor
    assert isinstance(made, kind) and not isinstance(VALUES, kind) and not isinstance(made, adjoin.FloatTensor)
    assert not isinstance(made.double(), kind) and isinstance(VALUES, adjoin.FloatTensor)
    assert made.type() == "adjoin.sparse.FloatTensor" and VALUES.type() == "adjoin.FloatTensor"
    assert repr(kind) == "<class 'adjoin.sparse.FloatTensor'>" and kind is adjoin.sparse.FloatTensor
    assert made.type("adjoin.sparse.DoubleTensor").dtype is adjoin.float64
    assert adjoin.dsmm(made, adjoin.ones(2, 1)).tolist() == [[1], [2]]


def test_switches_keep_what_they_are_told():
    for name, told in (
        ("profiling_executor", False),
        ("profiling_mode", False),
        ("bailout_depth", 3),
        ("fusion_strategy", []),
    ):
        turn = getattr(_C, f"_jit_set_{name}")
        before = turn(told)
        assert turn(before) == told and turn(before) == before
    for where in ("cpu", "gpu"):
        ask, turn = getattr(_C, f"_jit_can_fuse_on_{where}"), getattr(_C, f"_jit_override_can_fuse_on_{where}")
        before = ask()
        turn(not before)
        assert ask() is not before
        turn(before)
    assert _C._jit_set_nvfuser_enabled(False) is False and _C._jit_texpr_fuser_enabled() is True
    assert _C._get_privateuse1_backend_name() == "privateuseone" and isinstance(_C._get_accelerator(), adjoin.device)


def test_there_are_no_classes_of_extensions(tmp_path):
    with pytest.raises(RuntimeError, match="'space.Name', but it does not exist: no plugin brings classes"):
        adjoin.classes.space.Name  # noqa: B018
    with pytest.raises(OSError, match="there is no file"):
        adjoin.classes.load_library(tmp_path / "none.so")
    assert not hasattr(adjoin.classes, "__path__")


def test_metal_is_asked_after_it_is_looked_for():
    for name in ("current_allocated_memory", "driver_allocated_memory"):
        if not adjoin.mps.is_available():
            with pytest.raises(RuntimeError, match=rf"mps.{name}: no plugin offers the device 'mps'"):
                getattr(adjoin.mps, name)()
    with pytest.raises(RuntimeError, match="no plugin provides Metal"):
        adjoin.backends.mps.is_macos_or_newer(13)


def test_spaces_of_pytorch_are_there_and_have_no_op():
    for space in ("c10d_functional", "quantized_decomposed", "onednn"):
        there = getattr(adjoin.ops, space)
        assert not hasattr(there, "all_reduce") and getattr(there, "qlinear", None) is None
        with pytest.raises(AttributeError, match=f"no op named '{space}::nobody'"):
            there.nobody  # noqa: B018


def test_small_ones():
    assert adjoin.legacy_contiguous_format is adjoin.contiguous_format
    assert adjoin.utils.data._utils.worker._worker_info is None
    aten = adjoin.ops.aten
    assert aten.to.dtype(VALUES, adjoin.int64).tolist() == [1, 2] and aten.to.dtype is aten.to.dtype
    assert aten.to.dtype_layout(VALUES, dtype=adjoin.float64).dtype is adjoin.float64
    assert aten.flatten.using_ints(adjoin.ones(2, 3, 4), 1, 2).shape == (2, 12)


def test_a_worker_knows_itself():
    found = list(adjoin.utils.data.DataLoader(_Numbers(), num_workers=1, batch_size=None))
    assert found == [0, 0]


class _Numbers:
    def __len__(self):
        return 2

    def __getitem__(self, i):
        return adjoin.utils.data._utils.worker._worker_info.id


def test_strides_and_formats_are_told():
    from adjoin import _prims_common as prims

    for shape in ((), (3,), (2, 3, 4), (2, 0, 3), (0,), (1, 1)):
        assert prims.make_contiguous_strides_for(shape) == adjoin.empty(shape).stride()
    assert prims.make_contiguous_strides_for((5, 2, 3), row_major=False) == adjoin.empty(5, 3, 2).mT.stride()
    image, volume = adjoin.empty(2, 3, 4, 5), adjoin.empty(2, 3, 4, 5, 6)
    last, last_3d = adjoin.channels_last, adjoin.channels_last_3d
    assert prims.suggest_memory_format(image) is adjoin.contiguous_format
    assert prims.suggest_memory_format(image.to(memory_format=last)) is last
    assert prims.suggest_memory_format(volume.to(memory_format=last_3d)) is last_3d
    assert prims.suggest_memory_format(image[0].mT) is adjoin.contiguous_format
    assert prims.alert_not_deterministic("roll") is None
    adjoin.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError, match="roll does not have a deterministic implementation"):
            prims.alert_not_deterministic("roll")
        adjoin.use_deterministic_algorithms(True, warn_only=True)
        with pytest.warns(UserWarning, match="roll does not have"):
            prims.alert_not_deterministic("roll")
    finally:
        adjoin.use_deterministic_algorithms(False)
