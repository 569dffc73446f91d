"""tests/abi/packs_test.py: an op pack's ops are there before the pack is loaded, and nobody can tell them from libadjoin's own."""

import json
import subprocess

import pytest

from abi_tools import DEFINE_TWICE, INCLUDE, PLUGINDIR, ROOT, TWICE, adjoin, build_plugin, run_python

LINE = 'AJ_PLUGIN_OPS("twice_it(Tensor x) -> Tensor\\tunary\\t\\t\\tTwice the input.\\n");\n'
INIT = DEFINE_TWICE.replace("acme::twice", "twice_it") + "\n  return bad;\n"
STATE = 'state = lambda name="ops_acme": adjoin.plugin.available()[name]\n'
PACKS = sorted(path.stem.removeprefix("libaj_") for path in PLUGINDIR.glob("libaj_ops_*.so"))
CALLS = {  # of each pack: a call, what it gives, and an op whose kernel for the processor stands in the plugin named
    "ops_arrays": ("adjoin.kron(x, x)", [1, 1, 1, 1], None),
    "ops_fft": ("adjoin.view_as_real(adjoin.fft.fft(x))", [2, 0, 0, 0], ("_::fft_c2c", "ops_fft")),
    "ops_image": ("adjoin.nn.functional.interpolate(x.view(1, 1, 2), 1.5)", [1, 1, 1], ("_::resample", "ops_image")),
    "ops_linalg": ("adjoin.cdist(x.view(1, 2), x.view(1, 2) + 3)", [18**0.5], ("_::cdist", "ops_linalg")),
    "ops_losses": ("adjoin.nn.functional.hinge_embedding_loss(x, -x, reduction='none')", [0, 0], None),
    "ops_sequences": (
        "adjoin.nn.functional.embedding_bag(adjoin.zeros(1, 2).long(), x.view(1, 2), mode='sum')",
        [2, 2],
        ("rnn_layer", "cpu"),
    ),
    "ops_sparse": ("x.to_sparse().coalesce().values()", [1, 1], None),
    "ops_special": ("adjoin.special.ndtri(x / 2)", [0, 0], ("special::ndtri", "ops_special")),
    "ops_vision": ("adjoin.ops.torchvision.nms(adjoin.tensor([[0.0, 0, 1, 1], [0, 0, 1, 1]]), x, 0.5)", [0], None),
    "ops_statistics": ("adjoin.cummax(x, 0)[0]", [1, 1], ("cummax", "ops_statistics")),
}


def built(folder, line=LINE, init=INIT, name="ops_acme"):
    build_plugin(folder, name=name, extra=TWICE + line, init=init, provides="")
    return folder


def told(program, **extra):
    run = run_python("import adjoin\n" + STATE + program, **extra)
    assert run.returncode == 0, run.stderr
    return run.stdout.split("\n")


def test_names_stand_everywhere_without_the_pack():
    told("""
from adjoin import nn
import inspect
assert "sinc" in dir(adjoin) and "sinc" in dir(adjoin.Tensor) and "i0e" in dir(adjoin.special)
assert callable(adjoin.sinc) and callable(adjoin.Tensor.sinc_) and adjoin.Tensor.sinc.__name__ == "sinc"
assert "sin(pi x)" in adjoin.sinc.__doc__ and "x" not in inspect.signature(adjoin.sinc).parameters
assert "input" in inspect.signature(adjoin.sinc).parameters
assert state("ops_special") == "found", state("ops_special")
assert abs(adjoin.ones(1).mul_(0.5).sinc_().item() - 0.63662) < 1e-4
assert state("ops_special") == "loaded"
""")


@pytest.mark.parametrize("pack", PACKS)
def test_what_is_said_before_is_what_is_there_after(pack):
    listed = {op["name"]: op for op in json.loads(adjoin("ops", "--json").stdout)}
    waiting = {name: op for name, op in listed.items() if op["provider"] == pack}
    assert len(waiting) >= 10
    got = told("import json\nprint(json.dumps([adjoin._C.op_info(name) for name in %r]))" % sorted(waiting))
    for after in [overload for infos in json.loads(got[0]) for overload in infos if overload["name"] in waiting]:
        before = waiting[after["name"]]
        for word in ("schema", "doc", "kind", "tags", "provider"):
            assert before[word] == after[word], (before, after)
        for word in ("differentiable", "composite", "out", "in_place"):
            assert (word.replace("_", "-") in before["features"]) == after[word], (before, after)
        assert after["test"]


def test_a_training_step_loads_no_pack():
    told("""
from adjoin import nn
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3))
optimizer = adjoin.optim.AdamW(net.parameters())
nn.functional.cross_entropy(net(adjoin.randn(2, 1, 8, 8)), adjoin.tensor([0, 2])).backward()
nn.utils.clip_grad_norm_(net.parameters(), 1.0)
optimizer.step()
loaded = [name for name, state in adjoin.plugin.available().items() if name.startswith("ops_") and state != "found"]
assert not loaded, loaded
""")


@pytest.mark.parametrize("pack", PACKS)
def test_a_call_loads_its_pack_alone(pack):
    call, gives, kernel = CALLS[pack]
    told(f"""
x = adjoin.ones(2)
got = {call}
assert adjoin.allclose(got.flatten(), adjoin.tensor({gives}, dtype=got.dtype)), got
packs = {{name: state for name, state in adjoin.plugin.available().items() if name.startswith("ops_")}}
assert [name for name, state in packs.items() if state == "loaded"] == [{pack!r}], packs
""")
    if kernel:
        name, plugin = kernel
        assert f"1. plugin {plugin}," in told(f"print(adjoin._C.explain_op({name!r}, 'cpu'))")[1]


@pytest.mark.parametrize("pack", PACKS)
def test_a_call_of_a_disabled_pack_says_so(pack):
    told(f"""
adjoin.plugin.disable({pack!r})
x = adjoin.ones(2)
try:
    {CALLS[pack][0]}
except RuntimeError as e:
    assert {pack!r} in str(e) and "disabled" in str(e), e
else:
    raise AssertionError("served")
""")


def test_a_body_of_the_core_calls_an_op_that_waits():
    pool = "adjoin.nn.functional.max_pool3d(x, 2)"
    told(f"""
x = adjoin.arange(16.0).view(1, 1, 2, 2, 4)
assert {pool}.flatten().tolist() == [13, 15] and state("ops_image") == "found"
x.requires_grad_()
y = {pool}
assert state("ops_image") == "loaded" and y.flatten().tolist() == [13, 15]
y.sum().backward()
assert x.grad.flatten().nonzero().flatten().tolist() == [13, 15]
""")
    told(f"""
adjoin.plugin.disable("ops_image")
x = adjoin.ones(1, 1, 2, 2, 2, requires_grad=True)
try:
    {pool}
except RuntimeError as e:
    assert "max_pool3d" in str(e) and "ops_image" in str(e) and "disabled" in str(e), e
else:
    raise AssertionError("served")
""")


@pytest.mark.parametrize("how", ["function", "method", "in_place", "out", "gradient", "meta", "explain"])
def test_the_first_call_loads(how):
    call = {
        "function": "adjoin.i0(adjoin.ones(2))",
        "method": "adjoin.ones(2).i0()",
        "in_place": "adjoin.ones(2).i0_()",
        "out": "adjoin.i0(adjoin.ones(2), out=adjoin.empty(2))",
        "gradient": "adjoin.i0(adjoin.ones(2, requires_grad=True)).sum().backward()",
        "meta": "adjoin.i0(adjoin.ones(2, device='meta'))",
        "explain": "adjoin._C.explain_op('i0', 'cpu')",
    }[how]
    told(f"""
assert state("ops_special") == "found"
{call}
assert state("ops_special") == "loaded"
""")


def test_wrong_calls_are_told_as_ever():
    told("""
for wrong in (lambda: adjoin.i0(), lambda: adjoin.i0("a"), lambda: adjoin.i0(adjoin.ones(2), adjoin.ones(2))):
    try:
        wrong()
    except TypeError as e:
        assert "i0" in str(e), e
    else:
        raise AssertionError("taken")
""")


def test_many_threads_call_first():
    told("""
import threading
start, bad = threading.Barrier(16), []
def work():
    start.wait()
    try:
        for _ in range(50):
            x = adjoin.ones(3, requires_grad=True)
            y = adjoin.special.i1e(x) + adjoin.sinc(x)
            y.sum().backward()
            assert abs(y[0].item() - 0.207910) < 1e-4, y
    except Exception as e:
        bad.append(e)
threads = [threading.Thread(target=work) for _ in range(16)]
for t in threads: t.start()
for t in threads: t.join()
assert not bad, bad[0]
""")


def test_a_child_of_fork_loads_by_itself():
    told("""
import os
pid = os.fork()
if pid == 0:
    os._exit(0 if abs(adjoin.sinc(adjoin.zeros(1)).item() - 1) < 1e-6 else 1)
assert os.waitpid(pid, 0)[1] == 0
assert state("ops_special") == "found"
""")


def test_only_of_other_plugins_does_not_leave_it_out():
    told("assert adjoin.sinc(adjoin.zeros(1)).item() == 1", ADJOIN_PLUGINS="only:cpu")


def test_one_that_is_disabled_says_so():
    told("""
adjoin.plugin.disable("ops_special")
assert "sinc" in dir(adjoin)
try:
    adjoin.sinc(adjoin.ones(1))
except RuntimeError as e:
    assert "sinc" in str(e) and "ops_special" in str(e) and "disabled" in str(e), e
else:
    raise AssertionError("served")
""")


def test_a_strangers_pack(tmp_path):
    told(
        """
assert "twice_it" in dir(adjoin) and state() == "found"
assert adjoin.twice_it(adjoin.ones(2)).tolist() == [2, 2] and state() == "loaded"
""",
        ADJOIN_PLUGIN_PATH=built(tmp_path),
    )


def test_a_pack_of_a_build_without_packs_says_what_to_build(tmp_path):
    """What stands for a pack in the demo's build: names, and a sentence."""
    (tmp_path / "ops.c").write_text("#include <adjoin/abi/plugin.h>\n" + LINE)
    sources = [ROOT / "plugins/left_out.c", tmp_path / "ops.c"]
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", f"-I{INCLUDE}", '-DLEFT_OUT="ops_acme"']
    subprocess.run(["gcc", *flags, *sources, "-o", tmp_path / "libaj_ops_acme.so"], check=True)
    told(
        """
import inspect
assert "twice_it" in dir(adjoin) and "x" in inspect.signature(adjoin.twice_it).parameters
for _ in range(2):
    try:
        adjoin.twice_it(adjoin.ones(2))
    except RuntimeError as e:
        assert "twice_it" in str(e) and "ops_acme" in str(e) and "./run build" in str(e), e
    else:
        raise AssertionError("served")
""",
        ADJOIN_PLUGIN_PATH=tmp_path,
    )


def test_a_pack_that_does_not_define_what_it_says(tmp_path):
    more = LINE.replace('");', '" "thrice_it(Tensor x) -> Tensor\\tunary\\t\\t\\tThrice.\\n");')
    told(
        """
assert adjoin.twice_it(adjoin.ones(2)).tolist() == [2, 2]
try:
    adjoin.thrice_it(adjoin.ones(2))
except RuntimeError as e:
    assert "ops_acme" in str(e) and "does not define it" in str(e), e
else:
    raise AssertionError("served")
""",
        ADJOIN_PLUGIN_PATH=built(tmp_path, line=more),
    )


@pytest.mark.parametrize(
    "other",
    [
        "(Tensor y) -> Tensor\\tunary\\t",
        "(Tensor x) -> Tensor\\tunary\\tordered",
        "(Tensor x) -> Tensor\\tunary_float\\t",
    ],
)
def test_a_pack_whose_file_says_something_else(other, tmp_path):
    line = LINE.replace("(Tensor x) -> Tensor\\tunary\\t", other)
    told(
        """
try:
    adjoin.twice_it(adjoin.ones(2))
except RuntimeError as e:
    assert "ops_acme" in str(e) and ".adjoin.ops" in str(e), e
else:
    raise AssertionError("served")
""",
        ADJOIN_PLUGIN_PATH=built(tmp_path, line=line),
    )


@pytest.mark.parametrize(
    "line",
    [
        "nonsense\\t\\t\\t\\tx",
        "a(Tensor x) -> Tensor\\tno kind\\t\\t\\tx",
        "a(Tensor x) -> Tensor\\t\\t",
        "\\t\\t\\t\\t",
    ],
)
def test_lines_that_cannot_be_read_add_nothing(line, tmp_path):
    section = f'AJ_PLUGIN_OPS("{line}\\n" "twice_it(Tensor x) -> Tensor\\tunary\\t\\t\\tTwice.\\n");\n'
    told(
        'assert "a" not in dir(adjoin) and adjoin.twice_it(adjoin.ones(2)).tolist() == [2, 2]',
        ADJOIN_PLUGIN_PATH=built(tmp_path, line=section),
    )


def test_an_op_that_is_there_stays(tmp_path):
    line = LINE.replace("twice_it", "sin")
    told(
        "assert abs(adjoin.sin(adjoin.ones(1)).item() - 0.84147) < 1e-4 and state() == 'found'",
        ADJOIN_PLUGIN_PATH=built(tmp_path, line=line),
    )


def test_other_plugins_have_no_names_without_a_space(tmp_path):
    told(
        """
assert "twice_it" not in dir(adjoin)
try:
    adjoin.plugin.load(PATH)
except RuntimeError as e:
    assert "no space" in str(e), e
else:
    raise AssertionError("loaded")
""".replace("PATH", repr(str(tmp_path / "libaj_acme.so"))),
        ADJOIN_PLUGIN_PATH=built(tmp_path, name="acme"),
    )
