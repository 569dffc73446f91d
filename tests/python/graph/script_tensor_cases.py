"""tests/python/graph/script_tensor_cases.py: functions over tensors that are scripted: branches and loops that values decide, indexing, writes,
lists and dictionaries of tensors."""

import functools

import adjoin
from adjoin import Tensor, jit
from adjoin.nn import functional as F
from script_cases import N, V, X, case


# Tensors.
@case(X)
def pointwise(x: Tensor):
    y = x.sin() + adjoin.cos(x) * 2 - x / 3
    y = y.clamp(-1, 1)
    return y, y.sum(), F.relu(y), -y, y > 0, 1 - y, 2**y, (y * y).mean(dim=1)


doubled = functools.partial(adjoin.mul, 2.0)
kept_sum = functools.partial(adjoin.sum, dim=0, keepdim=True)


@case(X)
def partial_functions(x: Tensor):
    return doubled(x), kept_sum(x), kept_sum(x, keepdim=False)


@case(X)
def contractions(x: Tensor):
    y = x.mT.contiguous()
    return (
        adjoin.tensordot(x, y, 1),
        adjoin.tensordot(x, x),
        adjoin.tensordot(x, x, dims=([0, -1], [0, 1])),
        adjoin.tensordot(x, x, ([-1], [1])),
        adjoin.tensordot(x, y, (0, 1)),
    )


@case(X)
def branch_on_tensor(x: Tensor):
    if x.sum() > 0:
        y = x * 2
    elif bool((x < 0).all()):
        y = -x
    else:
        y = x + 1
    return y if y.mean().item() > 0.5 else y - 1


@case(X, 5)
def tensor_loop(x: Tensor, n: int):
    for i in range(n):
        if i == 3:
            continue
        x = x * 0.9 + i
    while x.sum() > 40:
        x = x / 2
    return x


@case(X)
def indexing(x: Tensor):
    return (
        x[0],
        x[:, 1],
        x[1:3, ::2],
        x[-1, -1],
        x[..., None].shape,
        x[x > 0],
        x[[0, 2]],
        x[adjoin.tensor([1, 0])],
        x[None].size(),
    )


@case(X)
def writing(x: Tensor):
    y = x.clone()
    y[0] = 1.0
    y[1, 2] = 5
    y[:, 0] += 2
    y[y > 3] = -1.0
    y[2:] = adjoin.zeros(2, 3)
    y *= 2
    y.add_(1)
    return y


@case(X)
def shapes(x: Tensor):
    rows, columns = x.shape
    y = x.reshape(columns, rows).t()
    z = x.view(-1)
    parts = x.split(2)
    return (
        y,
        z.shape,
        x.size(0),
        x.dim(),
        x.numel(),
        len(parts),
        adjoin.cat([parts[1], parts[0]], dim=0),
        x.unsqueeze(0).permute(2, 0, 1).shape,
    )


@case(X)
def reductions(x: Tensor):
    values, indices = x.max(dim=1)
    low = adjoin.min(x, 0)
    top = x.flatten().topk(3)
    return values, indices, low.values, low.indices, top.values, x.argmax().item(), x.std(), adjoin.sort(x, dim=1)[0]


@case(X, V)
def list_of_tensors(x: Tensor, v: Tensor):
    rows = []
    for row in x:
        rows.append(row * 2)
    total = adjoin.zeros(3)
    for i, r in enumerate(rows):
        total = total + r * i
    return adjoin.stack(rows), total, [t.item() for t in v], v.tolist(), len(x)


@case(X)
def dict_of_tensors(x: Tensor) -> dict[str, Tensor]:
    out: dict[str, Tensor] = {}
    for name, row in zip(["a", "b"], x):  # noqa: B905
        out[name] = row
    out["sum"] = out["a"] + out["b"]
    return out


@case(N)
def integers(n: Tensor):
    total = 0
    for i in n.tolist():
        total += i if i % 2 else -i
    return (
        total,
        n // 2,
        n % 3,
        n == 3,
        int(n[2]),
        n[2].item() + 1,
        n.float().mean(),
        n.to(adjoin.float64) / 2,
        n.dtype == adjoin.int64,
    )


@case(X)
def made(x: Tensor):
    a = adjoin.arange(3, dtype=adjoin.float32)
    b = adjoin.ones(2, 3) + adjoin.full((2, 3), 0.5)
    c = adjoin.tensor([[1.0, 2.0], [3.0, 4.0]])
    d = adjoin.zeros_like(x)
    return (
        a,
        b,
        c,
        d,
        adjoin.eye(2),
        adjoin.linspace(0, 1, 3),
        x.new_zeros(2),
        adjoin.where(x > 0, x, d),
        adjoin.tensor([1, 2]).dtype,
    )


@case(X)
def no_gradients(x: Tensor):
    y = x.detach().requires_grad_()
    with adjoin.no_grad():
        a = y * 2
    b = y * 2
    with adjoin.enable_grad():
        c = y + 1
    return a.requires_grad, b.requires_grad, c.requires_grad, adjoin.is_grad_enabled()


@case(X)
def softmax_by_hand(x: Tensor):
    e = (x - x.max(dim=1, keepdim=True).values).exp()
    p = e / e.sum(dim=1, keepdim=True)
    return p, F.softmax(x, dim=1), F.log_softmax(x, 1), adjoin.softmax(x, -1)


@case(X)
def matrix_power(x: Tensor):
    a = x.t() @ x / 10
    out = adjoin.eye(3)
    n = 5
    while n > 0:
        if n % 2 == 1:
            out = out @ a
        a = adjoin.matmul(a, a)
        n = n // 2
    return out


@case(V)
def greedy_suppression(scores: Tensor):
    order = scores.argsort(descending=True).tolist()
    kept: list[int] = []
    while len(order) > 0:
        first = order.pop(0)
        kept.append(first)
        order = [i for i in order if abs(i - first) > 1]
    return kept


@case(X)
def functional(x: Tensor):
    y = F.linear(x, adjoin.ones(2, 3), adjoin.zeros(2))
    z = F.layer_norm(x, (3,))
    return (
        y,
        z,
        F.gelu(x),
        F.leaky_relu(x, 0.2),
        F.pad(x, (1, 1)),
        F.one_hot(adjoin.tensor([0, 2]), 3),
        F.mse_loss(x, x * 2),
    )


@case(X)
def losses(x: Tensor):
    target = adjoin.tensor([0, 2, 1, 0])
    return (
        F.cross_entropy(x, target),
        F.nll_loss(F.log_softmax(x, dim=1), target),
        F.smooth_l1_loss(x, x * 0),
        F.binary_cross_entropy_with_logits(x, (x > 0).float()),
    )


@case(V)
def running_mean(v: Tensor):
    mean, seen, out = 0.0, 0, []
    for x in v.tolist():
        seen += 1
        mean += (x - mean) / seen
        out.append(round(mean, 6))
    return out


def apply_n(f_name: str, x: Tensor, n: int) -> Tensor:
    for _ in range(n):
        if f_name == "tanh":
            x = adjoin.tanh(x)
        elif f_name == "half":
            x = x / 2
        else:
            raise ValueError(f"no function {f_name}")
    return x


@case(V, ["tanh", "half", "tanh"])
def pipeline(v: Tensor, steps: list[str]):
    for i, s in enumerate(steps):
        v = apply_n(s, v, i + 1)
    return v


def double_of(x):
    return x * 2


@case(V)
def functions_as_values(v: Tensor):
    table = {"relu": F.relu, "double": double_of, "len": len}
    fs = [adjoin.sin, double_of]
    for f in fs:
        v = f(v)
    return v, table["double"](v), table["relu"](v), table["len"]([1, 2])


@case(X, V)
def either_type(a, b):
    out = []
    for item in [a, 3, "s", [1], (1, 2), None, b, 2.5, {"k": 1}]:
        if isinstance(item, Tensor):
            out.append("tensor")
        elif isinstance(item, (int, float)):
            out.append("number")
        elif isinstance(item, str):
            out.append("str")
        elif isinstance(item, (list, tuple)):
            out.append("sequence")
        elif item is None:
            out.append("none")
        else:
            out.append("other")
    return out


@case(X)
def scripting_is_known(x: Tensor):
    if not jit.is_scripting():
        print("never compiled", {1, 2}, lambda: x)
    y = jit.annotate(list[int], [])
    y.append(3)
    return y


@case(X)
def early_returns(x: Tensor):
    for i in range(x.size(0)):
        for j in range(x.size(1)):
            if x[i, j] > 0.7:
                return i, j
    return -1, -1


@case(3)
def complex_numbers(n: int):
    z = complex(n, 4)
    return z * z, abs(z), z.real, z.imag, z + 1, 2j * z


@case(N)
def histogram(n: Tensor):
    counts = [0] * 10
    for i in n.tolist():
        counts[i % 10] += 1
    lines = []
    for i, c in enumerate(counts):
        if c:
            lines.append(f"{i}: " + "#" * c)
    return "\n".join(lines), adjoin.bincount(n % 10, minlength=10)


@case(X, V)
def recurrence(x: Tensor, v: Tensor):
    state, out = adjoin.zeros(3), []
    gates = {"keep": v[0].sigmoid(), "write": v[1].sigmoid()}
    for t in range(x.size(0)):
        state = gates["keep"] * state + gates["write"] * x[t].tanh()
        out.append(state)
        if state.abs().max() > 0.9:
            state = state * 0.5
    return adjoin.stack(out), state


def scaled(x: Tensor, by: float = 2.0, *, add: float = 0.0):
    return x * by + add


@case(V)
def keywords(x: Tensor):
    return scaled(x), scaled(x, 3.0), scaled(x, add=1.0), scaled(by=0.5, x=x)
