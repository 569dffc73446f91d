"""adjoin.distributed.optim.post_localSGD_optimizer: an optimizer whose steps end with the mean of all processes' parameters."""

import warnings

from ...optim import Optimizer


class PostLocalSGDOptimizer(Optimizer):
    """Steps as ``optim``; then ``averager`` takes the mean when its time has come."""

    def __init__(self, optim, averager):
        self.optim, self.averager = optim, averager
        self.param_groups = optim.param_groups

    state = property(lambda self: self.optim.state)
    defaults = property(lambda self: self.optim.defaults)

    def __repr__(self):
        return repr(self.optim)

    def state_dict(self):
        """The optimizer's, and how many steps the averager has counted."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict):
        """Takes both back."""
        self.optim.load_state_dict({name: value for name, value in state_dict.items() if name != "step"})
        self.param_groups = self.optim.param_groups
        if "step" in state_dict:
            self.averager.step = state_dict["step"]
        else:
            warnings.warn("Loaded state dict does not contain a step counter for an averager. Setting step counter to 0.",
                          stacklevel=2)  # fmt: skip
            self.averager.step = 0

    def step(self, closure=None):
        """A step of the optimizer, then the mean if it is time."""
        loss = self.optim.step() if closure is None else self.optim.step(closure)
        self.averager.average_parameters(self.param_groups)
        return loss

    def zero_grad(self, set_to_none=True):
        """The optimizer's."""
        self.optim.zero_grad(set_to_none)

    def add_param_group(self, param_group):
        """The optimizer's."""
        self.optim.add_param_group(param_group)


__all__ = ["PostLocalSGDOptimizer"]
