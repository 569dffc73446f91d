"""functorch.experimental: what was tried there first."""

from adjoin._functorch.vmap import chunk_vmap  # noqa: F401
from adjoin.func import (  # noqa: F401
    functionalize,
    hessian,
    jacfwd,
    jvp,
    replace_all_batch_norm_modules_,
)
