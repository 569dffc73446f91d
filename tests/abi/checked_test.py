"""tests/abi/checked_test.py: names of types, wrappers, layouts and results that are refused, and what stands beside them and is not."""

import pytest

from abi_tools import HERE, compile_plugin, run_python


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checked")
    compile_plugin(folder, (HERE / "checked.c").read_text(), name="bag", flags=["-std=c11", "-Werror"])
    return folder


BEGIN = """
import adjoin
bag = adjoin.ops.bag
x = adjoin.tensor([[1.0, 2.0]])
bag.make  # loads it
print("loaded", flush=True)
def refused(f, *words):
    try:
        made = f()
    except (RuntimeError, TypeError, NotImplementedError) as e:
        assert all(w in str(e) for w in words), str(e)
        return
    raise AssertionError(f"not refused: {made!r}")
"""


def python(plugin, program):
    got = run_python(BEGIN + program, ADJOIN_PLUGIN_PATH=plugin)
    assert got.returncode == 0, got.stdout + got.stderr
    return got.stdout.splitlines()


def test_names_of_types_and_wrappers(plugin):
    told = python(plugin, "")
    bad = [line for line in told if line.startswith("type: ")]
    assert len(bad) == 8 and all(line.startswith("type: 3 type_register: '") for line in bad), told
    assert all("is no name of a type" in line and '"acme::plan"' in line for line in bad), told
    assert [line for line in told if line.startswith(("long", "good", "wrapper"))] == [
        "long: 0 ",
        "good: 0 ",
        "wrapper: 0 ",
    ]
    (again,) = [line for line in told if line.startswith("again")]
    assert again == "again: 6 def_wrapper: plugin 'bag' has defined key 'bag' already"


def test_layouts_and_shapes_of_wrappers(plugin):
    python(
        plugin,
        """
for layout in range(8):
    assert bag.make(x, layout, 0).shape == (1, 2)
for layout in (8, 99, -1):
    refused(lambda: bag.make(x, layout, 0), f"there is no layout {layout}", "0 to 7")
refused(lambda: bag.make(x, 3, 1), "shape is NULL, ndim is 2")
assert bag.make(adjoin.tensor(1.0), 3, 1).shape == ()  # no size, no need for a shape
""",
    )


def test_a_body_that_leaves_the_tape(plugin):
    python(
        plugin,
        """
assert bag.body(x).tolist() == [[1.0, 2.0]]
w = x.clone().requires_grad_()
refused(lambda: bag.body(w), "body", "requires grad", "tensor_wrap", "def_vjp")
with adjoin.no_grad():
    assert bag.body(w).tolist() == [[1.0, 2.0]]
bag.with_vjp(w).sum().backward()
assert w.grad.tolist() == [[1.0, 1.0]]
""",
    )


def test_views_of_wrappers(plugin):
    python(
        plugin,
        """
b = bag.make(x, 3, 0)
for f in (lambda: b.unsqueeze(0), lambda: b.t()):
    refused(f, "plugin 'bag'", "key 'bag'", "no view of its argument", "view_of")
v = b.squeeze(0)
assert v._is_view() and v._base is b
assert x.unsqueeze(0).shape == (1, 1, 2)
""",
    )


def test_objects_of_another_type(plugin):
    python(
        plugin,
        """
assert bag.plan(x) is not None and bag.plan_body(x) is not None and bag.any(x) is not None
refused(lambda: bag.wrong(x), "plugin 'bag'", "an object of type 'bag.other-1_x'", "Object<bag::plan>")
refused(lambda: bag.wrong_body(x), "its body", "an object of type 'bag.other-1_x'", "Object<bag::plan>")
""",
    )


def test_a_result_that_is_argument_0(plugin):
    python(
        plugin,
        """
for op in bag.mark_, bag.mark_declared_:
    t = adjoin.zeros(2, 3)
    version = t._version
    assert op(t) is t and t.tolist() == [[7.0, 0.0, 0.0], [0.0, 0.0, 0.0]] and t._version == version + 1
    view = t[1]
    op(view)
    assert t.tolist() == [[7.0, 0.0, 0.0], [7.0, 0.0, 0.0]]
refused(lambda: bag.mark_odd_(adjoin.zeros(2, 3)), "mark_odd_", "it is its argument", "2, 3")
for i in range(1000):  # each counted once: the memory goes with the name
    bag.mark_(adjoin.zeros(250_000))
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
assert int(status["VmHWM"].split()[0]) < 400_000  # kB, of this process alone; ru_maxrss counts who started it
""",
    )
