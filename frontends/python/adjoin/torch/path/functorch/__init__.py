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


def make_fx(f: object, *args: object, **kwargs: object) -> None:
    """PyTorch's graphs of its own operators; here a trace is a program: ``torch.jit.trace``, or ``torch.fx.symbolic_trace``."""
    raise NotImplementedError(
        "make_fx: there are no graphs of ATen's operators here; torch.jit.trace records a function's calls, "
        "torch.fx.symbolic_trace its structure"
    )
