"""tests/abi/objects_test.py: ops with objects of a plugin's type, functions and streams, from Python."""

import textwrap

import pytest

from abi_tools import HERE, build_host, build_plugin, compile_plugin, run, run_python


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("objects")
    compile_plugin(out, (HERE / "objects.c").read_text(), name="objects", flags=["-std=c11", "-Werror"])
    return out


START = """
import gc
import adjoin
acme = adjoin.ops.acme
x = adjoin.tensor([1.0, 2.0, 3.0])
def refused(kinds, words, call):
    try:
        got = call()
    except kinds as error:
        text = str(error)
        assert "\\n" not in text and all(w in text for w in words), text
    else:
        raise AssertionError(f"accepted: {got}")
"""
PROGRAMS = {  # what it does, what the plugin prints
    "an object goes in and out": (
        """
        plan = acme.make_plan(x, 3)
        assert type(plan).__name__ == "Object" and "acme::plan" in repr(plan), plan
        assert acme.run_plan(x, plan).tolist() == [3, 6, 9] and acme.run_plan(x, plan=plan).tolist() == [3, 6, 9]
        assert acme.run_any(x, plan).tolist() == [3, 6, 9]
        assert acme.run_maybe(x).tolist() == [1, 2, 3] and acme.run_maybe(x, None).tolist() == [1, 2, 3]
        kept = [plan, plan]
        del plan
        gc.collect(), print("still there", flush=True)
        del kept
        """,
        ["still there", "plan 3 dies"],
    ),
    "another object is refused": (
        """
        other = acme.make_other(x)
        assert "acme::other" in repr(other)
        for op in (acme.run_plan, acme.run_maybe):
            refused(TypeError, [op.__name__, "plan", "acme::other", "acme::plan"], lambda: op(x, other))
        for wrong in (3, "plan", x, object(), [acme.make_plan(x)], lambda: 3, acme.make_function(x)):
            refused(TypeError, ["run_plan", "plan"], lambda: acme.run_plan(x, wrong))
        refused(TypeError, ["run_plan"], lambda: acme.run_plan(x, None))
        refused(TypeError, ["run_any"], lambda: acme.run_any(x, 3))
        refused(TypeError, ["not callable", "callable", ""][2:], lambda: other(3))
        """,
        ["plan 2 dies", "twice dies"],
    ),
    "an object is no object of Python's": (
        """
        kind = type(acme.make_plan(x))
        refused(TypeError, ["Object"], lambda: kind())
        """,
        ["plan 2 dies"],
    ),
    "a callable as a function": (
        """
        seen = []
        def f(t, n, s):
            seen.append((n, s))
            return t * n
        assert acme.apply(x, f).tolist() == [3, 6, 9] and seen == [(3, "three")]
        assert acme.apply(x, lambda t, n, s: (t[0], [n, s], None)) is not None
        assert acme.apply(x, lambda *a: 7) == 7 and acme.apply(x, lambda *a: 2.5) == 2.5 and acme.apply(x, lambda *a: True) is True
        assert acme.apply(x, lambda *a: "word") == "word" and acme.apply(x, lambda *a: None) is None
        assert acme.apply(x, lambda *a: 1 + 2j) == 1 + 2j
        assert acme.apply(x, lambda t, n, s: acme.make_plan(t, n)).__class__.__name__ == "Object"
        def fails(*a):
            raise KeyError("no such word")
        refused(KeyError, ["no such word"], lambda: acme.apply(x, fails))
        refused(TypeError, [], lambda: acme.apply(x, lambda: 3))
        refused(TypeError, ["object"], lambda: acme.apply(x, lambda *a: object()))
        refused(TypeError, ["apply", "f"], lambda: acme.apply(x, 3))
        import weakref
        class Caller:
            def __call__(self, t, n, s):
                return t
        caller = Caller()
        dead = weakref.ref(caller)
        acme.apply(x, caller)
        del caller
        assert dead() is None, "the function outlives its call"
        """,
        ["plan 3 dies"],
    ),
    "what a callable is given": (
        """
        got = []
        assert acme.apply_all(x, lambda *a: got.extend(a)) is None
        ints, floats, bools, tensors, z, dtype, device, yes, none = got
        assert list(ints) == [1, 2] and list(floats) == [0.5, 2] and list(bools) == [False, True] and z == 0.5 + 2j, got
        assert [t.tolist() for t in tensors] == [[1, 2, 3]] * 2 and dtype is adjoin.float32 and device.type == "cpu", got
        assert yes is True and none is None
        """,
        [],
    ),
    "a function of the plugin's": (
        """
        f = acme.make_function(x)
        assert f(x).tolist() == [2, 4, 6]
        refused((TypeError, ValueError, RuntimeError), ["twice takes one"], lambda: f(x, x))
        refused((TypeError, ValueError, RuntimeError), ["twice takes one"], lambda: acme.apply(x, f))
        assert acme.apply(x, lambda t, n, s: f(t)).tolist() == [2, 4, 6]
        del f
        """,
        ["twice dies"],
    ),
    "streams": (
        """
        assert acme.stream_device(x) == -1 == acme.stream_device(x, None)
        s = acme.make_stream(x)
        assert "stream" in repr(s) and acme.stream_device(x, s) == 100
        plan, function = acme.make_plan(x), acme.make_function(x)
        for wrong, told in ((3, "int"), ("s", "str"), (x, "Tensor"), (plan, "an object of type 'acme::plan'"),
                            (function, "a function of an op")):
            refused(TypeError, [f"stream_device(): argument 'stream' must be a stream, not {told}"], lambda: acme.stream_device(x, wrong))
        for wrong, told in ((3, "int"), (s, "a stream"), (function, "a function of an op")):
            refused(TypeError, [f"run_plan(): argument 'plan' must be an object of type 'acme::plan', not {told}"],
                    lambda: acme.run_plan(x, wrong))
            refused(TypeError, [f"run_any(): argument 'plan' must be an object of a plugin's type, not {told}"], lambda: acme.run_any(x, wrong))
        refused(TypeError, ["apply(): argument 'f' must be a function, not a stream"], lambda: acme.apply(x, s))
        refused(TypeError, ["argument 'other' must be Tensor or number, not an object of type 'acme::plan'"], lambda: adjoin.add(x, plan))
        del plan, function, wrong
        """,
        ["plan 2 dies", "twice dies"],
    ),
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_from_python(case, folder):
    program, printed = PROGRAMS[case]
    got = run_python(START + textwrap.dedent(program), ADJOIN_PLUGIN_PATH=folder)
    assert got.returncode == 0, got.stdout + got.stderr
    assert sorted(got.stdout.splitlines()) == sorted(printed)


SCHEMAS = {  # schema, what is said of it ("" if it is good)
    "acme::a(Tensor x, Object<acme::plan>[] plans) -> Tensor": "no list",
    "acme::a(Tensor x, Stream[2] s) -> Tensor": "no list",
    "acme::a(Tensor x, Object<> plan) -> Tensor": "a type's name",
    "acme::a(Tensor x, Object<acme::plan plan) -> Tensor": "a type's name",
    "acme::a(Tensor x, Function? f=None, *, Stream? s=None, Object? o=None) -> Tensor": "",
    "acme::a(Tensor x, Object<plan> plan) -> (Tensor, Object<acme::more::deep>)": "",
    "acme::a(Tensor x, Object<no::such>? plan=None) -> Tensor": "acme::a: nobody has registered the type of Object<no::such>",
    "acme::a(Tensor x) -> Object<acme::more>": "acme::a: nobody has registered the type of Object<acme::more>",
    "acne::a(Tensor x) -> Tensor": "its op 'acne::a' is none that its note promises, which provides 'device:acme;ops:acme'; add ops:acne",
    "blemish(Tensor x) -> Tensor": "its op 'blemish' has no space",
    "acme::a(Tensor x, Teapot t) -> Tensor": "a type",
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_schemas(schema, tmp_path, host):
    init = f"""
      aj_op_def op;
      memset(&op, 0, sizeof op);
      op.struct_size = sizeof op;
      op.flags = AJ_OP_ALLOCATES;
      op.schema = AJ_STR_LIT("{schema}");
      aj_status* bad = ((const aj_dispatch*)env->query("aj.op", 1))->def_op(env->registrar, &op);
      aj_str plan = AJ_STR_LIT("plan"), deep = AJ_STR_LIT("acme::more::deep");  /* after the op that names them */
      int32_t type;
      if (!bad) bad = env->core->type_register(plan, 8, NULL, &type);
      return bad ? bad : env->core->type_register(deep, 8, NULL, &type);"""
    got = host("load", build_plugin(tmp_path, init=init)).stdout
    assert (
        (got == "ok load\n")
        if not SCHEMAS[schema]
        else (SCHEMAS[schema] in got and got.startswith("error ") and "acme" in got)
    ), got


BINDER = r"""
#include <adjoin/abi/capi.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char** argv) {
  const aj_core* core = (const aj_core*)aj_get_interface("aj.core", 1);
  const aj_dispatch* ops = (const aj_dispatch*)aj_get_interface("aj.op", 1);
  for (int i = 1; i < argc; ++i) {
    aj_str name = {argv[i], strlen(argv[i])};
    const aj_op* op = ops->find_op(name);
    aj_op_info info;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    core->status_free(ops->op_info(op, &info));
    for (uint32_t k = 0; k < info.nparams + info.nresults; ++k) {
      aj_param p;
      memset(&p, 0, sizeof p);
      p.struct_size = sizeof p;
      core->status_free(k < info.nparams ? ops->op_param(op, k, &p) : ops->op_result(op, k - info.nparams, &p));
      printf("%d<%.*s>%s ", p.base, (int)p.type.len, p.type.data, p.flags & AJ_PARAM_OPTIONAL ? "?" : "");
    }
    puts("");
  }
  int32_t type = 0;
  aj_status* bad = core->type_find(AJ_STR_LIT("acme::plan"), &type);
  aj_str name = core->type_name(type), none = core->type_name(type + 100), no = core->type_name(-1);
  printf("%d %.*s %d %d\n", bad == NULL, (int)name.len, name.data, (int)none.len, (int)no.len);
  bad = core->type_find(AJ_STR_LIT("acme::plans"), &type);
  printf("%d\n", core->status_code(bad));
  core->status_free(bad);
  return 0;
}
"""


def test_what_a_binder_reads(folder, tmp_path):
    (tmp_path / "binder.c").write_text(BINDER)
    program = build_host(tmp_path / "binder", source=tmp_path / "binder.c")
    got = run(program, "acme::run_maybe", "acme::run_any", "acme::make_plan", "acme::apply", "acme::stream_device",
              ADJOIN_PLUGIN_PATH=folder)  # fmt: skip
    assert got.stdout.splitlines() == [
        "0<> 16<acme::plan>? 0<> ",
        "0<> 16<> 0<> ",
        "0<> 3<> 16<acme::plan> ",
        "0<> 15<> 1<>? ",
        "0<> 14<>? 3<> ",
        "1 acme::plan 0 0",
        "5",
    ], got.stderr
