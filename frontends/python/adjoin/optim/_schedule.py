"""adjoin.optim._schedule: what all learning-rate schedules share."""

import warnings

import adjoin

from .._hints import Hinting
from .optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler."
)

UNSAID = "deprecated"  # what ``verbose`` is where nobody gave it


def set_lr(group, value):
    if isinstance(group["lr"], adjoin.Tensor):
        group["lr"].fill_(float(value))
    else:
        group["lr"] = value


def per_group(optimizer, name, value):
    """A setting as a list with a value for each group; tensors are copied, so that their owner may write them."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * groups
    if len(value) != groups:
        raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} "
                         f"values, param_groups has {groups}.")  # fmt: skip
    return [v.clone() if isinstance(v, adjoin.Tensor) else v for v in value]


class LRScheduler(Hinting):
    """Base: ``get_lr`` computes the next rates, one per group, from the current ones.

    ``last_epoch=-1`` starts afresh; otherwise each group has to have an "initial_lr". ``verbose`` is of
    older programs: True prints the rates of every step.
    """

    verbose = False

    def __init__(self, optimizer, last_epoch=-1, verbose=UNSAID):
        self._listen(verbose)
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"{type(self).__name__}: {type(optimizer).__name__} is not an Optimizer; give the one whose rate it is to change"
            )
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", lr.clone() if isinstance(lr, adjoin.Tensor) else lr)
            elif "initial_lr" not in group:
                raise KeyError(
                    "param 'initial_lr' is not specified in "
                    f"param_groups[{i}] when resuming scheduler with last_epoch >= 0"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._is_initial = True
        self._get_lr_called_within_step = False
        optimizer._opt_called = False
        self.step()
        self._is_initial = False

    def _listen(self, verbose):
        if verbose != UNSAID:
            warnings.warn(
                "The verbose parameter is deprecated. Please use get_last_lr() to access the learning rate.",
                stacklevel=3,
            )
            if verbose:
                self.verbose = True

    def _tell(self):
        for i, rate in enumerate(self._last_lr if self.verbose else ()):
            print(f"{type(self).__name__}: learning rate of group {i} is {float(rate):.4e}")

    def state_dict(self):
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict):
        """Takes what state_dict() returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """The rates that the last step set, one per group."""
        return self._last_lr

    def get_lr(self):
        """The next rates, from the current ones."""
        raise NotImplementedError

    def _current(self):
        groups = self.optimizer.param_groups
        return [groups[0]["lr"]] if len(groups) == 1 else [group["lr"] for group in groups]

    def _warn_outside_step(self):
        warnings.warn(
            "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
            stacklevel=3,
        )

    def _set(self, values):
        """Sets the groups' rates; a rate that is a tensor is written into."""
        last = []
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            if type(group["lr"]) is not float or type(value) is not float:
                set_lr(group, value)
                value = group["lr"]
                last.append(value.clone() if isinstance(value, adjoin.Tensor) else value)
            else:
                group["lr"] = value
                last.append(value)
        self._last_lr = last
        if self.verbose:
            self._tell()

    def step(self, epoch=None):
        """Goes to the next epoch, or to ``epoch``; call it after the optimizer's step."""
        if self._step_count == 1 and not self.optimizer._opt_called:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. "
                "The first rate of the schedule was never used: call `optimizer.step()` before `lr_scheduler.step()`.",
                stacklevel=2,
            )
        self._step_count += 1
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                warnings.warn(EPOCH_DEPRECATION_WARNING, stacklevel=2)
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                values = closed() if closed else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set(values)
