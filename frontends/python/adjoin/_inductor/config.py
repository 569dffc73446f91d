"""adjoin._inductor.config: switches that programs set. They are kept and compile(options=) takes them; they say how PyTorch's
compiler makes its kernels, so no result depends on them. A name that is none of them raises."""

import sys
import types

from .._dynamo.config import patching

_FALSE = (
    "aggressive_fusion b2b_gemm_pass batch_invariant benchmark_fusion benchmark_kernel combo_kernels conv_1x1_as_mm "
    "coordinate_descent_check_all_directions coordinate_descent_tuning cpp_wrapper debug debug_fusion deterministic "
    "emulate_precision_casts epilogue_fusion_first fallback_random force_disable_caches force_fuse_int_mm_with_mul "
    "force_layout_optimization force_shape_pad freezing freezing_discard_parameters group_fusion max_autotune "
    "max_autotune_gemm max_autotune_pointwise memory_planning nan_asserts permute_fusion profile_bandwidth "
    "search_autotune_cache use_fast_math verbose_progress"
)
_TRUE = (
    "allow_buffer_reuse autotune_local_cache batch_fusion comprehensive_padding dce disable_progress epilogue_fusion fx_graph_cache "
    "graph_partition implicit_fallbacks inplace_buffers joint_graph_constant_folding keep_output_stride layout_optimization "
    "pattern_matcher pick_loop_orders prologue_fusion reorder_for_locality reorder_for_peak_memory shape_padding size_asserts "
    "split_reductions use_mixed_mm"
)


def _named(**values):
    return types.SimpleNamespace(**values)


class _Switches(types.ModuleType):
    """The module: names that are no switch cannot be set, as a typing error would go unseen."""

    def __setattr__(self, name, value):
        if not name.startswith("_") and name not in vars(self):
            raise AttributeError(f"{__name__}: there is no switch {name!r}; the names are {', '.join(names())}")
        super().__setattr__(name, value)


globals().update(dict.fromkeys(_FALSE.split(), False), **dict.fromkeys(_TRUE.split(), True))
compile_threads, max_fusion_size, unroll_reductions_threshold, kernel_name_max_ops = 1, 64, 8, 10
max_autotune_gemm_backends = max_autotune_conv_backends = "ATEN"
max_autotune_gemm_search_space = "DEFAULT"
triton = _named(
    cudagraphs=False, cudagraph_trees=True, cudagraph_skip_dynamic_graphs=False, cudagraph_support_input_mutation=True,
    force_cudagraph_sync=False, unique_kernel_names=True, descriptive_names="original_aten", persistent_reductions=True,
    multi_kernel=0, max_tiles=None, autotune_pointwise=True, use_block_ptr=False, dense_indexing=False,
)  # fmt: skip
cpp = _named(threads=-1, simdlen=None, min_chunk_size=512, weight_prepack=True, enable_kernel_profile=False)
trace = _named(
    enabled=False, debug_log=False, fx_graph=True, output_code=True, graph_diagram=False, log_autotuning_results=False
)
cuda = _named(arch=None, version=None, use_fast_math=False)
aot_inductor = _named(output_path="", debug_compile=False, package=False, metadata={})


def names():
    """Every switch, `group.name` those of a group."""
    own = {name: value for name, value in vars(sys.modules[__name__]).items() if not name.startswith("_")}
    groups = {name: value for name, value in own.items() if isinstance(value, types.SimpleNamespace)}
    plain = [
        name for name, value in own.items() if name not in groups and not callable(value) and value not in (sys, types)
    ]
    return sorted(plain + [f"{group}.{name}" for group, values in groups.items() for name in vars(values)])


patch = patching(globals())
sys.modules[__name__].__class__ = _Switches
