"""adjoin.functional: PyTorch's path to functions that stand at the top."""

import adjoin

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod",
    "cdist", "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm", "split", "stft", "tensordot", "unique", "unique_consecutive",
    "unravel_index",
]  # fmt: skip


def __getattr__(name):
    if name in __all__:
        return getattr(adjoin, name)
    from ._hints import absent

    raise absent(__name__, name)


def __dir__():
    return sorted([*globals(), *__all__])
