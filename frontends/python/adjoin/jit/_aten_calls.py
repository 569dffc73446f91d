"""adjoin.jit._aten_calls: the ops of PyTorch's files by name, with arguments in the order of PyTorch's schemas.

A name stands for the function of that name that programs for PyTorch call: of the package, of nn.functional, of tensors. What is
called otherwise, or has other arguments, has a function here.
"""

import functools
import math

import adjoin
from adjoin import Tensor, linalg
from adjoin.nn import functional as F

# PyTorch's numbers of dtypes, as TorchScript writes them.
DTYPES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64", 9: "complex64",
    10: "complex128", 11: "bool", 15: "bfloat16", 23: "float8_e5m2", 24: "float8_e4m3fn", 25: "float8_e5m2fnuz",
    26: "float8_e4m3fnuz", 27: "uint16", 28: "uint32", 29: "uint64",
}  # fmt: skip
_REDUCTIONS = ("none", "mean", "sum")
SPECIAL = {}


def special(*names):
    def keep(function):
        for name in names:
            SPECIAL[name] = function
        return function

    return keep


def dtype_of(number):
    """A dtype of PyTorch's number of one; None and dtypes stay."""
    if isinstance(number, bool) or not isinstance(number, int):
        return number
    if number not in DTYPES:
        raise NotImplementedError(f"the dtype of number {number} is not served")
    return getattr(adjoin, DTYPES[number])


def words(kwargs):
    """Keyword arguments as functions here take them."""
    made = {}
    for name, value in kwargs.items():
        if name in ("pin_memory", "layout", "device") and value is None:
            continue
        if name == "pin_memory" or name == "layout" and value in (0, 7, None):
            continue
        if name in ("dtype", "output_dtype"):
            value = dtype_of(value)
        elif name == "device" and isinstance(value, str):
            value = adjoin.device(value)
        elif name == "memory_format":
            value = memory_format(value)
        if name == "self":
            name = "input"
        made[name] = value
    return made


def memory_format(number):
    names = {0: "contiguous_format", 1: "preserve_format", 2: "channels_last", 3: "channels_last_3d"}
    return getattr(adjoin, names[number]) if isinstance(number, int) else number


@functools.cache
def function_of(name):
    """What computes an op of aten here."""
    if name in SPECIAL:
        return SPECIAL[name]
    for begin, module in (("linalg_", linalg), ("fft_", adjoin.fft), ("special_", adjoin.special)):
        if name.startswith(begin) and hasattr(module, name.removeprefix(begin)):
            return getattr(module, name.removeprefix(begin))
    if not name.startswith("__"):
        for module in (adjoin, F, Tensor):
            made = getattr(module, name, None)
            if callable(made) and not isinstance(made, type):
                return made
    try:
        return getattr(adjoin.ops.aten, name)
    except AttributeError:
        raise NotImplementedError(f"the op aten::{name} has no function here") from None


def call(name, args, kwargs):
    """The result of an op of aten."""
    return function_of(name)(*args, **words(kwargs))


# Convolutions and layers
@special("_convolution", "convolution")
def _convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *flags):
    n = weight.dim() - 2
    wide = [list(v) * n if len(v) == 1 else list(v) for v in (stride, padding, dilation, output_padding)]
    if transposed:
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[n - 1]
        return function(input, weight, bias, wide[0], wide[1], wide[3], groups, wide[2])
    return (F.conv1d, F.conv2d, F.conv3d)[n - 1](input, weight, bias, wide[0], wide[1], wide[2], groups)


@special("batch_norm", "_batch_norm_impl_index")
def _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=True):
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@special("_native_batch_norm_legit_no_training")
def _batch_norm_no_training(input, weight, bias, running_mean, running_var, momentum, eps):
    none = adjoin.empty(0)
    return F.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps), none, none


@special("instance_norm")
def _instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled=True):
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


@special("layer_norm")
def _layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    return F.layer_norm(input, list(normalized_shape), weight, bias, eps)


@special("group_norm")
def _group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    return F.group_norm(input, num_groups, weight, bias, eps)


@special("embedding")
def _embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return F.embedding(
        indices, weight, None if padding_idx == -1 else padding_idx, None, 2.0, scale_grad_by_freq, sparse
    )


def _dropped(name, function):
    SPECIAL[name] = lambda input, p=0.5, train=True: function(input, p, train)


for _name, _function in {
    "dropout": F.dropout, "feature_dropout": F.dropout2d, "alpha_dropout": F.alpha_dropout, "feature_alpha_dropout": F.feature_alpha_dropout,
}.items():  # fmt: skip
    _dropped(_name, _function)
    _dropped(_name + "_", lambda input, p, train, f=_function: input.copy_(f(input, p, train)))


@special("max_pool2d_with_indices", "max_pool3d_with_indices")
def _max_pool(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    function = F.max_pool2d if len(kernel_size) == 2 else F.max_pool3d
    return function(input, kernel_size, stride or None, padding, dilation, ceil_mode, return_indices=True)


def _pool(name):
    function = getattr(F, name)
    SPECIAL[name] = lambda input, kernel, stride=(), *more, **words: function(
        input, kernel, list(stride) or None, *more, **words
    )


for _name in ("max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d"):
    _pool(_name)


@special("elu", "elu_")
def _elu(input, alpha=1.0, scale=1.0, input_scale=1.0):
    return (
        scale * adjoin.where(input > 0, input, alpha * (adjoin.exp(input * input_scale) - 1))
        if scale != 1 or input_scale != 1
        else F.elu(input, alpha)
    )


def _written(name):
    function = SPECIAL["elu"] if name == "elu" else getattr(F, name)
    SPECIAL[name + "_"] = lambda input, *more: input.copy_(function(input, *more))


for _name in (
    "leaky_relu",
    "hardtanh",
    "silu",
    "hardswish",
    "hardsigmoid",
    "relu6",
    "gelu",
    "mish",
    "elu",
    "celu",
    "selu",
):
    _written(_name)


def _soft(name, function):
    def run(input, dim, dtype=None):
        dtype = None if isinstance(dtype, bool) else dtype_of(dtype)
        return function(input, dim, dtype=dtype)

    SPECIAL[name] = run


for _name in ("softmax", "_softmax", "_safe_softmax"):
    _soft(_name, adjoin.softmax)
for _name in ("log_softmax", "_log_softmax"):
    _soft(_name, adjoin.log_softmax)


def _loss(name, function):
    def run(input, target, *more, **words):
        more = [
            _REDUCTIONS[m] if i == len(more) - 1 and isinstance(m, int) and not isinstance(m, bool) else m
            for i, m in enumerate(more)
        ]
        if isinstance(words.get("reduction"), int):
            words["reduction"] = _REDUCTIONS[words["reduction"]]
        if more and isinstance(more[-1], str):
            words["reduction"] = more.pop()
        return function(input, target, *more, **words)

    SPECIAL[name] = run


for _name in ("mse_loss", "l1_loss", "binary_cross_entropy", "kl_div", "soft_margin_loss"):
    _loss(_name, getattr(F, _name))


@special("binary_cross_entropy_with_logits")
def _bce(input, target, weight=None, pos_weight=None, reduction=1):
    return F.binary_cross_entropy_with_logits(
        input, target, weight, pos_weight=pos_weight, reduction=_REDUCTIONS[reduction]
    )


@special("smooth_l1_loss", "huber_loss")
def _smooth(input, target, reduction=1, beta=1.0):
    return F.smooth_l1_loss(input, target, reduction=_REDUCTIONS[reduction], beta=beta)


@special("nll_loss", "nll_loss_nd", "nll_loss2d")
def _nll(input, target, weight=None, reduction=1, ignore_index=-100):
    return F.nll_loss(input, target, weight, ignore_index=ignore_index, reduction=_REDUCTIONS[reduction])


@special("cross_entropy_loss")
def _cross(input, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    return F.cross_entropy(
        input,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=_REDUCTIONS[reduction],
        label_smoothing=label_smoothing,
    )


@special("scaled_dot_product_attention")
def _attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


def _layer(name):
    function = getattr(adjoin, name)
    many = name == "lstm"
    SPECIAL[name] = lambda input, hx, params, *more: function(input, list(hx) if many else hx, list(params), *more)


for _name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
    _layer(_name)


def _upsampled(name, mode, corners):
    def run(input, size, *more):
        align = more[0] if corners else None
        scale = next((m for m in more[corners:] if isinstance(m, (list, tuple))), None)
        if size is None:
            return F.interpolate(input, scale_factor=list(scale), mode=mode, align_corners=align)
        return F.interpolate(input, size=list(size), mode=mode, align_corners=align)

    SPECIAL[name] = run


for _n, _way in ((1, "linear"), (2, "bilinear"), (3, "trilinear")):
    _upsampled(f"upsample_nearest{_n}d", "nearest", 0)
    _upsampled(f"_upsample_nearest_exact{_n}d", "nearest-exact", 0)
    _upsampled(f"upsample_{_way}{_n}d", _way, 1)
_upsampled("upsample_bicubic2d", "bicubic", 1)


def _padded(name, mode):
    SPECIAL[name] = lambda input, padding: F.pad(input, list(padding), mode)


for _n in (1, 2, 3):
    _padded(f"reflection_pad{_n}d", "reflect")
    _padded(f"replication_pad{_n}d", "replicate")


@special("pad")
def _pad(input, pad, mode="constant", value=None):
    return F.pad(input, list(pad), mode, value)


@special("constant_pad_nd")
def _constant_pad(input, pad, value=0):
    return F.pad(input, list(pad), "constant", value)


@special("im2col")
def _im2col(input, kernel_size, dilation, padding, stride):
    return F.unfold(input, kernel_size, dilation, padding, stride)


@special("col2im")
def _col2im(input, output_size, kernel_size, dilation, padding, stride):
    return F.fold(input, output_size, kernel_size, dilation, padding, stride)


@special("log_sigmoid")
def _log_sigmoid(input):
    return F.logsigmoid(input)


@special("grid_sampler", "grid_sampler_2d")
def _grid(input, grid, interpolation, padding, align_corners):
    ways, edges = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    return F.grid_sample(input, grid, ways[interpolation], edges[padding], align_corners)


# Tensors
@special("to")
def _to(input, *args, **kwargs):
    made, seen = {}, False
    for a in args:
        if isinstance(a, Tensor):
            made |= {"dtype": a.dtype, "device": a.device}
        elif isinstance(a, bool):
            made["copy" if seen else "non_blocking"] = a
            seen = True
        elif isinstance(a, int) and seen:
            made["memory_format"] = memory_format(a)
        elif isinstance(a, (int, adjoin.dtype)):
            made["dtype"] = dtype_of(a)
        elif a is not None:
            made["device"] = a
    return input.to(**{**made, **{k: v for k, v in kwargs.items() if v is not None}})


@special("_to_copy")
def _to_copy(input, **kwargs):
    return input.to(**{k: v for k, v in kwargs.items() if v is not None})


@special("size", "sym_size")
def _size(input, dim=None):
    return list(input.shape) if dim is None else input.shape[dim]


@special("stride", "sym_stride")
def _stride(input, dim=None):
    return list(input.stride()) if dim is None else input.stride()[dim]


@special("numel", "sym_numel")
def _numel(input):
    return input.numel()


@special("dim")
def _dim(input):
    return input.dim()


@special("slice")
def _slice(input, dim=0, start=None, end=None, step=1):
    if not isinstance(input, Tensor):  # of a list: (list, start, end, step)
        return input[slice(dim, start, 1 if end is None else end)]
    return input[(slice(None),) * (dim % input.dim()) + (slice(start, end, step),)]


@special("index", "_unsafe_index")
def _index(input, indices):
    if not isinstance(input, Tensor):
        return input.index(indices)
    return input[tuple(slice(None) if i is None else i for i in indices)]


def _put(name, in_place):
    def run(input, indices, values, accumulate=False, unsafe=False):
        target = input if in_place else input.clone()
        if all(i is not None for i in indices):
            return target.index_put_(tuple(indices), values, accumulate)
        key = tuple(slice(None) if i is None else i for i in indices)
        target[key] = target[key] + values if accumulate else values
        return target

    SPECIAL[name] = run


for _name in ("index_put_", "_index_put_impl_"):
    _put(_name, True)
for _name in ("index_put", "_unsafe_index_put"):
    _put(_name, False)


@special("copy", "lift_fresh_copy", "detach_copy")
def _copy(input, source=None, non_blocking=False):
    if source is None:
        return input.clone() if isinstance(input, Tensor) else type(input)(input)
    return source.to(input.dtype).expand_as(input).clone()


@special("lift_fresh", "alias", "_reshape_alias", "_conj", "conj")
def _lift(input, *more):
    return input.conj() if input.is_complex() and not more else input


@special("arange")
def _arange(*args, **kwargs):
    return adjoin.arange(*args, **kwargs)


@special("full")
def _full(size, fill_value, **kwargs):
    return adjoin.full(list(size), fill_value, **kwargs)


@special("scalar_tensor")
def _scalar(value, **kwargs):
    return adjoin.tensor(value, **kwargs)


@special("tensor")
def _tensor(data, dtype=None, device=None, requires_grad=False):
    made = adjoin.tensor(data, dtype=dtype, device=device)
    return made.requires_grad_() if requires_grad else made


@special("item", "_local_scalar_dense", "ScalarImplicit", "IntImplicit", "FloatImplicit")
def _item(input):
    return input.item()


for _name, _kind in (("Int", int), ("Float", float), ("Bool", bool)):
    SPECIAL[_name] = lambda value, kind=_kind: kind(value)


@special("pow")
def _pow(base, exponent):
    return adjoin.pow(base, exponent)


@special("div")
def _div(input, other, rounding_mode=None):
    return adjoin.div(input, other, rounding_mode=rounding_mode)


@special("einsum")
def _einsum(equation, tensors, path=None):
    return adjoin.einsum(equation, *tensors)


@special("type_as")
def _type_as(input, other):
    return input.to(other.dtype)


@special("linspace")
def _linspace(start, end, steps, **kwargs):
    return adjoin.linspace(start, end, steps, **kwargs)


@special(
    "_assert_tensor_metadata", "sym_constrain_range", "sym_constrain_range_for_size", "_assert_async", "warn", "_print"
)
def _nothing(*args, **kwargs):
    return None


@special("_assert_scalar")
def _assert_scalar(value, message=""):
    if not value:
        raise RuntimeError(message)


@special("sym_storage_offset")
def _storage_offset(input):
    return input.storage_offset()


SPECIAL["sym_is_contiguous"] = lambda input, *more: input.is_contiguous()
SPECIAL["_shape_as_tensor"] = lambda input: adjoin.tensor(list(input.shape))
SPECIAL["zero"] = adjoin.zeros_like
SPECIAL["numpy_T"] = lambda input: input.permute(*range(input.dim())[::-1])
SPECIAL["frobenius_norm"] = lambda input, dim=None, keepdim=False: adjoin.sqrt(adjoin.sum(input * input, dim, keepdim))
SPECIAL["native_dropout"] = lambda input, p, train: (
    F.dropout(input, p, bool(train)),
    adjoin.ones_like(input, dtype=adjoin.bool),
)
SPECIAL["floordiv"] = lambda a, b: a // b
SPECIAL["__round_to_zero_floordiv"] = lambda a, b: (
    math.trunc(a / b) if abs(a) < 1 << 52 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
)
