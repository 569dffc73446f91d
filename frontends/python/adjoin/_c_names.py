"""adjoin._c_names: what libraries reach for in ``torch._C`` beside what is there."""

from . import _C, _jit_switches
from ._dispatch_keys import DispatchKey as _Key
from ._dispatch_keys import DispatchKeySet as _Keys
from ._op_overload import Tag as _Tag
from .overrides import DisableTorchFunction


def _log_api_usage_once(event):
    """Does nothing: no use is counted."""


def _get_tracing_state():
    """True inside of jit.trace(), else None."""
    return True if _is_tracing() else None


def _is_tracing():
    """Is this thread inside of jit.trace()?"""
    from .jit import is_tracing

    return is_tracing()


def _get_accelerator():
    """The device that is faster than the host where one is there, else the host."""
    from . import accelerator

    return accelerator.current_accelerator(check_available=True) or _C.device("cpu")


def _get_privateuse1_backend_name():
    """The device that rename_privateuse1_backend() named."""
    from .utils import _renamed_backend

    return _renamed_backend._renamed or "privateuseone"


def _get_cudnn_enabled():
    """Whether cuDNN may be used."""
    from . import backends

    return backends.cudnn.enabled


def _jit_assert_is_instance(value, type):
    """Raises unless the value is of the type, one of jit's objects: IntType.get()."""
    import typing

    from . import jit

    said = str(type)
    if said == "Any":
        return
    wanted = eval(said, {**vars(typing), "Tensor": _C.Tensor, "NoneType": None})
    if not jit.isinstance(value, wanted):
        raise RuntimeError(f"a {said} is wanted, not {value.__class__.__name__}")


def _are_functorch_transforms_active():
    """Whether a vmap runs on this thread."""
    from . import _vmap

    return bool(_vmap.levels.open)


def _is_torch_function_mode_enabled():
    """Whether a TorchFunctionMode is entered."""
    return bool(_C.modes())


def _len_torch_function_stack():
    """How many are."""
    return len(_C.modes())


def _AutoDispatchBelowAutograd():
    """A block in which nothing is recorded, and kernels of the key Autograd are passed over."""
    from .library import _AutoDispatchBelowAutograd

    return _AutoDispatchBelowAutograd()


def _get_autograd_fallback_mode():
    """What backward does at an op of Library without a derivative: "error", "warn" or "nothing"."""
    from . import _autograd_fallback

    return _autograd_fallback.mode


def _set_autograd_fallback_mode(mode):
    """Sets it."""
    from . import _autograd_fallback

    _autograd_fallback.set_mode(mode)


class _DisableTorchDispatch:
    """``with``: no class and no mode sees calls of this thread."""

    def __enter__(self):
        import contextlib

        from .utils import _python_dispatch

        self._off = contextlib.ExitStack()
        self._off.enter_context(_python_dispatch._disable_current_modes())
        self._off.enter_context(_python_dispatch._no_class())
        return self

    def __exit__(self, *error):
        return self._off.__exit__(*error)


def _disabled_torch_dispatch_impl(func, types, args=(), kwargs=None):
    """As ``__torch_dispatch__`` of a class: calls pass as if it had none."""
    from .utils import _python_dispatch

    return _python_dispatch._disabled(func, types, args, kwargs)


def _dispatch_isTensorSubclassLike(tensor):
    """Whether calls with the tensor are seen by its class or by a transform."""
    from ._tensor import sees_calls

    return sees_calls(type(tensor)) or _C.transform_level(tensor) > 0


class _WeakTensorRef:
    """A tensor that is not kept: ``expired()`` says whether it is gone, a call gives it, or None."""

    def __init__(self, tensor):
        import weakref

        self._held = weakref.ref(tensor)

    def expired(self):
        """Is it gone?"""
        return self._held() is None

    def __call__(self):
        return self._held()


def _infer_size(first, second):
    """The shape to which two shapes are spread."""
    from ._functions import broadcast_shapes

    return broadcast_shapes(first, second)


def _is_alias_of(input, other):
    """Whether two tensors lie in the same memory."""
    return input._storage_info()[3] == other._storage_info()[3]


def _get_default_device():
    """The kind of device on which tensors are made, as a word."""
    from . import get_default_device

    return get_default_device().type


class _ExcludeDispatchKeyGuard:
    """``with``: calls pass by the keys of autocast that a set names; other keys are refused."""

    def __init__(self, keys):
        names = [key.name for key in _Keys(keys)._keys]
        others = [name for name in names if not name.startswith("Autocast")]
        if others:
            raise NotImplementedError(
                f"_ExcludeDispatchKeyGuard: only keys of autocast are left out so, not {', '.join(others)}"
            )
        self._kinds = [name.removeprefix("Autocast").lower() for name in names]

    def __enter__(self):
        import contextlib

        from .amp import autocast, is_autocast_available

        self._off = contextlib.ExitStack()
        for kind in self._kinds:
            if is_autocast_available(kind):
                self._off.enter_context(autocast(kind, enabled=False))
        return self

    def __exit__(self, *error):
        return self._off.__exit__(*error)


class _OfTorchScript:
    """For annotations and isinstance: what is traced or scripted here has no such graph."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            f"_C.{type(self).__name__}: there are no TorchScript graphs here; torch.jit.trace makes programs, torch.fx graphs"
        )


Graph, Node, Value = (type(name, (_OfTorchScript,), {}) for name in ("Graph", "Node", "Value"))

NAMES = {
    "DisableTorchFunction": DisableTorchFunction,
    "Graph": Graph,
    "Node": Node,
    "Value": Value,
    "_AutoDispatchBelowAutograd": _AutoDispatchBelowAutograd,
    "_DisableTorchDispatch": _DisableTorchDispatch,
    "_ExcludeDispatchKeyGuard": _ExcludeDispatchKeyGuard,
    "_WeakTensorRef": _WeakTensorRef,
    "_disabled_torch_dispatch_impl": _disabled_torch_dispatch_impl,
    "_dispatch_isTensorSubclassLike": _dispatch_isTensorSubclassLike,
    "_get_autograd_fallback_mode": _get_autograd_fallback_mode,
    "_set_autograd_fallback_mode": _set_autograd_fallback_mode,
    "_get_default_device": _get_default_device,
    "_infer_size": _infer_size,
    "_is_alias_of": _is_alias_of,
    "_is_torch_function_mode_enabled": _is_torch_function_mode_enabled,
    "_len_torch_function_stack": _len_torch_function_stack,
    "_jit_assert_is_instance": _jit_assert_is_instance,
    "_are_functorch_transforms_active": _are_functorch_transforms_active,
    "DispatchKey": _Key,
    "Tag": _Tag,
    "DispatchKeySet": _Keys,
    "TensorBase": _C.Tensor,
    "_TensorBase": _C.Tensor,
    "_TensorMeta": type(_C.Tensor),
    "_get_cudnn_enabled": _get_cudnn_enabled,
    "_get_tracing_state": _get_tracing_state,
    "_is_tracing": _is_tracing,
    "_log_api_usage_once": _log_api_usage_once,
    # Functions of these subjects are there, whoever computes them.
    "has_lapack": True,
    "has_openmp": True,
    "has_spectral": True,
    "_get_accelerator": _get_accelerator,
    "_get_privateuse1_backend_name": _get_privateuse1_backend_name,
    **_jit_switches.NAMES,
    **dict.fromkeys(("_has_xpu", "_has_mps", "_has_mtia"), False),  # nobody offers these
}
