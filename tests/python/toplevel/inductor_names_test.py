"""tests/python/toplevel/inductor_names_test.py: the switches of PyTorch's compiler of kernels: kept, patched, taken by compile()."""

import importlib

import adjoin
import pytest

config = importlib.import_module("adjoin._inductor.config")


def test_switches_are_kept_and_a_wrong_name_is_seen():
    assert adjoin._inductor.config is config and config.coordinate_descent_tuning is False
    config.coordinate_descent_tuning = config.triton.cudagraphs = True
    try:
        assert config.coordinate_descent_tuning and config.triton.cudagraphs
    finally:
        config.coordinate_descent_tuning = config.triton.cudagraphs = False
    with pytest.raises(AttributeError, match="no switch 'coordinate_decent_tuning'.*coordinate_descent_tuning"):
        config.coordinate_decent_tuning = True


def test_patch_reaches_into_groups_and_puts_back():
    with config.patch({"fallback_random": True, "triton.multi_kernel": 2}):
        assert config.fallback_random and config.triton.multi_kernel == 2
        with config.patch(max_autotune=True):
            assert config.max_autotune
        assert not config.max_autotune
    assert not config.fallback_random and config.triton.multi_kernel == 0


def test_compile_takes_every_switch():
    assert {"triton.unique_kernel_names", "fallback_random", "check"} <= set(adjoin._inductor.list_options())
    assert adjoin._inductor.list_mode_options("reduce-overhead") == {}
    f = adjoin.compile(lambda x: x * 2 + 1, options={"fallback_random": True, "triton.unique_kernel_names": True})
    adjoin._inductor.cudagraph_mark_step_begin()
    assert f(adjoin.ones(3)).tolist() == [3, 3, 3]
