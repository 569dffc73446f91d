"""adjoin.nn.utils.stateless: adjoin.func.functional_call under its older name."""

import contextlib
import warnings

import adjoin

__all__ = ["functional_call"]


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True,
                    strict=False):  # fmt: skip
    """Calls ``module`` with the tensors of a dictionary by dotted name in place of its own.

    ``tie_weights``: a tensor that the module has under several names is replaced under all.
    ``strict``: every name must be given, and be one of the module's.
    """
    warnings.warn(
        "nn.utils.stateless.functional_call is deprecated. Please use `torch.func.functional_call`.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """The same for libraries, without the warning."""
    return adjoin.func.functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, *, tie_weights=False, strict=False, stack_weights=False):
    """Inside, the tensors of a dictionary by dotted name stand in the module's places; what is written to a place then is found
    in the dictionary afterwards."""
    with adjoin.func.replaced(module, parameters_and_buffers, tie_weights, strict):
        yield
