"""adjoin.backends.cuda: whether there is a CUDA device, and the switches that programs set."""

import enum


class _Products:
    """Switches of products."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True

    @property
    def allow_tf32(self):
        """Whether products read float32 with 10 bits behind the point: set_float32_matmul_precision says the same."""
        from .._functions import get_float32_matmul_precision

        return get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value):
        from .._functions import set_float32_matmul_precision

        set_float32_matmul_precision("high" if value else "highest")


matmul = _Products()


class _Library(enum.Enum):
    """What computes on a device: the one library that is there serves all."""

    Default = "default"
    Cusolver = "cusolver"
    Cublas = "cublas"
    Cublaslt = "cublaslt"
    Magma = "magma"
    Hipblaslt = "hipblaslt"
    Ck = "ck"
    Aotriton = "aotriton"


def _preference(name, there):
    chosen = [_Library.Default]

    def prefer(backend=None):
        if backend is not None:
            known = {b.value: b for b in _Library}
            wanted = backend if isinstance(backend, _Library) else known.get(backend)
            if wanted is None:
                raise RuntimeError(f"{name}: {backend!r} is no library: {', '.join(known)} are")
            if wanted.value not in there:
                raise RuntimeError(f"{name}: {wanted.value} is not used here; {' and '.join(there)} may be asked for")
            chosen[0] = wanted
        return chosen[0]

    prefer.__name__ = prefer.__qualname__ = name
    prefer.__doc__ = "What was asked for; what is not there is refused, of what is there each call takes the fastest."
    return prefer


preferred_linalg_library = _preference("preferred_linalg_library", ("default", "cusolver"))
preferred_blas_library = _preference("preferred_blas_library", ("default", "cublas", "cublaslt"))
preferred_rocm_fa_library = _preference("preferred_rocm_fa_library", ("default",))


def is_built():
    """Whether a CUDA device can be used: backends are found at run time."""
    from ..cuda import is_available

    return is_available()


def _switch(name):
    state = [True]

    def enabled():
        return state[0]

    def enable(enabled):
        state[0] = bool(enabled)

    enabled.__name__, enable.__name__ = f"{name}_sdp_enabled", f"enable_{name}_sdp"
    enabled.__doc__, enable.__doc__ = (
        f"What enable_{name}_sdp said.",
        "Notes it: each device has one kernel of attention.",
    )
    return enabled, enable


flash_sdp_enabled, enable_flash_sdp = _switch("flash")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _switch("mem_efficient")
math_sdp_enabled, enable_math_sdp = _switch("math")
cudnn_sdp_enabled, enable_cudnn_sdp = _switch("cudnn")


def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """``nn.attention.sdpa_kernel`` by its older name: a switch for each kernel; at least one has to be on."""
    import warnings

    from ..nn.attention import SDPBackend, sdpa_kernel

    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated: `torch.nn.attention.sdpa_kernel()` takes a list of backends",
        FutureWarning,
        stacklevel=2,
    )
    switches = {
        SDPBackend.FLASH_ATTENTION: enable_flash, SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
        SDPBackend.MATH: enable_math, SDPBackend.CUDNN_ATTENTION: enable_cudnn,
    }  # fmt: skip
    return sdpa_kernel([backend for backend, on in switches.items() if on])
