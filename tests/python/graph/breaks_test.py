"""tests/python/graph/breaks_test.py: 60 snippets in a lazy scope: their results, and the lines where a value or a size ends what was
written down."""

import adjoin
import pytest
from adjoin import nn
from adjoin.nn import functional as F

# Each is the body of f(x, y, w), x of shape (4, 6), y of (6,), w of (6, 6) with a gradient. Lines with #! end a region.
SNIPPETS = """
return x * 2 + y
---
return (x @ w).relu().sum()
---
z = x + 1
if z.sum() > 0:  #!
    return z * 2
return z * 3
---
z = (x * 2).sum().item()  #!
return x + z
---
return float((x * x).mean())  #!
---
z = x.exp()
print(z.sum(), file=OUT)  #!
return z + 1
---
return (x > 0).nonzero()  #!
---
z = x + 1
return z[z > 0]  #!
---
z = (x * 3).tolist()  #!
return len(z)
---
z = x + 1
a = z.numpy()  #!
return float(a.sum())
---
z = x * y
for i in range(3):
    z = z + i
return z
---
total = 0
for row in x * 2:
    total = total + row.sum()
return total
---
z = x + 1
while z.max() < 6:  #!
    z = z + 2  #~
return z
---
z = x.clone()
z[0] = 7
z[:, 1] += 1
return z * 2
---
z = x + 0
v = z[1:3]
v.mul_(2)
z.add_(1)
return z, v
---
z = x * 1
v = z.t()
z.zero_()
return v + 1
---
x.add_(1)
return x * 2
---
z = x * 2
x.mul_(3)
return z + x
---
z = x * 2
v = x[0]
v.zero_()
return z + x
---
z = (x * 2).contiguous()
return z.view(6, 4) + 1, z.reshape(-1)
---
adjoin.manual_seed(3)
a = adjoin.rand(4, 6)
b = adjoin.randn(6)
return x * a + b
---
adjoin.manual_seed(3)
return F.dropout(x + 1, 0.5) + F.dropout(x, 0.1)
---
adjoin.manual_seed(5)
z = adjoin.randint(0, 9, (4,))
adjoin.manual_seed(5)
return z == adjoin.randint(0, 9, (4,))
---
return adjoin.cat([x + 1, x * 2]).split(3)
---
a, b = (x * 2).chunk(2)
a.add_(b)
return a, b
---
a, b, c, d = (x * 2).unbind()
return a + b, d
---
z = adjoin.topk(x * 2, 2)
return z.values + 1, z.indices
---
z = adjoin.where(x > 0, x, y)
return z.max(dim=1)
---
return F.softmax(x * 2, -1), F.layer_norm(x, (6,))
---
z = (x @ w).sum()
z.backward()
return w.grad * 2
---
z = ((x @ w).tanh() ** 2).mean()
g, = adjoin.autograd.grad(z, w, create_graph=True)
return adjoin.autograd.grad(g.sum(), w)[0]
---
with adjoin.no_grad():
    z = x @ w
return z.requires_grad, (x @ w).requires_grad, z
---
z = (w * 2).detach()
z.add_(1)
return z, w + z
---
z = (w * w).sum()
z.backward()
w.data.sub_(w.grad, alpha=0.1)
return w * 1
---
seen = []
z = w * 2
z.register_hook(lambda g: seen.append(g.sum().item()))  #!
z.sum().backward()
return seen
---
z = x + 1
z.resize_(2, 3)  #~
return z
---
z = adjoin.zeros(3)
z.copy_(x[0, :3] * 2)
return z
---
z = x * 2
out = adjoin.empty(4, 6)
adjoin.add(z, 1, out=out)  #!
return out
---
out = adjoin.zeros(4, 6) + 0
adjoin.mul(x, 2, out=out)  #!
return out + 1
---
z = x.double() * 2
return z.float(), z.to(adjoin.int32), z.half()
---
z = x * 2
return z.shape, z.dtype, z.stride(), z.is_contiguous(), z.numel(), z.t().stride()
---
z = (x * 2).expand(3, 4, 6)
return z.sum(0)
---
z = x + 1
z = z.permute(1, 0)
return z @ x
---
try:
    return x @ x
except RuntimeError as e:
    return "x" in str(e) and x + 1
---
z = x * 2
try:
    (z + 1) @ z  #!
except RuntimeError:
    z = z + 3
return z
---
a = [x + 1]
a.append(a[0] * 2)
a[0].add_(1)
return a
---
z = {"a": x * 2}
z["a"] += 1
return z
---
z = x[0, 0] * 2
return [1, 2, 3][int(z) * 0]  #!
---
z = (y * 0).long()
return x[:, z]
---
z = (y * 0).long()
u = x * 2
u[z, z] = 5
return u
---
z = x.cumsum(0).sort(dim=1)
return z[0], z[1]
---
return adjoin.unique((x > 0).int())  #!
---
return adjoin.einsum("ij,kj->ik", x * 2, x)
---
z = x * 2
assert adjoin.isfinite(z).all()  #!
return z
---
z = x * 2
return repr(z.shape) + str(z.dim())
---
z = x * 2
return z.equal(x + x)  #!
---
z = x * 2
u = z.clone()
z.fill_(1)
return u, z
---
z = NET(x)
return z.sum()
---
z = COND(x * 2)  #~
return z + 1
---
import copy
z = x * 2
return copy.deepcopy(z) + z  #~
""".strip().split("\n---\n")

NET = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Linear(8, 3))


@adjoin.compiler.disable
def COND(z):
    return z if z.sum() > 0 else -z


class Sink:
    def write(self, text):
        pass


def function(number):
    body = SNIPPETS[number].split("\n")
    text = "def f(x, y, w):\n" + "\n".join("    " + line for line in body)
    space = {"adjoin": adjoin, "F": F, "OUT": Sink(), "NET": NET, "COND": COND}
    exec(compile(text, f"snippet{number}.py", "exec"), space)
    lines = [i + 2 for i, line in enumerate(body) if line.endswith("#!")]
    return space["f"], lines, any(line.endswith("#~") for line in body)


def bits(o):
    if isinstance(o, adjoin.Tensor):
        t = o.detach()
        if o.dtype.is_floating_point and t.isnan().any():
            t = adjoin.where(t.isnan(), float("nan"), t)  # whose sign is nobody's promise
        return o.dtype, tuple(o.shape), o.stride(), o.requires_grad, t.contiguous().numpy().tobytes()
    if isinstance(o, (tuple, list)):
        return [bits(v) for v in o]
    return {k: bits(v) for k, v in o.items()} if isinstance(o, dict) else o


def run(f, scope):
    adjoin.manual_seed(0)
    NET.train()
    for name, t in NET.state_dict().items():
        t.copy_(START[name])
    x, y, w = adjoin.randn(4, 6), adjoin.randn(6), adjoin.randn(6, 6).requires_grad_()
    with scope:
        made = f(x, y, w)
        versions = x._version, w._version
    return bits(made), bits(x), bits(w), versions, bits(w.grad), bits(adjoin.get_rng_state()), bits(NET.state_dict())


START = {name: t.clone() for name, t in NET.state_dict().items()}


class Nothing:
    def __enter__(self):
        pass

    def __exit__(self, *error):
        pass


def test_there_are_sixty():
    assert len(SNIPPETS) == 60


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_a_snippet_has_the_bits_of_eager_and_breaks_where_it_should(number):
    f, lines, free = function(number)
    wanted = run(f, Nothing())
    for time in range(3):
        assert run(f, adjoin.lazy()) == wanted, (time, SNIPPETS[number])
        told = adjoin.lazy.explain()
        found = [int(r["line"].split(":")[1].split()[0]) for r in told.breaks if r["line"].startswith("snippet")]
        assert free or found == lines, (SNIPPETS[number], str(told))
