"""tests/compat/databases/optimizers.py: each entry of PyTorch's database of optimizers, by both."""

import copy
import io
import warnings

import adjoin
import torch
from torch.testing._internal.common_optimizers import (
    OptimizerErrorEnum,
    _get_optim_inputs_including_global_cliquey_kwargs,
    optim_db,
)

from .pair import Ours, name, rebound, same, theirs
from .table import Differs

SHAPES = {"Muon": [(3, 2), (4, 4)]}
STEPS = 4


def run(table, seed=0, entries=None, told=None):
    for info in optim_db:
        if not entries or info.name in entries:
            entry(table, info, seed)
            if told:
                told(info.name)


def entry(table, info, seed):
    dtypes = [torch.float64, torch.float32] + [torch.complex128] * info.supports_complex
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ways = _get_optim_inputs_including_global_cliquey_kwargs("cpu", torch.float64, info)
    for dtype in dtypes:
        for i, way in enumerate(ways):
            case = Case(info, dtype, way, seed + i)
            if not case.possible():
                continue
            label = f"{name(dtype)} {way.desc or 'as it is'} {[k for k, v in way.kwargs.items() if v is True]}"
            ask = lambda column, question, label=label: table.ask(column, info.name, label, question)  # noqa: E731
            ask("constructor", case.constructor)
            ask("paths", case.path)
            ask("state there", lambda case=case: case.carried(torch, adjoin))
            ask("state back", lambda case=case: case.carried(adjoin, torch))
            if dtype == torch.float64:
                ask("copies", case.copies)
                ask("hooks", case.hooks)
                ask("groups", case.groups)
                ask("schedulers", case.schedulers)
    errors(table, info, seed)


class Case:
    """An optimizer made in one way, over some parameters."""

    def __init__(self, info, dtype, way, seed):
        self.info, self.dtype, self.way = info, dtype, way
        draw = torch.Generator().manual_seed(seed)
        shapes = SHAPES.get(info.name, [(3,), (2, 3)])
        self.start = [torch.randn(s, dtype=dtype, generator=draw) for s in shapes]
        self.grads = [[torch.randn(s, dtype=dtype, generator=draw) for s in shapes] for _ in range(STEPS)]

    def cls(self, lib):
        return self.info.optim_cls if lib is torch else getattr(adjoin.optim, self.info.name)

    def made(self, lib, params=None, groups=False):
        ours = (lambda v: copy.deepcopy(v)) if lib is torch else Ours()
        if params is None:
            params = [lib.nn.Parameter(ours(p.clone())) for p in self.start]
        given = [{"params": params[:1], "lr": 0.02}, {"params": params[1:]}] if groups else params
        return params, self.cls(lib)(given, **ours(self.way.kwargs))

    def possible(self):
        """Whether PyTorch takes the case."""
        try:
            self.walk(torch, *self.made(torch))
        except Exception:
            return False
        return True

    def walk(self, lib, params, optimizer, steps=range(STEPS)):
        for step in steps:
            grads = self.grads[step]
            if self.info.only_supports_sparse_grads:
                grads = [g.to_sparse() for g in grads]
            for p, g in zip(params, grads, strict=True):
                p.grad = g.clone() if lib is torch else Ours()(g.clone())
            if self.info.step_requires_closure:
                optimizer.step(lambda: bowl(lib, params, self.way.kwargs.get("maximize")))
            elif self.way.kwargs.get("differentiable"):
                with lib.no_grad():
                    optimizer.step()
            else:
                optimizer.step()
        return params

    def constructor(self):
        (_, mine), (_, yours) = self.made(adjoin), self.made(torch)
        if repr(mine) != repr(yours):
            raise Differs(f"repr {mine!r}, not {yours!r}")
        same(mine.defaults, {k: v for k, v in yours.defaults.items()}, where="defaults")
        same(mine.state_dict(), yours.state_dict(), where="state")

    def path(self):
        mine, yours = self.made(adjoin), self.made(torch)
        same(self.walk(adjoin, *mine), self.walk(torch, *yours), where="parameters", near=self.near())
        same_state(mine[1].state_dict(), yours[1].state_dict(), self.near())

    def near(self):
        """Muon computes in bfloat16; LBFGS divides by the small differences of gradients that are nearly alike."""
        if self.info.name == "Muon":
            return 2e-2, 2e-2
        return (1e-2, 5e-3) if self.info.name == "LBFGS" and self.dtype == torch.float32 else None

    def carried(self, source, target):
        """Half of a path by one, its state loaded by the other, which goes on; beside PyTorch's whole path."""
        half = range(STEPS // 2)
        params, optimizer = self.made(source)
        self.walk(source, params, optimizer, half)
        carry = Ours() if target is adjoin else back
        fresh = [target.nn.Parameter(carry(p.detach().clone())) for p in params]
        fresh, other = self.made(target, fresh)
        other.load_state_dict(carry(optimizer.state_dict()))
        self.walk(target, fresh, other, range(STEPS // 2, STEPS))
        # PyTorch's own state, carried from PyTorch to PyTorch: loading may round it.
        first, whole = self.made(torch)
        self.walk(torch, first, whole, half)
        kept, yours = whole.state_dict(), [torch.nn.Parameter(p.detach().clone()) for p in first]
        yours, whole = self.made(torch, yours)
        whole.load_state_dict(kept)
        self.walk(torch, yours, whole, range(STEPS // 2, STEPS))
        if target is adjoin:
            same(fresh, yours, where="parameters", near=self.near())
            same_state(other.state_dict(), whole.state_dict(), self.near())
        else:
            for a, b in zip(fresh, yours, strict=True):
                torch.testing.assert_close(
                    a, b, rtol=self.near()[0] if self.near() else 1e-4, atol=1e-2 if self.near() else 1e-5
                )

    def copies(self):
        """A deep copy and a saved one go on as the optimizer does."""
        params, optimizer = self.made(adjoin)
        self.walk(adjoin, params, optimizer, range(2))
        file = io.BytesIO()
        adjoin.save(optimizer.state_dict(), file)
        file.seek(0)
        others = [adjoin.nn.Parameter(p.detach().clone()) for p in params]
        others, loaded = self.made(adjoin, others)
        loaded.load_state_dict(adjoin.load(file))
        two, copied = copy.deepcopy((params, optimizer))
        for ps, o in ((params, optimizer), (others, loaded), (two, copied)):
            self.walk(adjoin, ps, o, range(2, STEPS))
        for other in (others, two):
            if not all(adjoin.allclose(a, b, 1e-6, 1e-6) for a, b in zip(params, other, strict=True)):
                raise Differs("a copy walks another path")

    def hooks(self):
        told = {}
        for lib in (torch, adjoin):
            params, optimizer = self.made(lib)
            told[lib] = seen = []
            for when in (
                "step_pre",
                "step_post",
                "state_dict_pre",
                "state_dict_post",
                "load_state_dict_pre",
                "load_state_dict_post",
            ):
                getattr(optimizer, f"register_{when}_hook")(
                    lambda *a, when=when, seen=seen: seen.append((when, len(a)))
                )
            self.walk(lib, params, optimizer, range(1))
            optimizer.load_state_dict(optimizer.state_dict())
            optimizer.zero_grad(set_to_none=False)
            seen.append([None if p.grad is None else float(p.grad.to_dense().abs().sum()) for p in params])
            optimizer.zero_grad()
            seen.append([p.grad is None for p in params])
        if told[adjoin] != told[torch]:
            raise Differs(f"hooks saw {told[adjoin]}, not {told[torch]}")

    def groups(self):
        if not self.info.supports_param_groups:
            return
        kept = {}
        for lib in (torch, adjoin):
            params, optimizer = self.made(lib, groups=True)
            self.walk(lib, params, optimizer)
            kept[lib] = params, optimizer.state_dict()["param_groups"]
        same(kept[adjoin], kept[torch], where="groups", near=self.near())

    def schedulers(self):
        for i in range(len(self.info.scheduler_inputs)):
            kept = {}
            for lib in (torch, adjoin):
                params, optimizer = self.made(lib)
                chosen = [made(lib, optimizer, f) for f in self.info.scheduler_inputs[i]]
                for step in range(STEPS):
                    self.walk(lib, params, optimizer, [step])
                    for scheduler in chosen:
                        plateau = type(scheduler).__name__ == "ReduceLROnPlateau"
                        scheduler.step(1.0) if plateau else scheduler.step()
                kept[lib] = params, [g["lr"] for g in optimizer.param_groups]
            same(kept[adjoin], kept[torch], where=f"schedule {i}", near=self.near())


def made(lib, optimizer, make):
    """The scheduler of an entry's lambda, over either library's names."""
    return (make if lib is torch else rebound(make))(optimizer)


def bowl(lib, params, upside_down):
    """A loss with one best point, for searches along a line; its gradients are left in the parameters."""
    loss = 0
    for i, p in enumerate(params):
        p.grad = None
        loss = loss + (i + 1) * ((lib.view_as_real(p) if p.is_complex() else p) - 0.5).square().sum()
    loss = -loss if upside_down else loss
    loss.backward()
    return loss


def same_state(mine, yours, near):
    same(mine["param_groups"], yours["param_groups"], where="param_groups")
    same(alike(mine["state"], yours["state"]), yours["state"], where="state", near=near)


def alike(mine, yours):
    """LBFGS keeps as numbers what PyTorch keeps as tensors of one."""
    if isinstance(yours, torch.Tensor) and isinstance(mine, float):
        return adjoin.tensor(mine, dtype=getattr(adjoin, name(yours.dtype)))
    if isinstance(yours, dict) and isinstance(mine, dict) and set(mine) == set(yours):
        return {k: alike(v, yours[k]) for k, v in mine.items()}
    if isinstance(yours, list) and isinstance(mine, list) and len(mine) == len(yours):
        return [alike(a, b) for a, b in zip(mine, yours, strict=True)]
    return mine


def back(value):
    if isinstance(value, adjoin.Tensor):
        return theirs(value)
    if isinstance(value, dict):
        return {k: back(v) for k, v in value.items()}
    return type(value)(map(back, value)) if isinstance(value, (list, tuple)) else value


def errors(table, info, seed):
    if info.optim_error_inputs_func is None:
        return
    torch.manual_seed(seed)
    for error in info.optim_error_inputs_func(device="cpu", dtype=torch.float64):
        table.ask("errors", info.name, error.optimizer_error_input.desc, lambda error=error: refused(info, error))


def refused(info, error):
    given, ours = error.optimizer_error_input, Ours()
    params = given.params if given.params is not None else [torch.nn.Parameter(torch.ones(2, 2, dtype=torch.float64))]
    warned = issubclass(error.error_type, Warning)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error" if warned else "ignore")
            optimizer = getattr(adjoin.optim, info.name)(ours(params), **ours(given.kwargs))
            if error.error_on is not OptimizerErrorEnum.CONSTRUCTION_ERROR:
                for p in optimizer.param_groups[0]["params"]:
                    p.grad = adjoin.rand_like(p)
                optimizer.step()
    except error.error_type:
        return
    except Exception as e:
        raise Differs(f"raises {type(e).__name__} ({e}), not {error.error_type.__name__}: {error.error_regex}") from e
    raise Differs(f"does not refuse: {error.error_type.__name__}: {error.error_regex}")
