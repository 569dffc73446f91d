"""tests/python/toplevel/names_help_test.py: help(), dir() and what is said of a name that is not there."""

import inspect
import pydoc
import subprocess
import sys

import adjoin
import pytest


@pytest.mark.parametrize(
    "thing", [adjoin, adjoin.Tensor, adjoin.nn.functional, adjoin.linalg, adjoin.Tensor.uniform_, adjoin.nn.Linear]
)
def test_help(thing):
    assert len(pydoc.render_doc(thing)) > 100


def test_every_op_has_a_signature():
    for home in (adjoin, adjoin.Tensor, adjoin.nn.functional, adjoin.linalg, adjoin.special):
        for name in dir(home):
            if type(getattr(home, name)).__name__ in ("Op", "OpMethod"):
                inspect.signature(getattr(home, name))
    assert list(inspect.signature(adjoin.Tensor.uniform_).parameters)[1] == "from_"


@pytest.mark.parametrize("home", [adjoin, adjoin.Tensor, adjoin.nn, adjoin.nn.functional, adjoin.optim, adjoin.linalg, adjoin.special, adjoin.fft,
                                  adjoin.autograd, adjoin.utils, adjoin.utils.data, adjoin.distributions, adjoin.nn.init, adjoin.ops])  # fmt: skip
def test_what_dir_lists_is_there(home):
    assert [name for name in dir(home) if not hasattr(home, name)] == []


@pytest.mark.parametrize("home, wrong, right", [
    (adjoin, "matmull", "matmul"), (adjoin.nn, "Lienar", "Linear"), (adjoin.nn, "CrossEntropy", "CrossEntropyLoss"),
    (adjoin.nn.functional, "cross_entopy", "cross_entropy"), (adjoin.optim, "AdmaW", "AdamW"), (adjoin.utils.data, "Dataloader", "DataLoader"),
    (adjoin.nn.init, "xavier_unifrom_", "xavier_uniform_"), (adjoin.distributions, "Normall", "Normal"), (adjoin.autograd, "gradd", "grad"),
    (adjoin.optim.lr_scheduler, "StepLr", "StepLR"), (adjoin.ops, "addd", "add"),
])  # fmt: skip
def test_suggestions(home, wrong, right):
    with pytest.raises(AttributeError, match=f"did you mean '{right}'"):
        getattr(home, wrong)


def test_a_name_that_is_not_there_is_not_suggested():
    for name in ("avg_pool2d_backwrd", "amp_unscale"):
        with pytest.raises(AttributeError) as caught:
            getattr(adjoin, name)
        suggested = str(caught.value).partition("did you mean '")[2].partition("'")[0]
        assert not suggested or hasattr(adjoin, suggested)


def test_a_sub_interpreter_is_refused():
    program = """
import sys
try:
    import _xxsubinterpreters as sub
except ImportError:
    import _interpreters as sub
first = sys.argv[1] == "first"
def inside():
    one = sub.create()
    found = sub.run_string(one, "try:\\n import adjoin\\nexcept ImportError as error:\\n assert 'sub-interpreter' in str(error), error\\nelse:\\n raise SystemExit")
    assert found is None, found
    sub.destroy(one)
if not first:
    import adjoin
inside()
import adjoin, os
assert adjoin.ones(2).sum() == 2
inside()
pid = os.fork()
if not pid:
    os._exit(int(adjoin.ones(3).sum()))
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
del sys.modules["adjoin._C"]
import adjoin._C
assert adjoin._C.Tensor is adjoin.Tensor
"""
    for order in ("first", "later"):
        run = subprocess.run(
            [sys.executable, "-c", program, order], capture_output=True, text=True, check=False, timeout=60
        )
        assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("call, told", [
    (lambda: adjoin.sum(adjoin.ones(2), dmi=0), r"sum\(\) got an unexpected keyword argument 'dmi'; did you mean 'dim'\?"),
    (lambda: adjoin.tensor([1], dytpe=adjoin.int8), r"tensor\(\) got an unexpected keyword argument 'dytpe'; did you mean 'dtype'\?"),
    (lambda: adjoin.sum(adjoin.ones(2), zebra=0), r"unexpected keyword argument 'zebra'; it takes input, dim, keepdim, dtype$"),
])  # fmt: skip
def test_misspelt_keywords(call, told):
    with pytest.raises(TypeError, match=told):
        call()
