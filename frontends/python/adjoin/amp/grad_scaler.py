"""adjoin.amp.grad_scaler: losses multiplied so that gradients in float16 do not vanish."""

import collections
import enum
import warnings

import adjoin

from .. import _C
from .autocast_mode import _is_there

_unscale, _update_scale = _C.find_op("amp_unscale_"), _C.find_op("amp_update_scale_")


class OptState(enum.Enum):
    """How far an optimizer is in the present step."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _progress():
    """Of one optimizer since the last update: its state, and an inf found, per device."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _amp_foreach_non_finite_check_and_unscale_(scaled_grads, found_inf, inv_scale):
    """Multiplies gradients by inv_scale; found_inf becomes 1 if one of them holds an inf or nan."""
    for dtype in {g.dtype for g in scaled_grads}:
        _unscale([g for g in scaled_grads if g.dtype is dtype], found_inf, inv_scale)


def _amp_update_scale_(scale, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval):
    """The scale after a step: smaller where an inf was found, larger after growth_interval steps without one."""
    _update_scale(scale, growth_tracker, found_inf, growth_factor=scale_growth_factor,
                  backoff_factor=scale_backoff_factor, growth_interval=growth_interval)  # fmt: skip
    return scale


class GradScaler:
    """Multiplies losses by ``scale``, divides gradients by it, and finds a scale that is large and safe.

    ``scale(loss).backward()``, ``step(optimizer)``, ``update()``. A step in whose gradients an inf
    or nan is found does not happen and the scale is multiplied by ``backoff_factor``; after
    ``growth_interval`` steps without one it is multiplied by ``growth_factor``.
    """

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5,
                 growth_interval=2000, enabled=True):  # fmt: skip
        self._device = device
        self._enabled = bool(enabled)
        if self._enabled and not _is_there(device):
            warnings.warn(f"GradScaler is enabled, but {device.upper()} is not available. Disabling.", stacklevel=2)
            self._enabled = False
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval, self._init_growth_tracker = growth_interval, 0
        self._scale = self._growth_tracker = None
        self._per_optimizer_states = collections.defaultdict(_progress)  # by id; a subclass may look here

    def _start(self, device):
        self._scale = adjoin.full((), self._init_scale, dtype=adjoin.float32, device=device)
        self._growth_tracker = adjoin.full((), self._init_growth_tracker, dtype=adjoin.int32, device=device)

    def _check_started(self, what):
        if self._scale is None:
            raise AssertionError(
                f"Attempted {what} but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )

    def scale(self, outputs):
        """outputs, a tensor or an iterable of them, times the scale."""
        if not self._enabled:
            return outputs
        return self._scaled(outputs, {})

    def _scaled(self, outputs, by_device):
        if isinstance(outputs, adjoin.Tensor):
            if self._scale is None:
                self._start(outputs.device)
            if outputs.device not in by_device:
                by_device[outputs.device] = self._scale.to(outputs.device, non_blocking=True)
            return outputs * by_device[outputs.device]
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self._scaled(o, by_device) for o in outputs)
        try:
            items = iter(outputs)
        except TypeError:
            raise ValueError("outputs must be a Tensor or an iterable of Tensors") from None
        return (self._scaled(o, by_device) for o in items)

    def unscale_(self, optimizer):
        """Divides the optimizer's gradients by the scale, once a step; say, to clip them."""
        if not self._enabled:
            return
        self._check_started("unscale_")
        progress = self._per_optimizer_states[id(optimizer)]
        if progress["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if progress["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse, found = self._scale.double().reciprocal().float(), adjoin.zeros_like(self._scale)
        progress["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, found, False)
        progress["stage"] = OptState.UNSCALED

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
        """Multiplies the optimizer's gradients by inv_scale, and tells per device what found_inf became; a subclass may
        do it its own way."""
        groups = {}
        for group in optimizer.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                if param.grad.dtype == adjoin.float16 and not allow_fp16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                grad = param.grad
                if grad.is_sparse:  # where a place occurs twice the sum may be too large for a half
                    grad = param.grad = grad.coalesce() if grad.dtype == adjoin.float16 else grad
                    grad = grad._values()
                groups.setdefault((grad.device, grad.dtype), []).append(grad)
        found = {}
        with adjoin.no_grad():
            for (device, _), grads in groups.items():
                if device not in found:
                    found[device] = found_inf.to(device, non_blocking=True)
                _unscale(grads, found[device], inv_scale.to(device, non_blocking=True))
        return found

    def step(self, optimizer, *args, **kwargs):
        """optimizer.step(), unless its gradients hold an inf or nan; unscales them if that was not done."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_started("step")
        progress = self._per_optimizer_states[id(optimizer)]
        if progress["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_of_scaled(optimizer, progress, args, kwargs)
        else:
            if progress["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if not progress["found_inf_per_device"]:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            found = sum(f.item() for f in progress["found_inf_per_device"].values())
            result = None if found else optimizer.step(*args, **kwargs)
        progress["stage"] = OptState.STEPPED
        return result

    def _step_of_scaled(self, optimizer, progress, args, kwargs):
        """For optimizers that unscale by themselves: they are told the scale and what was found."""
        unscaled = progress["stage"] is OptState.UNSCALED
        if not unscaled:
            progress["found_inf_per_device"] = self._unscale_grads_(
                optimizer, adjoin.ones_like(self._scale), adjoin.zeros_like(self._scale), True
            )
        optimizer.grad_scale = None if unscaled else self._scale
        found = [f.to(self._scale.device, non_blocking=True) for f in progress["found_inf_per_device"].values()]
        optimizer.found_inf = sum(found[1:], found[0]) if found else adjoin.zeros_like(self._scale)
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def update(self, new_scale=None):
        """After the steps of an iteration: sets the scale of the next one, to new_scale if given."""
        if not self._enabled:
            return
        self._check_started("update")
        if new_scale is not None:
            if isinstance(new_scale, adjoin.Tensor):
                if new_scale.numel() != 1 or new_scale.requires_grad or not new_scale.is_floating_point():
                    raise AssertionError(
                        "new_scale should be a float or a 1-element floating tensor that does not require grad"
                    )
                new_scale = new_scale.reshape(())
            self._scale.fill_(new_scale)
        else:
            found = [f.to(self._scale.device, non_blocking=True)
                     for p in self._per_optimizer_states.values() for f in p["found_inf_per_device"].values()]  # fmt: skip
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            _update_scale(self._scale, self._growth_tracker, sum(found[1:], found[0]),
                          growth_factor=self._growth_factor, backoff_factor=self._backoff_factor,
                          growth_interval=self._growth_interval)  # fmt: skip
        self._per_optimizer_states = collections.defaultdict(_progress)

    def get_scale(self):
        """The scale as a number; 1 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self):
        """What the scale is multiplied by after growth_interval good steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        """Sets the growth factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        """What the scale is multiplied by after an inf."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        """Sets the backoff factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        """How many good steps make the scale grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        """Sets the number of good steps."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        if self._growth_tracker is None:
            return self._init_growth_tracker
        return self._growth_tracker.item()

    def is_enabled(self):
        """Whether it does anything."""
        return self._enabled

    def state_dict(self):
        """What to save; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict):
        """Goes on where state_dict() was taken."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self):
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end "
                    "after scaler.update()."
                )
            state["_init_scale"], state["_init_growth_tracker"] = self.get_scale(), self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state
