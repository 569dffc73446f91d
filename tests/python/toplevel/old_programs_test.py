"""tests/python/toplevel/old_programs_test.py: programs in the style of 2016 and 2017 run: `adjoin run --old`, old Functions, volatile."""

import os
import pathlib
import subprocess
import sys

import adjoin as torch
import pytest
from adjoin.autograd import Function, Variable

OLD = pathlib.Path(__file__).resolve().parents[2] / "programs/old"
PROGRAMS = sorted(OLD.glob("*.py"))
TODAY = {"lua_style", "trainer"}  # need no manners of then


def run(*args, folder=None):
    command = [sys.executable, "-W", "ignore", "-m", "adjoin.torch", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_a_program_of_then(program):
    done = run(*([] if program.stem in TODAY else ["--old"]), program)
    assert done.returncode == 0, done.stderr
    assert len(PROGRAMS) == 8 and done.stdout


WORDS = [  # a line, what it gives today, what it gave then
    ("torch.ones(2).sum().data[0]", "IndexError", "2.0"),
    ("torch.ones(2).add(2, torch.ones(2)).tolist()", "[3.0, 3.0]", "[3.0, 3.0]"),
    ("(torch.LongTensor([7]) / 2).tolist()", "[3.5]", "[3]"),
    ("torch.nn.functional.dropout(torch.ones(500)).min().item()", "0.0", "1.0"),
    ("((torch.ones(2) == 1) + (torch.ones(2) == 1)).tolist()", "[True, True]", "[2, 2]"),
    ("torch.nn.Upsample(size=4, mode='linear')(torch.Tensor([[[0, 3]]])).tolist()", "[[[0.0, 0.75, 2.25, 3.0]]]",
     "[[[0.0, 1.0, 2.0, 3.0]]]"),
    ("torch.gesv(torch.ones(1, 1), 2 * torch.ones(1, 1))[0].item()", "AttributeError: use torch.linalg.solve(A, B)", "0.5"),
    ("torch.ones(1, requires_grad=True).sum().backward(retain_variables=True)", "TypeError", "None"),
]  # fmt: skip
TRIED = """
import torch
for line in {lines}:
    try:
        print(eval(line))
    except Exception as error:
        print(type(error).__name__ + (": " + str(error).split("; ")[-1] if "any more" in str(error) else ""))
"""


def test_words_that_meant_something_else(tmp_path):
    (tmp_path / "program.py").write_text(TRIED.replace("{lines}", repr([line for line, *_ in WORDS])))
    old, new = run("--old", "program.py", folder=tmp_path), run("program.py", folder=tmp_path)
    assert old.stdout.splitlines() == [then for *_, then in WORDS], old.stderr
    assert new.stdout.splitlines() == [today for _, today, _ in WORDS], new.stderr


def test_the_manners_reach_processes_that_it_starts(tmp_path):
    (tmp_path / "program.py").write_text(
        "import subprocess, sys\nsubprocess.run([sys.executable, 'child.py'], check=True)\n"
    )
    (tmp_path / "child.py").write_text("import torch\nprint(torch.ones(2).sum().data[0])\n")
    assert run("--old", "program.py", folder=tmp_path).stdout == "2.0\n"


def test_early_switches_hide_cards(tmp_path):
    (tmp_path / "program.py").write_text(
        "import os\nprint([os.environ.get(f'{v}_VISIBLE_DEVICES') for v in ('CUDA', 'HIP')])\n"
    )
    clean = {name: value for name, value in os.environ.items() if not name.endswith("_VISIBLE_DEVICES")}

    def seen(**switches):
        command = [sys.executable, "-m", "adjoin.torch", "program.py"]
        return subprocess.run(command, cwd=tmp_path, env={**clean, **switches}, capture_output=True, text=True).stdout

    assert seen() == seen(NO_CUDA="0") == "[None, None]\n"
    assert seen(NO_CUDA="1", CUDA_VISIBLE_DEVICES="0") == "['', None]\n" and seen(NO_ROCM="1") == "[None, '']\n"


def test_async_is_read_where_nothing_else_parses(tmp_path):
    (tmp_path / "helper.py").write_text("def move(x, device):\n    return x.to(device, async=True)\n")
    (tmp_path / "program.py").write_text(
        "import sys\nimport torch\nfrom helper import move\n"
        'x = move(torch.ones(2), "cpu").to("cpu", async = True)  # async=True\n'
        "print(x.sum().item(), 'async=True', __name__, sys.argv[1:], __file__)\n1/0\n"
    )
    done = run("program.py", "--lr", "1", folder=tmp_path)
    assert done.stdout == "2.0 async=True __main__ ['--lr', '1'] program.py\n", done.stderr
    assert "program.py: async= is read as non_blocking=" in done.stderr and "helper.py: async= is read" in done.stderr
    assert 'program.py", line 6' in done.stderr and "ZeroDivisionError" in done.stderr
    # A program that is wrong otherwise is told by Python.
    (tmp_path / "wrong.py").write_text("x.cuda(async=True)\nprint 'x'\n")
    done = run("wrong.py", folder=tmp_path)
    assert done.returncode == 1 and "SyntaxError" in done.stderr and "is read as" not in done.stderr
    # One that parses is not touched.
    (tmp_path / "new.py").write_text(
        "async def f(): return 3\nimport asyncio\nprint(asyncio.run(f()), dict(**{'async': 1}))\n"
    )
    assert run("new.py", folder=tmp_path).stdout == "3 {'async': 1}\n"


class Cube(Function):
    def __init__(self, factor):
        self.factor = factor

    def forward(self, x, y):
        assert not torch.is_grad_enabled()
        self.save_for_backward(x)
        return self.factor * x**3, y > 0

    def backward(self, grad, unused):
        (x,) = self.saved_tensors
        assert self.needs_input_grad == (True, False)
        return grad * 3 * self.factor * x**2, None


def test_functions_that_are_instances():
    import gc
    import weakref

    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    function = Cube(2)
    out, flag = function(x, torch.ones(3))
    out.sum().backward()
    assert torch.allclose(x.grad, 6 * x.detach() ** 2) and not flag.requires_grad
    assert torch.autograd.gradcheck(lambda t: Cube(2)(t, torch.ones(3))[0], (x,))
    y = torch.randn(3, requires_grad=True) * 1
    seen = weakref.ref(y)
    out, _ = Cube(1)(y, torch.ones(3))
    del out, _, y
    gc.collect()
    assert seen() is None  # nothing is kept in a circle
    first = torch.autograd.grad(Cube(1)(x, x.detach())[0].sum(), x, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()

    class New(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(RuntimeError, match="New.apply"):
        New()


def test_a_function_that_writes_into_its_argument():
    class Clamp(Function):
        def forward(self, x):
            self.mark_dirty(x)
            return x.clamp_(min=0)

        def backward(self, grad):
            return grad * 5

    x = torch.randn(4, requires_grad=True)
    y = x * 1
    out = Clamp()(y)
    assert out is y
    out.sum().backward()
    assert (x.grad == 5).all()


def test_volatile_is_catching():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.BatchNorm1d(4))
    x = Variable(torch.randn(5, 3), volatile=True)
    out = net(x)
    assert out.volatile and not out.requires_grad and out.grad_fn is None and isinstance(out, Variable)
    assert (out + torch.ones(4, requires_grad=True)).volatile and not (out * 2).requires_grad
    with pytest.raises(RuntimeError):
        out.sum().backward()
    assert not out.data.volatile and not Variable(out).volatile and type(out.data) is torch.Tensor
    assert (net[0](out.data[:, :3]) * 1).requires_grad
    y = torch.ones(2)
    y.volatile = True
    assert y.volatile and (y + 1).volatile
    y.volatile = False
    assert not y.volatile and type(y) is torch.Tensor and not torch.ones(2).volatile
    with pytest.raises(ValueError, match="exclude each other"):
        Variable(torch.ones(2), requires_grad=True, volatile=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(2, requires_grad=True).volatile = True
    with pytest.raises(TypeError, match="adjoin.no_grad"):
        torch.nn.Parameter(torch.ones(2), requires_grad=False).volatile = True


def test_types_of_variables():
    x = Variable(torch.ones(2))
    assert type(x) == Variable and isinstance(x, Variable) and Variable != int and {Variable: 1}[Variable] == 1  # noqa: E721


def test_a_container_of_then():
    with pytest.warns(FutureWarning, match="nn.Container is deprecated"):
        net = torch.nn.Container(first=torch.nn.Linear(2, 3), second=torch.nn.Linear(3, 1))
    x = torch.ones(1, 2)
    assert torch.equal(net.second(net.first(x)), net._modules["second"](net._modules["first"](x)))
    assert list(net.state_dict()) == ["first.weight", "first.bias", "second.weight", "second.bias"]
