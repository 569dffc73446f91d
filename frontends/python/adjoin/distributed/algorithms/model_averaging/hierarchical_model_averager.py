"""adjoin.distributed.algorithms.model_averaging.hierarchical_model_averager: small groups often, large ones seldom."""

from .... import distributed as dist
from . import averagers, utils


class HierarchicalModelAverager(averagers.ModelAverager):
    """``period_group_size_dict``: {period: size of the groups}, both rising; the last size is that of the whole group."""

    def __init__(self, period_group_size_dict=None, warmup_steps=0, process_group=None):
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        periods, sizes = list(period_group_size_dict), list(period_group_size_dict.values())
        if min(periods) <= 0:
            raise ValueError("Values of arg ``period_group_size_dict`` must be positive periods.")
        if sizes[-1] != dist.get_world_size(self.process_group):
            raise ValueError(
                f"The last value in arg ``period_group_size_dict`` {sizes[-1]} must be equal to the size of arg "
                f"``process_group`` {dist.get_world_size(self.process_group)}."
            )
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if periods != sorted(periods) or sizes != sorted(sizes):
            raise ValueError(f"``period_group_size_dict`` {dict(period_group_size_dict)}: periods and sizes must rise")
        self.warmup_steps = warmup_steps
        self.period_process_group_dict = {}
        for period, size in zip(periods, sizes, strict=True):
            whole = size == sizes[-1]
            self.period_process_group_dict[period] = self.process_group if whole else dist.new_subgroups(size)[0]

    def average_parameters(self, params):
        """Takes the mean over the largest group whose time it is; one step more has been made."""
        due = [g for period, g in self.period_process_group_dict.items()
               if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % period == 0]  # fmt: skip
        if due:
            utils.average_parameters_or_parameter_groups(params, due[-1])
        self.step += 1
