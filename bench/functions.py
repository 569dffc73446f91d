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
