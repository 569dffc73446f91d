"""tests/programs/packages/protocols.py: counts of operations, modes, classes of tensors, hooks of the graph."""

import torch
from told import fill, tell
from torch.autograd import graph
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode
from torchvision import models

F, aten = torch.nn.functional, torch.ops.aten


def flops(module, *inputs, by_op=True):
    """By op and by module; which of several products attention is made of differs."""
    with FlopCounterMode(display=False) as counter:
        out = module(*inputs)
        out.sum().backward()
    counts = counter.get_flop_counts()
    return [
        counter.get_total_flops(),
        [[str(op), n] for op, n in sorted(counts["Global"].items(), key=lambda kv: str(kv[0]))] if by_op else [],
        [[name, sum(counts[name].values())] for name in sorted(counts)],
    ]


def image(size=64):
    return torch.ones(2, 3, size, size)


class Seen(TorchDispatchMode):
    def __init__(self):
        self.ops = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ops.append(str(func))
        return func(*args, **(kwargs or {}))


# What is made of these names differs: constants, aliases, and places that memory is asked for.
LEFT_OUT = ("aten.detach.default", "aten.ones_like.default", "aten.expand.default", "aten.lift_fresh.default")


def seen(function):
    with Seen() as mode:
        function()
    return [name.replace("_unsafe_view", "view") for name in mode.ops if name not in LEFT_OUT]


def calls():
    x = torch.arange(6.0).view(2, 3)
    return [
        seen(function)
        for function in (
            lambda: F.linear(x, x),
            lambda: F.linear(x, x, x[:, 0]),
            lambda: F.linear(x[None], x),
            lambda: x @ x.t(),
            lambda: (x + 1, x - x, x * 2, x / 3, x > 0, x == x, x.eq(1), x**2, x.pow(x)),
            lambda: (x.sum(), x.sum(0), x.mean(), x.mean(1), x.max(), x.max(1), x.amax(1), x.argmax(), x.cumsum(0)),
            lambda: (x.t(), x.transpose(0, 1), x.permute(1, 0), x[0], x[:, 1:], x.view(6), x.unsqueeze(0), x.split(1)),
            lambda: (x.clone(), x.clone().add_(1), x.clone().mul_(x), x.clone().fill_(1.0), x.clone().zero_()),
            lambda: (x.exp(), x.relu(), x.tanh(), x.sigmoid(), F.gelu(x), F.silu(x), x.sqrt(), x.abs(), x.neg()),
            lambda: (x.softmax(-1), x.log_softmax(1), x.clamp(0, 1), x.tril(), x.double(), x.to(torch.bfloat16)),
            lambda: (torch.cat([x, x]), torch.stack([x, x]), torch.where(x > 0, x, x), x.masked_fill(x > 0, 0.0)),
            lambda: (F.conv2d(x[None, None], x[None, None]), torch.bmm(x[None], x.t()[None])),
        )
    ]


class Scaled(torch.Tensor):
    """A tensor times a number, taken apart where it is computed with."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner, scale):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner, scale):
        self.inner, self.scale = inner, scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in (aten.detach.default, aten.t.default, aten.view.default):
            return cls(func(args[0].inner, *args[1:]), args[0].scale)
        plain = [a.inner * a.scale if isinstance(a, cls) else a for a in args]
        return func(*plain, **(kwargs or {}))


def wrapped():
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    rng = fill(net)
    for layer in (net[0], net[2]):
        layer.weight = torch.nn.Parameter(Scaled(layer.weight.detach(), 2.0), requires_grad=False)
    x = torch.from_numpy(rng.standard_normal((3, 4)).astype("f4")).requires_grad_()
    y = net(x)
    y.pow(2).sum().backward()
    return [*y.flatten().tolist(), *x.grad.flatten().tolist(), (Scaled(torch.ones(2), 3.0) + 1).tolist()]


def queued():
    order, a = [], torch.ones(2, requires_grad=True)

    def hook(_):
        order.append("hook")
        graph.queue_callback(lambda: (order.append("end"), graph.queue_callback(lambda: order.append("last"))))

    a.register_hook(hook)
    (a * 2).sum().backward()
    try:
        torch.autograd.Variable._execution_engine.queue_callback(print)
    except RuntimeError:
        order.append("refused")
    return order


class Failing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, order):
        ctx.order = order
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        graph.queue_callback(lambda: ctx.order.append("never"))
        raise ValueError("as asked")


def queued_in_a_pass_that_fails():
    order = []
    try:
        Failing.apply(torch.ones(2, requires_grad=True), order).sum().backward()
    except ValueError:
        order.append("failed")
    return order


def of_several():
    found = []
    for mode in ("all", "any"):
        for used in ([0, 1, 2], [0, 2], [1]):
            leaves = [torch.ones(2, requires_grad=True) for _ in range(3)]
            given = []
            note = (lambda g: given.append(g.tolist())) if mode == "any" else (
                lambda gs: given.append([0.0 if g is None else g.tolist() for g in gs])
            )  # fmt: skip
            handle = graph.register_multi_grad_hook(leaves, note, mode=mode)
            for _ in range(2):
                sum((t * (i + 1)).sum() for i, t in enumerate(leaves) if i in used).backward()
            handle.remove()
            sum(t.sum() for t in leaves).backward()
            found.append(sorted(given) if mode == "all" else [len(given)])
    return found


def created():
    names = []
    with graph.node_creation_hook(lambda n: names.append(f"outer {type(n).__name__}")):
        with graph.node_creation_hook(lambda n: names.append(f"inner {type(n).__name__}")):
            a = torch.ones(2, requires_grad=True)
            b = (a * a).exp().sum()
            b + a
    node = b.grad_fn
    node.metadata["note"] = 1
    return [*names, b.grad_fn is node, b.grad_fn.metadata["note"]]


def around_nodes():
    order = []

    def hook(node):
        name = type(node).__name__
        node.register_prehook(lambda _: order.append(f"before {name}"))
        node.register_hook(lambda *_: order.append(f"after {name}"))

    a = torch.ones(2, requires_grad=True)
    with graph.node_creation_hook(hook):
        b = (a * 3).sum()
    b.backward()
    return [entry for entry in order if "AccumulateGrad" not in entry]


def edges():
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    y = a * a
    edge = graph.get_gradient_edge(y)
    try:
        graph.get_gradient_edge(torch.ones(1))
        refused = False
    except RuntimeError:
        refused = True
    leaf = graph.get_gradient_edge(a)
    return [edge.output_nr, list(edge._fields), type(leaf.node).__name__, leaf.output_nr, refused]


def saved():
    order, a = [], torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.tensor([3.0, 4.0], requires_grad=True)
    note = lambda word: lambda t: (order.append(word), t)[1]  # noqa: E731
    with graph.saved_tensors_hooks(note("pack"), note("unpack")):
        c = (a * b).exp()
    c.sum().backward()
    with graph.save_on_cpu():
        d = (a * b).sin()
    d.sum().backward()
    with graph.disable_saved_tensors_hooks("not here"):
        (a * b).sum().backward()
        try:
            with graph.saved_tensors_hooks(note("x"), note("y")):
                a * b
        except RuntimeError as error:
            order.append(str(error))
    with graph.allow_mutation_on_saved_tensors():
        m = torch.ones(2, requires_grad=True)
        n = m.clone()
        p = n**2
        n.mul_(5)
        p.sum().backward()
    return [order, a.grad.tolist(), m.grad.tolist()]


if __name__ == "__main__":
    tell({
        "flops/resnet18": lambda: flops(models.resnet18(weights=None), image()),
        "flops/mobilenet_v2": lambda: flops(models.mobilenet_v2(weights=None), image()),
        "flops/vit": lambda: flops(models.VisionTransformer(32, 16, 2, 2, 32, 64), image(32), by_op=False),
        "flops/transformer": lambda: flops(torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), torch.ones(2, 10, 32), by_op=False),
        "flops/transposed": lambda: flops(torch.nn.ConvTranspose2d(3, 4, 3, stride=2), image(8).requires_grad_()),
        "calls": calls,
        "wrapped": wrapped,
        "queued": queued,
        "queued in a pass that fails": queued_in_a_pass_that_fails,
        "of several": of_several,
        "created": created,
        "around nodes": around_nodes,
        "edges": edges,
        "saved": saved,
    })  # fmt: skip
