"""adjoin.nn.utils.stateless: adjoin.func.functional_call under its older name."""

import adjoin

__all__ = ["functional_call"]


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True,
                    strict=False):  # fmt: skip
    """Calls ``module`` with the tensors of a dictionary by dotted name in place of its own.

    ``tie_weights``: a tensor that the module has under several names is replaced under all.
    ``strict``: every name must be given, and be one of the module's.
    """
    return adjoin.func.functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights,
                                       strict=strict)  # fmt: skip
