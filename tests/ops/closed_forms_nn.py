"""tests/ops/closed_forms_nn.py: closed forms of activations, normalizations, convolutions, pools, attention."""

import itertools

import numpy as np
from closed_forms import FORMS, of


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


FORMS |= {
    "nn::relu6": lambda input: np.clip(input, 0, 6),
    "nn::mish": lambda input: input * np.tanh(softplus(input)),
    "nn::hardswish": lambda input: input * np.clip(input + 3, 0, 6) / 6,
    "nn::hardsigmoid": lambda input: np.clip(input / 6 + 0.5, 0, 1),
    "nn::logsigmoid": lambda input: -softplus(-input),
    "nn::selu": lambda input: 1.0507009873554805 * elu(input, 1.6732632423543772),
    "nn::celu": lambda input, alpha=1.0: np.maximum(input, 0) + np.minimum(0, alpha * np.expm1(input / alpha)),
    "nn::softsign": lambda input: input / (1 + np.abs(input)),
    "nn::tanhshrink": lambda input: input - np.tanh(input),
    "nn::hardshrink": lambda input, lambd=0.5: input * (np.abs(input) > lambd),
    "nn::softshrink": lambda input, lambd=0.5: np.sign(input) * np.maximum(np.abs(input) - lambd, 0),
    "nn::threshold": lambda input, threshold, value: np.where(input > threshold, input, value),
    "nn::elu": lambda input, alpha=1.0: elu(input, alpha),
    "nn::softplus": lambda input, beta=1, threshold=20: softplus(beta * input) / beta,
    "nn::hardtanh": lambda input, min_val=-1, max_val=1: np.clip(input, min_val, max_val),
    "nn::silu": lambda input: input * sigmoid(input),
    "nn::prelu": lambda input, weight: np.where(
        input > 0, input, input * (weight if weight.size == 1 else weight.reshape(-1, *[1] * (input.ndim - 2)))),
    "softmax_backward": lambda grad, output, dim: output * (grad - (grad * output).sum(axis=dim, keepdims=True)),
    "log_softmax_backward": lambda grad, output, dim: grad - np.exp(output) * grad.sum(axis=dim, keepdims=True),
}  # fmt: skip
for name in ("softmax_backward", "log_softmax_backward"):  # a number is a vector of one
    FORMS[name] = lambda grad, output, dim, form=FORMS[name]: form(
        np.atleast_1d(grad), np.atleast_1d(output), dim).reshape(grad.shape)  # fmt: skip


@of("nn::glu")
def glu(input, dim=-1):
    a, b = np.split(input, 2, dim)
    return a * sigmoid(b)


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


FORMS["nn::softmin"] = lambda input, dim: softmax(-input, dim)


@of("nn::scaled_dot_product_attention")
def attention(query, key, value, attn_mask=0.0, is_causal=False):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1]) + attn_mask
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    return softmax(scores, -1) @ value


# Normalizations.
def along(v, x, d=1):
    return v.reshape([-1 if i == d else 1 for i in range(x.ndim)])


def others(x, d=1):
    return tuple(i for i in range(x.ndim) if i != d)


@of("batch_norm_stats", "nn::batch_norm")
def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    x = input
    mean, var = (x.mean(others(x)), x.var(others(x))) if training else (running_mean, running_var)
    rstd = 1 / np.sqrt(var + eps)
    out = (x - along(mean, x)) * along(rstd, x)
    return out * along(weight, x) + along(bias, x)


@of("batch_norm_backward")
def batch_norm_backward(grad, input, weight, eps, **_):
    return norm_backward(grad, input, others(input), along(weight, input), eps)


@of("layer_norm_backward")
def layer_norm_backward(grad, input, normalized_shape, weight, **_):
    last = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    dx, dw, db = norm_backward(grad, input, last, weight, 1e-5)
    first = tuple(range(input.ndim - len(normalized_shape)))
    hat = (input - input.mean(last, keepdims=True)) / np.sqrt(input.var(last, keepdims=True) + 1e-5)
    return dx, (grad * hat).sum(first), grad.sum(first)


def norm_backward(g, x, dims, weight, eps):
    rstd = 1 / np.sqrt(x.var(dims, keepdims=True) + eps)
    hat, gw = (x - x.mean(dims, keepdims=True)) * rstd, g * weight
    dx = rstd * (gw - gw.mean(dims, keepdims=True) - hat * (gw * hat).mean(dims, keepdims=True))
    return dx, (g * hat).sum(dims), g.sum(dims)


def normalized(x, dims, eps):
    return (x - x.mean(dims, keepdims=True)) / np.sqrt(x.var(dims, keepdims=True) + eps)


@of("layer_norm_stats", "nn::layer_norm")
def layer_norm(input, normalized_shape, weight=1, bias=0, eps=1e-5):
    return normalized(input, tuple(range(-len(normalized_shape), 0)), eps) * weight + bias


@of("group_norm_stats", "nn::group_norm")
def group_norm(input, num_groups, weight, bias, eps=1e-5):
    n, c = input.shape[:2]
    out = normalized(input.reshape(n, num_groups, -1), (2,), eps).reshape(input.shape)
    return out * along(weight, input) + along(bias, input)


@of("group_norm_backward")
def group_norm_backward(grad, input, num_groups, weight, **_):
    n, c = input.shape[:2]
    x, gw = (a.reshape(n, num_groups, -1) for a in (input, grad * along(weight, input)))
    dx = norm_backward(gw, x, (2,), 1, 1e-5)[0].reshape(input.shape)
    hat = normalized(x, (2,), 1e-5).reshape(input.shape)
    return dx, (grad * hat).sum(others(input)), grad.sum(others(input))


FORMS["nn::instance_norm"] = lambda input: normalized(input, tuple(range(2, input.ndim)), 1e-5)
FORMS["nn::rms_norm"] = lambda input, normalized_shape, weight: (
    weight * input / np.sqrt((input**2).mean(-1, keepdims=True) + np.finfo(input.dtype).eps))  # fmt: skip
FORMS["nn::normalize"] = lambda input, p=2.0, dim=1: (
    input / (np.abs(input) ** p).sum(axis=dim, keepdims=True) ** (1 / p))  # fmt: skip
FORMS["cosine_similarity"] = lambda x1, x2, dim=1: (
    (x1 * x2).sum(dim) / np.linalg.norm(x1, axis=dim) / np.linalg.norm(x2, axis=dim))  # fmt: skip
FORMS["nn::pairwise_distance"] = lambda x1, x2: np.linalg.norm(x1 - x2 + 1e-6, axis=-1)
FORMS["nn::embedding"] = lambda input, weight: weight[input]
FORMS["_::embedding_rows"] = lambda weight, indices, padding_idx: weight[indices]


@of("embedding_backward")
def embedding_backward(grad, indices, num_weights, padding_idx):
    out = np.zeros((num_weights, grad.shape[-1]))
    np.add.at(out, indices, grad)
    if padding_idx >= 0:
        out[padding_idx] = 0
    return out


@of("_::bag_sums")
def bag_sums(weight, indices, scale=None, mode="sum", padding=-1, last=False):
    out, where = np.zeros((len(indices), weight.shape[1])), np.full((len(indices), weight.shape[1]), -1)
    by = np.ones(indices.shape) if scale is None else scale
    for bag, (row, factors) in enumerate(zip(indices, by, strict=True)):
        counts, factors = row[row != padding], factors[row != padding]
        if mode == "max" and counts.size:
            out[bag], where[bag] = weight[counts].max(0), counts[weight[counts].argmax(0)]
        elif mode != "max":
            out[bag] = factors @ weight[counts] / (max(counts.size, 1) if mode == "mean" else 1)
    return out.astype(weight.dtype), where if mode == "max" else np.zeros(0, np.int64)


# Windows.
def each(value, n):
    return [value] * n if isinstance(value, int) else list(value) * (n if len(value) == 1 else 1)


def convolve(x, w, bias, stride, padding, dilation, groups):
    """The sum over places of the kernel: one product of matrices for each."""
    n = w.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *[p if isinstance(p, tuple) else (p, p) for p in padding]])
    size = [(x.shape[i + 2] - dilation[i] * (w.shape[i + 2] - 1) - 1) // stride[i] + 1 for i in range(n)]
    out = np.zeros((x.shape[0], w.shape[0], *size))
    for g in range(groups):
        xs, ws = (np.split(t, groups, 1 - i)[g] for i, t in enumerate((x, w)))
        o = slice(g * ws.shape[0], (g + 1) * ws.shape[0])
        for at in itertools.product(*[range(k) for k in w.shape[2:]]):
            window = xs[
                (
                    ...,
                    *[
                        slice(a * d, a * d + (s - 1) * t + 1, t)
                        for a, d, s, t in zip(at, dilation, size, stride, strict=True)
                    ],
                )
            ]
            out[:, o] += np.einsum("bi...,oi->bo...", window, ws[(..., *at)])
    return out + along(bias, out) if bias is not None else out


def spread_out(x, w, bias, stride, padding, dilation, output_padding, groups):
    """The transpose: every element of x adds its kernel to the result."""
    n = w.ndim - 2
    full = [
        (x.shape[i + 2] - 1) * stride[i] + dilation[i] * (w.shape[i + 2] - 1) + 1 + output_padding[i] for i in range(n)
    ]
    out = np.zeros((x.shape[0], w.shape[1] * groups, *full))
    for g in range(groups):
        xs, ws = np.split(x, groups, 1)[g], np.split(w, groups, 0)[g]
        o = slice(g * w.shape[1], (g + 1) * w.shape[1])
        for at in itertools.product(*[range(k) for k in w.shape[2:]]):
            to = [
                slice(a * d, a * d + (s - 1) * t + 1, t)
                for a, d, s, t in zip(at, dilation, x.shape[2:], stride, strict=True)
            ]
            out[(slice(None), o, *to)] += np.einsum("bi...,io->bo...", xs, ws[(..., *at)])
    out = out[(..., *[slice(p, f - p) for p, f in zip(padding, full, strict=True)])]
    return out + along(bias, out) if bias is not None else out


@of("convolution", "nn::conv1d", "nn::conv2d", "nn::conv3d", "nn::conv1d.padding", "nn::conv2d.padding", "nn::conv3d.padding",
    "nn::conv_transpose1d", "nn::conv_transpose2d", "nn::conv_transpose3d")  # fmt: skip
def convolution(
    input, weight, bias=None, stride=1, padding=0, dilation=1, transposed=None, output_padding=None, groups=1
):
    n = weight.ndim - 2
    stride, dilation = each(stride, n), each(dilation, n)
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
        padding = [(t // 2, t - t // 2) for t in total]
    padding = each(0 if padding == "valid" else padding, n)
    if transposed or (transposed is None and output_padding is not None):
        return spread_out(input, weight, bias, stride, padding, dilation, each(output_padding, n), groups)
    return convolve(input, weight, bias, stride, padding, dilation, groups)


@of("convolution_backward")
def convolution_backward(grad, input, weight, needs, **how):
    """The derivative of a linear function of one argument: its value at every unit vector, times grad."""

    def pull(at, make):
        out = np.zeros(at.shape)
        for i in np.ndindex(*at.shape):
            unit = np.zeros(at.shape)
            unit[i] = 1
            out[i] = (make(unit) * grad).sum()
        return out

    return (pull(input, lambda x: convolution(x, weight, **how)) if needs[0] else np.zeros(0),
            pull(weight, lambda w: convolution(input, w, **how)) if needs[1] else np.zeros(0),
            grad.sum(others(grad)) if needs[2] else np.zeros(0))  # fmt: skip


def windows(shape, kernel, stride, padding, dilation=(1, 1), ceil_mode=False):
    """For each result of a pool: the indices in its plane, and how many places the window has with padding."""
    size = []
    for n, k, s, p, d in zip(shape, kernel, stride, padding, dilation, strict=True):
        rest = n + 2 * p - d * (k - 1) - 1
        m = (-(-rest // s) if ceil_mode else rest // s) + 1
        size.append(m - 1 if ceil_mode and (m - 1) * s >= n + p else m)
    for at in np.ndindex(*size):
        axes = []
        count = 1
        for a, n, k, s, p, d in zip(at, shape, kernel, stride, padding, dilation, strict=True):
            start = a * s - p
            count *= min(start + k * d, n + p) - start if d == 1 else k
            axes.append([i for i in range(start, start + k * d, d) if 0 <= i < n])
        yield at, np.ix_(*axes), count


def pooled(input, n, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    kernel = each(kernel_size, n)
    shape = input.shape[-n:]
    return list(
        windows(
            shape, kernel, kernel if stride is None else each(stride, n), each(padding, n), each(dilation, n), ceil_mode
        )
    )


def assemble(input, n, found, make):
    size = [max(at[i] for at, *_ in found) + 1 for i in range(n)]
    out = [np.zeros((*input.shape[:-n], *size), d) for d in (input.dtype, np.int64)]
    for at, places, count in found:
        for o, v in zip(out, make(input[(..., *places)], places, count), strict=False):
            o[(..., *at)] = v
    return out


def max_pool(n, with_indices):
    def form(input, **how):
        flat = np.arange(np.prod(input.shape[-n:])).reshape(input.shape[-n:])

        def best(window, places, count):
            window = window.reshape(*window.shape[:-n], -1)
            return window.max(-1), flat[places].ravel()[window.argmax(-1)]

        out = assemble(input, n, pooled(input, n, **how), best)
        return out if with_indices else out[0]

    return form


FORMS["nn::max_pool1d"], FORMS["nn::max_pool2d"] = max_pool(1, False), max_pool(2, False)
FORMS["_::window_maxima"] = lambda input, kernel, **how: max_pool(len(kernel), False)(input, kernel_size=kernel, **how)
FORMS["nn::max_pool1d_with_indices"] = max_pool(1, True)
FORMS["max_pool2d_with_indices"] = FORMS["nn::max_pool2d_with_indices"] = max_pool(2, True)


def avg_pool(n):
    def form(input, count_include_pad=True, divisor_override=None, **how):
        def mean(window, places, count):
            total = window.sum(axis=tuple(range(-n, 0)))
            inside = window[(0,) * (window.ndim - n)].size
            return [total / (divisor_override or (count if count_include_pad else inside))]

        return assemble(input, n, pooled(input, n, **how), mean)[0]

    return form


FORMS["nn::avg_pool1d"] = avg_pool(1)
FORMS["nn::avg_pool2d"] = FORMS["avg_pool2d_forward"] = avg_pool(2)


@of("avg_pool2d_backward")
def avg_pool2d_backward(grad, input_shape, **how):
    return transposed(FORMS["avg_pool2d_forward"], grad, input_shape, **how)


def transposed(form, grad, input_shape, **how):
    """The transpose of what a pool does to a plane."""
    out = np.zeros(input_shape)
    for i in np.ndindex(*input_shape[-2:]):
        unit = np.zeros(input_shape[-2:])
        unit[i] = 1
        out[(..., *i)] = (form(unit[None, None], **how) * grad).sum((-1, -2))
    return out


def adaptive(n, reduce):
    def form(input, output_size):
        shape, size = input.shape[-n:], each(output_size, n)
        size = [s if o in (-1, None) else o for o, s in zip(size, shape, strict=True)]
        out = np.zeros((*input.shape[:-n], *size))
        for at in np.ndindex(*size):
            cut = [slice(a * s // o, -(-(a + 1) * s // o)) for a, s, o in zip(at, shape, size, strict=True)]
            out[(..., *at)] = reduce(input[(..., *cut)], axis=tuple(range(-n, 0)))
        return out

    return form


FORMS["nn::adaptive_avg_pool1d"] = adaptive(1, np.mean)
FORMS["nn::adaptive_avg_pool2d"] = FORMS["adaptive_avg_pool2d_forward"] = adaptive(2, np.mean)
FORMS["nn::adaptive_max_pool2d"] = adaptive(2, np.max)
FORMS["adaptive_avg_pool2d_backward"] = lambda grad, input_shape: transposed(
    lambda x: adaptive(2, np.mean)(x, grad.shape[-2:]), grad, input_shape)  # fmt: skip


@of("max_pool2d_backward")
def max_pool2d_backward(grad, indices, input_shape):
    out = np.zeros((*input_shape[:-2], input_shape[-2] * input_shape[-1]))
    for at in np.ndindex(*grad.shape):
        out[(*at[:-2], indices[at])] += grad[at]
    return out.reshape(input_shape)
