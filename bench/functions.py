"""bench/functions.py: derivatives of functions: along a direction, whole Jacobians, second derivatives; functions over a batch."""

from rivals import READY, drawn, jitted
from table import case


def of_functions(T, w):
    return {
        "layer": lambda x: T.tanh(x @ w) * x,
        "chain": lambda x: T.tanh(T.sin(x) * x) + x,
        "energy": lambda x: (T.sin(x) * x**2).sum(),
    }


def function(name, statement, of_jax=None, **tensors):
    """of_jax: of jax and the functions what is compiled."""

    def setup(T):
        made = {k: T.randn(*shape) for k, shape in tensors.items()}
        return {"T": T, "f": T.func, **made, **of_functions(T, T.randn(64, 64) / 8)}

    def setup_jax():
        import jax
        import jax.numpy as jnp

        made = of_functions(jnp, jnp.asarray(drawn(64, 64) / 8))
        return jitted(of_jax(jax, made), *(drawn(*shape) for shape in tensors.values()))

    case("func", "func_" + name, statement, setup, rivals={"jax": (READY, setup_jax)} if of_jax else {})


def along(jax, of):
    return lambda x, v: jax.jvp(of["chain"], (x,), (v,))


for name, shape in (("64", (64,)), ("256x256", (256, 256))):
    function("chain_" + name, "chain(x)", lambda jax, of: of["chain"], x=shape)
    function("jvp_" + name, "f.jvp(chain, (x,), (v,))", along, x=shape, v=shape)
function("jacfwd_64", "f.jacfwd(layer)(x)", lambda jax, of: jax.jacfwd(of["layer"]), x=(64,))
function("jacrev_64", "f.jacrev(layer)(x)", lambda jax, of: jax.jacrev(of["layer"]), x=(64,))
function("hessian_32", "f.hessian(energy)(x)", lambda jax, of: jax.hessian(of["energy"]), x=(32,))


def of_samples(T, F):
    """Functions of a sample."""

    def twenty(x):
        for _ in range(10):
            x = T.tanh(x) * 1.5
        return x

    def loss(w1, b1, w2, b2, x):
        return (F.linear(F.relu(F.linear(x, w1, b1)), w2, b2) ** 2).sum()

    def picture_loss(w1, w2, x):
        return (F.conv2d(F.relu(F.conv2d(x, w1)), w2) ** 2).sum()

    return {"twenty": twenty, "loss": loss, "picture_loss": picture_loss}


def batch(name, statement, of_jax=None, **tensors):
    """Functions of a sample over a batch of samples."""

    def setup(T):
        made = {k: T.randn(*shape) / 4 for k, shape in tensors.items()}
        return {"T": T, "f": T.func, **made, **of_samples(T, T.nn.functional)}

    def setup_jax():
        import types

        import jax
        import jax.numpy as jnp

        F = types.SimpleNamespace(linear=lambda x, w, b: x @ w.T + b, relu=jax.nn.relu)
        made = of_samples(jnp, F)
        return jitted(of_jax(jax, made), *(drawn(*shape) / 4 for shape in tensors.values()))

    case("func", "func_" + name, statement, setup, rivals={"jax": (READY, setup_jax)} if of_jax else {})


batch("vmap_20_ops", "f.vmap(twenty)(x)", lambda jax, of: jax.vmap(of["twenty"]), x=(64, 16))
batch(
    "vmap_grad_20_ops",
    "f.vmap(f.grad(lambda v: twenty(v).sum()))(x)",
    lambda jax, of: jax.vmap(jax.grad(lambda v: of["twenty"](v).sum())),
    x=(64, 16),
)
batch(
    "per_sample_mlp",
    "f.vmap(f.grad(loss, (0, 1, 2, 3)), (None, None, None, None, 0))(w1, b1, w2, b2, x)",
    lambda jax, of: jax.vmap(jax.grad(of["loss"], (0, 1, 2, 3)), (None, None, None, None, 0)),
    w1=(128, 64), b1=(128,), w2=(10, 128), b2=(10,), x=(64, 64),
)  # fmt: skip
batch(
    "per_sample_convolutions",
    "f.vmap(f.grad(picture_loss, (0, 1)), (None, None, 0))(w1, w2, x)",
    w1=(16, 1, 3, 3), w2=(32, 16, 3, 3), x=(64, 1, 28, 28),
)  # fmt: skip
