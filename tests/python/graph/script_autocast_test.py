"""tests/python/graph/script_autocast_test.py: scripted code under autocast: the dtypes and bits of Python, and the thread as it was."""

import io

import adjoin
import pytest
from adjoin import jit

bfloat16 = adjoin.bfloat16


def mixed(x, y, on: bool):
    with adjoin.autocast("cpu", dtype=bfloat16, enabled=on):
        z = x @ y
        seen = adjoin.is_autocast_enabled("cpu")
        with adjoin.amp.autocast("cpu", enabled=False):
            w = x @ y
        for i in range(3):
            with adjoin.autocast("cpu"):
                if i == 1:
                    return z, w, seen
    return z, w, not seen


def test_scripted_code_casts_as_python_does():
    x, program = adjoin.randn(4, 4), jit.script(mixed)
    file = io.BytesIO()
    jit.save(program, file)
    file.seek(0)
    for run in (program, jit.load(file)):
        for on in (True, False):
            wanted, found = mixed(x, x, on), run(x, x, on)
            assert found[0].dtype == (bfloat16 if on else adjoin.float32) and found[1].dtype == adjoin.float32
            assert wanted[0].equal(found[0]) and wanted[1].equal(found[1]) and wanted[2] == found[2]
            assert not adjoin.is_autocast_enabled("cpu")
    assert "with torch.autocast(" in program.code
    traced = jit.trace(lambda x: program(x, x, True)[0] + 1, (x,))
    assert traced(x).dtype == bfloat16


def test_errors_and_gradients_inside():
    @jit.script
    def fails(x):
        with adjoin.autocast("cpu"):
            raise ValueError("no")

    with pytest.raises(ValueError):
        fails(adjoin.ones(1))
    assert not adjoin.is_autocast_enabled("cpu")
    grads = []
    for f in (mixed, jit.script(mixed)):
        x = adjoin.ones(4, 4, requires_grad=True)
        f(x, x, True)[0].float().sum().backward()
        grads.append(x.grad)
    assert grads[0].equal(grads[1])


def test_devices_that_are_not_there_cast_nothing():
    @jit.script
    def f(x):
        with adjoin.cuda.amp.autocast(enabled=False), adjoin.autocast("xpu", adjoin.float16, True):
            return x @ x

    assert f(adjoin.ones(2, 2)).dtype == adjoin.float32


@pytest.mark.parametrize(
    "given, wrong",
    [("", "wants the kind of device"), ('"cpu", dt=1', "not dt"), ('"cpu", None, True, True, 5', "not more")],
)
def test_what_autocast_does_not_take(given, wrong):
    with pytest.raises(RuntimeError, match=wrong):
        jit.CompilationUnit(f"def f(x):\n    with adjoin.autocast({given}):\n        return x\n")


def asks_python(device):
    try:  # which programs have not
        return adjoin.is_autocast_enabled(device)
    except TypeError:
        return False


def returns_first(x, n: int):
    if jit.is_scripting():
        if n > 2:
            return x + n
            asks_python("cpu")
        for i in range(n):
            if i == 1:
                continue
                asks_python("cpu")
            x = x + 1
        return x
    if asks_python("cpu"):
        x = x * 100
    return x


def test_what_is_not_reached_is_not_compiled():
    program = jit.script(returns_first)
    assert [program(adjoin.zeros(1), n).item() for n in (0, 1, 2, 3)] == [0, 1, 1, 3]
    assert "asks_python" not in str(program.graph)


def shortened(x, shortcut: adjoin.Tensor | None = None):
    if shortcut is None:
        shortcut = x  # whose type nobody says
    x = x * 2
    x += shortcut
    return x


def test_a_default_that_is_replaced_is_none_no_more():
    for given in ((adjoin.ones(1),), (adjoin.ones(1), adjoin.ones(1) * 5)):
        assert jit.script(shortened)(*given).item() == shortened(*given).item()
