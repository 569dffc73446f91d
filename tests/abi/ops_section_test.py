"""tests/abi/ops_section_test.py: the ops that a plugin's file names are known without its code, and bring it in."""

import pytest

from abi_tools import DEFINE_TWICE, TWICE, build_plugin, run_python

NAMED = (
    'AJ_PLUGIN_OPS("acme::twice(Tensor input) -> Tensor\\n" "acme::other.dim(Tensor input, dim dim) -> Tensor\\n");\n'
)
INIT = DEFINE_TWICE + "\n  return bad;\n"


def built(folder, extra=NAMED, **how):
    build_plugin(folder, extra=TWICE + extra, init=INIT, provides="kernel:nowhere/nothing", **how)
    return folder


def test_a_name_in_the_file_loads_it(tmp_path):
    program = """
import adjoin
def state():
    return adjoin.plugin.available()["acme"]
print(state())
assert "acme" in dir(adjoin.ops) and dir(adjoin.ops.acme) == ["twice"]
print(state())
assert adjoin.ops.acme.twice(adjoin.ones(2)).tolist() == [2, 2]
print(state())
"""
    got = run_python(program, ADJOIN_PLUGIN_PATH=built(tmp_path))
    assert got.stdout.split() == ["found", "found", "loaded"], got.stderr


@pytest.mark.parametrize("name", ["acme::twic", "acme::twice2", "acme::other", "twice"])
def test_other_names_do_not(name, tmp_path):
    program = f"""
import adjoin
assert adjoin._C.find_op({name!r}) is None
print(adjoin.plugin.available()["acme"])
"""
    got = run_python(program, ADJOIN_PLUGIN_PATH=built(tmp_path))
    assert got.stdout.split() == ["found"], got.stderr


def test_text_that_cannot_be_shown_is_refused(tmp_path):
    folder = built(tmp_path, extra='AJ_PLUGIN_OPS("acme::twice\\033[2J(Tensor input) -> Tensor\\n");\n')
    got = run_python("import adjoin; print(adjoin.plugin.why('acme'))", ADJOIN_PLUGIN_PATH=folder)
    assert "bad section .adjoin.ops" in got.stdout, got.stdout
