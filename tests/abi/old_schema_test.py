"""tests/abi/old_schema_test.py: an op that has grown arguments, and kernels that were built for it as it was (built_schema)."""

import pytest

from abi_tools import build_plugin, run_python

NOW = (
    "acme::grown(Tensor x, float by=2.0, int n=3, bool b=True, str s='word', int[] l=[1, 2], Tensor? t=None, "
    "Scalar k=1, float? o=None, dtype? d=None, float f=1) -> Tensor"
)
KERNEL = """
/* Its result is x by the number of arguments that it sees. */
static aj_status* see(void* self, aj_call* call) {
  aj_value args[2];
  memset(args, 0, sizeof args);
  args[0] = call->args[0];
  args[1].tag = AJ_INT;
  args[1].v.i = call->nargs + 100 * (self != 0);
  return ops->call(ops->find_op(AJ_STR_LIT("mul")), args, 2, call->rets, 1);
}
static aj_status* kernel(const aj_plugin_env* env, const char* built, int32_t priority, void* self) {
  aj_kernel_def k;
  memset(&k, 0, sizeof k);
  k.struct_size = sizeof k;
  k.op = AJ_STR_LIT("acme::grown");
  k.key = AJ_STR_LIT("cpu");
  k.built_schema.data = built;
  k.built_schema.len = strlen(built);
  k.priority = priority;
  k.fn = see;
  k.self = self;
  return ops->def_kernel(env->registrar, &k);
}
"""
INIT = f"""
  aj_op_def op;
  ops = (const aj_dispatch*)env->query("aj.op", 1);
  memset(&op, 0, sizeof op);
  op.struct_size = sizeof op;
  op.flags = AJ_OP_ALLOCATES;
  op.schema = AJ_STR_LIT("{NOW}");
  aj_status* bad = ops->def_op(env->registrar, &op);
"""


def plugin(folder, kernels):
    return build_plugin(
        folder,
        extra="static const aj_dispatch* ops;" + KERNEL,
        init=f"{INIT}{kernels}\n  return bad;",
        provides="ops:acme",
    )


def python(folder, program):
    start = (
        "import adjoin\nx = adjoin.tensor([1.0])\ndef call(*a, **k): return adjoin.ops.acme.grown(x, *a, **k).item()\n"
    )
    return run_python(start + program, ADJOIN_PLUGIN_PATH=folder)


DEFAULTS = {  # argument: what is as good as its default, what is not
    "by": (["2.0", "2"], "3.0"),
    "n": (["3"], "4"),
    "b": (["True"], "False"),
    "s": (["'word'"], "'wore'"),
    "l": (["[1, 2]", "(1, 2)"], "[1, 3]"),
    "t": (["None"], "x"),
    "k": (["1"], "1.5"),
    "o": (["None"], "1.0"),
    "d": (["None"], "adjoin.float32"),
    "f": (["1", "1.0"], "2"),
}


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """Its only kernel knows one argument."""
    out = tmp_path_factory.mktemp("old")
    plugin(out, 'if (!bad) bad = kernel(env, "acme::grown(Tensor x) -> Tensor", 0, 0);')
    return out


def test_an_old_kernel_serves_defaults(old):
    calls = ["call()"] + [f"call({name}={value})" for name, (same, _) in DEFAULTS.items() for value in same]
    got = python(old, f"print({', '.join(calls)})")
    assert got.stdout.split() == ["1.0"] * len(calls), got.stderr


@pytest.mark.parametrize("name", DEFAULTS)
def test_an_old_kernel_refuses_what_it_does_not_know(name, old):
    got = python(old, f"call({name}={DEFAULTS[name][1]})")
    said = got.stderr.strip().splitlines()[-1]
    assert got.returncode == 1 and said.startswith("NotImplementedError"), got.stderr
    assert "acme::grown" in said and "'acme'" in said and f"predates argument '{name}'" in said


def test_kernels_of_several_ages(tmp_path):
    """Each sees as many arguments as it was built for; the one of highest priority is asked."""
    plugin(
        tmp_path,
        """
      if (!bad) bad = kernel(env, "acme::grown(Tensor x, float by=2.0) -> Tensor", 1, env);
      if (!bad) bad = kernel(env, "", 0, 0);""",
    )
    got = python(tmp_path, "print(call(), call(5.0))")
    assert got.stdout.split() == ["102.0", "102.0"], got.stderr


@pytest.mark.parametrize("word", ["dim", "size"])
def test_whole_numbers_of_another_word_are_the_same_to_a_kernel(word, tmp_path):
    """A row may say more exactly what its int is; kernels that were built before go on."""
    plugin(tmp_path, f'if (!bad) bad = kernel(env, "acme::grown(Tensor x, float by=2.0, {word} n=3) -> Tensor", 0, 0);')
    got = python(tmp_path, "print(call(), call(n=4))")
    assert got.stdout.split() == ["3.0", "3.0"], got.stderr


LIES = {
    "acme::grown(Tensor x, float by=2.0, int n=3, int more=1) -> Tensor": "argument 'more'",
    "acme::grown(Tensor x, int by=2) -> Tensor": "argument 'by'",
    "acme::grown(Tensor y) -> Tensor": "argument 'y'",
    "acme::grown(Tensor[] x) -> Tensor": "argument 'x'",
    "acme::grown(Tensor x) -> (Tensor, Tensor)": "the results",
    "acme::grown(Tensor x": "expected",
    "acme::other(Tensor x) -> Tensor": "acme::other",
}


@pytest.mark.parametrize("built", LIES)
def test_a_schema_that_the_op_never_had(built, tmp_path, host):
    got = host("load", plugin(tmp_path, f'if (!bad) bad = kernel(env, "{built}", 0, 0);')).stdout
    assert got.startswith("error ") and "acme::grown" in got and LIES[built] in got, got
