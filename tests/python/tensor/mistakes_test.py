"""tests/python/tensor/mistakes_test.py: mistakes of beginners, and what each is told, word for word as in mistakes.txt.

`python tests/python/tensor/mistakes_test.py --write` renews mistakes.txt; read its difference: a message says what was asked, what was found, what to do.
All are told in a process of their own: hints name what is loaded, and other tests load plugins.
"""

import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import adjoin
import numpy
import pytest

GOLDEN = Path(__file__).with_name("mistakes.txt")

# Programs by what is wrong in them; no name stands there but those of `names`.
MISTAKES = {
    "types": [
        "torch.tensor('hello')",
        "torch.tensor([1, 'a'])",
        "torch.tensor(None)",
        "torch.tensor([1, None])",
        "torch.tensor({'a': 1})",
        "torch.tensor([[1, 2], [3]])",
        "torch.tensor(1, 2, 3)",
        "torch.from_numpy([1, 2])",
        "torch.from_numpy(np.array(['a']))",
        "x + 'a'",
        "x + [1, 2, 3]",
        "'a' * x",
        "x @ 3",
        "x @ [1, 2, 3]",
        "torch.add(1, 2)",
        "torch.sum([1, 2, 3])",
        "torch.exp(1.0)",
        "torch.cat(x, x)",
        "torch.cat([x, 3])",
        "torch.stack(x, x)",
        "torch.where(x > 0, 'a', 'b')",
        "torch.zeros(2, 3.5)",
        "torch.arange('3')",
        "torch.randn([2, 'a'])",
        "torch.manual_seed('seed')",
        "int(x)",
        "x.item()",
        "if x > 0: pass",
        "bool(torch.tensor([]))",
        "for row in torch.tensor(3): pass",
        "x()",
        "F.softmax(np.ones(3), dim=0)",
        "nn.Linear(3, 4)([1.0, 2.0, 3.0])",
        "nn.Linear(3, 4)(np.ones(3))",
        "nn.Linear(3.0, 4)",
        "nn.Conv2d(3, 8, '3')",
        "nn.Dropout('a')",
        "nn.Sequential([nn.Linear(3, 4), nn.ReLU()])",
        "nn.Sequential(nn.Linear(3, 4), nn.ReLU)(x)",
        "nn.ModuleList(nn.Linear(3, 4))",
        "nn.ModuleList([F.relu])",
        "nn.ModuleDict([nn.ReLU()])",
        "nn.Parameter(3.0)",
        "nn.Parameter(torch.tensor([1, 2]))",
    ],
    "dtypes": [
        "torch.tensor([1, 2]).mean()",
        "torch.tensor([1, 2]) @ torch.tensor([1.0, 2.0])",
        "nn.Linear(3, 4)(torch.ones(2, 3, dtype=torch.int64))",
        "nn.Linear(3, 4)(torch.ones(2, 3, dtype=torch.float64))",
        "nn.Conv2d(3, 8, 3)(torch.ones(1, 3, 8, 8, dtype=torch.uint8))",
        "nn.Embedding(10, 3)(torch.tensor([1.0, 2.0]))",
        "nn.LSTM(3, 4)(torch.ones(2, 3).double())",
        "F.cross_entropy(x, torch.tensor([0.0, 1.0]))",
        "F.cross_entropy(x, torch.tensor([0, 1], dtype=torch.int32))",
        "F.one_hot(torch.tensor([0.0, 1.0]))",
        "F.binary_cross_entropy(torch.full((2,), 0.5), torch.tensor([0, 1]))",
        "torch.softmax(torch.tensor([1, 2]), dim=0)",
        "torch.randn(2, dtype=torch.int64)",
        "torch.zeros(2, dtype='float32')",
        "x.to('flaot32')",
        "x.astype(np.float32)",
        "x.type('float')",
        "torch.tensor([1.5]).bitwise_and(1)",
        "torch.tensor([1, 2]).div_(2)",
        "torch.tensor(300, dtype=torch.uint8)",
        "torch.tensor([1, 2], requires_grad=True)",
        "x[torch.tensor([1.0])]",
        "torch.finfo(torch.int32)",
    ],
    "shapes": [
        "x @ x",
        "torch.mm(x, torch.ones(3))",
        "torch.bmm(x, x)",
        "torch.dot(x, x)",
        "x + torch.ones(2, 4)",
        "x += torch.ones(5, 2, 3)",
        "x.view(4, 2)",
        "x.view(-1, -1)",
        "x.t().view(6)",
        "x.reshape(7)",
        "x.reshape(-2, 3)",
        "x.expand(4, 3)",
        "x.permute(0)",
        "x.transpose(0, 2)",
        "x.unsqueeze(4)",
        "x.repeat(2)",
        "torch.ones(2, 3, 4).t()",
        "torch.cat([x, torch.ones(2, 4)])",
        "torch.cat([])",
        "torch.stack([x, torch.ones(2, 4)])",
        "torch.split(x, [1, 2])",
        "torch.chunk(x, 0)",
        "torch.zeros(-1)",
        "torch.arange(0, 5, -1)",
        "x.sum(2)",
        "x.sum(dim=(0, 0))",
        "torch.ones(0).max()",
        "torch.topk(torch.ones(3), 5)",
        "nn.Linear(4, 2)(x)",
        "nn.Conv2d(3, 8, 3)(torch.ones(3, 8))",
        "nn.Conv2d(3, 8, 3)(torch.ones(1, 8, 8, 3))",
        "nn.Conv2d(3, 8, 3)(torch.ones(1, 3, 2, 2))",
        "nn.Conv2d(3, 8, 3, groups=2)",
        "nn.Conv2d(3, 8, 3, padding='smae')",
        "nn.MaxPool2d(2)(x)",
        "nn.MaxPool2d(4)(torch.ones(1, 1, 2, 2))",
        "nn.BatchNorm1d(4)(x)",
        "nn.BatchNorm2d(3)(x)",
        "nn.BatchNorm1d(3)(torch.ones(1, 3))",
        "nn.LayerNorm(4)(x)",
        "nn.GroupNorm(2, 3)",
        "nn.LSTM(4, 5)(x)",
        "nn.LSTM(3, 5)(x, torch.ones(1, 5))",
        "nn.GRU(3, 5)(torch.ones(2, 2, 2, 3))",
        "nn.MultiheadAttention(10, 3)",
        "nn.MultiheadAttention(4, 2)(x, x, x)",
        "nn.Embedding(10, 3, padding_idx=10)",
        "nn.LSTM(3, 4, dropout=2)",
        "nn.init.xavier_uniform_(torch.ones(3))",
        "nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(2, 3)])",
        "nn.Flatten()(torch.tensor(3.0))",
        "F.cross_entropy(x, torch.tensor([0, 1, 2]))",
        "F.cross_entropy(x, torch.tensor([0, 3]))",
        "F.cross_entropy(x.argmax(1), torch.tensor([0, 1]))",
        "F.mse_loss(x, torch.ones(2))",
        "F.mse_loss(torch.ones(3, 1), torch.ones(3))",
        "F.binary_cross_entropy(torch.full((2, 1), 0.5), torch.ones(2))",
        "F.binary_cross_entropy(torch.full((2,), 1.5), torch.ones(2))",
        "F.one_hot(torch.tensor([3]), num_classes=2)",
        "F.dropout(x, p=2)",
    ],
    "indices": [
        "x[2]",
        "x[0, 5]",
        "x[0, 0, 0]",
        "x['a']",
        "x[1.0]",
        "x[::-1]",
        "x[torch.tensor([5])]",
        "x[torch.tensor([True, False, True])]",
        "x[0] = torch.ones(2)",
        "x[0] = 'a'",
        "del x[0]",
        "nn.Embedding(10, 3)(torch.tensor([10]))",
        "torch.gather(x, 1, torch.tensor([[3]]))",
        "nn.Sequential(nn.ReLU())[1]",
    ],
    "names": [
        "torch.matmull(x, x)",
        "torch.nn.Lienar(3, 4)",
        "F.rleu(x)",
        "torch.optim.lr_scheduler.StepLr",
        "torch.utils.data.Dataloader",
        "torch.linalg.normm(x)",
        "torch.linalg.qwerty(x)",
        "torch.ops.matmull(x, x)",
        "torch.ops.nobody.squash(x)",
        "x.summ()",
        "model.wieght",
        "nn.Linear(3, 4, bais=True)",
        "nn.Conv2d(3, 8, kernel=3)",
        "nn.CrossEntropyLoss(weights=x)",
        "torch.optim.SGD(model.parameters(), learning_rate=0.1)",
        "torch.optim.Adam(model.parameters(), lr=0.1, momentum=0.9)",
        "torch.optim.lr_scheduler.StepLR(torch.optim.SGD(model.parameters()), step=3)",
        "data.DataLoader([1, 2], batchsize=2)",
        "torch.zeros(2, type=torch.float32)",
        "torch.zeros(2, require_grad=True)",
        "x.sum(axes=0)",
        "x.sum(dims=0)",
        "F.softmax(x, dims=1)",
        "nn.LSTM(3, 4, num_layer=2)",
        "nn.Linear(3)",
        "F.cross_entropy(x)",
        "x.reshape()",
        "F.interpolate(torch.ones(1, 1, 2, 2), scale_factor=2, mode='bilnear')",
        "nn.MSELoss(reduction='avg')(x, x)",
        "nn.init.kaiming_normal_(model.weight, nonlinearity='rleu')",
        "nn.Conv2d(3, 8, 3, padding_mode='mirror')",
        "nn.RNN(3, 4, nonlinearity='sigmoid')",
        "torch.einsum('ij,jk->il', x, x.T)",
        "torch.einsum('ij,ij', x)",
        "torch.einsum('ij,jk', x, x)",
    ],
    "devices": [
        "x.to('gpu')",
        "x.to('cpu:one')",
        "x.to('cpu:7')",
        "model.to('meta')(x)",
        "x + torch.ones(2, 3, device='meta')",
        "torch.cat([x, x.to('meta')])",
        "F.cross_entropy(x, torch.tensor([0, 1], device='meta'))",
        "x.to('meta').tolist()",
        "x.to('meta').numpy()",
        "x.to('meta').sum().item()",
        "x.to('meta').cpu()",
        "x.to(3.5)",
        "x.to(None, 3)",
        "torch.device('GPU:0')",
        "model.to('cppu')",
        "model.to(torch.int64)",
        "torch.set_default_dtype(torch.int64)",
    ],
    "order of calls": [
        "x.backward()",
        "model(x).backward()",
        "loss = model(x).sum()\nloss.backward()\nloss.backward()",
        "model(x).detach().sum().backward()",
        "model(x).argmax().backward()",
        "with torch.no_grad():\n    loss = model(x).sum()\nloss.backward()",
        "model(x).numpy()",
        "model.weight += 1",
        "model.weight = x",
        "w = model.weight\ny = w.exp()\nwith torch.no_grad():\n    y += 1\ny.sum().backward()",
        "w = torch.ones(2, requires_grad=True) * 1\ny = w.exp()\ny += 1\ny.sum().backward()",
        "w = torch.ones(2, requires_grad=True)\nw[0] = 3",
        "torch.autograd.grad(model(x).sum(), torch.ones(2, requires_grad=True))",
        "torch.optim.SGD(model, lr=0.1)",
        "torch.optim.SGD([], lr=0.1)",
        "torch.optim.SGD(model.parameters(), lr=-1)",
        "torch.optim.SGD(model.parameters(), lr='0.1')",
        "torch.optim.SGD([x * model.weight[0, 0]], lr=0.1)",
        "torch.optim.SGD([1.0, 2.0], lr=0.1)",
        "torch.optim.Adam(model.parameters(), betas=0.9)",
        "torch.optim.Adam(model.parameters(), betas=(0.9, 1.5))",
        "torch.optim.lr_scheduler.StepLR(model, 3)",
        "s = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(model.parameters(), lr=0.1), 3)\ns.step()",
        "nn.ReLU(x)",
        "nn.CrossEntropyLoss(x, torch.tensor([0, 1]))",
        "nn.Linear(x)",
        "nn.Module()(x)",
        "class Net(nn.Module):\n    def __init__(self):\n        self.layer = nn.Linear(3, 4)\nNet()",
        "class Net(nn.Module):\n    def __init__(self):\n        self.w = nn.Parameter(x)\nNet()",
        "class Net(nn.Module):\n    def foward(self, x):\n        return x\nNet()(x)",
        "class Net(nn.Module):\n    def forward(self):\n        return 1\nNet()(x)",
        "class Net(nn.Module):\n    def forward(self, x):\n        x + 1\nNet()(x).sum()",
        "model(x, x)",
        "model.train('yes')",
        "model.load_state_dict(nn.Linear(3, 5).state_dict())",
        "model.load_state_dict({'wieght': x})",
        "model.load_state_dict('model.pt')",
        "nn.Sequential(model).load_state_dict(model.state_dict())",
        "torch.load(folder + '/absent.pt')",
        "torch.load(folder)",
        "open(folder + '/text.pt', 'w').write('hello')\ntorch.load(folder + '/text.pt')",
        "torch.load(3)",
        "torch.save(x, folder + '/absent/f.pt')",
        "data.DataLoader([1, 2], batch_size=0)",
        "data.DataLoader([1, 2], shuffle=True, sampler=[0, 1])",
        "data.DataLoader([1, 2], num_workers=-1)",
        "next(iter(data.DataLoader([torch.ones(2), torch.ones(3)], batch_size=2)))",
        "data.TensorDataset(x, torch.ones(3))",
        "data.TensorDataset([1, 2])",
        "data.TensorDataset(x, x)[5]",
        "data.random_split([1, 2, 3], [1, 1])",
        "class Own(data.Dataset): pass\nOwn()[0]",
    ],
}
PROGRAMS = [program for programs in MISTAKES.values() for program in programs]


def names(folder):
    """What a program finds: new for each, because it may change them."""
    nn = adjoin.nn
    adjoin.manual_seed(0)
    found = {"torch": adjoin, "nn": nn, "F": nn.functional, "np": numpy, "data": adjoin.utils.data, "folder": folder}
    return found | {"x": adjoin.zeros(2, 3), "model": nn.Linear(3, 4)}


def told(program):
    """The program, and below it the warnings and the exception, with neither addresses nor folders."""
    lines = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(program, names(folder))
        except Exception as error:
            lines.append(f"{type(error).__name__}: {error}")
        lines[:0] = [f"{w.category.__name__}: {w.message}" for w in warned if w.category is not ResourceWarning]
        text = "\n".join(lines or ["nothing is said"]).replace(folder, "FOLDER")
    text = re.sub(r"loaded: .*; searched: .*", "loaded: PLUGINS; searched: FOLDERS", text)
    text = re.sub(r"0x[0-9a-f]+", "0xADDRESS", text)
    shown = [(">>> " if i == 0 else "... ") + line for i, line in enumerate(program.split("\n"))]
    return "\n".join(shown + [text]) + "\n"


def cases_of(text):
    """Program: what was written of it."""
    cases = [case + "\n" for case in re.split(r"\n\n(?=>>> |## )", text.rstrip("\n")) if case.startswith(">>> ")]
    return {
        "\n".join(line[4:] for line in case.split("\n") if line.startswith((">>> ", "... "))): case for case in cases
    }


@pytest.fixture(scope="module")
def golden():
    return cases_of(GOLDEN.read_text())


@pytest.fixture(scope="module")
def now():
    got = subprocess.run([sys.executable, __file__, "--print"], capture_output=True, text=True, timeout=300)
    assert got.returncode == 0, got.stderr
    return cases_of(got.stdout)


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_told(program, now, golden):
    assert now.get(program) == golden.get(program), (
        "if the new message is better: python tests/python/tensor/mistakes_test.py --write"
    )


def test_the_file_has_these_cases(golden):
    assert list(golden) == PROGRAMS


def text_of_all():
    text = ["# Mistakes and what is told of them, written by mistakes_test.py --write.\n"]
    for kind, programs in MISTAKES.items():
        text += [f"## {kind}\n", *map(told, programs)]
    return "\n".join(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        print(text_of_all())
    elif sys.argv[1:] == ["--write"]:
        GOLDEN.write_text(text_of_all())
    else:
        sys.exit("python tests/python/tensor/mistakes_test.py --write")
