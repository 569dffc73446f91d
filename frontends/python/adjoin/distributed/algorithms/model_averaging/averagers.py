"""adjoin.distributed.algorithms.model_averaging.averagers: when processes take the mean of their parameters."""

from .... import distributed as dist
from . import utils


class ModelAverager:
    """Counts steps; a class of your own says in ``average_parameters`` at which of them the mean is taken."""

    def __init__(self, process_group=None):
        self.process_group, self.step = dist._group.of(process_group), 0

    def average_parameters(self, params):
        """Takes the mean if it is time."""
        raise NotImplementedError(f"{type(self).__name__}: average_parameters is to be written")


class PeriodicModelAverager(ModelAverager):
    """Each ``period`` steps, from step ``warmup_steps`` on."""

    def __init__(self, period, warmup_steps=0, process_group=None):
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period <= 0:
            raise ValueError("Arg ``period`` must be a positive value.")
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params):
        """Takes the mean if it is time; one step more has been made."""
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
