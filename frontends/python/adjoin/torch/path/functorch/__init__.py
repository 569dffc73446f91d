"""The package functorch, which comes with PyTorch: its functions under Adjoin."""

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


class FunctionalModule:
    """What make_functional gave, which PyTorch has taken away: functional_call(module, parameters, arguments) does it."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise NotImplementedError(
            f"{type(self).__name__}: use torch.func.functional_call(module, parameters, arguments)"
        )


class FunctionalModuleWithBuffers(FunctionalModule):
    """The same with buffers."""
