"""tests/compat/beside_functional_test.py: functions of images, pools, losses and sequences beside
PyTorch's: values and gradients."""

import itertools

import pytest

torch = pytest.importorskip("torch")

import adjoin
from beside import near, ours


def real(*shape, low=None):
    torch.manual_seed(sum(shape) + len(shape))
    x = torch.randn(shape) if low is None else torch.rand(shape) + low
    return x.requires_grad_()


def mine(value):
    if isinstance(value, torch.Tensor):
        t = ours(value)
        return t.requires_grad_() if value.requires_grad else t
    return value


def beside(name, *args, **kwargs):
    """One function of both libraries, forward and backward."""
    other_args, other_kwargs = [mine(a) for a in args], {k: mine(v) for k, v in kwargs.items()}
    expected = getattr(torch.nn.functional, name)(*args, **kwargs)
    actual = getattr(adjoin.nn.functional, name)(*other_args, **other_kwargs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    actual = actual if isinstance(actual, (tuple, list)) else (actual,)
    for a, e in zip(actual, expected, strict=True):
        near(a, e)
    if not expected[0].requires_grad:
        return
    g = torch.randn(expected[0].shape)
    expected[0].backward(g), actual[0].backward(ours(g))
    pairs = zip((*args, *kwargs.values()), (*other_args, *other_kwargs.values()), strict=True)
    for theirs, own in pairs:
        if isinstance(theirs, torch.Tensor) and theirs.grad is not None:
            near(own.grad, theirs.grad, 1e-4)


SIZES = [{"size": (7, 3)}, {"scale_factor": 2}, {"scale_factor": (1.7, 0.6)}, {"size": 5},
         {"scale_factor": 1.3, "recompute_scale_factor": True}]  # fmt: skip
PLANES = [("nearest", None), ("nearest-exact", None), ("area", None), ("bilinear", False),
          ("bilinear", True), ("bicubic", False), ("bicubic", True)]  # fmt: skip


@pytest.mark.parametrize("how", SIZES, ids=str)
@pytest.mark.parametrize("mode, align", PLANES)
def test_interpolate(mode, align, how):
    beside("interpolate", real(2, 3, 6, 5), mode=mode, align_corners=align, **how)


@pytest.mark.parametrize("mode", ["nearest", "area", "nearest-exact", "linear", "trilinear"])
def test_interpolate_lines_and_volumes(mode):
    if mode != "trilinear":
        beside("interpolate", real(2, 3, 6), scale_factor=1.5, mode=mode)
    if mode != "linear":
        beside("interpolate", real(2, 2, 3, 4, 5), size=(5, 3, 7), mode=mode)


@pytest.mark.parametrize("size", [(4, 5), (13, 20)])
@pytest.mark.parametrize("mode, align", list(itertools.product(("bilinear", "bicubic"), (False, True))))
def test_antialias(mode, align, size):
    beside("interpolate", real(1, 2, 9, 11), size=size, mode=mode, align_corners=align,
           antialias=True)  # fmt: skip


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(mode, padding, align):
    how = {"mode": mode, "padding_mode": padding, "align_corners": align}
    grid = (torch.rand(2, 4, 3, 2) * 2.8 - 1.4).requires_grad_()
    beside("grid_sample", real(2, 3, 5, 6), grid, **how)
    if mode != "bicubic":
        grid = (torch.rand(2, 2, 4, 3, 3) * 2.8 - 1.4).requires_grad_()
        beside("grid_sample", real(2, 3, 4, 5, 6), grid, **how)


POOLS = [
    ("max_pool3d", (3, 2, 1, 1, True, True)), ("max_pool3d", ((2, 3, 2), (1, 2, 1), (1, 1, 0))),
    ("avg_pool3d", (3, 2, 1, True, False)), ("avg_pool3d", ((2, 3, 2), (1, 2, 1), 1, True, True, 5)),
    ("adaptive_avg_pool3d", ((3, None, 5),)), ("adaptive_max_pool3d", ((5, 3, 2), True)),
    ("lp_pool3d", (2, 2)), ("local_response_norm", (2, 0.1)),
]  # fmt: skip


@pytest.mark.parametrize("name, args", POOLS, ids=str)
def test_pool_of_volumes(name, args):
    beside(name, real(2, 3, 6, 7, 8), *args)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_pools(dims):
    shape = (2, 3, 6, 8, 4)[: dims + 2]
    beside(f"adaptive_max_pool{dims}d", real(*shape), 3, return_indices=True)
    beside(f"lp_pool{dims}d", real(*shape, low=0.1), 3, 2, 2, True)
    beside("local_response_norm", real(*shape), 3, alpha=0.1, beta=0.6, k=2.0)
    out, at = getattr(torch.nn.functional, f"max_pool{dims}d")(real(*shape), 2, return_indices=True)
    beside(f"max_unpool{dims}d", out.detach().requires_grad_(), at, 2)
    if dims > 1:
        samples = torch.rand(2, 3, dims)
        beside(f"fractional_max_pool{dims}d", real(*shape), 2, output_size=2, return_indices=True,
               _random_samples=samples)  # fmt: skip


def test_patches_and_shuffles():
    for how in ((2, 1, 0, 1), ((3, 2), 1, 1, 2), (2, 2, 1, (1, 2))):
        beside("unfold", real(2, 3, 6, 7), *how)
        columns = torch.nn.functional.unfold(torch.zeros(2, 3, 6, 7), *how).shape
        beside("fold", real(*columns), (6, 7), *how)
    beside("pixel_shuffle", real(2, 8, 3, 4), 2)
    beside("pixel_unshuffle", real(2, 8, 4, 6), 2)
    beside("affine_grid", real(2, 2, 3), [2, 3, 4, 5], align_corners=False)
    beside("affine_grid", real(2, 3, 4), [2, 3, 4, 5, 2], align_corners=True)


@pytest.mark.parametrize("how", ["mean", "sum", "none"])
def test_losses(how):
    x, signs = real(3, 4), torch.tensor([1.0, -1.0, 1.0])
    several = torch.tensor([[3, 0, -1, 1], [-1, 0, 1, 2], [0, 1, 2, 3]])
    beside("multi_margin_loss", x, torch.tensor([0, 3, 1]), p=2, margin=0.7, weight=torch.rand(4),
           reduction=how)  # fmt: skip
    beside("multilabel_margin_loss", real(3, 4), several, reduction=how)
    beside("multilabel_soft_margin_loss", real(3, 4), torch.rand(3, 4).round(), reduction=how)
    beside("gaussian_nll_loss", real(3, 4), real(3, 4), real(3, 4, low=0.1), full=True,
           reduction=how)  # fmt: skip
    beside("gaussian_nll_loss", real(3, 4), real(3, 4), 0.5, reduction=how)
    beside("poisson_nll_loss", real(3, 4), torch.rand(3, 4) * 5, full=True, reduction=how)
    beside("hinge_embedding_loss", real(3), signs, reduction=how)
    beside("soft_margin_loss", real(3), signs, reduction=how)
    beside("cosine_embedding_loss", real(3, 4), real(3, 4), signs, margin=0.2, reduction=how)
    beside("triplet_margin_with_distance_loss", real(3, 4), real(3, 5)[:, :4].detach(), x * 2,
           swap=True, reduction=how)  # fmt: skip


@pytest.mark.parametrize("how", ["mean", "sum", "none"])
def test_ctc_loss(how):
    def both(x, *args, **kwargs):
        y = ours(x).requires_grad_()
        a, b = (lib.nn.functional.ctc_loss(lib.nn.functional.log_softmax(t, -1), *(
            mine(v) if lib is adjoin else v for v in args), reduction=how, **kwargs)
            for lib, t in ((adjoin, y), (torch, x)))  # fmt: skip
        near(a, b)
        a.sum().backward(), b.sum().backward()
        near(y.grad, x.grad, 1e-4)

    rows = torch.tensor([[1, 2, 2, 3], [1, 1, 1, 4], [4, 2, 3, 1]])
    both(real(8, 3, 5), rows, (8, 7, 6), (3, 2, 4))
    both(real(8, 3, 5), torch.tensor([1, 2, 2, 1, 1, 4, 3]), torch.tensor([8, 7, 8]),
         torch.tensor([3, 2, 2]))  # fmt: skip
    both(real(8, 5), torch.tensor([1, 2, 2]), torch.tensor(8), torch.tensor(3))
    both(real(3, 2, 5), torch.tensor([[1, 1, 1], [1, 2, 3]]), (3, 3), (3, 2), zero_infinity=True)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode):
    index, offsets = torch.tensor([1, 2, 2, 5, 0, 6, 3, 3, 4, 2]), torch.tensor([0, 3, 3, 7])
    beside("embedding_bag", index, real(7, 4), offsets, mode=mode)
    beside("embedding_bag", index, real(7, 4), offsets, mode=mode, padding_idx=2)
    beside("embedding_bag", index.reshape(2, 5), real(7, 4), mode=mode)
    if mode == "sum":
        beside("embedding_bag", index, real(7, 4), offsets, mode=mode,
               per_sample_weights=real(10))  # fmt: skip


ATTENTION = [
    {}, {"attn_mask": torch.rand(4, 4) > 0.7}, {"average_attn_weights": False},
    {"key_padding_mask": torch.tensor([[False, True, False, False], [False] * 4])},
]  # fmt: skip


@pytest.mark.parametrize("how", ATTENTION, ids=lambda how: " ".join(how))
def test_attention(how):
    for k, v, zero in ((None, None, False), (real(1, 1, 6), real(1, 1, 6), True)):
        beside("multi_head_attention_forward", real(4, 2, 6), real(4, 2, 6), real(4, 2, 6), 6, 2,
               real(18, 6), real(18), k, v, zero, 0.0, real(6, 6), real(6), **how)  # fmt: skip


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolutions(dims):
    small = (5, 4, 3)[:dims]
    beside(f"conv_transpose{dims}d", real(2, 4, *small), real(4, 3, *[3] * dims), real(6), stride=2,
           padding=1, output_padding=1, groups=2)  # fmt: skip
    beside(f"conv_transpose{dims}d", real(4, *small), real(4, 3, *[3] * dims), real(3), dilation=2)
    beside(f"conv{dims}d", real(4, *[6] * dims), real(6, 2, *[3] * dims), real(6), groups=2,
           dilation=2, padding=2)  # fmt: skip
