"""adjoin._functions: functions of the top level that are no ops."""

import warnings

from . import _C
from ._overridden import handed_over, overridden
from ._out import put

__all__ = [
    "compile",
    "are_deterministic_algorithms_enabled",
    "is_deterministic_algorithms_warn_only_enabled",
    "broadcast_shapes",
    "fallbacks",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_device",
    "is_complex",
    "is_conj",
    "is_distributed",
    "is_floating_point",
    "is_inference",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_storage",
    "is_tensor",
    "nonzero",
    "numel",
    "plugins",
    "result_type",
    "scalar_tensor",
    "set_default_tensor_type",
    "set_fallback",
    "set_float32_matmul_precision",
    "set_num_interop_threads",
    "tensordot",
    "typename",
    "use_deterministic_algorithms",
]  # fmt: skip

_deterministic = _warn_only = False


def is_tensor(obj):
    """Whether obj is a tensor."""
    return isinstance(obj, _C.Tensor)


def is_storage(obj):
    """Whether obj is a storage."""
    from .storage import TypedStorage, UntypedStorage

    return isinstance(obj, (UntypedStorage, TypedStorage))


def is_floating_point(input):
    """Whether the elements are floating-point numbers."""
    if overridden(input):
        return handed_over(is_floating_point, (input,), locals())
    return input.is_floating_point()


def is_complex(input):
    """Whether the elements are complex numbers."""
    if overridden(input):
        return handed_over(is_complex, (input,), locals())
    return input.is_complex()


def is_conj(input):
    """False: conjugates are computed at once."""
    return False


def is_distributed(input):
    """False: no tensor is spread over processes."""
    return False


def is_inference(input):
    """Whether the tensor was made in inference mode."""
    return input.is_inference()


def is_same_size(input, other):
    """Whether both have the same shape."""
    return input.shape == other.shape


def get_device(input):
    """The index of the tensor's device, -1 on the host."""
    return input.get_device()


def is_signed(input):
    """Whether the elements can be negative."""
    return input.is_signed()


def is_nonzero(input):
    """Whether the only element is not zero."""
    if overridden(input):
        return handed_over(is_nonzero, (input,), locals())
    return bool(input)


def numel(input):
    """The number of elements."""
    if overridden(input):
        return handed_over(numel, (input,), locals())
    return input.numel()


def scalar_tensor(value, *, dtype=None, device=None, requires_grad=False):
    """A tensor without dimensions."""
    dtype = dtype or _C.get_default_dtype()
    return _C.tensor(value, dtype=dtype, device=device, requires_grad=requires_grad)


def typename(obj):
    """The full name of an object's type."""
    if isinstance(obj, _C.Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    return f"{kind.__module__}.{kind.__qualname__}"


def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes have together."""
    shapes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    ndim = max((len(s) for s in shapes), default=0)
    out = [1] * ndim
    for shape in shapes:
        if any(n < 0 for n in shape):
            raise ValueError(f"broadcast_shapes: a size has a negative length in {list(shapes)}")
        for i, n in enumerate(shape, ndim - len(shape)):
            if n != 1 and out[i] not in (1, n):
                raise RuntimeError(f"broadcast_shapes: {list(shapes)} do not fit: {out[i]} and {n} at dimension {i}")
            out[i] = n if n != 1 else out[i]
    return _C.Size(out)


def nonzero(input, *, out=None, as_tuple=False):
    """The indices of elements that are not zero: one row each, or one tensor per dimension."""
    if overridden(input):
        return handed_over(nonzero, (input,), locals())
    if out is not None and as_tuple:
        raise RuntimeError(
            "nonzero: does not support the out kwarg when as_tuple is True; the tuple has a tensor per dimension"
        )
    if out is not None and out.dtype is not _C.int64:
        raise RuntimeError(
            f"nonzero: expected out tensor to have scalar type Long but got {out.dtype}; cast it with .long()"
        )
    if out is not None and out.device != input.device:
        raise RuntimeError(
            f"nonzero: out is on {out.device}, input is on {input.device}; both are wanted on the same device"
        )
    found = input.nonzero(as_tuple=as_tuple)
    return found if out is None else put("nonzero", found, out)


def _dim_of(t, d):
    if not -t.ndim <= d < t.ndim:
        raise _C.OutOfRangeError(
            f"tensordot: Dimension out of range (expected to be in range of [{-t.ndim}, {t.ndim - 1}], but got {d})"
        )
    return d % t.ndim


def tensordot(a, b, dims=2, *, out=None):
    """Sums of products over the last dims dimensions of a and the first of b, or over pairs."""
    if _C.has_torch_function((a, b)):  # before anything is asked of shapes, which a proxy does not know
        return _C.handle_torch_function(tensordot, (a, b), (a, b), {"dims": dims})
    if out is not None:
        return put("tensordot", tensordot(a, b, dims), out)
    if isinstance(dims, int):
        return _C.find_op("tensordot")(a, b, dims)
    of_a, of_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    of_a, of_b = ([_dim_of(t, d) for d in of] for t, of in ((a, of_a), (b, of_b)))
    if len(of_a) == len(of_b):  # a size of 1 goes with any: what it is multiplied by is summed
        for x, y in zip(of_a, of_b, strict=True):
            if a.shape[x] == 1 != b.shape[y]:
                b = b.sum(y, keepdim=True, dtype=b.dtype)
            elif b.shape[y] == 1 != a.shape[x]:
                a = a.sum(x, keepdim=True, dtype=a.dtype)
    rest_a = [d for d in range(a.ndim) if d not in of_a]
    rest_b = [d for d in range(b.ndim) if d not in of_b]
    op = _C.find_op("tensordot")
    return op(a.permute(rest_a + of_a), b.permute(of_b + rest_b), len(of_a))


def result_type(tensor1, tensor2):
    """The dtype that arithmetic on both gives; numbers and tensors without dimensions are weak."""
    both = isinstance(tensor1, _C.Tensor) and isinstance(tensor2, _C.Tensor)
    if both and (tensor1.ndim > 0) == (tensor2.ndim > 0):
        return _C.promote_types(tensor1.dtype, tensor2.dtype)
    one = _C.find_op("empty")
    pair = [
        one([0] * 1 if t.dim() else [], dtype=t.dtype) if isinstance(t, _C.Tensor) else t for t in (tensor1, tensor2)
    ]
    if not any(isinstance(t, _C.Tensor) for t in pair):
        pair = [_C.tensor(t) for t in pair]
    out = _C.find_op("mul")(*pair)
    return out.dtype


_placed = False  # whether set_default_tensor_type has chosen a device, too
_DEFAULTS = {
    "HalfTensor": _C.float16, "BFloat16Tensor": _C.bfloat16, "FloatTensor": _C.float32, "DoubleTensor": _C.float64,
}  # fmt: skip


def is_neg(input):
    """Whether the signs of the elements are still to be turned: never, a view of an imaginary part has its own numbers."""
    return input.is_neg()


def set_default_tensor_type(t):
    """The dtype of Python's floats, by an old name such as ``adjoin.FloatTensor``."""
    warnings.warn(
        "set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives",
        stacklevel=2,
    )
    global _placed
    *before, name = getattr(t, "__name__", str(t)).split(".")
    kind = getattr(t, "_kind", before[-1] if before and before[-1] in ("cuda", "hip") else "cpu")
    dtype = getattr(t, "dtype", None) or _DEFAULTS.get(name)
    if dtype is None:
        raise TypeError(f"set_default_tensor_type: invalid type object {t!r}; FloatTensor and DoubleTensor are types")
    if not dtype.is_floating_point:
        raise TypeError(
            f"set_default_tensor_type: only floating-point types are supported as the default type, not {name}"
        )
    if kind != "cpu" and not _C.device_count(kind):
        raise TypeError(f"set_default_tensor_type: type {kind}.{name} not available: there is no {kind} device")
    _C.set_default_dtype(dtype)
    if kind != "cpu" or _placed:
        _C.set_default_device(_C.device(kind) if kind != "cpu" else None)
    _placed = kind != "cpu"


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Products and convolutions give the same bits for any number of threads. There is nothing that could only warn."""
    global _deterministic, _warn_only
    for name, given in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(given, bool):
            raise TypeError(
                f"use_deterministic_algorithms(): argument {name!r} must be bool, not {type(given).__name__}"
            )
    _deterministic, _warn_only = mode, bool(warn_only)
    _C.set_deterministic(mode)
    from .utils import deterministic

    deterministic._follow()


def are_deterministic_algorithms_enabled():
    """Whether use_deterministic_algorithms is on."""
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled():
    """The ``warn_only`` that use_deterministic_algorithms was told last."""
    return _warn_only


_matmul_precision = "highest"


def set_float32_matmul_precision(precision):
    """ "highest": products of float32 are computed in float32; else CUDA's read it with 10 bits behind the point (TF32).
    The processor's products are computed in float32 whatever it is."""
    from .backends._switches import tell

    global _matmul_precision
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"set_float32_matmul_precision: {precision!r} is not highest, high or medium")
    _matmul_precision = precision
    tell("cuda", "tf32_products", precision != "highest")


def get_float32_matmul_precision():
    """The word that was set last."""
    return _matmul_precision


def compile(
    model=None,
    *,
    fullgraph=False,
    dynamic=None,
    backend="",
    mode=None,
    options=None,
    disable=False,
    check=False,
    replay=False,
):
    """A function or module whose calls are carried out together: chains of element-wise calls are one walk over memory.

    The Python runs each time, so nothing that it decides is baked in; its calls are matched with those of earlier times, and
    the program that they made then runs. The bits are those of eager. Where no call is fused, or eager was as fast, the
    function runs as it is, and is looked at again now and then; `explain()` of what comes back tells. fullgraph: a value
    that is needed on the way (item, an if) is an error, with its line. check: each call is also carried out alone, and the
    first difference is an error. mode changes nothing, sizes that differ are matched apart. Also a decorator.

    replay: after three equal recordings the program runs in the function's place, and no Python does. That is for a function
    that depends on its arguments, on modules and on numbers that it reads: they are looked at before each run. One that
    changes anything besides tensors is refused with the line that does. The 2nd, 4th, 8th, ... run is a recording again; one
    that differs is an error, which names the line. When other sizes come, one program is made for these and all others from 2
    on, where it makes the same calls for all; dynamic=False: each has its own. A function that finds gradients and writes
    what it has read, such as a step of training with its optimizer, is one program, too.
    """
    from ._compile import compile

    return compile(
        model,
        fullgraph=fullgraph,
        dynamic=dynamic,
        backend=backend,
        mode=mode,
        options=options,
        disable=disable,
        check=check,
        replay=replay,
    )


def set_num_interop_threads(n):
    """Does nothing: ops run one after another, each on all threads."""


def get_num_interop_threads():
    """1: ops run one after another, each on all threads."""
    return 1


def fallbacks():
    """The ops that ran on the host because their device lacks them."""
    return _C.fallbacks()


def set_fallback(policy, op="", device=""):
    """What happens when a device lacks an op: "error", "decompose", "warn", "host", "host:100MB" or a device's name.

    Without op: for what has no body of other ops, as those always have served. With one ("*" is each): also instead of
    its body. The environment says the same with ADJOIN_FALLBACK=OP@DEVICE=POLICY,...
    """
    _C.set_fallback(policy, op, device)


def plugins():
    """Every plugin that was found, and what became of it."""
    return _C.plugin_list()


def _assert(condition, message):
    """``assert`` as a call: AssertionError with the message unless the condition (a tensor of one element, too) holds."""
    if type(condition) is not _C.Tensor and _C.has_torch_function((condition,)):
        return _C.handle_torch_function(_assert, (condition,), (condition, message), {})
    assert condition, message
