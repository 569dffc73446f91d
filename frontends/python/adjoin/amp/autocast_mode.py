"""adjoin.amp.autocast_mode: scopes in which ops get their arguments in the dtype that suits them.

Which op wants which is said by its row's tag, or by the device's plugin where it knows better. The
state belongs to the thread; a backward computes with what its forward had cast, wherever it is
called.
"""

import functools
import warnings

import adjoin

from .. import _C

_LOW = (adjoin.bfloat16, adjoin.float16)


def is_autocast_available(device_type):
    """Whether there is such a device."""
    _check_name(device_type)
    try:
        _C.autocast_state(device_type)
    except RuntimeError:
        return False
    return True


def _state(device_type):
    """What holds in this thread; nothing for the usual accelerators where their plugin is missing."""
    try:
        return _C.autocast_state(device_type)
    except RuntimeError:
        if device_type not in ("cuda", "hip", "hpu", "ipu", "maia", "mps", "mtia", "xla", "xpu"):
            raise
        return False, adjoin.float16, True, 0


def _is_there(device_type):
    try:
        return _C.device_count(device_type) > 0
    except RuntimeError:  # no plugin, or no driver
        return False


def _check_name(device_type):
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


class autocast:
    """A context manager and a decorator: inside, products are computed in ``dtype`` on one kind of device.

    ``dtype`` is the device's own choice unless given (bfloat16 on the CPU, float16 elsewhere).
    With ``cache_enabled`` a parameter is cast once until the outermost scope ends. A scope with
    ``enabled=False`` inside of another one turns casts off.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        _check_name(device_type)
        self.device = device_type
        _, usual, keep, _ = _state(device_type)  # unknown devices end here
        self.fast_dtype = usual if dtype is None else dtype
        self._cache_enabled = keep if cache_enabled is None else bool(cache_enabled)
        self._enabled = bool(enabled) and self._is_possible()
        self._before = []

    def _is_possible(self):
        if self.fast_dtype not in _LOW:
            warnings.warn(
                f"In {self.device.upper()} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{self.device.upper()} Autocast only supports dtypes of adjoin.bfloat16, adjoin.float16 currently.",
                stacklevel=3,
            )
            return False
        if not _is_there(self.device):
            warnings.warn(f"{self.device.upper()} is not available. Disabling autocast.", stacklevel=3)
            return False
        return True

    def __enter__(self):
        kind = self.device if self._enabled or is_autocast_available(self.device) else "cpu"
        enabled, dtype, keep, depth = before = _C.autocast_state(kind)
        self._before.append((kind, before))
        if kind == self.device:
            enabled, dtype = self._enabled, self.fast_dtype if self.fast_dtype in _LOW else None
        _C.set_autocast(kind, enabled, dtype, self._cache_enabled, depth + 1)
        return self

    def __exit__(self, *_):
        kind, (enabled, dtype, keep, depth) = self._before.pop()
        _C.set_autocast(kind, enabled, dtype, keep, depth)
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return run


def _cast(value, device_type, dtype):
    """value with its floating tensors on the device in dtype; float64 stays."""
    if isinstance(value, adjoin.Tensor):
        eligible = value.is_floating_point() and value.device.type == device_type and value.dtype != adjoin.float64
        return value.to(dtype) if eligible else value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_cast(v, device_type, dtype) for v in value]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*items)
        return type(value)(items)
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """For ``forward`` of a Function: notes the autocast in which it runs.

    With ``cast_inputs`` floating inputs are cast to it and the body runs without autocast, where
    autocast is on.
    """
    _check_name(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def run(*args, **kwargs):
        ctx = args[0]
        enabled, ctx._dtype, _, _ = _C.autocast_state(device_type)
        if cast_inputs is None or not enabled:
            ctx._fwd_used_autocast = enabled
            return fwd(*args, **kwargs)
        ctx._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            args = (ctx, *_cast(args[1:], device_type, cast_inputs))
            return fwd(*args, **_cast(kwargs, device_type, cast_inputs))

    return run


def custom_bwd(bwd=None, *, device_type):
    """For ``backward`` of a Function: runs it in the autocast that ``forward`` ran in."""
    _check_name(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def run(ctx, *grads):
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *grads)

    return run


def _set(device_type, enabled=None, dtype=None, keep=None, deeper=0):
    """Changes what is given of the thread's state; tells the depth."""
    now = _C.autocast_state(device_type)
    enabled = now[0] if enabled is None else enabled
    keep = now[2] if keep is None else keep
    _C.set_autocast(device_type, enabled, dtype, keep, now[3] + deeper)
    return now[3] + deeper


def is_autocast_enabled(device_type="cuda"):
    """Whether ops of this kind of device get their arguments cast in this thread."""
    return _state(device_type)[0]


def get_autocast_dtype(device_type):
    """What products on this kind of device are computed in while autocast is on."""
    return _state(device_type)[1]


def set_autocast_enabled(device_type, enabled=None):
    """set_autocast_enabled(device_type, enabled); with one argument it is meant for "cuda"."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    _set(device_type, enabled=enabled)


def set_autocast_dtype(device_type, dtype):
    """The dtype of products on this kind of device."""
    _set(device_type, dtype=dtype)


def is_autocast_cache_enabled():
    """Whether casts of parameters are kept until the outermost scope ends."""
    return _C.autocast_state("cpu")[2]


def set_autocast_cache_enabled(enabled):
    """Whether casts of parameters are kept."""
    _set("cpu", keep=enabled)


def autocast_increment_nesting():
    """One scope more is open; tells how many are."""
    return _set("cpu", deeper=1)


def autocast_decrement_nesting():
    """One scope less is open; after the last the kept casts are gone."""
    return _set("cpu", deeper=-1)


def clear_autocast_cache():
    """Forgets the kept casts."""
    depth = _C.autocast_state("cpu")[3]
    _set("cpu", deeper=-depth)
    _set("cpu", deeper=depth)


def is_autocast_cpu_enabled():
    """is_autocast_enabled("cpu")."""
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype():
    """get_autocast_dtype("cpu")."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype():
    """get_autocast_dtype("cuda")."""
    return get_autocast_dtype("cuda")


def set_autocast_cpu_enabled(enabled):
    """set_autocast_enabled("cpu", enabled)."""
    _set("cpu", enabled=enabled)


def set_autocast_cpu_dtype(dtype):
    """set_autocast_dtype("cpu", dtype)."""
    _set("cpu", dtype=dtype)


def set_autocast_gpu_dtype(dtype):
    """set_autocast_dtype("cuda", dtype)."""
    _set("cuda", dtype=dtype)
