"""bench/gpu/beside/cases.py: what is timed beside PyTorch on the card, written once against PyTorch's names."""

import collections
import os

SMALL = bool(os.environ["ADJOIN_GPU_SIMULATED"])
N = 1 << (12 if SMALL else 26)  # elements of large arrays: 256 MB in float32
ROWS, COLUMNS = N >> 10, 1 << 10
SQUARE = 64 if SMALL else 8192
# wanted: the ratio to PyTorch's time; bytes, flops: that are moved or made at least; share: wanted of the limit; work: operations of
# the forward pass, of those where a kernel of ours may be the product.
Case = collections.namedtuple("Case", "wanted make bytes flops share work")
CASES = {}


def case(name, wanted, bytes=0, flops=0, share=0.0, work=0):
    def keep(make):
        CASES[name] = Case(wanted, make, bytes, flops, share, work or flops)
        return make

    return keep


# ---- one stream of memory
for _dtype, _size in (("float32", 4), ("bfloat16", 2)):

    def _pair(T, device, dtype=_dtype):
        make = lambda: T.rand(N, device=device).to(getattr(T, dtype))
        return make(), make(), make()

    @case(f"add {_dtype}", 1.05, bytes=3 * _size * N, share=0.85)
    def _add(T, device, pair=_pair):
        x, y, out = pair(T, device)
        return lambda: T.add(x, y, out=out)

    @case(f"exp {_dtype}", 1.05, bytes=2 * _size * N, share=0.85)
    def _exp(T, device, pair=_pair):
        x, _, out = pair(T, device)
        return lambda: T.exp(x, out=out)

    @case(f"sum of all {_dtype}", 1.2, bytes=_size * N, share=0.75)
    def _sum(T, device, pair=_pair):
        x = pair(T, device)[0]
        return lambda: x.sum()

    for _dim in (0, 1):

        @case(f"sum over dim {_dim} {_dtype}", 1.2, bytes=_size * N, share=0.75)
        def _sums(T, device, pair=_pair, dim=_dim):
            x = pair(T, device)[0].view(ROWS, COLUMNS)
            return lambda: x.sum(dim)

    @case(f"transposed copy {_dtype}", 1.2, bytes=2 * _size * N, share=0.6)
    def _transposed(T, device, pair=_pair):
        x = pair(T, device)[0].view(ROWS, COLUMNS)
        return lambda: x.t().contiguous()


def matrix(T, device, dtype="float32", grad=False):
    return T.randn(ROWS, COLUMNS, device=device).to(getattr(T, dtype)).requires_grad_(grad)


@case("cast float32 to bfloat16", 1.05, bytes=6 * N, share=0.85)
def _cast(T, device):
    x = matrix(T, device)
    return lambda: x.to(T.bfloat16)


@case("add of a row", 1.2, bytes=8 * N, share=0.6)
def _broadcast(T, device):
    x, row = matrix(T, device), T.rand(COLUMNS, device=device)
    return lambda: x + row


# ---- rows
def both_ways(T, f, x, *weights):
    """The call with its gradients; what flows back is made once."""
    g = T.ones_like(f(x).detach())
    return lambda: T.autograd.grad(f(x), (x, *weights), g)


@case("softmax bfloat16", 1.1, bytes=4 * N, share=0.7)
def _softmax(T, device):
    x = matrix(T, device, "bfloat16")
    return lambda: x.softmax(1)


@case("softmax bfloat16, both ways", 1.1, bytes=10 * N)
def _softmax_back(T, device):
    return both_ways(T, lambda x: x.softmax(1), matrix(T, device, "bfloat16", True))


@case("layer norm bfloat16, both ways", 1.1, bytes=10 * N)
def _layer_norm(T, device):
    w = T.ones(COLUMNS, device=device).to(T.bfloat16).requires_grad_()
    norm = T.nn.functional.layer_norm
    return both_ways(T, lambda x: norm(x, (COLUMNS,), w, w), matrix(T, device, "bfloat16", True), w)


@case("cross entropy, both ways", 1.1, bytes=12 * N)
def _cross_entropy(T, device):
    y = T.randint(0, COLUMNS, (ROWS,), device=device)
    return both_ways(T, lambda x: T.nn.functional.cross_entropy(x, y), matrix(T, device, "float32", True))


@case("batch norm, both ways", 1.2, bytes=32 * N)
def _batch_norm(T, device):
    x = T.randn(N >> 16 or 1, 64, 32, 32, device=device).requires_grad_()
    norm = T.nn.functional.batch_norm
    return both_ways(T, lambda x: norm(x, None, None, training=True), x)


# ---- places
@case("index_select of rows", 1.5, bytes=8 * N, share=0.4)
def _gather(T, device):
    x, i = matrix(T, device), T.randperm(ROWS).to(device)
    return lambda: x.index_select(0, i)


@case("index_add of rows", 1.5, bytes=12 * N)
def _index_add(T, device):
    x, i, out = matrix(T, device), T.randint(0, ROWS, (ROWS,), device=device), T.zeros(ROWS, COLUMNS, device=device)
    return lambda: out.index_add_(0, i, x)


TOKENS, WORDS, WIDTH = (16, 50, 8) if SMALL else (16384, 50257, 768)


@case("embedding of 16,384 tokens, both ways", 1.5, bytes=4 * WIDTH * (3 * TOKENS + WORDS))
def _embedding(T, device):
    table = T.randn(WORDS, WIDTH, device=device).requires_grad_()
    i = T.randint(0, WORDS, (TOKENS,), device=device)
    return both_ways(T, lambda w: T.nn.functional.embedding(i, w), table)


@case("sort of a vector", 1.5)
def _sort(T, device):
    x = T.rand(N >> 3, device=device)
    return lambda: x.sort()


@case("topk of rows", 1.5, bytes=4 * N)
def _topk(T, device):
    x = matrix(T, device)
    return lambda: x.topk(8, 1)


@case("cumsum of a vector", 1.5, bytes=8 * N)
def _cumsum(T, device):
    x = T.rand(N, device=device)
    return lambda: x.cumsum(0)


# ---- products
def squares(T, device, dtype, count):
    return [T.randn(SQUARE, SQUARE, device=device).to(getattr(T, dtype)) for _ in range(count)]


@case("mm bfloat16", 1.05, flops=2 * SQUARE**3, share=0.85)
def _mm(T, device):
    a, b = squares(T, device, "bfloat16", 2)
    return lambda: a @ b


@case("bmm bfloat16", 1.05, flops=2 * SQUARE**3 // 16, share=0.85)
def _bmm(T, device):
    a, b = (x.view(16, SQUARE // 16, SQUARE) for x in squares(T, device, "bfloat16", 2))
    return lambda: T.bmm(a, b.transpose(1, 2))


@case("linear with bias bfloat16", 1.05, flops=2 * SQUARE**3, share=0.85)
def _linear(T, device):
    x, w = squares(T, device, "bfloat16", 2)
    return lambda: T.nn.functional.linear(x, w, w[0])


@case("mm float32", 1.05)
def _mm32(T, device):
    a, b = squares(T, device, "float32", 2)
    return lambda: a @ b


def heads(T, device, grad):
    shape = (1, 2, 32, 16) if SMALL else (4, 16, 4096, 128)
    return [T.randn(shape, device=device).to(T.bfloat16).requires_grad_(grad) for _ in range(3)]


_FLOPS = 2 * 2 * 32 * 32 * 16 if SMALL else 2 * 64 * 4096 * 4096 * 128  # half of the scores are masked


@case("attention bfloat16, causal", 1.2, flops=_FLOPS, share=0.5)
def _attention(T, device):
    q, k, v = heads(T, device, False)
    return lambda: T.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


@case("attention bfloat16, causal, both ways", 1.2, flops=7 * _FLOPS // 2, work=_FLOPS)
def _attention_back(T, device):
    q, k, v = heads(T, device, True)
    return both_ways(T, lambda q: T.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v)


@case("convolution bfloat16, channels-last, both ways", 1.1)
def _convolution(T, device):
    x, w = ((2, 4, 8, 8), (4, 4, 3, 3)) if SMALL else ((64, 256, 56, 56), (256, 256, 3, 3))
    x, w = (
        T.randn(s, device=device).to(T.bfloat16).contiguous(memory_format=T.channels_last).requires_grad_()
        for s in (x, w)
    )
    return both_ways(T, lambda x: T.nn.functional.conv2d(x, w, padding=1), x, w)


# ---- whole steps
@case("AdamW, 150 tensors", 1.1, bytes=28 * 150 * (N // 100), share=0.75)
def _adamw(T, device):
    weights = [T.randn(N // 100, device=device).requires_grad_() for _ in range(150)]
    for w in weights:
        w.grad = T.randn_like(w)
    optimizer = T.optim.AdamW(weights, lr=1e-4, fused=True)
    return lambda: optimizer.step()


@case("LSTM 512, 50 steps, both ways", 1.2)
def _lstm(T, device):
    size = 8 if SMALL else 512
    net = T.nn.LSTM(size, size).to(device)
    x = T.randn(50, 32, size, device=device).requires_grad_()
    return both_ways(T, lambda x: net(x)[0], x, *net.parameters())


@case("encoder layer bfloat16, both ways", 1.1)
def _encoder(T, device):
    size = 32 if SMALL else 768
    net = (
        T.nn.TransformerEncoderLayer(size, size // 16, 4 * size, dropout=0.0, batch_first=True)
        .to(device)
        .to(T.bfloat16)
    )
    x = T.randn(2 if SMALL else 16, 16 if SMALL else 1024, size, device=device).to(T.bfloat16).requires_grad_()
    return both_ways(T, net, x, *net.parameters())


@case("add of 64 elements, 100 calls", 0.7)
def _call(T, device):
    x, y = T.ones(64, device=device), T.ones(64, device=device)

    def many():
        for _ in range(100):
            T.add(x, y)

    return many
