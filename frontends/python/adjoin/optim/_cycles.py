"""adjoin.optim._cycles: rates, and momenta, that go up and down: cycles (Smith, 2015 and 2017), warm
restarts (Loshchilov and Hutter, 2016)."""

import math
import types


import adjoin

from ._schedule import UNSAID, LRScheduler, per_group, set_lr


def _cycles_betas(optimizer):
    """Whether the first of "betas" stands for the momentum; raises if there is neither."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


class _Cycle(LRScheduler):
    def _set_momentum(self, group, value):
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_Cycle):
    """Between ``base_lr`` and ``max_lr``: ``step_size_up`` steps up, ``step_size_down`` down.

    ``mode``: "triangular", "triangular2" (each cycle half as high) or "exp_range" (gamma^step);
    or ``scale_fn`` of the cycle or the step ("iterations"), as ``scale_mode`` says. The momentum
    goes the other way, from ``max_momentum`` to ``base_momentum``.
    """

    def __init__(self, optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None,
                 mode="triangular", gamma=1.0, scale_fn=None, scale_mode="cycle",
                 cycle_momentum=True, base_momentum=0.8, max_momentum=0.9, last_epoch=-1, verbose=UNSAID):  # fmt: skip
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        base_lrs = [
            lr.clone() if isinstance(lr, adjoin.Tensor) else lr for lr in per_group(optimizer, "base_lr", base_lr)
        ]
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_lr(group, lr)
        self.optimizer = optimizer
        self.max_lrs = per_group(optimizer, "max_lr", max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom = scale_fn
        by_step = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.scale_mode = by_step
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _cycles_betas(optimizer)
            self.base_momentums = per_group(optimizer, "base_momentum", base_momentum)
            self.max_momentums = per_group(optimizer, "max_momentum", max_momentum)
            if last_epoch == -1:
                for group, low, high in zip(
                    optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
                ):
                    self._set_momentum(group, high)
                    group["base_momentum"], group["max_momentum"] = low, high
        super().__init__(optimizer, last_epoch, verbose)
        self.base_lrs = base_lrs

    def scale_fn(self, x):
        """How high the cycle (or step) numbered x is."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "exp_range":
            return self.gamma**x
        return 1.0 if self.mode == "triangular" else 1 / (2.0 ** (x - 1))

    def get_lr(self):
        """See the class."""
        if not self._get_lr_called_within_step:
            self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            ranges = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, high in ranges:
                self._set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self):
        """As the base's; a scale_fn is saved by its attributes, if it is a callable object."""
        state = super().state_dict()
        fn = self._scale_fn_custom
        plain = fn is None or isinstance(fn, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else dict(fn.__dict__)
        return state

    def load_state_dict(self, state_dict):
        """Takes what state_dict() returned."""
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom", None)
        super().load_state_dict(state)
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)


class OneCycleLR(_Cycle):
    """One rise from ``max_lr / div_factor`` to ``max_lr`` in the first ``pct_start`` of all steps, then a fall
    to the first rate / ``final_div_factor``, along a cosine or a line; stepped after each batch.

    ``three_phase`` falls as long as it rose, and then to the end. The momentum goes the other way.
    """

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None,
                 pct_start=0.3, anneal_strategy="cos", cycle_momentum=True, base_momentum=0.85,
                 max_momentum=0.95, div_factor=25.0, final_div_factor=1e4, three_phase=False,
                 last_epoch=-1, verbose=UNSAID):  # fmt: skip
        self.optimizer = optimizer
        self.total_steps = _count_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._schedule_phases = self._phases(pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        if last_epoch == -1:
            for highest, group in zip(per_group(optimizer, "max_lr", max_lr), optimizer.param_groups, strict=True):
                group["initial_lr"] = highest / div_factor
                group["max_lr"] = highest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _cycles_betas(optimizer)
            if last_epoch == -1:
                highs = per_group(optimizer, "max_momentum", max_momentum)
                lows = per_group(optimizer, "base_momentum", base_momentum)
                for group, low, high in zip(optimizer.param_groups, lows, highs, strict=True):
                    self._set_momentum(group, high)
                    group["base_momentum"], group["max_momentum"] = low, high
        super().__init__(optimizer, last_epoch, verbose)

    def _phases(self, start, three):
        first = float(start * self.total_steps) - 1
        marks = [(first, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three:
            second = float(2 * start * self.total_steps) - 2
            marks.append((second, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
            marks.append((self.total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
        else:
            marks.append((self.total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
        keys = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        return [dict(zip(keys, mark, strict=True)) for mark in marks]

    @staticmethod
    def _annealing_cos(start, end, pct):  # old state dicts name it
        return _between(start, end, pct, math.cos(math.pi * pct) + 1)

    @staticmethod
    def _annealing_linear(start, end, pct):
        return _between(start, end, pct, None)

    def _is_cosine(self):
        kind = getattr(self, "_anneal_func_type", None)
        if kind is None:
            return getattr(self, "anneal_func", None) is not OneCycleLR._annealing_linear
        return kind == "cos"

    def get_lr(self):
        """See the class."""
        if not self._get_lr_called_within_step:
            self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        begin = 0.0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if step <= end or phase is self._schedule_phases[-1]:
                break
            begin = end
        share = (step - begin) / (end - begin)
        cosine = self._is_cosine()
        rise = math.cos(math.pi * share) + 1 if cosine else None
        rates = []
        for group in self.optimizer.param_groups:
            if self.cycle_momentum:
                start, end = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, _between(start, end, share, rise))
            start, end = group[phase["start_lr"]], group[phase["end_lr"]]
            rates.append(_between(start, end, share, rise))
        return rates


def _between(start, end, share, rise):
    return (end - start) * share + start if rise is None else end + (start - end) / 2.0 * rise


def _count_steps(total, epochs, steps_per_epoch):
    if total is None and (epochs is None or steps_per_epoch is None):
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    given = {"total_steps": total} if total is not None else {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return total if total is not None else epochs * steps_per_epoch


class CosineAnnealingWarmRestarts(LRScheduler):
    """From the rate to ``eta_min`` along half a cosine of ``T_0`` epochs, then again from the top, each
    time ``T_mult`` as long; ``step`` also takes fractions of epochs."""

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1, verbose=UNSAID):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self):
        """See the class."""
        if not self._get_lr_called_within_step:
            self._warn_outside_step()
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch=None):
        """Goes to the next epoch, or to ``epoch``, which may be a fraction."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._jump(epoch)
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            values = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set(values)

    def _jump(self, epoch):
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_i, self.T_cur = self.T_0, epoch % self.T_0
        else:
            times = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**times - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**times
