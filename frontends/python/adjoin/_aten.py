"""adjoin._aten: the ops of the registry under the names of ``torch.ops.aten``, as programs test for them.

A row says what an op computes; it does not say by which name and overload PyTorch's dispatcher knows it. That is this file's.
"""

import functools
import types

from . import _aten_only, _C, _op_overload
from ._op_overload import OpOverload
from .testing._samples import Op

# Names there of ops that have another here; the first is told to who sees calls.
_NAMES = {
    "_to_copy": "_::to_copy",
    "_unsafe_view": "view",
    "_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "_softmax_backward_data": "softmax_backward",
    "_log_softmax_backward_data": "log_softmax_backward",
    "_scaled_dot_product_flash_attention_for_cpu": "_::attention",
    "_scaled_dot_product_flash_attention_for_cpu_backward": "_::attention_backward",
    "_local_scalar_dense": "item",
    "native_layer_norm": "layer_norm_stats",
    "native_layer_norm_backward": "layer_norm_backward",
    "native_group_norm": "group_norm_stats",
    "native_batch_norm": "batch_norm_stats",
    "native_batch_norm_backward": "batch_norm_backward",
    "threshold_backward": "relu_backward",
    "split_with_sizes": "split.sizes",
}
_METHODS = {"detach", "detach_"}  # what is no op here


def _sparse_addmm(input, mat1, mat2, *, beta=1, alpha=1):
    from . import sparse

    return sparse.addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def _sparse_mm_reduce(input, other, reduce):
    from . import sparse

    return sparse.mm(input, other, reduce), None  # the places of the largest are had by nobody


_FUNCTIONS = {  # functions that PyTorch has as ops
    "_pin_memory": lambda input, device=None: input.pin_memory(),
    "is_pinned": lambda input, device=None: input.is_pinned(),
    "_sparse_addmm": _sparse_addmm,
    "_sparse_mm_reduce_impl": _sparse_mm_reduce,
}
_BACK = {here: there for there, here in _NAMES.items() if there != "_unsafe_view"} | {"cat_same": "cat"}
# Overloads that are not "default", of a name with one.
_OVERLOADS = {
    "transpose": "int", "select": "int", "slice": "Tensor", "unbind": "int", "split": "Tensor", "index": "Tensor",
    "where": "self", "scatter": "src", "empty": "memory_format", "std": "correction", "var": "correction",
    "bernoulli_": "float", "repeat_interleave": "self_int", "lerp": "Scalar",
}  # fmt: skip
_BY_DIM = {
    "sum": "dim_IntList", "mean": "dim", "any": "dim", "all": "dim", "prod": "dim_int", "squeeze": "dim", "norm": "Scalar",
    "max": "dim", "min": "dim", "median": "dim", "logsumexp": "default",
}  # fmt: skip
_MORE = {  # what they have beside those
    "sort": ("stable",), "squeeze": ("dims",), "is_contiguous": ("memory_format",), "flatten": ("using_ints",),
    "to": ("dtype", "dtype_layout", "device", "other"),
    "divide": ("Tensor_mode", "Scalar_mode"), "div": ("Tensor_mode", "Scalar_mode"),
}  # fmt: skip
_ARITHMETIC = {"add", "sub", "mul", "div", "add_", "sub_", "mul_", "div_"}  # a number there is one that became a tensor
_NUMBERLESS = {"maximum", "minimum", "atan2", "floor_divide", "logical_and", "logical_or", "logical_xor", "hypot"}
# What of bodies is seen instead of an op that PyTorch has, too, but only above its dispatcher.
OPENED = frozenset(
    "contiguous to type_as float double half bfloat16 int long short char byte bool cfloat cdouble reshape reshape_as view_as narrow swapaxes "
    "adjoint movedim expand_as broadcast_to broadcast_tensors chunk tensor_split tensor_split.indices flatten ravel unflatten matmul "
    "einsum tensordot inner vstack hstack column_stack meshgrid true_divide positive tile fliplr flipud isclose allclose var_mean "
    "std_mean _::linear_weight_backward _::unreduce _::sum_to".split()
)
WHOLE = frozenset(
    (
        "nn::embedding",
        "nn::max_pool2d_with_indices",
        "nn::max_pool3d_with_indices",
        "nn::mse_loss",
        "nn::adaptive_avg_pool2d",
    )
)
_ENDS = ("", "nn::", "_::", "special::special_", "linalg::linalg_", "fft::fft_")


@functools.cache
def _here(there):
    """The op of a name of aten, without overload; None if there is none."""
    if there in _NAMES:
        return _C.find_op(_NAMES[there])
    if there in _METHODS:
        return getattr(_C.Tensor, there)
    if there in _FUNCTIONS:
        return _FUNCTIONS[there]
    for begin in _ENDS:
        space, _, ahead = begin.partition("::")
        if ahead and not there.startswith(ahead):
            continue
        name = f"{space}::{there.removeprefix(ahead)}" if space else there
        if (op := _C.find_op(name)) is not None:
            return op
    return getattr(_aten_only, there, None) if not there.startswith("__") else None


@functools.cache
def _parameters(name):
    return Op(name).params, Op(name)


@functools.cache
def _signature(name):
    """(name, default as text or None, is it for keywords alone) of each parameter."""
    schema = _C.op_info(name)[0]["schema"]
    inside = schema[schema.index("(") + 1 : schema.rindex(") ->")]
    keyword, found, params = False, [], iter(Op(name).params)
    for part in _parts(inside):
        if part == "*":
            keyword = True
            continue
        p = next(params)
        found.append((p.name, p.default, keyword, p.base, bool(p.list)))
    return found


def _parts(text):
    parts, depth, now = [], 0, ""
    for c in text:
        depth += (c in "([<") - (c in ")]>")
        if c == "," and depth == 0:
            parts.append(now.strip())
            now = ""
        else:
            now += c
    return [p for p in [*parts, now.strip()] if p]


def _is_default(value, text):
    if text is None or isinstance(value, _C.Tensor):
        return False
    return str(value) == text.strip("'\"") or (
        isinstance(value, tuple) and len(set(value)) == 1 and str(value[0]) == text
    )


def _overload(there, name, args):
    plain, _, own = name.partition(".")
    written = there.removesuffix("_")
    second = args[1] if len(args) > 1 else None
    if written == "pow":
        kinds = ["Tensor" if isinstance(a, _C.Tensor) else "Scalar" for a in args[:2]]
        return "_".join(kinds) if kinds != ["Scalar", "Tensor"] else "Scalar"
    if there in _OVERLOADS:
        return _OVERLOADS[there]
    if there == "sort":
        return "stable" if args[3] else "default"
    if written in _BY_DIM:
        return (
            _BY_DIM[written]
            if own == "dim" or (not own and second is not None)
            else own
            if own == "other"
            else "default"
        )
    if there in _ARITHMETIC:
        return "Tensor"
    signature = _signature(name)
    if written in ("fill", "masked_fill"):
        return "Tensor" if isinstance(args[-1], _C.Tensor) else "Scalar"
    if written == "clamp":
        return "Tensor" if any(isinstance(a, _C.Tensor) for a in args[1:]) else "default"
    if len(signature) > 1 and signature[1][3] == "Operand" and written not in _NUMBERLESS:
        return "Tensor" if isinstance(second, _C.Tensor) else "Scalar"
    return "default"


# Arguments there and here, where they differ: what is seen, and what is called with it.
def _seen_softmax(args):
    return (args[0], args[1], False), {}


def _call_softmax(op):
    return lambda input, dim, half_to_float=False: op(input.float() if half_to_float else input, dim)


def _seen_copy(args):
    input, dtype, device, layout, non_blocking = args
    words = {"dtype": dtype} if dtype != input.dtype else {}
    words |= {"device": device} if device != input.device else {}
    words |= {"memory_format": layout} if layout is not None else {}
    return (input,), words | ({"non_blocking": True} if non_blocking else {})


def _call_copy(op):
    def copy(input, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
        return op(input, dtype or input.dtype, device or input.device, memory_format, non_blocking)

    return copy


def _seen_relu_backward(args):
    return (*args, 0), {}


def _call_relu_backward(op):
    def backward(grad, positive, threshold=0):
        return op(grad, positive if threshold == 0 else positive - threshold)

    return backward


def _seen_softmax_backward(args):
    return (*args, args[1].dtype), {}


def _call_softmax_backward(op):
    return lambda grad_output, output, dim, input_dtype: op(grad_output, output, dim).to(input_dtype)


def _seen_attention(args):
    query, key, value, mask, causal, scale, p, *drawn = args
    words = {"attn_mask": mask, "scale": scale}
    return (query, key, value, float(p), causal), words | ({"drawn": tuple(drawn)} if p else {})


def _call_attention(op):
    def attention(query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None, drawn=None):
        if dropout_p and drawn is None:
            raise RuntimeError(
                f"attention that gives its sums drops by a draw that was made before, dropout_p is {dropout_p}: give it as "
                "drawn=(seed, offset), as calls that are seen have it, or drop in between"
            )
        scale = query.size(-1) ** -0.5 if scale is None else scale
        return _C.call_all(op, query, key, value, attn_mask, is_causal, scale, dropout_p, *(drawn or (0, 0)))

    return attention


def _seen_sort(args):
    input, dim, descending, stable = args
    words = ({"dim": dim} if dim != -1 else {}) | ({"descending": True} if descending else {})
    if stable:
        return (input,), {"stable": True, **words}
    return (input, dim, True) if descending else (input, *words.values()), {}


def _call_sort(op):
    return lambda input, dim=-1, descending=False, *, stable=None: op(input, dim, descending, stable=bool(stable))


def _seen_to(args):
    return _trimmed("to", args)


def _call_to(op):
    def to(input, *args, layout=None, pin_memory=None, **words):
        if layout not in (None, input.layout):
            raise NotImplementedError(
                f"aten.to: a layout is not changed, from {input.layout} to {layout}; use to_sparse() and kin"
            )
        moved = input.to(*args, **words)
        return moved.pin_memory() if pin_memory else moved

    return to


_ADAPTED = {
    "to": (_seen_to, _call_to),
    "_scaled_dot_product_flash_attention_for_cpu": (_seen_attention, _call_attention),
    "sort": (_seen_sort, _call_sort),
    "_softmax": (_seen_softmax, _call_softmax),
    "_log_softmax": (_seen_softmax, _call_softmax),
    "_to_copy": (_seen_copy, _call_copy),
    "_softmax_backward_data": (_seen_softmax_backward, _call_softmax_backward),
    "_log_softmax_backward_data": (_seen_softmax_backward, _call_softmax_backward),
    "threshold_backward": (_seen_relu_backward, _call_relu_backward),
}


def seen(name, in_place, args):
    """(overload, args, kwargs) by which PyTorch's programs know a call of an op."""
    there = _BACK.get(name) or _BACK.get(name.partition(".")[0]) or name.rpartition("::")[2].partition(".")[0]
    space = name.rpartition("::")[0]
    if space not in ("", "_", "nn"):
        if space not in ("special", "linalg", "fft"):
            return _own(name), *_trimmed(name, args, _signature.__wrapped__)  # it may have been defined anew
        there = f"{space}_{there}"
    there += "_" if in_place and not there.endswith("_") else ""
    func = _packet(there)._at(_overload(there, name, args))
    if there in _ADAPTED:
        return func, *_ADAPTED[there][0](args)
    return func, *_trimmed(name, args)


def _trimmed(name, args, signature=_signature):
    """Without what the call has left out, and with words for what has no place."""
    places, words = [], {}
    for value, (word, default, keyword, _, listed) in zip(args, signature(name), strict=False):
        value = list(value) if listed and isinstance(value, tuple) else value
        if keyword:
            if not _is_default(value, default):
                words[word] = value
        else:
            places.append((value, default))
    while places and _is_default(*places[-1]):
        places.pop()
    return tuple(value for value, _ in places), words


def _hides(op):
    """Has it results that only formulas see? PyTorch's programs are given them."""
    return any(" aux " in f" {text.partition(' -> ')[2].replace('(', ' ')}" for text in getattr(op, "schemas", ()))


@functools.cache
def _own(name):
    """An op of somebody's own space."""
    from . import ops

    space, _, short = name.rpartition("::")
    return getattr(getattr(ops, space), short).default


class OpOverloadPacket:
    """All overloads of a name: ``torch.ops.aten.add``."""

    def __init__(self, there):
        op = _here(there)
        if op is None:
            raise AttributeError(
                f"torch.ops.aten has no op {there!r} here; dir(adjoin.ops) tells what the registry has"
            )
        adapt = _ADAPTED.get(there)
        self._op = adapt[1](op) if adapt else functools.partial(_C.call_all, op) if _hides(op) else op
        self._qualified_op_name, self.__name__, self._made = f"aten::{there}", there, {}
        self.__module__ = "torch._ops.aten"

    def _at(self, overload):
        if overload not in self._made:
            self._made[overload] = OpOverload(self._op, self._qualified_op_name, overload, self)
        return self._made[overload]

    def overloads(self):
        """The names of the overloads."""
        name = self.__name__
        known = [*_MORE.get(name, ()), _OVERLOADS.get(name), _BY_DIM.get(name.removesuffix("_"))]
        if name.removesuffix("_") == "pow":
            known += ["Tensor_Scalar", "Tensor_Tensor", "Scalar"]
        named = next((n for n in (name, name.removesuffix("_")) if "::" not in n and _C.op_info(n)), None)
        if (
            named
            and len(_signature(named)) > 1
            and _signature(named)[1][3] == "Operand"
            or "fill" in name
            or "clamp" in name
        ):
            known += ["Tensor", "Scalar"]
        if "out=None" in (getattr(self._op, "__text_signature__", None) or ""):
            known.append("out")
        return list(dict.fromkeys(k for k in ["default", *known] if k))

    def __getattr__(self, overload):
        if overload.startswith("_"):  # copy and pickle ask an object that has no name yet
            raise AttributeError(overload)
        if overload not in self.overloads():
            raise AttributeError(
                f"torch.ops.aten.{self.__name__} has no overload {overload!r} here; it has {', '.join(self.overloads())}"
            )
        return self._at(overload)

    def __call__(self, *args, **kwargs):
        if _op_overload.stands_for is not None and (made := _op_overload.stands_for(self, args, kwargs)) is not None:
            return made
        return self._op(*args, **kwargs)

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _packet, (self.__name__,)

    def __str__(self):
        return f"aten.{self.__name__}"

    def __repr__(self):
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"

    def __dir__(self):
        return [*self.overloads(), "overloads"]


@functools.cache
def _packet(there):
    return OpOverloadPacket(there)


class Aten(types.ModuleType):
    """``torch.ops.aten``."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _packet(name)

    def __dir__(self):
        return sorted({*_NAMES, *(n.rpartition("::")[2].partition(".")[0] for n in _C.op_names(True))})


class _Prim:
    """``torch.ops.prim``: what a tensor is asked, as its class sees it."""

    def __init__(self):
        for name in ("device", "layout"):
            packet = OpOverloadPacket.__new__(OpOverloadPacket)
            packet._op = getattr(_C.Tensor, name).__get__
            packet._qualified_op_name, packet.__name__, packet._made = f"prim::{name}", name, {}
            packet.__module__ = "torch._ops.prim"
            setattr(self, name, packet)


prim = _Prim()
