"""tests/compat/beside_archives_test.py: archives that PyTorch writes (TorchScript of traces and scripts, torch.export's `.pt2`) are read,
and compute what PyTorch computes, to 1e-6.

Run where PyTorch is installed; left out elsewhere.
"""

import io
import warnings
from typing import Dict, List, NamedTuple  # noqa: UP035

import adjoin
import pytest
from adjoin import jit

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

r = torch.randn


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LSTM(4, 6, 2, batch_first=True, bidirectional=True), nn.GRU(12, 3)

    def forward(self, x):
        y, (h, c) = self.first(x)
        z, last = self.second(y)
        return z, h, c, last


class Parts(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[0] = 3
        y[:, 1] *= 2
        y[1:] += x[1:]
        b, n = x.shape
        i = torch.tensor([1, 0])
        z = x.view(b, -1).transpose(0, 1).contiguous().unsqueeze(0).expand(2, n, b)
        shapes = (
            x[i],
            x[:, i],
            torch.cat([x, x[:, :1]], 1),
            torch.stack([x, y]),
            x.split(1, 0)[0],
            x.flip(0),
            x.roll(1, 1),
        )
        whole = (
            x.sum(),
            x.mean(1, keepdim=True),
            x.max(1)[0],
            x.std(1),
            x.topk(2, 1)[0],
            x.cumsum(0),
            x.norm(),
            x.argmax(1),
        )
        new = (
            torch.ones(b, 2),
            torch.full((2, 3), 1.5),
            x.new_zeros(2),
            torch.arange(n).float() + x,
            x.to(torch.float64),
            x.long(),
        )
        bent = (
            x.softmax(-1),
            F.gelu(x),
            F.pad(x, (1, 2)),
            F.normalize(x),
            F.leaky_relu(x, 0.2),
            F.elu(x),
            torch.where(x > 0, x, y),
        )
        image = F.interpolate(x[None, None], scale_factor=2.0, mode="bilinear", align_corners=False)
        return (
            y,
            z,
            shapes,
            whole,
            new,
            bent,
            image,
            torch.einsum("ij,kj->ik", x, x),
            F.adaptive_avg_pool2d(x[None], 1),
            (x > 0) & (y > 0),
        )


class Pair(NamedTuple):
    a: torch.Tensor
    n: int


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.k, self.names = 2, ["a", "b"]
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.register_buffer("kept", torch.ones(3))

    @torch.jit.export
    def extra(self, x: torch.Tensor):
        return x + self.kept

    def forward(self, x: torch.Tensor, flags: List[bool], d: Dict[str, torch.Tensor], n: int | None = None):  # noqa: UP006
        out: List[torch.Tensor] = []  # noqa: UP006
        total = 0
        for i, layer in enumerate(self.layers):
            x = layer(x) if flags[i] else x * self.k
            out.append(x)
            total += i * 2
        for _, v in d.items():
            x = x + v
        x = x - 1 if n is None else x * n
        j = 0
        while True:
            j += 1
            if j > 3:
                break
            if j == 2:
                continue
            x = x + j
        text = "x".join(self.names) + f"{total}"
        pair = Pair(x, total)
        assert len(out) == 3, "three"
        numbers = (
            float(total) / 3,
            total // 3,
            -total % 5,
            max(total, 3),
            total**2,
            not flags[0],
            x.dtype == torch.float32,
        )
        return out, text, pair.a, pair.n, x.shape, numbers, self.extra(x), {"r": x}, sorted([3, 1, 2]), "abc".upper()


def perceptron():
    return nn.Sequential(
        nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Dropout(0.5), nn.Linear(16, 4), nn.Softmax(-1)
    )


def convolutions():
    first = (
        nn.Conv1d(3, 4, 3, padding="same"),
        nn.BatchNorm1d(4),
        nn.ConvTranspose1d(4, 3, 3, 2),
        nn.InstanceNorm1d(3, affine=True),
    )
    then = nn.PReLU(), nn.GroupNorm(3, 3), nn.MaxPool1d(2), nn.AvgPool1d(2), nn.Hardswish(), nn.ReflectionPad1d(1)
    return nn.Sequential(*first, *then, nn.AdaptiveMaxPool1d(2))


def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2, enable_nested_tensor=False)


CASES = {
    "perceptron": (perceptron, lambda: (r(3, 8),)),
    "convolutions": (convolutions, lambda: (r(2, 3, 16),)),
    "recurrent": (Recurrent, lambda: (r(2, 5, 4),)),
    "encoder": (encoder, lambda: (r(2, 5, 16),)),
    "attention": (lambda: nn.MultiheadAttention(16, 4, batch_first=True), lambda: (r(2, 5, 16),) * 3),
    "embedding": (lambda: nn.Embedding(10, 8, padding_idx=0), lambda: (torch.randint(0, 10, (2, 3)),)),
    "parts": (Parts, lambda: (r(3, 4),)),
    "loss": (lambda: nn.CrossEntropyLoss(label_smoothing=0.1), lambda: (r(4, 5), torch.randint(0, 5, (4,)))),
}


def ours(x):
    if isinstance(x, torch.Tensor):
        return adjoin.from_dlpack(x.detach().clone())
    if isinstance(x, (list, tuple)):
        return type(x)(ours(v) for v in x)
    return {k: ours(v) for k, v in x.items()} if isinstance(x, dict) else x


def close(got, want):
    if isinstance(want, torch.Tensor):
        assert (
            tuple(got.shape) == tuple(want.shape)
            and str(got.dtype).rpartition(".")[2] == str(want.dtype).rpartition(".")[2]
        )
        back = torch.tensor(got.tolist()).reshape(want.shape).double()
        most = max(1.0, want.double().abs().max().item()) if want.numel() else 1.0
        assert not want.numel() or (back - want.double()).abs().max().item() <= 1e-6 * most
    elif isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            close(g, w)
    elif isinstance(want, dict):
        assert list(got) == list(want)
        for k in want:
            close(got[k], want[k])
    else:
        assert got == want


def written(kind, net, args):
    """(the archive's bytes, what PyTorch computes)"""
    file = io.BytesIO()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "export":
            made = torch.export.export(net, args)
            torch.export.save(made, file)
            return file.getvalue(), made.module()(*args)
        made = torch.jit.trace(net, args) if kind == "trace" else torch.jit.script(net)
        torch.jit.save(made, file)
        return file.getvalue(), made(*args)


@pytest.mark.parametrize("kind", ["trace", "script", "export"])
@pytest.mark.parametrize("name", CASES)
def test_archives_of_networks(name, kind):
    torch.manual_seed(0)
    make, given = CASES[name]
    args = given()
    data, want = written(kind, make().eval(), args)
    loaded = jit.load(io.BytesIO(data))
    with adjoin.no_grad():
        close(loaded(*ours(args)), want)


def test_scripts_with_control_flow_lists_dictionaries_and_classes():
    torch.manual_seed(0)
    net, args = Flow(), (r(2, 3), [True, False, True], {"a": r(3), "b": r(2, 3)})
    data, want = written("script", net, args)
    loaded = jit.load(io.BytesIO(data))
    close(loaded(*ours(args)), want)
    close(loaded(*ours(args), n=3), net(*args, n=3))
    close(loaded.extra(ours(args[0])), net.extra(args[0]))
    assert sorted(n for n, _ in loaded.named_parameters()) == sorted(n for n, _ in net.named_parameters())


def test_what_is_read_is_trained_traced_and_saved(tmp_path):
    torch.manual_seed(0)
    net, args = perceptron().eval(), (r(3, 8),)
    for kind in ("trace", "script", "export"):
        data, want = written(kind, net, args)
        (tmp_path / "there.pt").write_bytes(data)
        loaded = jit.load(tmp_path / "there.pt")
        jit.save(jit.trace(loaded, ours(args)), tmp_path / "here.aj")
        close(jit.load(tmp_path / "here.aj")(*ours(args)).detach(), want)
        loaded(*ours(args))[0, 0].backward()
        assert any(p.grad is not None for p in loaded.parameters())


def test_dynamic_sizes_and_ranges_of_an_export():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x):
            self.seen.add_(x.shape[0])
            return {"y": self.layer(x) * x.shape[0], "z": [x.sum()]}

    net, file = Net(), io.BytesIO()
    made = torch.export.export(net, (r(3, 4),), dynamic_shapes={"x": {0: torch.export.Dim("b", min=2, max=8)}})
    torch.export.save(made, file)
    loaded = jit.load(io.BytesIO(file.getvalue()))
    for n in (3, 5):
        x = r(n, 4)
        got = loaded(ours(x))
        close(got["y"].detach(), (net.layer(x) * n).detach())
        close(got["z"][0], x.sum())
    assert loaded.seen.item() == 8
    for wrong, told in ((adjoin.ones(9, 4), "exported for 2 to 8"), (adjoin.ones(3, 5), "exported for 4")):
        with pytest.raises(RuntimeError, match=told):
            loaded(wrong)
