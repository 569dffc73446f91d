"""adjoin.optim.lbfgs: L-BFGS, a quasi-Newton method of limited memory (Nocedal, 1980)."""

import adjoin

from ._line_search import Point, strong_wolfe
from .optimizer import Optimizer, as_float, check_kinds, check_settings


class LBFGS(Optimizer):
    """Directions ``-H grad``, H being made of the last ``history_size`` steps and changes of the gradient.

    ``step(closure)`` makes up to ``max_iter`` iterations with at most about ``max_eval`` calls of the
    closure (default: 1.25 max_iter); it ends when no element of the gradient exceeds ``tolerance_grad``, or a
    step or the loss changes by less than ``tolerance_change``. ``line_search_fn="strong_wolfe"`` looks for
    a good length of each step; otherwise it is lr. One group of parameters only, all of which are
    kept as one vector.
    """

    _group_defaults = {"maximize": False}

    def __init__(self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9,
                 history_size=100, line_search_fn=None, *, maximize=False):  # fmt: skip
        if isinstance(lr, adjoin.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check_kinds(lr)
        check_settings({"learning rate": (lr, as_float(lr) >= 0)})
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter, "max_eval": max_eval, "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn, "maximize": maximize,
        })  # fmt: skip
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def __setstate__(self, state):
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    def _gradient(self):
        """All gradients as one real vector."""
        parts = []
        for param in self._params:
            part = adjoin.zeros_like(param, requires_grad=False) if param.grad is None else param.grad
            part = adjoin.view_as_real(part) if part.is_complex() else part
            parts.append(part.reshape(-1))
        flat = adjoin.cat(parts, 0)
        return -flat if self.param_groups[0]["maximize"] else flat

    def _move(self, length, direction):
        offset = 0
        for param in self._params:
            real = adjoin.view_as_real(param) if param.is_complex() else param
            count = real.numel()
            real.add_(direction[offset : offset + count].view_as(real), alpha=length)
            offset += count

    def _evaluate(self, closure):
        with adjoin.enable_grad():
            loss = closure()
        return float(-loss if self.param_groups[0]["maximize"] else loss), loss

    @adjoin.no_grad()
    def step(self, closure):
        """Minimises what closure() computes, together with its gradients; returns the first value."""
        group, state = self.param_groups[0], self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        loss, first = self._evaluate(closure)
        state["func_evals"] += 1
        grad = self._gradient()
        if grad.abs().max().item() > group["tolerance_grad"]:
            self._iterate(closure, group, state, loss, grad)
        return first

    def _iterate(self, closure, group, state, loss, grad):
        lr, evaluations = as_float(group["lr"]), 1
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            fresh = state["n_iter"] == 1
            _turn(state, grad, group["history_size"])
            state["prev_flat_grad"], state["prev_loss"] = grad.clone(), loss
            state["t"] = min(1.0, 1.0 / (grad.abs().sum().item() or 1.0)) * lr if fresh else lr
            slope = grad.dot(state["d"]).item()
            if slope > -group["tolerance_change"]:
                break
            last = iteration == group["max_iter"]
            loss, grad, used = self._advance(closure, group, state, Point(0.0, loss, grad, slope), last)
            evaluations += used
            state["func_evals"] += used
            flat = used and grad.abs().max().item() <= group["tolerance_grad"]
            moved = abs(state["t"]) * state["d"].abs().max().item()
            small = group["tolerance_change"]
            if evaluations >= group["max_eval"] or flat or moved <= small or abs(loss - state["prev_loss"]) < small:
                break

    def _advance(self, closure, group, state, start, last):
        """Makes one step; returns the loss and the gradient there, and how often closure ran."""
        search, direction = group["line_search_fn"], state["d"]
        if search is None:
            self._move(state["t"], direction)
            if last:  # nobody asks for the loss there
                return start.loss, start.grad, 0
            return self._evaluate(closure)[0], self._gradient(), 1
        if search != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        before = [param.clone() for param in self._params]

        def at(length):
            self._move(length, direction)
            loss, grad = self._evaluate(closure)[0], self._gradient()
            for param, kept in zip(self._params, before, strict=True):
                param.copy_(kept)
            return Point(length, loss, grad, grad.dot(direction).item())

        end, used = strong_wolfe(at, state["t"], direction.abs().max().item(), start)
        state["t"] = end.length
        self._move(end.length, direction)
        return end.loss, end.grad, used


def _turn(state, grad, history_size):
    """Computes the next direction state["d"] (the two-loop recursion), with the last step learnt."""
    if state["n_iter"] == 1:
        state.update(d=-grad, old_dirs=[], old_stps=[], ro=[], H_diag=1)
        return
    changes, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
    change, step = grad - state["prev_flat_grad"], state["d"] * as_float(state["t"])
    curvature = change.dot(step).item()
    if curvature > 1e-10:
        if len(changes) == history_size:
            for kept in (changes, steps, ro):
                kept.pop(0)
        changes.append(change)
        steps.append(step)
        ro.append(1.0 / curvature)
        state["H_diag"] = curvature / change.dot(change).item()
    shares = state["al"] = [None] * history_size
    direction = -grad
    for i in reversed(range(len(changes))):
        shares[i] = steps[i].dot(direction).item() * as_float(ro[i])
        direction.add_(changes[i], alpha=-shares[i])
    direction.mul_(as_float(state["H_diag"]))
    for i in range(len(changes)):
        back = changes[i].dot(direction).item() * as_float(ro[i])
        direction.add_(steps[i], alpha=shares[i] - back)
    state["d"] = direction
