"""The package functorch, which comes with PyTorch: its functions under Adjoin; those that went to ``torch.func`` warn as there."""

import functools
import warnings

from adjoin._functorch.make_functional import (  # noqa: F401
    FunctionalModule,
    FunctionalModuleWithBuffers,
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
)

from adjoin import func as _func
from adjoin.func import functional_call, stack_module_state  # noqa: F401
from adjoin.fx.experimental.proxy_tensor import make_fx  # noqa: F401


def _moved(name: str, there: str) -> object:
    function = getattr(_func, name)

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> object:
        warnings.warn(
            f"functorch.{name} is deprecated. Please use `{there}.{name}` instead", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)

    return call


vmap = _moved("vmap", "torch")
functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp = (
    _moved(name, "torch.func")
    for name in ("functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp")
)
