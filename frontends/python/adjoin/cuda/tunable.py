"""adjoin.cuda.tunable: products on a device are chosen by the library's own word, or by measuring where backends.cudnn.benchmark
says so; `adjoin tune` measures the host's. Nothing else is turned on here."""

from ._absent import absent

_WHY = "which algorithm serves is backends.cudnn.benchmark's choice, by measuring; adjoin tune measures the host's products"
_ABSENT = """
dynamic_dims_mask get_cublaslt_requested_algo_count get_filename get_max_tuning_duration get_max_tuning_iterations get_results
get_rotating_buffer_size get_validators mgpu_tune_gemm_in_file read_file record_untuned_enable
set_cublaslt_requested_algo_count set_filename set_max_tuning_duration set_max_tuning_iterations
set_numerical_check_tolerances set_rotating_buffer_size tune_gemm_in_file wildcard_fallback_enable
""".split()  # noqa: SIM905

globals().update({name: absent(name, _WHY, "cuda.tunable") for name in _ABSENT})


def is_enabled():
    """Whether products are chosen by a table of this module's: never."""
    return False


def enable(val=True):
    """Off is how it is; on is an error that says what to use."""
    if val:
        raise NotImplementedError(f"cuda.tunable.enable: {_WHY}")


def tuning_enable(val=True):
    """Off is how it is; on is an error that says what to use."""
    if val:
        raise NotImplementedError(f"cuda.tunable.tuning_enable: {_WHY}")


tuning_is_enabled = record_untuned_is_enabled = wildcard_fallback_is_enabled = is_enabled
