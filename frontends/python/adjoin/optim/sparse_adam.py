"""Adam for sparse gradients, which there are none of."""

from .optimizer import Optimizer


class SparseAdam(Optimizer):
    """Says that it is not offered: Adam takes the same arguments, and the gradients that there are."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        raise NotImplementedError("SparseAdam: there are no sparse tensors, so no gradient is sparse; use Adam")
