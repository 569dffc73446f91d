"""tests/python/toplevel/alias_test.py: programs for which `import torch` is Adjoin: adjoin run, python -m adjoin.torch, install()."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap

import adjoin
import pytest
from adjoin import torch as alias
from adjoin.torch import _report


def run(tmp_path, code, *args, name="program.py", flags=(), env=None):
    (tmp_path / name).write_text(textwrap.dedent(code))
    command = [sys.executable, "-m", "adjoin.torch", *flags, name if not flags else name.removesuffix(".py"), *args]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env, timeout=300)


def ok(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_torch_is_adjoin(tmp_path):
    code = """
    import importlib.metadata, importlib.util
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.name == "torch"
    assert importlib.metadata.version("torch") == "2.15.0+adjoin.0.1.0"
    import torch, torch.nn as nn, torch.nn.functional as F
    from torch.utils.data import DataLoader
    import adjoin
    assert torch is adjoin and nn is adjoin.nn and F.relu is adjoin.nn.functional.relu
    assert torch.__name__ == "torch" and torch.__version__ == importlib.metadata.version("torch")
    assert torch.__version__ >= "2.9" and torch.__version__ < (3,) and torch.version.cuda is None
    assert importlib.util.find_spec("torch") is not None
    x = torch.ones(2, requires_grad=True); (x * x).sum().backward()
    print(x.grad.tolist(), __name__, __file__.endswith("program.py"))
    """
    assert ok(run(tmp_path, code)) == "[2.0, 2.0] __main__ True\n"


def test_it_runs_as_python_would(tmp_path):
    assert ok(run(tmp_path, "import sys; print(sys.argv[1:])", "-m", "--lr", "1")) == "['-m', '--lr', '1']\n"
    assert ok(run(tmp_path, "import torch; print(torch.ones(1).item(), __name__)", flags=["-m"])) == "1.0 __main__\n"
    assert run(tmp_path, "raise SystemExit(7)").returncode == 7
    wrong = run(tmp_path, "import torch\n\ntorch.onse(2)\n")
    assert wrong.returncode == 1 and 'program.py", line 3' in wrong.stderr
    assert "module 'torch' has no attribute 'onse'; did you mean 'ones'?" in wrong.stderr
    assert "adjoin/" not in wrong.stderr.replace(str(tmp_path), "")


def test_processes_that_it_starts_have_it_too(tmp_path):
    code = """
    import multiprocessing, subprocess, sys
    import torch

    def work(queue):
        import torch
        queue.put((torch.__name__, torch.ones(3).sum().item()))

    if __name__ == "__main__":
        for method in ("spawn", "forkserver", "fork"):
            context = multiprocessing.get_context(method)
            queue = context.Queue()
            child = context.Process(target=work, args=(queue,))
            child.start()
            print(queue.get(timeout=200)); child.join()
        print(subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True).stdout)
        loader = torch.utils.data.DataLoader(list(range(4)), num_workers=1, multiprocessing_context="spawn")
        print([x.item() for x in loader])
    """
    out = ok(run(tmp_path, code)).split("\n")
    assert out[:3] == ["('torch', 3.0)"] * 3 and out[3].startswith("2.15.0+adjoin") and out[5] == "[0, 1, 2, 3]"


def test_pickles_that_name_torch_load(tmp_path):
    code = """
    import pickle, torch
    again = pickle.loads(pickle.dumps(torch.nn.Linear(2, 1)))
    named = b"ctorch.nn.modules.linear\\nLinear\\n."
    assert pickle.loads(named) is torch.nn.Linear and pickle.loads(b"ctorch\\nSize\\n.") is torch.Size
    print(type(again).__name__)
    """
    assert ok(run(tmp_path, code)) == "Linear\n"


def test_whole_models_are_loaded_by_programs_that_trust_their_file(tmp_path):
    code = """
    import pickle, sys, torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.steps = torch.nn.Linear(2, 1), [1, 2]
        def forward(self, x):
            return self.layer(x).relu()
    if sys.argv[1] == "save":
        net = Net()
        torch.nn.init.ones_(net.layer.weight); torch.nn.init.zeros_(net.layer.bias)
        torch.save(net, "net.pt")
    else:
        net = torch.load("net.pt", weights_only=False, map_location="cpu")
        print(type(net) is Net, net.steps, net(torch.ones(2)).item())
        try:
            torch.load("net.pt")
        except pickle.UnpicklingError as error:
            print("__main__.Net" in str(error))
    """
    assert ok(run(tmp_path, code, "save")) == ""
    assert ok(run(tmp_path, code, "load")) == "True [1, 2] 2.0\nTrue\n"


def test_another_torch_beside_it_is_not_loaded(tmp_path):
    other = tmp_path / "site"
    (other / "torch").mkdir(parents=True)
    (other / "torch/__init__.py").write_text("raise SystemExit('the other torch was loaded')")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(other)])}
    assert ok(run(tmp_path, "import torch; print(torch.__name__)", env=env)) == "torch\n"
    plain = subprocess.run([sys.executable, "-c", "import adjoin, torch"], env=env, capture_output=True, text=True)
    assert "the other torch was loaded" in plain.stderr  # outside it stays what it is


def test_install_in_a_process():
    code = "import adjoin.torch as a; a.install(); a.install(); import torch, adjoin; print(torch is adjoin, torch.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ok(done) == "True torch\n"
    late = "import sys, types; sys.modules['torch'] = types.ModuleType('torch'); import adjoin.torch as a; a.install()"
    done = subprocess.run([sys.executable, "-c", late], capture_output=True, text=True)
    assert "another torch is loaded already" in done.stderr and "adjoin run" in done.stderr


def test_types_are_named_as_programs_ask_for_them(tmp_path):
    code = """
    import torch
    x = torch.ones(2, dtype=torch.float64)
    assert x.type() == "torch.DoubleTensor" and x.to("meta").type() == "torch.meta.DoubleTensor"
    assert x.storage().type() == "torch.DoubleStorage" and "[torch.storage.TypedStorage(dtype=torch.float64" in repr(x.storage())
    assert repr(torch.FloatTensor) == "<class 'torch.FloatTensor'>"
    try:
        type("Mine", (torch.LongTensor,), {})
        raise SystemExit("a class of the program's own would be lost")
    except TypeError as error:
        assert "'torch.LongTensor' is not an acceptable base type; derive from torch.Tensor" in str(error)
    found = torch.sort(x)
    assert repr(found).startswith("torch.return_types.sort(") and type(found).__module__ == "torch.return_types"
    """
    ok(run(tmp_path, code))


def test_without_it_nothing_changes():
    assert adjoin.__name__ == "adjoin" and adjoin.__version__ == adjoin.version.__version__ == "0.1.0"


def test_wrong_uses_are_told(tmp_path):
    def said(*args):
        return subprocess.run(
            [sys.executable, "-m", "adjoin.torch", *args], cwd=tmp_path, capture_output=True, text=True
        )

    assert said("missing.py").returncode == 2 and "there is no file 'missing.py'" in said("missing.py").stderr
    assert said().returncode == 2 and "PROGRAM" in said().stderr
    assert "adjoin run train.py" in said("--help").stdout


def test_the_files_for_packaging_tools_say_the_version():
    text = next(pathlib.Path(alias.PATH).glob("torch-*.dist-info/METADATA")).read_text()
    assert f"\nVersion: {alias.VERSION}\n" in text


@pytest.mark.parametrize(
    ("text", "less", "more"),
    [
        ("2.15.0", "2.9", "2.15.1"),
        ("2.15.0+adjoin.0.1.0", (2, 14), (2, 16)),
        ("2.1.0", "2.1.0rc1", "2.10"),
        ("2", "1.99.9", "2.0.1"),
    ],
)
def test_versions_compare_by_their_numbers(text, less, more):
    v = adjoin.torch_version.TorchVersion(text)
    assert less < v < more and v > less and v <= more and v >= less and v != more and v == str.__str__(v)
    assert v.split(".")[0] == "2" and isinstance(v, str)


USES = """
import subprocess, sys
import torch, torch.nn.functional as F
try:
    import torch.foo
except ImportError:
    pass
net = torch.nn.Linear(2, 1)
for _ in range(3):
    F.relu(net(torch.ones(1, 2)))
hasattr(torch, "nothing_such")
torch._dynamo.allow_in_graph(len)
torch.vmap(lambda x, t: torch.nn.functional.ctc_loss(x, t, *torch.tensor([[3], [1]])))(-torch.ones(2, 3, 4), torch.ones(2, 1).long())
subprocess.run([sys.executable, "-c", "import torch; torch.eye(2)"], check=True)
sys.exit(3)
"""


def test_a_report_says_what_was_used_missing_and_what_fell_back(tmp_path):
    (tmp_path / "program.py").write_text(USES)

    def reported(flag, program="program.py"):
        command = [sys.executable, "-m", "adjoin.torch", flag, program]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)

    assert reported("--report=told.json").returncode == 3
    told = json.loads((tmp_path / "told.json").read_text())
    used = {one["name"]: (one["times"], one["first"].rpartition("/")[2]) for one in told["used"]}
    assert used["torch.nn.functional.relu"] == (3, "program.py:10") and used["torch.eye"] == (1, "<string>:1")
    assert used["torch.nn.Linear"] == (1, "program.py:8") and not any("_C" in name for name in used)
    missing = {one["name"]: one["first"].rpartition(":")[2] for one in told["missing"]}
    assert missing == {"torch.foo": "5", "torch.nothing_such": "11"}
    back = told["fell_back"]
    assert [one["name"] for one in back["names_that_do_less"]] == ["torch._dynamo.allow_in_graph"]
    assert [(one["op"], one["samples"]) for one in back["loops_of_vmap"]] == [("ctc_loss", 2)]
    ops = {one["op"]: one["times"] for one in told["ops"]}
    assert ops["nn::linear"] == 3 and ops["relu"] == 3
    assert told["exit_code"] == 3 and told["processes"] == 2 and told["program"] == ["program.py"]
    said = reported("--report").stderr
    assert (
        "program.py: exit code 3" in said
        and "Missing:\n  torch.foo" in said
        and "Fell back:\n  torch._dynamo.allow_in_graph" in said
    )
    assert "Names of torch:\n" in said and "Ops:\n" in said
    (tmp_path / "ends.py").write_text("import os, signal, torch; os.kill(os.getpid(), signal.SIGTERM)")
    assert reported("--report", "ends.py").returncode == -signal.SIGTERM


def test_a_report_counts_copies_to_the_host():
    head = "op\tkey\tserved by\tcalls\tns\tbytes\twhy\n"
    rows = "relu\tcpu\tcpu\t3\t1\t8\tpriority 1\nrelu\tcuda\tcopies to cpu\t2\t1\t64\tno kernel\nrelu\tcuda\tcuda\t1\t1\t8\tfirst\n"
    ops, copies = _report._ops(head + rows)
    assert ops == [{"op": "relu", "times": 4}] and _report._ops("") == ([], [])
    assert copies == [
        {"op": "relu", "times": 2, "device": "cuda", "bytes": 64, "why": "no kernel", "how": "copies to cpu"}
    ]


def test_what_modules_define_is_named_after_torch(tmp_path):
    code = """
    import copy, importlib, inspect, io, logging, pickle, sys
    import adjoin
    early = adjoin.nn.Linear if "late" in sys.argv else None
    import adjoin.torch; adjoin.torch.install()
    import torch
    from torch.nn.modules.linear import Linear
    assert Linear is torch.nn.Linear and early in (None, Linear) and torch.nn.modules.linear is sys.modules["torch.nn.modules.linear"]
    homes = {
        torch.nn.Linear: "torch.nn.modules.linear", torch.nn.Parameter: "torch.nn.parameter", torch.optim.SGD: "torch.optim.sgd",
        torch.optim.lr_scheduler.StepLR: "torch.optim.lr_scheduler", torch.nn.init.ones_: "torch.nn.init",
        torch.utils.data.DataLoader: "torch.utils.data.dataloader", torch.autograd.Function: "torch.autograd.function",
    }
    for one, home in homes.items():
        assert one.__module__ == home and getattr(sys.modules[home], one.__name__) is one, (one, one.__module__)
        assert inspect.getmodule(one) is sys.modules[home] and pickle.loads(pickle.dumps(one)) is one
    assert (torch.jit.__name__, torch.nn.functional.__name__) == ("torch.jit", "torch.nn.functional")
    assert repr(torch.nn.Linear) == "<class 'torch.nn.modules.linear.Linear'>"
    assert importlib.import_module("torch.nn.modules.conv") is importlib.import_module("adjoin.nn.modules.conv")
    file = io.BytesIO(); torch.save(torch.nn.Linear(2, 1), file)
    assert b"ctorch.nn.modules.linear\\nLinear" in file.getvalue()
    file.seek(0); assert type(torch.load(file, weights_only=False)) is Linear

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        def forward(self, x):
            return torch.nn.functional.softplus(self.layers(x))
        def forwards(self):
            pass
    net, x = Net(), torch.ones(4, 2)
    graph = torch.fx.symbolic_trace(net)  # layers of torch.nn are leaves, own functions are steps
    assert [node.op for node in graph.graph.nodes] == ["placeholder", "call_module", "call_module", "call_function", "output"]
    assert torch.equal(graph(x), net(x)) and "torch.nn.functional.softplus(" in graph.code
    assert torch.equal(torch.jit.script(net)(x), net(x)) and torch.equal(torch.compile(net)(x), net(x))
    print(type(net).__module__, torch.nn.LazyLinear.__module__)
    """
    for late in ([], ["late"]):
        assert ok(run(tmp_path, code, *late)) == "__main__ torch.nn.modules.lazy\n"
