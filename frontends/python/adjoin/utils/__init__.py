"""adjoin.utils: what surrounds a model: data, hooks, checkpoints, progress bars and plots."""

import importlib

_ROOMS = (
    "_contextlib", "_foreach_utils", "_pytree", "benchmark", "checkpoint", "collect_env", "cpp_extension", "data", "deterministic", "dlpack", "ffi", "hooks",
    "model_zoo", "npz", "plots", "progress", "tensorboard", "trainer", "weak",
)  # fmt: skip

_LATE = {"ThroughputBenchmark": "_throughput", "get_cpp_backtrace": "_native", "set_module": "_native",
         "rename_privateuse1_backend": "_renamed_backend", "generate_methods_for_privateuse1_backend": "_renamed_backend"}  # fmt: skip


def swap_tensors(t1, t2):
    """Exchanges two tensors without history: memory, shape, dtype, gradient, class and attributes. Whoever holds one then sees
    what the other was."""
    for t in (t1, t2):
        if not t.is_leaf:
            raise RuntimeError("swap_tensors: an op made one of the tensors; its history would belong to the other")
    kept = [(t.detach(), t.grad, t.requires_grad, type(t), dict(t.__dict__)) for t in (t1, t2)]
    for t in (t1, t2):
        t.requires_grad_(False).grad = None
    for t, (data, grad, trained, kind, own) in zip((t2, t1), kept, strict=True):
        t.data = data
        t.requires_grad_(trained).grad = grad
        t.__class__ = kind
        t.__dict__.clear()
        t.__dict__.update(own)


def __getattr__(name):
    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LATE:
        return getattr(importlib.import_module(f"{__name__}.{_LATE[name]}"), name)
    from .._hints import absent

    raise absent(__name__, name)


def __dir__():
    return sorted([*globals(), *_ROOMS, *_LATE])
