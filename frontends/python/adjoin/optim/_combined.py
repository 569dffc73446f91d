"""adjoin.optim._combined: schedules made of others, and the one that follows a metric."""

import math
import warnings
from bisect import bisect_right

from ._schedule import EPOCH_DEPRECATION_WARNING, UNSAID, LRScheduler, set_lr
from .optimizer import Optimizer


def _undo(schedulers):
    """Takes back the step that each made when it was made."""
    for scheduler in schedulers:
        scheduler.last_epoch -= 1
        scheduler._step_count = 0
        _undo(getattr(scheduler, "_schedulers", ()))


class SequentialLR(LRScheduler):
    """One schedule after the other, changing at the ``milestones``."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1, verbose=UNSAID):
        self._listen(verbose)
        if len(schedulers) < 1:
            raise ValueError("SequentialLR expects at least one scheduler to be chained, but got no scheduler.")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more "
                "than the "
                f"number of milestone points, but got number of schedulers {len(schedulers)} "
                "and the "
                f"number of milestones to be equal to {len(milestones)}"
            )
        if any(scheduler.optimizer is not optimizer for scheduler in schedulers):
            raise ValueError("SequentialLR expects all schedulers to belong to the same optimizer as the one given")
        self._schedulers = list(schedulers)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each schedule took its first step when it was made; only the first one's may stand.
        for group in optimizer.param_groups:
            set_lr(group, group["initial_lr"])
        _undo(self._schedulers)
        self._start(self._schedulers[0])
        self._last_lr = self._schedulers[0].get_last_lr()

    @staticmethod
    def _start(scheduler):
        scheduler._is_initial, scheduler._step_count = True, 0
        scheduler.step()
        scheduler._is_initial = False

    def step(self):
        """Goes to the next epoch."""
        self.last_epoch += 1
        current = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[current]
        if current > 0 and self._milestones[current - 1] == self.last_epoch:
            scheduler.last_epoch = -1
            for group in self.optimizer.param_groups:
                set_lr(group, group["initial_lr"])
            self._start(scheduler)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self):
        """Its own state and that of every schedule."""
        skip = ("optimizer", "_schedulers")
        state = {key: value for key, value in self.__dict__.items() if key not in skip}
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict):
        """Takes what state_dict() returned."""
        state = dict(state_dict)
        for scheduler, own in zip(self._schedulers, state.pop("_schedulers"), strict=True):
            scheduler.load_state_dict(own)
        self.__dict__.update(state)


class ChainedScheduler(LRScheduler):
    """Several schedules stepped together: each multiplies or shifts what the others left."""

    def __init__(self, schedulers, optimizer=None):
        if len(schedulers) < 1:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"ChainedScheduler at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    "ChainedScheduler does not support `ReduceLROnPlateau` scheduler as it requires "
                    f"additional kwargs to be specified when calling `step`, but got one at index {i} "
                    "in the given schedulers sequence."
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    "ChainedScheduler expects all schedulers to belong to the same optimizer, but "
                    f"got scheduler {type(scheduler).__name__} at index {i} has "
                    f"{scheduler.optimizer}, which is different from {optimizer.__class__.__name__}."
                )
        self._schedulers = list(schedulers)
        self.optimizer = optimizer
        self._last_lr = self._current()
        self.last_epoch = max(getattr(scheduler, "last_epoch", 0) for scheduler in schedulers)

    def step(self):
        """Steps each of them."""
        self.last_epoch += 1
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._current()

    def state_dict(self):
        """The states of the schedules; which step it is, they know."""
        state = SequentialLR.state_dict(self)
        del state["last_epoch"]
        return state

    def load_state_dict(self, state_dict):
        """Takes what state_dict() gave."""
        SequentialLR.load_state_dict(self, state_dict)
        self.last_epoch = max(getattr(scheduler, "last_epoch", 0) for scheduler in self._schedulers)


class ReduceLROnPlateau(LRScheduler):
    """Times ``factor`` after ``patience`` epochs in which the metric did not get better.

    "Better" is by the share (``threshold_mode="rel"``) or the amount ("abs") of ``threshold``, down
    (``mode="min"``) or up ("max"); then ``cooldown`` epochs do not count.
    """

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4,
                 threshold_mode="rel", cooldown=0, min_lr=0, eps=1e-8, verbose=UNSAID):  # fmt: skip
        self._listen(verbose)
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"{type(self).__name__}: {type(optimizer).__name__} is not an Optimizer; give the one whose rate it is to change"
            )
        if mode not in ("min", "max"):
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        groups = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != groups:
                raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
            self.min_lrs = list(min_lr)
        else:
            self.min_lrs = [min_lr] * groups
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.optimizer = optimizer
        self.factor, self.patience, self.cooldown, self.eps = factor, patience, cooldown, eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.last_epoch = 0
        self._last_lr = self._current()
        self._reset()

    def _reset(self):
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self):
        """Whether bad epochs do not count now."""
        return self.cooldown_counter > 0

    def is_better(self, a, best):
        """Whether metric ``a`` is better than ``best`` by more than the threshold."""
        margin = 0.0 if math.isinf(best) else self.threshold
        if self.threshold_mode == "rel" and margin:
            margin *= best
        return a < best - margin if self.mode == "min" else a > best + margin

    def step(self, metrics, epoch=None):
        """Takes the metric of the epoch that has ended."""
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warnings.warn(EPOCH_DEPRECATION_WARNING, stacklevel=2)
        self.last_epoch = epoch
        if self.is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._current()

    def _reduce_lr(self):
        groups = len(self.optimizer.param_groups)
        if groups != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"ReduceLROnPlateau: The number of param groups in the `optimizer` ({groups}) differs from that of "
                    f"min_lrs ({len(self.min_lrs)}): a group was added; append its lowest rate to scheduler.min_lrs"
                )
            self.min_lrs = [self.default_min_lr] * groups
        for group, lowest in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, lowest)
            if old - new > self.eps:
                set_lr(group, new)
        if self.verbose:
            self._last_lr = self._current()
            self._tell()
