"""bench/kernels.py: one kernel on much data: pointwise, reductions, sorting, indexing, products, optimizers."""

from table import case

N = 10_000_000


def vectors(T):
    x, y = T.rand(N) + 0.5, T.rand(N) + 0.5
    return {"x": x, "y": y, "out": T.empty(N), "bf16": T.bfloat16, "f64": T.float64, "F": T.nn.functional}


def rows(n, m):
    return lambda T: {"x": T.rand(n, m), "F": T.nn.functional}


for name, statement, moved in (
    ("add", "x + y", 12),
    ("add_out", "T.add(x, y, out=out)", 12),
    ("add_", "x.add_(y)", 12),
    ("mul", "x * y", 12),
    ("mul_out", "T.mul(x, y, out=out)", 12),
    ("exp", "x.exp()", 8),
    ("relu", "x.relu()", 8),
    ("gelu", "F.gelu(x)", 8),
    ("gelu_tanh", "F.gelu(x, approximate='tanh')", 8),
    ("silu", "F.silu(x)", 8),
    ("pow2.5", "x ** 2.5", 8),
    ("cast_bf16", "x.to(bf16)", 6),
    ("cast_f64", "x.to(f64)", 12),
    ("sum", "x.sum()", 4),
    ("max", "x.max()", 4),
    ("norm", "x.norm()", 4),
    ("cumsum", "x.cumsum(0)", 8),
    ("normal_", "x.normal_()", 4),
    ("uniform_", "x.uniform_()", 4),
    ("dropout", "F.dropout(x, 0.1)", 8),
):
    case("ew", f"ew_{name}", statement, vectors, bytes=moved * N)
for name in ("exp", "log", "tanh", "sigmoid", "sin", "sqrt", "erf"):
    case("ew", f"ew_{name}_out", f"T.{name}(x, out=out)", vectors, bytes=8 * N)
case(
    "ew",
    "ew_where",
    "T.where(mask, x, y)",
    lambda T: (v := vectors(T)) | {"mask": v["x"] > v["y"]},
    bytes=13 * N,
)
case("ew", "ew_cast_u8", "x.to(T.float32)", lambda T: {"x": T.ones(N, dtype=T.uint8)}, bytes=5 * N)


def halves(T):
    return {name: T.rand(N).to(T.bfloat16) for name in ("x", "y", "out")}


case("ew", "ew_add_bf16", "T.add(x, y, out=out)", halves, bytes=6 * N)
for name, statement in (
    ("sum_dim0", "x.sum(0)"),
    ("sum_dim1", "x.sum(1)"),
    ("max_dim1", "x.max(1)"),
    ("argmax_dim1", "x.argmax(1)"),
    ("var_dim1", "x.var(1)"),
):
    case("ew", name, statement, rows(10_000, 1_000), bytes=4 * N)
for name, statement in (
    ("softmax", "x.softmax(1)"),
    ("log_softmax", "x.log_softmax(1)"),
    ("layer_norm", "F.layer_norm(x, (1000,))"),
    ("cumsum_dim1", "x.cumsum(1)"),
):
    case("ew", name, statement, rows(10_000, 1_000), bytes=8 * N)
case("ew", "sort_vector", "x.sort()", lambda T: {"x": T.rand(1_000_000)}, bytes=16e6)
case("ew", "sort_rows", "x.sort(1)", rows(1_000, 1_000), bytes=16e6)
case("ew", "topk_rows", "x.topk(5, 1)", rows(1_000, 1_000), bytes=4e6)
case("ew", "transpose", "x.t().contiguous()", rows(4_000, 2_500), bytes=8 * N)
case(
    "ew", "to_channels_last", "x.permute(0, 2, 3, 1).contiguous()", lambda T: {"x": T.rand(50, 64, 56, 56)}, bytes=8 * N
)
case(
    "ew",
    "add_transposed",
    "T.add(x.t(), y, out=out)",
    lambda T: {"x": T.rand(4_000, 2_500), "y": T.rand(2_500, 4_000), "out": T.empty(2_500, 4_000)},
    bytes=12 * N,
)
case("ew", "cat_dim0", "T.cat((x, y))", lambda T: {"x": T.rand(N // 2), "y": T.rand(N // 2)}, bytes=8 * N)
case("ew", "cat_dim1", "T.cat((x, x), 1)", rows(10_000, 500), bytes=8 * N)


def table_rows(T):
    i = T.randint(0, 100_000, (100_000,))
    return {"table": T.rand(100_000, 100), "i": i, "sums": T.zeros(100_000, 100), "F": T.nn.functional}


case("ew", "index_select", "table.index_select(0, i)", table_rows, bytes=8 * N)
case("ew", "embedding", "F.embedding(i, table)", table_rows, bytes=8 * N)
case("ew", "index_add_", "sums.index_add_(0, i, table)", table_rows, bytes=12 * N)


def picks(T):
    x = T.rand(10_000, 1_000)
    return {"x": x, "i": T.randint(0, 1_000, (10_000, 1_000)), "sums": T.zeros(10_000, 1_000)}


case("ew", "gather", "x.gather(1, i)", picks, bytes=16 * N)
case("ew", "scatter_add_", "sums.scatter_add_(1, i, x)", picks, bytes=20 * N)


def logits(T):
    return {"x": T.rand(4096, 1000), "t": T.randint(0, 1000, (4096,)), "F": T.nn.functional}


case("ew", "cross_entropy", "F.cross_entropy(x, t)", logits, bytes=4 * 4096e3)


def four(n):
    return lambda T: {k: T.rand(n) for k in "xabc"} | {"F": T.nn.functional}


case("ew", "gelu_chain", "F.gelu(x * a + b) * c", four(N), bytes=20 * N)
case("ew", "gelu_chain_16k", "F.gelu(x * a + b) * c", four(16384), bytes=20 * 16384)


# ---- products
def product(dtype, m, n, k):
    kind = {"float32": "f32", "float64": "f64", "bfloat16": "bf16"}[dtype]
    name = f"mm_{kind}_{m}" if m == n == k else f"mm_{kind}_{m}x{n}x{k}"

    def setup(T):
        to = getattr(T, dtype)
        return {"a": T.rand(m, k).to(to), "b": T.rand(k, n).to(to)}

    case("gemm", name, "a @ b", setup, flops=2.0 * m * n * k, dtype=dtype)


SKINNY = [(1, 1024, 1024), (1, 4096, 4096), (8, 1024, 1024), (64, 4096, 1024), (4096, 64, 1024)]
SKINNY += [(1024, 1024, 16), (64, 10, 512), (512, 512, 8192)]
for dtype in ("float32", "float64", "bfloat16"):
    for n in (32, 64, 128, 256, 512, 1024, 2048, 4096):
        if n < 4096 or dtype != "float64":
            product(dtype, n, n, n)
    for m, n, k in SKINNY if dtype != "float64" else []:
        product(dtype, m, n, k)
    case(
        "gemm",
        f"bmm_{dtype}_64",
        "T.bmm(a, b)",
        lambda T, d=dtype: {k: T.rand(64, 64, 64).to(getattr(T, d)) for k in "ab"},
        flops=2.0 * 64**4,
        dtype=dtype,
    )


# ---- optimizers: twenty million numbers in 150 tensors, and small ones
def optimizer(kind, size, **options):
    def setup(T):
        parameters = [T.nn.Parameter(T.randn(size)) for _ in range(150)]
        for p in parameters:
            p.grad = T.randn(size)
        o = getattr(T.optim, kind)(parameters, lr=1e-4, **options)
        return {"o": o, "parameters": parameters, "clip": T.nn.utils.clip_grad_norm_}

    return setup


BIG, SMALL = 133_333, 64
for name, kind, words, options in (
    ("sgd_default", "SGD", 3, {}),
    ("sgd_foreach", "SGD", 3, {"foreach": True}),
    ("sgd_fused", "SGD", 3, {"fused": True}),
    ("sgd_momentum", "SGD", 5, {"momentum": 0.9}),
    ("sgd_momentum_fused", "SGD", 5, {"momentum": 0.9, "fused": True}),
    ("adam_default", "Adam", 7, {}),
    ("adam_foreach", "Adam", 7, {"foreach": True}),
    ("adam_fused", "Adam", 7, {"fused": True}),
    ("adamw_fused", "AdamW", 7, {"fused": True}),
):
    case("optim", name, "o.step()", optimizer(kind, BIG, **options), bytes=words * 4 * 150 * BIG)
case("optim", "sgd_small", "o.step()", optimizer("SGD", SMALL), per=150)
case("optim", "adam_small", "o.step()", optimizer("Adam", SMALL), per=150)
case("optim", "adam_fused_small", "o.step()", optimizer("Adam", SMALL, fused=True), per=150)
case("optim", "zero_grad_small", "o.zero_grad()", optimizer("SGD", SMALL), per=150)
case("optim", "clip_grad_norm", "clip(parameters, 1e9)", optimizer("SGD", BIG), bytes=4 * 150 * BIG)
