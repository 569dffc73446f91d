"""adjoin.optim.lr_scheduler: learning rates that change with the epoch.

A schedule multiplies or shifts the current rate, so several can be stepped side by side; the closed
form, where there is one, serves ``step(epoch)``.
"""

from .._hints import getattr_of
from bisect import bisect_right
from collections import Counter
from math import cos, pi

from ._combined import ChainedScheduler, ReduceLROnPlateau, SequentialLR  # noqa: F401
from ._cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR  # noqa: F401
from ._schedule import EPOCH_DEPRECATION_WARNING, UNSAID, LRScheduler  # noqa: F401

_LRScheduler = LRScheduler  # the older name


class _ByFunctions(LRScheduler):
    def __init__(self, optimizer, lr_lambda, last_epoch=-1, verbose=UNSAID):
        groups = len(optimizer.param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != groups:
                raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * groups
        super().__init__(optimizer, last_epoch, verbose)

    def state_dict(self):
        """As the base; of the functions only callable objects are saved, by their attributes."""
        state = super().state_dict()
        state["lr_lambdas"] = [None if hasattr(fn, "__code__") else dict(fn.__dict__) for fn in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict):
        """Takes what state_dict() returned."""
        state = dict(state_dict)
        saved = state.pop("lr_lambdas")
        self.__dict__.update(state)
        for fn, attributes in zip(self.lr_lambdas, saved, strict=True):
            if attributes is not None:
                fn.__dict__.update(attributes)


class LambdaLR(_ByFunctions):
    """The initial rate times ``lr_lambda(epoch)``; one function, or one per group."""

    _operation = "initial"

    def get_lr(self):
        """See the class."""
        if not self._get_lr_called_within_step:
            self._warn_outside_step()
        epoch = self.last_epoch
        return [base * fn(epoch) for base, fn in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_ByFunctions):
    """The current rate times ``lr_lambda(epoch)``."""

    def get_lr(self):
        """See the class."""
        if not self._get_lr_called_within_step:
            self._warn_outside_step()
        if self._is_initial:
            return self._current()
        epoch, groups = self.last_epoch, self.optimizer.param_groups
        return [group["lr"] * fn(epoch) for group, fn in zip(groups, self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """Times gamma every ``step_size`` epochs."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1, verbose=UNSAID):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self):
        """See the class."""
        if not self._get_lr_called_within_step:
            self._warn_outside_step()
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._current()
        return [group["lr"] * self.gamma for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self):
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Times gamma at each of the ``milestones``."""

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1, verbose=UNSAID):
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self):
        """See the class."""
        if not self._get_lr_called_within_step:
            self._warn_outside_step()
        times = self.milestones.get(self.last_epoch, 0)
        return [lr * self.gamma**times for lr in self._current()] if times else self._current()

    def _get_closed_form_lr(self):
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Times ``factor`` until epoch ``total_iters``, then the full rate."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1, verbose=UNSAID):
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self):
        """See the class."""
        if not self._get_lr_called_within_step:
            self._warn_outside_step()
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self._current()]
        if self.last_epoch != self.total_iters:
            return self._current()
        return [lr * (1.0 / self.factor) for lr in self._current()]

    def _get_closed_form_lr(self):
        factor = self.factor if self.last_epoch < self.total_iters else 1.0
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """From ``start_factor`` to ``end_factor`` of the rate, linearly over ``total_iters`` epochs."""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5,
                 last_epoch=-1, verbose=UNSAID):  # fmt: skip
        if not 0 < start_factor <= 1:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch, verbose)

    def _factor(self, epoch):
        share = min(epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * share

    def get_lr(self):
        """See the class."""
        if not self._get_lr_called_within_step:
            self._warn_outside_step()
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in self._current()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        change = self._factor(self.last_epoch) / self._factor(self.last_epoch - 1)
        return [lr * change for lr in self._current()]

    def _get_closed_form_lr(self):
        return [base * self._factor(self.last_epoch) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Times gamma every epoch."""

    def __init__(self, optimizer, gamma, last_epoch=-1, verbose=UNSAID):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self):
        """See the class."""
        if not self._get_lr_called_within_step:
            self._warn_outside_step()
        if self._is_initial:
            return self._current()
        return [group["lr"] * self.gamma for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self):
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The rate times (1 - epoch / total_iters)^power, zero from there on."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1, verbose=UNSAID):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self):
        """See the class."""
        if not self._get_lr_called_within_step:
            self._warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        left = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return [lr * (left / before) ** self.power for lr in self._current()]

    def _get_closed_form_lr(self):
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """From the rate down to ``eta_min`` along half a cosine of ``T_max`` epochs (Loshchilov and
    Hutter, 2016)."""

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1, verbose=UNSAID):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self):
        """See the class."""
        if not self._get_lr_called_within_step:
            self._warn_outside_step()
        if self._is_initial:
            return self._current()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        epoch, last, low = self.last_epoch, self.T_max, self.eta_min
        if (epoch - 1 - last) % (2 * last) == 0:
            # At the bottom the quotient below is 0 / 0: begin to climb.
            rise = (1 - cos(pi / last)) / 2
            return [lr + (base - low) * rise for base, lr in zip(self.base_lrs, self._current(), strict=True)]
        change = (1 + cos(pi * epoch / last)) / (1 + cos(pi * (epoch - 1) / last))
        return [change * (lr - low) + low for lr in self._current()]

    def _get_closed_form_lr(self):
        share = (1 + cos(pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


__getattr__ = getattr_of(__name__)
