"""bench/rivals.py: libraries with names of their own; a case says how each of them is called."""

RIVALS = ("scipy", "jax", "pyfftw")


def jitted(function, *arguments):
    """Names for the statement `ready(f(*x))`: a function under jax.jit and its arguments."""
    import jax
    import jax.numpy as jnp

    return {"f": jax.jit(function), "x": [jnp.asarray(a) for a in arguments], "ready": jax.block_until_ready}


READY = "ready(f(*x))"


def drawn(*shape, kind="float32"):
    import numpy as np

    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    if kind == "complex64":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(kind)
