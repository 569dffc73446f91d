"""tests/python/toplevel/tracebacks_test.py: what a program prints before an error ends it: the user's lines, and no frame of the library between them."""

import os
import re
import subprocess
import sys

import adjoin
import pytest
from adjoin import _tracebacks

PACKAGE = os.path.dirname(adjoin.__file__)
HEAD = "import adjoin as torch\nfrom adjoin import nn\nfrom adjoin.utils import data\nF = nn.functional\nx = torch.zeros(2, 3)\n"
# Programs with a mark at each line of theirs that a traceback must show, in order; the last is where the error is.
PROGRAMS = {
    "a function": "def f(t):\n    return F.cross_entropy(t, torch.tensor([0, 9]))  # 2\nf(x)  # 1",
    "a function in Python": "F.interpolate(x)  # 1",
    "layers": "net = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(4, 2)))\nnet(x)  # 1",
    "a module of the user's": "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layer = nn.Linear(4, 2)\n"
    "    def forward(self, t):\n        return self.layer(t)  # 2\nnn.Sequential(nn.ReLU(), Net())(x)  # 1",
    "a hook": "def hook(module, args):\n    return args[0].nix  # 2\nlayer = nn.ReLU()\nlayer.register_forward_pre_hook(hook)\nlayer(x)  # 1",
    "an optimizer": "torch.optim.SGD([x * nn.Linear(1, 1).weight], lr=0.1)  # 1",
    "a step": "w = nn.Linear(3, 1)\noptimizer = torch.optim.SGD(w.parameters(), lr=0.1)\ndef closure():\n    return w(x, x)  # 2\n"
    "optimizer.step(closure)  # 1",
    "a loader": "class Rows(data.Dataset):\n    def __len__(self):\n        return 3\n    def __getitem__(self, i):\n        return [1][i]  # 2\n"
    "for row in data.DataLoader(Rows(), batch_size=2):  # 1\n    pass",
    "a batch": "for row in data.DataLoader([torch.ones(2), torch.ones(3)], batch_size=2):  # 1\n    pass",
    "backward twice": "loss = nn.Linear(3, 1)(x).sum()\nloss.backward()\nloss.backward()  # 1",
    "state": "nn.Linear(3, 4).load_state_dict(nn.Linear(3, 5).state_dict())  # 1",
    "a name": "torch.matmull(x, x)  # 1",
    "a file": "torch.load('/nowhere/at/all.pt')  # 1",
}


def stderr_of(program, tmp_path, **env):
    file = tmp_path / "program.py"
    file.write_text(HEAD + program + "\n")
    clean = {k: v for k, v in os.environ.items() if k != "ADJOIN_FULL_TRACEBACK"}
    got = subprocess.run(
        [sys.executable, file], capture_output=True, text=True, env=clean | env, cwd=tmp_path, timeout=120
    )
    assert got.returncode == 1, got.stderr
    return file, got.stderr


def frames_of(text):
    return [(m[1], int(m[2])) for m in re.finditer(r'^ *\|? *File "(.*)", line (\d+)', text, re.M)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_last_frame_is_the_users(name, tmp_path):
    program = HEAD + PROGRAMS[name]
    marks = sorted(
        (line.rpartition("# ")[2], i + 1) for i, line in enumerate(program.splitlines()) if re.search(r"  # \d$", line)
    )
    file, text = stderr_of(PROGRAMS[name], tmp_path)
    assert frames_of(text) == [(str(file), line) for _, line in marks], text


@pytest.mark.parametrize("name", ["layers", "an optimizer"])
def test_all_frames_where_asked_for(name, tmp_path):
    file, text = stderr_of(PROGRAMS[name], tmp_path, ADJOIN_FULL_TRACEBACK="1")
    files = [f for f, _ in frames_of(text)]
    assert files[0] == str(file) and any(f.startswith(PACKAGE) for f in files[1:]), text


def test_the_error_that_it_came_from(tmp_path):
    program = "try:\n    nn.Sequential(nn.Linear(4, 2))(x)\nexcept RuntimeError as error:\n    raise ValueError('mine') from error"
    file, text = stderr_of(program, tmp_path)
    lines = HEAD.count("\n")
    assert frames_of(text) == [(str(file), lines + 2), (str(file), lines + 4)], text


def test_errors_of_others_are_as_they_were(tmp_path):
    file, text = stderr_of("import json\njson.loads('{')", tmp_path)
    files = [f for f, _ in frames_of(text)]
    assert files[0] == str(file) and os.path.basename(files[-1]) == "decoder.py", text


def test_who_shows_errors_is_asked_still(tmp_path):
    program = "import sys\nprint(sys.excepthook.__module__)\nsys.excepthook = lambda kind, error, tb: print('shown by', kind.__name__)\nnn.Linear(4, 2)(x)"
    file = tmp_path / "program.py"
    file.write_text(HEAD + program)
    got = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=120)
    assert got.stdout == "adjoin._tracebacks\nshown by RuntimeError\n" and not got.stderr


def test_an_error_inside_the_package_alone_keeps_its_frames():
    code = compile("def f():\n    raise KeyError(1)\n", os.path.join(PACKAGE, "invented.py"), "exec")
    room = {}
    exec(code, room)
    try:
        exec(compile("f()", os.path.join(PACKAGE, "invented.py"), "exec"), room)
    except KeyError as error:
        inner = error.with_traceback(error.__traceback__.tb_next)
    _tracebacks.shorten(inner)
    frames, tb = 0, inner.__traceback__
    while tb:
        frames, tb = frames + 1, tb.tb_next
    assert frames == 2


def test_a_notebook(monkeypatch):
    class Shell:
        custom_exceptions = ()

        def set_custom_exc(self, kinds, handler):
            self.kinds, self.handler = kinds, handler

        def showtraceback(self, told, tb_offset=None):
            self.told = told

    shell = Shell()
    monkeypatch.setattr("builtins.get_ipython", lambda: shell, raising=False)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    _tracebacks.install()
    assert shell.kinds == (Exception,)
    try:
        adjoin.nn.Sequential(adjoin.nn.Linear(4, 2))(adjoin.zeros(2, 3))
    except RuntimeError as error:
        caught = error
    assert caught.__traceback__.tb_next is not None
    monkeypatch.delenv("ADJOIN_FULL_TRACEBACK", raising=False)
    shell.handler(shell, RuntimeError, caught, caught.__traceback__)
    assert shell.told[2] is caught.__traceback__ and caught.__traceback__.tb_next is None


def test_a_name_that_is_alike_is_told_with_the_error(tmp_path):
    _, text = stderr_of("nn.Linear(3, 4).wieght", tmp_path)
    assert text.rstrip().endswith(
        "AttributeError: 'Linear' object has no attribute 'wieght'. Did you mean: 'weight'?"
    ), text
