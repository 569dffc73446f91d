"""The package functorch, which comes with PyTorch: its functions under Adjoin."""

from adjoin._functorch.make_functional import (  # noqa: F401
    FunctionalModule,
    FunctionalModuleWithBuffers,
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
)

from adjoin.func import (  # noqa: F401
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)
from adjoin.fx.experimental.proxy_tensor import make_fx  # noqa: F401
