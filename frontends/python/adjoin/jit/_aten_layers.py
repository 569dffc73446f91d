"""adjoin.jit._aten_layers: layers and losses of PyTorch's files, with arguments in the order of PyTorch's schemas."""

import math

import adjoin
from adjoin.nn import functional as F

from ._aten_calls import REDUCTIONS, SPECIAL, dtype_of, special


@special("_convolution", "convolution")
def _convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *flags):
    n = weight.dim() - 2
    wide = [list(v) * n if len(v) == 1 else list(v) for v in (stride, padding, dilation, output_padding)]
    if transposed:
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[n - 1]
        return function(input, weight, bias, wide[0], wide[1], wide[3], groups, wide[2])
    return (F.conv1d, F.conv2d, F.conv3d)[n - 1](input, weight, bias, wide[0], wide[1], wide[2], groups)


@special("_convolution_mode")
def _convolution_mode(input, weight, bias, stride, padding, dilation, groups):
    return (F.conv1d, F.conv2d, F.conv3d)[weight.dim() - 3](input, weight, bias, stride, padding, dilation, groups)


def _masked(scores, mask, kind):
    """kind 0: what each position may see; 1: which positions are padding; True is left out."""
    if mask is None:
        return scores
    if mask.dtype != adjoin.bool:
        return scores + mask
    if mask.dim() == 2 and (kind == 1 or kind is None and mask.shape[0] == scores.shape[0]):
        mask = mask[:, None, None, :]
    return scores.masked_fill(mask, -math.inf)


@special("_native_multi_head_attention")
def _heads(
    query,
    key,
    value,
    embed_dim,
    num_head,
    qkv_weight,
    qkv_bias,
    proj_weight,
    proj_bias,
    mask=None,
    need_weights=True,
    average=True,
    kind=None,
):
    parts = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
    q, k, v = (F.linear(x, w, b).unflatten(-1, (num_head, -1)).transpose(1, 2) for x, w, b in parts)
    weights = _masked(q / math.sqrt(embed_dim // num_head) @ k.transpose(-1, -2), mask, kind).softmax(-1)
    made = F.linear((weights @ v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    return made, (weights.mean(1) if average else weights) if need_weights else adjoin.empty(0)


@special("_transformer_encoder_layer_fwd")
def _encoder_layer(src, embed_dim, num_heads, *given):
    qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, n1, b1, n2, b2, w1, c1, w2, c2, *mask = (
        given
    )
    mask, kind = (*mask, None, None)[:2]

    def attended(x):
        return _heads(
            x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, kind
        )[0]

    def fed(x):
        return F.linear((F.gelu if use_gelu else F.relu)(F.linear(x, w1, c1)), w2, c2)

    shape = [embed_dim]
    if norm_first:
        x = src + attended(F.layer_norm(src, shape, n1, b1, eps))
        return x + fed(F.layer_norm(x, shape, n2, b2, eps))
    x = F.layer_norm(src + attended(src), shape, n1, b1, eps)
    return F.layer_norm(x + fed(x), shape, n2, b2, eps)


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
            REDUCTIONS[m] if i == len(more) - 1 and isinstance(m, int) and not isinstance(m, bool) else m
            for i, m in enumerate(more)
        ]
        if isinstance(words.get("reduction"), int):
            words["reduction"] = REDUCTIONS[words["reduction"]]
        if more and isinstance(more[-1], str):
            words["reduction"] = more.pop()
        return function(input, target, *more, **words)

    SPECIAL[name] = run


for _name in ("mse_loss", "l1_loss", "binary_cross_entropy", "kl_div", "soft_margin_loss"):
    _loss(_name, getattr(F, _name))


@special("binary_cross_entropy_with_logits")
def _bce(input, target, weight=None, pos_weight=None, reduction=1):
    return F.binary_cross_entropy_with_logits(
        input, target, weight, pos_weight=pos_weight, reduction=REDUCTIONS[reduction]
    )


@special("smooth_l1_loss", "huber_loss")
def _smooth(input, target, reduction=1, beta=1.0):
    return F.smooth_l1_loss(input, target, reduction=REDUCTIONS[reduction], beta=beta)


@special("nll_loss", "nll_loss_nd", "nll_loss2d")
def _nll(input, target, weight=None, reduction=1, ignore_index=-100):
    return F.nll_loss(input, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction])


@special("cross_entropy_loss")
def _cross(input, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    return F.cross_entropy(
        input,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=REDUCTIONS[reduction],
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
