"""adjoin.optim.sparse_adam: Adam that moves what a sparse gradient names, and nothing else."""

import math

import adjoin

from .optimizer import Optimizer, as_float, check_settings


class SparseAdam(Optimizer):
    """Adam for sparse gradients: means and parameters change where the gradient has elements, and rest elsewhere.

    As in PyTorch: the count of steps is the parameter's, not the element's.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        check_settings({
            "learning rate": (lr, as_float(lr) > 0),
            "epsilon value": (eps, eps > 0),
            "beta parameter at index 0": (betas[0], 0 <= as_float(betas[0]) < 1),
            "beta parameter at index 1": (betas[1], 0 <= as_float(betas[1]) < 1),
        })  # fmt: skip
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        for group in self.param_groups:
            for i, param in enumerate(group["params"]):
                if param.layout is not adjoin.strided:
                    raise ValueError(
                        f"SparseAdam: parameters must be strided, the layout of parameter {i} is {param.layout}"
                    )
                if param.is_complex():
                    raise ValueError(
                        f"SparseAdam: complex parameters are not supported; parameter {i} is {param.dtype}"
                    )

    def step(self, closure=None):
        """Updates every parameter that has a gradient; returns what closure() returned."""
        return self._step_groups(closure)

    @staticmethod
    def _update(param, grad, state, *, lr, betas, eps, maximize, **_):
        if grad.layout is not adjoin.sparse_coo:
            raise RuntimeError(f"SparseAdam: a sparse gradient is wanted, its layout is {grad.layout}; use Adam")
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = adjoin.zeros_like(param), adjoin.zeros_like(param)
        state["step"] += 1
        grad = grad.coalesce()
        if grad._nnz() == 0:
            return
        places, values = grad._indices(), -grad._values() if maximize else grad._values()

        def moved(mean, towards, weight):
            """The mean at the gradient's places after a step; the mean itself makes it, too."""
            old = mean.sparse_mask(grad)._values()
            change = (towards - old) * (1 - weight)
            mean.add_(adjoin.sparse_coo_tensor(places, change, mean.shape))
            return old + change

        first, second = betas
        mean = moved(state["exp_avg"], values, first)
        square = moved(state["exp_avg_sq"], values * values, second)
        correction = math.sqrt(1 - second ** state["step"]) / (1 - first ** state["step"])
        step = mean / (square.sqrt() + eps) * (-as_float(lr) * correction)
        param.add_(adjoin.sparse_coo_tensor(places, step, param.shape))
