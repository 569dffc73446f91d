"""bench/functions.py: derivatives of functions: along a direction, whole Jacobians, second derivatives."""

from table import case


def function(name, statement, **tensors):
    def setup(T):
        made = {k: T.randn(*shape) for k, shape in tensors.items()}
        w = T.randn(64, 64) / 8
        return {
            "T": T, "f": T.func, "w": w, **made,
            "layer": lambda x: T.tanh(x @ w) * x,
            "chain": lambda x: T.tanh(T.sin(x) * x) + x,
            "energy": lambda x: (T.sin(x) * x**2).sum(),
        }  # fmt: skip

    case("func", "func_" + name, statement, setup)


function("jvp_64", "f.jvp(chain, (x,), (v,))", x=(64,), v=(64,))
function("jvp_256x256", "f.jvp(chain, (x,), (v,))", x=(256, 256), v=(256, 256))
function("jacfwd_64", "f.jacfwd(layer)(x)", x=(64,))
function("jacrev_64", "f.jacrev(layer)(x)", x=(64,))
function("hessian_32", "f.hessian(energy)(x)", x=(32,))


def batch(name, statement, **tensors):
    """Functions of a sample over a batch of samples."""

    def setup(T):
        made = {k: T.randn(*shape) for k, shape in tensors.items()}
        F = T.nn.functional

        def twenty(x):
            for _ in range(10):
                x = T.tanh(x) * 1.5
            return x

        def loss(w1, b1, w2, b2, x):
            return (F.linear(T.relu(F.linear(x, w1, b1)), w2, b2) ** 2).sum()

        return {"T": T, "f": T.func, **made, "twenty": twenty, "loss": loss}

    case("func", "func_" + name, statement, setup)


batch("vmap_20_ops", "f.vmap(twenty)(x)", x=(64, 16))
batch("vmap_grad_20_ops", "f.vmap(f.grad(lambda v: twenty(v).sum()))(x)", x=(64, 16))
batch(
    "per_sample_mlp",
    "f.vmap(f.grad(loss, (0, 1, 2, 3)), (None, None, None, None, 0))(w1, b1, w2, b2, x)",
    w1=(128, 64), b1=(128,), w2=(10, 128), b2=(10,), x=(64, 64),
)  # fmt: skip
