"""adjoin: tensors, ops, gradients and networks, under PyTorch's names.

Ops are not listed anywhere here: a name that is no part of the package is looked up in the registry
of libadjoin, so an op from a plugin looks like a built-in one.
"""

import importlib
import math
import os
import sys

from . import (
    _C,
    _tensor,  # noqa: F401  (gives Tensor the methods that are written in Python)
)
from ._C import (  # noqa: F401
    DeviceMismatchError,
    DisableTorchFunctionSubclass,
    Generator,
    OutOfMemoryError,
    OutOfRangeError,
    Size,
    Tensor,
    as_tensor,
    asarray,
    bfloat16,
    bool,
    can_cast,
    cdouble,
    cfloat,
    channels_last,
    channels_last_3d,
    chalf,
    complex32,
    complex64,
    complex128,
    contiguous_format,
    device,
    double,
    dtype,
    enable_grad,
    float,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    from_dlpack,
    from_numpy,
    get_default_device,
    get_default_dtype,
    get_num_threads,
    half,
    inference_mode,
    int,
    int8,
    int16,
    int32,
    int64,
    is_grad_enabled,
    is_inference_mode_enabled,
    jagged,
    layout,
    load_plugin,
    long,
    memory_format,
    no_grad,
    preserve_format,
    promote_types,
    set_default_device,
    set_default_dtype,
    set_grad_enabled,
    set_num_threads,
    short,
    sparse_coo,
    sparse_bsc,
    sparse_bsr,
    sparse_csc,
    sparse_csr,
    strided,
    tensor,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ._functions import *
from ._overloads import *
from ._variadic import *
from ._tensor_str import set_printoptions  # noqa: F401
from .random import (  # noqa: F401
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from . import _names  # noqa: F401  (PyTorch's paths)
from . import _tracebacks
from .version import __version__  # noqa: F401

# What a package installs beside others, in any place that Python looks at: adjoin_plugins/libaj_NAME.so.
_plugin_folders = [
    os.path.abspath(site) + "/adjoin_plugins"
    for site in sys.path
    if site.endswith(("site-packages", "dist-packages")) and os.path.isdir(site + "/adjoin_plugins")
]
for _folder in _plugin_folders:
    _C.add_plugin_folder(_folder)

_tracebacks.install()


def _of_c(name):
    """What libraries reach for in torch._C, found when one does."""
    if name.startswith("__"):  # of Python's own: an import asks for __path__
        raise AttributeError(name)
    if name == "_nn":
        return importlib.import_module("._c_nn", __package__)
    from ._c_names import NAMES

    if _ELSEWHERE.get(name) == "jit._type_names":
        return __getattr__(name)
    if name not in NAMES:
        raise AttributeError(
            f"module '{__name__}._C' has no attribute {name!r}; it is private: what stands outside of _C serves"
        )
    return NAMES[name]


_C.__getattr__ = _of_c

inf, nan, pi, e, newaxis = math.inf, math.nan, math.pi, math.e, None
legacy_contiguous_format = contiguous_format

_ROOMS = (
    "__config__", "__future__", "_custom_ops", "_dynamo", "_functorch", "_guards", "_inductor", "_library", "_logging", "_ops", "_prims_common", "_subclasses", "_utils", "accelerator", "amp", "ao", "array_api", "autograd", "backends",
    "classes", "compiler", "cpu", "cuda", "distributed", "distributions", "export", "fft", "func", "functional", "futures", "fx", "hip", "hub", "jit", "legacy",
    "library", "linalg", "masked", "memory", "monitor", "multiprocessing", "nested", "nn", "onnx", "ops", "optim", "overrides", "plugin", "profiler",
    "quantization", "quasirandom", "random", "return_types", "safetensors", "serialization", "signal", "sparse", "special", "storage", "testing",
    "torch_version", "types", "utils", "version", "xpu", "mps",
)  # fmt: skip
_ELSEWHERE = {
    "Tag": "_op_overload", "_assert": "_functions", "default_generator": "random", "lazy": "_lazy", "finfo": "_numeric", "iinfo": "_numeric",
    "UntypedStorage": "storage", "from_file": "storage", "StorageBase": "storage", "TypedStorage": "storage", "Stream": "_accelerator", "Event": "_accelerator",
    "is_anomaly_enabled": "autograd.anomaly_mode", "is_anomaly_check_nan_enabled": "autograd.anomaly_mode",
    "get_device_module": "_accelerator", "PyTorchFileReader": "_pt_records", "PyTorchFileWriter": "_pt_records", "lu": "_tensor", "svd_lowrank": "_lowrank", "pca_lowrank": "_lowrank", "lobpcg": "_lobpcg", "GradScaler": "amp", "vmap": "_vmap", "save": "serialization", "load": "serialization",
    **dict.fromkeys((
        "AnyType", "BoolType", "ComplexType", "DeviceObjType", "DictType", "FloatType", "FutureType", "IntType", "ListType",
        "NoneType", "NumberType", "OptionalType", "StringType", "TensorType", "TupleType", "Type", "UnionType",
    ), "jit._type_names"),
    **dict.fromkeys((
        "autocast", "is_autocast_enabled", "is_autocast_cpu_enabled", "get_autocast_dtype", "get_autocast_cpu_dtype",
        "get_autocast_gpu_dtype", "set_autocast_enabled", "set_autocast_cpu_enabled", "set_autocast_dtype",
        "set_autocast_cpu_dtype", "set_autocast_gpu_dtype", "is_autocast_cache_enabled",
        "set_autocast_cache_enabled", "autocast_increment_nesting", "autocast_decrement_nesting",
        "clear_autocast_cache",
    ), "amp.autocast_mode"),
    **dict.fromkeys((
        "selu_", "celu_", "threshold_", "rrelu_", "dropout_", "alpha_dropout_", "feature_alpha_dropout_",
        "feature_dropout", "feature_dropout_", "native_dropout", "binomial", "embedding", "embedding_bag", "instance_norm", "batch_norm", "kl_div",
        "hinge_embedding_loss", "margin_ranking_loss", "cosine_embedding_loss", "triplet_margin_loss",
        "poisson_nll_loss", "binary_cross_entropy_with_logits", "max_pool1d_with_indices", "adaptive_max_pool1d",
        "grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "affine_grid_generator", "native_layer_norm", "native_group_norm", "native_batch_norm",
        "range",
    ), "_layer_functions"),
    **dict.fromkeys((
        "get_deterministic_debug_mode", "is_warn_always_enabled", "kaiser_window", "set_anomaly_enabled",
        "set_deterministic_debug_mode", "set_flush_denormal", "set_warn_always",
        "has_cuda", "has_lapack", "has_mkl", "has_mkldnn", "has_mps", "has_openmp",
    ), "_flags"),
    **dict.fromkeys((
        "segment_reduce", "_segment_reduce", "_convert_indices_from_coo_to_csr", "_convert_indices_from_csr_to_coo",
    ), "_segments"),
    "_standard_gamma": "distributions._gamma_samples", "_sample_dirichlet": "distributions._gamma_samples",
    "_shape_as_tensor": "onnx.operators", "is_neg": "_functions",
    "_amp_foreach_non_finite_check_and_unscale_": "amp.grad_scaler", "_amp_update_scale_": "amp.grad_scaler",
    "alpha_dropout": "nn.functional", "bilinear": "nn.functional", "hash_tensor": "_histograms", "split_with_sizes_copy": "_pieces", "unbind_copy": "_pieces", "histogramdd": "_histograms",
    **dict.fromkeys((
        "sparse_coo_tensor", "_sparse_coo_tensor_unsafe", "_sparse_broadcast_to", "sparse_compressed_tensor", "sparse_csr_tensor",
        "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor", "_validate_sparse_coo_tensor_args",
        "_validate_sparse_compressed_tensor_args",
    ), "_sparse"),
    **dict.fromkeys(("dsmm", "hspmm", "saddmm", "smm", "spmm", "sspaddmm"), "_sparse_products"),
    **dict.fromkeys(("cholesky", "eig", "lstsq", "qr", "solve", "symeig", "nuclear_norm", "frobenius_norm"), "_removed"),
    **dict.fromkeys(("fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine"), "_fake_quantize"),
    "Future": "futures", "ScriptModule": "jit", "ScriptObject": "jit", "to_dlpack": "utils.dlpack",
    **dict.fromkeys((
        "_assert_async", "_assert_scalar", "_assert_tensor_metadata", "_check", "_check_index", "_check_is_size", "_check_not_implemented", "_check_tensor_all",
        "_check_tensor_all_with", "_check_type", "_check_value", "_check_with", "cond", "while_loop",
    ), "_checks"),
    **dict.fromkeys((
        "qint8", "qint32", "quint8", "quint4x2", "quint2x4", *(f"{sign}int{n}" for sign in ("", "u") for n in range(1, 8)),
    ), "_unstored"),
    **dict.fromkeys((
        "SymBool", "SymFloat", "SymInt", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum",
    ), "_symbolic"),
    **dict.fromkeys((
        "_chunk_cat", "_grouped_mm", "_int_mm", "_native_batch_norm_legit", "_scaled_mm", "_scaled_mm_v2", "_unsafe_masked_index",
        "_unsafe_masked_index_put_accumulate",
    ), "_aten_only"),
    **dict.fromkeys(("get_printoptions", "printoptions"), "_tensor_str"),
    **dict.fromkeys(("bartlett_window", "blackman_window", "hamming_window", "hann_window"), "_windows"),
}  # fmt: skip


def _of_networks(name):
    """Does the row of ``nn::name`` say that its function stands here, too?"""
    infos = not name.endswith("_") and _C.op_info("nn::" + name)  # forms name_ stand in nn.functional alone
    return infos and "function:adjoin" in infos[0]["tags"].split()


def __getattr__(name):
    if name in _ROOMS:
        return importlib.import_module("." + name, __package__)
    if name in _ELSEWHERE:
        found = getattr(importlib.import_module("." + _ELSEWHERE[name], __package__), name)
    elif name.startswith("_foreach_"):
        found = getattr(importlib.import_module("._foreach", __package__), name, None)
    elif not name.startswith("__") and _of_networks(name):
        found = getattr(importlib.import_module(".nn.functional", __package__), name)
    elif name.endswith("Tensor"):
        found = importlib.import_module("._legacy", __package__).named.get(name)
    elif name.endswith("Storage"):
        found = importlib.import_module("._typed_storage", __package__).named.get(name)
    else:
        found = None if name.startswith("__") else _C.find_op(name, True)
    if found is None:
        from ._hints import absent

        raise absent(__name__, name)
    globals()[name] = found  # the next look-up is an ordinary one
    return found


def __dir__():
    # Not "from . import": that asks __getattr__ first, whose error asks here.
    legacy, foreach = (importlib.import_module("." + name, __package__) for name in ("_legacy", "_foreach"))
    ops = [name for name in _C.op_names(True) if "::" not in name and "." not in name and _C.find_op(name, True)]
    networks = [name[4:] for name in _C.op_names() if name.startswith("nn::") and _of_networks(name[4:])]
    lists = [name for name in vars(foreach) if name.startswith("_foreach_")]
    return sorted({*globals(), *_ROOMS, *_ELSEWHERE, *networks, *legacy.named, *lists, *ops})


if os.environ.get("ADJOIN_SHADOW"):
    from .testing._shadow import from_environment as _shadow_whole_program

    _shadow_whole_program()
