"""adjoin.optim.swa_utils: averages of a model's weights (Izmailov et al., 2018), and the schedule and
the statistics that go with them."""

import itertools
import math
from copy import deepcopy

import adjoin
from adjoin.nn import Module

from ._schedule import LRScheduler, per_group


def get_ema_multi_avg_fn(decay=0.999):
    """A multi_avg_fn: the exponential moving average."""
    average = get_ema_avg_fn(decay)
    return lambda means, values, count: _replace(means, values, count, average)


def get_swa_multi_avg_fn():
    """A multi_avg_fn: the mean of all."""
    average = get_swa_avg_fn()
    return lambda means, values, count: _replace(means, values, count, average)


def _replace(means, values, count, average):
    with adjoin.no_grad():
        for mean, value in zip(means, values, strict=True):
            mean.copy_(average(mean, value, count))


def get_ema_avg_fn(decay=0.999):
    """An avg_fn: the exponential moving average."""
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    @adjoin.no_grad()
    def average(mean, value, count):
        return decay * mean + (1 - decay) * value

    return average


def get_swa_avg_fn():
    """An avg_fn: the mean of all."""

    @adjoin.no_grad()
    def average(mean, value, count):
        return mean + (value - mean) / (count + 1)

    return average


class AveragedModel(Module):
    """A copy of ``model`` whose parameters are an average of those it had at each update_parameters(model).

    The mean of all, or what ``avg_fn(mean, value, count)`` returns, or what ``multi_avg_fn(means, values, count)``
    does in place. With ``use_buffers`` the buffers are averaged too; otherwise they are copied.
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", adjoin.tensor(0, dtype=adjoin.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        """What the averaged model gives."""
        return self.module(*args, **kwargs)

    def _tensors(self, model):
        return list(itertools.chain(model.parameters(), model.buffers() if self.use_buffers else ()))

    def update_parameters(self, model):
        """Takes the parameters that model has now into the average."""
        means = [mean.detach() for mean in self._tensors(self.module)]
        values = [value.detach().to(mean.device) for mean, value in zip(means, self._tensors(model), strict=True)]
        if self.n_averaged == 0:
            for mean, value in zip(means, values, strict=True):
                mean.copy_(value)
        elif self.multi_avg_fn is not None or self.avg_fn is None:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            update(means, values, self.n_averaged)
        else:
            _replace(means, values, self.n_averaged, self.avg_fn)
        if not self.use_buffers:
            for own, other in zip(self.module.buffers(), model.buffers(), strict=True):
                own.detach().copy_(other.detach())
        self.n_averaged += 1


@adjoin.no_grad()
def update_bn(loader, model, device=None):
    """Computes the running statistics of all batch norms anew, from one pass over ``loader``."""
    norms = {
        module: module.momentum
        for module in model.modules()
        if isinstance(module, adjoin.nn.modules.batchnorm._BatchNorm)
    }
    if not norms:
        return
    training = model.training
    model.train()
    for module in norms:
        module.reset_running_stats()
        module.momentum = None  # the mean over all batches
    for batch in loader:
        batch = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(batch if device is None else batch.to(device))
    for module, momentum in norms.items():
        module.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """To ``swa_lr`` within ``anneal_epochs``, along a cosine or a line, and constant from there on."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        for lr, group in zip(per_group(optimizer, "swa_lr", swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step):
        share = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return share if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * share)) / 2

    def get_lr(self):
        """See the class."""
        if not self._get_lr_called_within_step:
            self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            end, lr = group["swa_lr"], group["lr"]
            first = end if before == 1 else (lr - before * end) / (1 - before)
            rates.append(end * now + first * (1 - now))
        return rates


__all__ = [
    "AveragedModel", "update_bn", "SWALR", "get_ema_multi_avg_fn", "get_swa_multi_avg_fn", "get_ema_avg_fn",
    "get_swa_avg_fn",
]  # fmt: skip
