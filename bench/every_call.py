"""bench/every_call.py: what every function that both libraries have costs on small tensors: Adjoin's time / PyTorch's.

BENCH_PYTHON's Python runs it, as it needs both in one process: the least of short runs in turn, so that what else the machine
does counts for neither.

python bench/every_call.py                    all above 0.5, worst first
python bench/every_call.py --only 'pool|x\\[' --limit 0

Rows are called with the samples that they are tested with; methods, indexing, layers and optimizers with statements below.
"""

import argparse
import gc
import math
import re
import timeit
import warnings

import adjoin
import numpy as np
import torch
from adjoin.testing._samples import Op, mapped
from call_objects import MADE as OBJECTS
from call_objects import SETUP as OF_OBJECTS

SHORT = 2e-4  # seconds of one run
SETUP = """
nn, F = T.nn, T.nn.functional
x, y, v = T.arange(64.0).reshape(8, 8) / 10 + 0.1, T.ones(8, 8) * 1.5, T.arange(64.0) + 1
x3, x4, z, w = T.ones(4, 4, 4), T.ones(2, 4, 8, 8), T.ones(8, 8), T.ones(8, 8).requires_grad_()
one, s, i, mask = T.ones(1), T.tensor(2.0), T.tensor([1, 3, 5]), T.arange(64.0).reshape(8, 8) > 30
whole, classes, part = T.arange(64), T.arange(8), T.ones(8, 8) * 0.3
parts = [T.ones(8, 8).requires_grad_() for _ in range(6)]
for p in parts:
    p.grad = T.ones(8, 8)
"""
STATEMENTS = """
x.shape; x.device; x.dtype; x.T; x.mT; x.ndim; x.is_cuda; w.grad; w.data; w.is_leaf; w.requires_grad; x.size(); x.size(1); x.numel(); x.stride()
x.type(); x.get_device(); x.is_contiguous(); x.data_ptr(); x.untyped_storage(); T.finfo(T.float32).eps; T.result_type(x, y); x.element_size()
x[1]; x[1, 2]; x[:, 1:3]; x[..., None]; x[None]; x[i]; x[i, i]; x[mask]; x[:, i]; x[::2]; x[[1, 2]]; x[-1]; x[...]; w[0]; w[:, 1:3]; w[i]
z[0] = 1.0; z[0, 0] = 1.0; z[mask] = 1.0; z[i] = 0.0; z[:, 1:3] = 2.0; z[0] = y[0]; z[i] = y[i]; z[:] = 1.0; z[...] = y; z[:, i] = 0.0
one.item(); len(x); float(s); int(s); bool(s); list(v); v.tolist(); x.tolist(); whole.tolist(); mask.tolist(); repr(x); str(s); f'{s:.3f}'
x + y; 1 - x; x / 2; x // 2; x % 2; x ** 2; -x; abs(x); x > y; x == 1; x @ y; v @ v; ~mask; mask & mask; whole + 1; x + one; x3 @ x3; w * w
x.float(); x.double(); x.to('cpu'); x.to(y); x.numpy(); x.clone(); x.detach(); x.contiguous(); x.t().contiguous(); x.half()
x.view(64); x.reshape(4, 16); x.flatten(); x.squeeze(); x.unsqueeze(-1); x.permute(1, 0); x.transpose(0, 1); one.expand(64); x.repeat(2, 2)
x.chunk(2); x.split(2); x.unbind(); x.narrow(0, 1, 2); x.diagonal(); z.t_(); z.squeeze_(); z.unsqueeze_(0).squeeze_(0); z.transpose_(0, 1)
x.sum(); x.sum(0); x.mean(1); x.max(); x.max(1); x.argmax(1); x.std(); x.var(0); x.norm(); x.all(); x.sort(); x.topk(3); x.nonzero(); x.median()
z.zero_(); z.fill_(1.0); z.copy_(x); z.add_(y); z.mul_(1.0); z.clamp_(0, 1); z.masked_fill_(mask, 0.0); z.normal_(); z.uniform_(); z.tril_()
T.cat((x, y)); T.stack((x, y)); T.where(mask, x, 0.0); T.einsum('ij,jk->ik', x, y); T.bmm(x3, x3); T.equal(x, y); T.allclose(x, y); T.dot(v, v)
T.zeros(8, 8); T.ones(8, 8); T.full((8, 8), 2.0); T.rand(8, 8); T.arange(8); T.linspace(0, 1, 8); T.eye(3); T.tensor([1.0, 2.0]); T.Tensor(2, 3)
F.relu(x); F.softmax(x, -1); F.dropout(x, 0.5); F.layer_norm(x, (8,)); F.one_hot(classes, 8); F.pad(x, (1, 1)); F.embedding(classes, x)
F.max_pool2d(x4, 2); F.avg_pool2d(x4, 2); F.interpolate(x4, scale_factor=2); F.conv2d(x4, T.ones(4, 4, 3, 3)); F.normalize(x); F.linear(x, y)
F.mse_loss(x, y); F.cross_entropy(x, classes); F.nll_loss(x, classes); F.binary_cross_entropy_with_logits(x, part); F.kl_div(x, part)
with T.no_grad(): pass; (w * w).sum().backward(); T.autograd.grad((w * w).sum(), w); nn.utils.clip_grad_norm_(parts, 1.0)
"""
# What is made once; the statement calls f.
MADE = {
    "nn.Linear(8, 8)": "x", "nn.Conv2d(4, 4, 3)": "x4", "nn.BatchNorm2d(4)": "x4", "nn.LayerNorm(8)": "x", "nn.GroupNorm(2, 4)": "x4",
    "nn.Embedding(8, 8)": "classes", "nn.ReLU()": "x", "nn.GELU()": "x", "nn.Dropout()": "x", "nn.Softmax(1)": "x", "nn.Flatten()": "x4",
    "nn.MaxPool2d(2)": "x4", "nn.AdaptiveAvgPool2d(1)": "x4", "nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))": "x",
    "nn.MultiheadAttention(8, 2)": "x3.view(4, 2, 8), x3.view(4, 2, 8), x3.view(4, 2, 8)", "nn.LSTM(8, 8)": "x3.view(4, 2, 8)",
    "nn.LSTMCell(8, 8)": "x", "nn.TransformerEncoderLayer(8, 2, 16)": "x3.view(4, 2, 8)", "nn.CrossEntropyLoss()": "x, classes",
    **{f"T.optim.{name}(parts, lr=1e-9).step": "" for name in "SGD Adam AdamW RMSprop Adagrad NAdam".split()},
    "T.optim.SGD(parts, lr=1e-9).zero_grad": "", "nn.Linear(8, 8).state_dict": "", "nn.Sequential(nn.Linear(8, 8), nn.ReLU()).parameters": "",
}  # fmt: skip
HOMES = {"nn": "nn.functional"}


def least(runs, rounds=7):
    """Seconds of a call of each of two loops, run in turn."""
    counts = []
    for run in runs:
        run(2)
        counts.append(max(1, int(SHORT / max(run(3) / 3, 1e-8))))
    best = [math.inf, math.inf]
    for _ in range(rounds):
        for k, run in enumerate(runs):
            best[k] = min(best[k], run(counts[k]) / counts[k])
    return best


def statements(only):
    cases = [(s.strip(), "", s.strip()) for line in STATEMENTS.strip().split("\n") for s in line.split("; ")]
    cases += [
        (f"{maker}({args})", f"f, a = {maker}, ({args + ',' if args else ''})", "f(*a)")
        for maker, args in (MADE | OBJECTS).items()
    ]
    for name, made, statement in cases:
        if re.search(only, name):
            timers = []
            for library in (adjoin, torch):
                names = {"T": library}
                try:
                    exec(SETUP + OF_OBJECTS + made, names)  # noqa: S102  our own text
                    timers.append(timeit.Timer(statement, globals=names).timeit)
                    timers[-1](1)
                except Exception as e:  # noqa: BLE001  a library that lacks it
                    print(f"{name}: {library.__name__}: {str(e).splitlines()[0]}")
                    break
            else:
                yield name, timers


def found(library, name):
    """The function of a row in a library, or None."""
    space, _, last = name.partition(".")[0].rpartition("::")
    for part in HOMES.get(space, space).split("."):
        library = getattr(library, part, None) if part else library
    return getattr(library, last, None)


def theirs(t):
    return torch.from_numpy(np.array(t.numpy()))


def samples_of(name):
    try:
        return list(Op(name).samples())
    except TypeError:  # samples in the words of the rows' own tests
        return []


def rows(only):
    for name in sorted(set(adjoin._C.op_names())):
        functions = [found(library, name) for library in (adjoin, torch)]
        if name.endswith("_backward") or not re.search(only, name) or not all(map(callable, functions)):
            continue
        for args, kwargs in samples_of(name):
            ours = mapped(lambda t: t.float() if t.dtype == adjoin.float64 else t, args, kwargs)
            calls = [ours, mapped(theirs, *ours)]
            try:
                for f, (a, k) in zip(functions, calls, strict=True):
                    f(*a, **k)
            except Exception:  # noqa: BLE001, S112  samples that only one of the two takes
                continue
            yield (
                name,
                [
                    timeit.Timer(lambda f=f, a=a, k=k: f(*a, **k)).timeit
                    for f, (a, k) in zip(functions, calls, strict=True)
                ],
            )
            break


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a regular expression of names")
    parser.add_argument("--limit", type=float, default=0.5, help="show what is above this ratio")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for library in (adjoin, torch):
        library.set_num_threads(1)
    gc.disable()
    seen = []
    for cases in (statements, rows):
        for name, timers in cases(args.only):
            ours, other = least(timers)
            seen.append((ours / other, name, ours * 1e9, other * 1e9))
    for ratio, name, ours, other in sorted(seen, reverse=True):
        if ratio > args.limit:
            print(f"{ratio:6.2f} {ours:9.0f} ns {other:9.0f} ns  {name}")
    if seen:
        mean = math.exp(sum(math.log(ratio) for ratio, *_ in seen) / len(seen))
        print(
            f"{len(seen)} calls, geometric mean {mean:.3f}, {sum(ratio > args.limit for ratio, *_ in seen)} above {args.limit}"
        )


if __name__ == "__main__":
    main()
