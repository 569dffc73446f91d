"""adjoin._vmap_internals: vmap under the name that it had before func."""

from ._vmap import vmap

__all__ = ["vmap"]


def _vmap(func, in_dims=0, out_dims=0, allow_none_pass_through=False):
    """vmap; with allow_none_pass_through a None among the results stays None, as gradients that do not exist are."""
    if not allow_none_pass_through:
        return vmap(func, in_dims, out_dims)

    def passing(*args):
        there = []

        def some(*inner):
            made = func(*inner)
            several = made if isinstance(made, (tuple, list)) else (made,)
            there[:] = [isinstance(made, tuple), isinstance(made, list), [m is not None for m in several]]
            return tuple(m for m in several if m is not None)

        found = iter(vmap(some, in_dims, out_dims)(*args))
        is_tuple, is_list, known = there
        results = [next(found) if k else None for k in known]
        return tuple(results) if is_tuple else results if is_list else results[0]

    return passing
