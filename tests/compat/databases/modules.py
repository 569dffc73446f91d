"""tests/compat/databases/modules.py: each entry of PyTorch's database of modules, by both."""

import copy
import pickle

import adjoin
import torch
from torch.testing._internal.common_modules import ModuleErrorEnum, module_db

from .pair import Ours, found, name, remember_arguments, same, theirs
from .table import Differs

remember_arguments(
    torch.nn.TransformerEncoderLayer, torch.nn.TransformerDecoderLayer, torch.nn.Linear, torch.nn.LayerNorm
)
MOST = 16  # nearly: of the inputs of an entry and a dtype that are taken, evenly
# Differences that are meant.
KNOWN = {
    ("gradients", "nn.CTCLoss"): "the derivative by log_probs; PyTorch's holds only behind a log_softmax",
    ("devices", "nn.CTCLoss"): "lengths on meta tell no shape",
    **{("gradients", f"nn.LPPool{d}d"): "0 at windows of zeros, where PyTorch has NaN" for d in (1, 2, 3)},
    **{("second derivatives", f"nn.LPPool{d}d"): "0 at windows of zeros, where PyTorch has NaN" for d in (1, 2, 3)},
    ("second derivatives", "nn.LinearCrossEntropyLoss"): "true with options, too, where PyTorch has 0",
    ("devices", "nn.MultiLabelMarginLoss"): "the shape that the CPU gives; PyTorch's meta kernel gives another",
    ("memory formats", "nn.InstanceNorm2d"): "channels last stays; PyTorch's eval loses it",
    ("memory formats", "nn.InstanceNorm3d"): "channels last stays; PyTorch's eval loses it",
    ("memory formats", "nn.LinearCrossEntropyLoss"): "strides of losses that are not reduced",
}
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def run(table, seed=0, entries=None, told=None):
    for info in module_db:
        if entries and info.name not in entries:
            continue
        table.ask("there", info.name, "name", lambda cls=info.module_cls: found(cls))
        if not table.failed["there", info.name]:
            for dtype in (d for d in DTYPES if d in info.dtypes):
                for training in (True, False) if info.train_and_eval_differ else (True,):
                    cases(table, info, dtype, training, seed)
            errors(table, info, seed)
        if told:
            told(info.name)


def cases(table, info, dtype, training, seed):
    torch.manual_seed(seed)
    inputs = list(info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training))
    for i, given in list(enumerate(inputs))[:: max(1, len(inputs) // MOST)]:
        label = f"{name(dtype)}{'' if training else ' eval'} {i} {given.desc}"
        case = table.ask(
            "arguments",
            info.name,
            label,
            lambda given=given, label=label: Case(table, info, dtype, training, given, label),
        )
        if case:
            case.run(whole=dtype == torch.float64)


def tensors(value):
    """The tensors of a structure, in order."""
    if isinstance(value, (torch.Tensor, adjoin.Tensor)):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for part in value for t in tensors(part)] if isinstance(value, (list, tuple)) else []


def wanted(lib, value):
    """The tensors of a structure that gradients are asked of."""
    return [t for t in tensors(value) if t.requires_grad and not getattr(t, "is_sparse", False)]


class Case:
    """One way to make a module, and one call of it."""

    def __init__(self, table, info, dtype, training, given, label):
        self.table, self.info, self.dtype, self.training, self.label = table, info, dtype, training, label
        self.made_with, self.called_with = given.constructor_input, given.forward_input
        # Converted once: an argument that is in both, or twice, stays one.
        ours = Ours()
        self.arguments = {
            torch: (self.made_with.args, self.made_with.kwargs),
            adjoin: (ours(self.made_with.args), ours(self.made_with.kwargs)),
        }

    def ask(self, column, question):
        if (column, self.info.name) in KNOWN:
            return self.table.leave_out(column, self.info.name, KNOWN[column, self.info.name])
        return self.table.ask(column, self.info.name, self.label, question)

    def make(self, lib, **more):
        args, kwargs = copy.deepcopy(self.arguments[lib])
        cls = self.info.module_cls if lib is torch else found(self.info.module_cls)
        return cls(*args, **kwargs, **more).to(getattr(lib, name(self.dtype))).train(self.training)

    def call(self, lib, module, change=None):
        """The result, and the arguments it came of."""
        args, kwargs = self.called_with.args, self.called_with.kwargs
        if change:
            args, kwargs = change(args), change(kwargs)
        given = leaves(args), leaves(kwargs)
        if lib is adjoin:
            given = Ours()(given)
        return module(*given[0], **given[1]), given

    def steady(self):
        """PyTorch's module and its result, which does not hang on a generator; None where it does or where PyTorch refuses."""
        module = self.make(torch)
        if self.info.is_lazy:
            self.call(torch, module)
        state = copy.deepcopy(module.state_dict())
        try:
            torch.manual_seed(1)
            first, _ = self.call(torch, copy.deepcopy(module))
            torch.manual_seed(2)
            second, _ = self.call(torch, copy.deepcopy(module))
        except Exception:
            return module, None
        alike = all(torch.equal(a, b) or a.isnan().any() for a, b in zip(tensors(first), tensors(second), strict=True))
        module.load_state_dict(state)
        return module, alike

    def run(self, whole):
        yours, alike = self.steady()
        mine = self.ask("constructor", lambda: self.constructor(yours))
        if mine is None or self.called_with is None or alike is None:
            return
        if self.ask("state there", lambda: mine.load_state_dict(Ours()(dict(yours.state_dict()))) or True) is None:
            return
        self.ask("state back", lambda: self.back(mine, yours))
        self.ask("outputs", lambda: self.outputs(mine, yours, alike))
        if alike:
            self.ask("gradients", lambda: self.gradients(mine, yours, twice=False))
        if not whole:
            return
        if alike and self.info.supports_gradgrad:
            self.ask("second derivatives", lambda: self.gradients(mine, yours, twice=True))
        self.ask("hooks", lambda: self.hooks(mine, yours))
        self.ask("devices", self.devices)
        self.ask("copies", lambda: self.copies(mine, yours))
        if alike:
            self.ask("memory formats", lambda: self.strided(mine, yours))

    def constructor(self, yours):
        mine = self.make(adjoin)
        if self.info.is_lazy:
            self.call(adjoin, mine)
        if repr(mine) != repr(yours):
            raise Differs(f"repr {mine!r}, not {yours!r}")
        for kind in ("named_parameters", "named_buffers", "named_modules"):
            a, b = ([n for n, _ in getattr(m, kind)()] for m in (mine, yours))
            if a != b:
                raise Differs(f"{kind} {a}, not {b}")
        same(dict(mine.state_dict()), dict(yours.state_dict()), values=False, where="state")
        return mine

    def back(self, mine, yours):
        state = {k: theirs(v) if isinstance(v, adjoin.Tensor) else v for k, v in mine.state_dict().items()}
        fresh = self.make(torch)
        if self.info.is_lazy:
            self.call(torch, fresh)
        fresh.load_state_dict(state)
        for key, value in fresh.state_dict().items():
            if isinstance(value, torch.Tensor) and not torch.equal(value, yours.state_dict()[key]):
                raise Differs(f"{key} came back another")

    def outputs(self, mine, yours, alike):
        a, given = self.call(adjoin, mine)
        b, expected = self.call(torch, yours)
        same(a, b, values=alike, strides=True)
        same(given, expected, where="the inputs afterwards", values=alike)
        same(dict(mine.state_dict()), dict(yours.state_dict()), where="state afterwards", values=alike)

    def gradients(self, mine, yours, twice):
        try:
            expected = self.derived(torch, yours, twice)
        except (RuntimeError, NotImplementedError):
            return  # PyTorch has none
        if expected is not None:
            same(self.derived(adjoin, mine, twice), expected, where="gradient")

    def derived(self, lib, module, twice):
        """Gradients of inputs and parameters; or what those gradients' own gradients are, zeros where there is none."""
        result, given = self.call(lib, module)
        outs = [t for t in tensors(result) if t.requires_grad]
        if not outs:
            return None
        ins = wanted(lib, given) + [p for p in module.parameters() if p.requires_grad]
        torch.manual_seed(4)
        cotangents = [
            torch.rand(tuple(t.shape), dtype=getattr(torch, name(t.dtype))).requires_grad_(twice) for t in outs
        ]
        cotangents = cotangents if lib is torch else Ours()(cotangents)
        first = lib.autograd.grad(outs, ins, cotangents, create_graph=twice, allow_unused=True)
        if not twice:
            return first
        total = sum((g * g).sum() if not g.is_complex() else g.abs().square().sum() for g in first if g is not None)
        if not isinstance(total, lib.Tensor) or not total.requires_grad:
            return [lib.zeros_like(t).detach() for t in ins + cotangents]
        second = lib.autograd.grad(total, ins + cotangents, allow_unused=True)
        return [lib.zeros_like(t).detach() if g is None else g for g, t in zip(second, ins + cotangents, strict=True)]

    def hooks(self, mine, yours):
        told = {}
        for lib, module in ((torch, yours), (adjoin, mine)):
            told[lib] = seen = []

            def shapes(value, lib=lib):
                return [
                    None if v is None else tuple(v.shape) if hasattr(v, "shape") else type(v).__name__ for v in value
                ]

            many = lambda value: value if isinstance(value, tuple) else (value,)  # noqa: E731
            handles = [
                module.register_forward_pre_hook(lambda m, a, seen=seen: seen.append(("before", len(a)))),
                module.register_forward_pre_hook(
                    lambda m, a, k, seen=seen: seen.append(("before, named", len(a), sorted(k))), with_kwargs=True
                ),
                module.register_forward_hook(
                    lambda m, a, r, seen=seen: seen.append(("after", len(a), shapes(many(r))))
                ),
                module.register_full_backward_pre_hook(lambda m, g, seen=seen: seen.append(("backward of", shapes(g)))),
                module.register_full_backward_hook(
                    lambda m, gi, go, seen=seen: seen.append(("backward", shapes(gi), shapes(go)))
                ),
            ]
            try:
                result, _ = self.call(lib, module)
                outs = [t for t in tensors(result) if t.requires_grad]
                if outs:
                    lib.autograd.backward([t.sum() for t in outs])
            except Exception as e:
                seen.append(type(e).__name__)
            finally:
                for handle in handles:
                    handle.remove()
                module.zero_grad()
            if len(module._forward_hooks) or len(module._forward_pre_hooks):
                raise Differs("a removed hook stays")
        if told[adjoin] != told[torch]:
            raise Differs(f"hooks saw {told[adjoin]}, not {told[torch]}")

    def devices(self):
        told = {}
        for lib in (torch, adjoin):
            try:
                module = self.make(lib).to("meta")
                seen = [
                    (n, str(p.device), tuple(p.shape)) for n, p in module.state_dict().items() if hasattr(p, "device")
                ]
                given = [leaves(self.called_with.args), leaves(self.called_with.kwargs)]
                given = given if lib is torch else Ours()(given)
                args, kwargs = moved(lib, given)
                told[lib] = (
                    seen,
                    [(str(t.device), tuple(t.shape), name(t.dtype)) for t in tensors(module(*args, **kwargs))],
                )
            except Exception as e:
                if lib is torch:
                    return  # PyTorch refuses there, too
                raise e
        if told[adjoin] != told[torch]:
            raise Differs(f"on meta {told[adjoin]}, not {told[torch]}")

    def copies(self, mine, yours):
        expected = dict(mine.state_dict())
        for made in (copy.deepcopy(mine), pickle.loads(pickle.dumps(mine))):
            if repr(made) != repr(mine) or made.training != mine.training:
                raise Differs(f"a copy is {made!r}")
            if any(
                isinstance(v, adjoin.Tensor)
                and (v.data_ptr() == expected[k].data_ptr() != 0 or not adjoin.equal(v, expected[k]))
                for k, v in made.state_dict().items()
            ):
                raise Differs("a copy shares memory or holds other numbers")
        kept = dict(yours.__dict__)
        missing = [k for k in kept if not k.startswith("_") and k not in ("made_with",) and not hasattr(mine, k)]
        if missing:
            raise Differs(f"attributes missing: {missing}")

    def strided(self, mine, yours):
        """Inputs whose elements lie apart; and images with channels last, where the result's strides are PyTorch's."""
        apart = lambda t: torch.stack([t, t], -1)[..., 0] if t.layout is torch.strided else t  # noqa: E731
        last = lambda t: t.to(memory_format=torch.channels_last) if t.dim() == 4 else t  # noqa: E731
        for how, form in (("apart", apart), ("channels last", last)):
            change = lambda value, form=form: mapped(value, form)  # noqa: E731
            a, _ = self.call(adjoin, mine, change)
            b, _ = self.call(torch, yours, change)
            same(a, b, strides=True, where=f"the result of {how}")


def mapped(value, change):
    if isinstance(value, torch.Tensor):
        return change(value.detach()).requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {k: mapped(v, change) for k, v in value.items()}
    return type(value)(mapped(v, change) for v in value) if type(value) in (list, tuple) else value


def leaves(value):
    """The same arguments, of fresh tensors that record."""
    return mapped(value, lambda t: t.clone())


def moved(lib, value):
    if isinstance(value, lib.Tensor):
        return value.detach().to("meta")
    if isinstance(value, dict):
        return {k: moved(lib, v) for k, v in value.items()}
    return type(value)(moved(lib, v) for v in value) if type(value) in (list, tuple) else value


def errors(table, info, seed):
    if info.module_error_inputs_func is None:
        return
    torch.manual_seed(seed)
    for i, error in enumerate(
        info.module_error_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=False, training=True)
    ):
        given, ours = error.module_error_input, Ours()

        def question(error=error, given=given, ours=ours):
            try:
                made = found(info.module_cls)(
                    *ours(given.constructor_input.args), **ours(given.constructor_input.kwargs)
                )
                if error.error_on is ModuleErrorEnum.FORWARD_ERROR:
                    if next(made.parameters(), None) is not None:  # a loss keeps the weight that it was given
                        made.double()
                    made(*ours(given.forward_input.args), **ours(given.forward_input.kwargs))
            except error.error_type:
                return
            except Exception as e:
                raise Differs(
                    f"raises {type(e).__name__} ({e}), not {error.error_type.__name__}: {error.error_regex}"
                ) from e
            raise Differs(f"does not refuse: {error.error_type.__name__}: {error.error_regex}")

        table.ask("errors", info.name, f"error {i}", question)
