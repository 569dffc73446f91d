"""tests/extensions/opcheck_samples_test.py: wrong samples of an op are a verdict on that op, right ones are read as conform reads them."""

import json
import re
import subprocess
import sys

import adjoin as T
import pytest
from adjoin.testing import _form
from adjoin.testing._samples import Op, from_file
from adjoin.testing.opcheck import check_op
from installed import flags

WRONG = {
    "no_json": ("{shapes: 3}", "its test is no JSON"),
    "no_object": ("[[3, 4]]", "its test is a list, a JSON object is wanted"),
    "unknown_key": ('{"shape": [[[3, 4]]]}', "a key 'shape', which nothing reads; did you mean 'shapes'?"),
    "flat_shapes": ('{"shapes": [3, 4]}', "a sample is a list of shapes, one for each tensor"),
    "negative": ('{"shapes": [[[-1]]]}', "a sample is a list of shapes"),
    "too_many": ('{"shapes": [[[3], [3]]]}', "has 2 shapes, guess::too_many takes 1 tensors"),
    "bare_args": ('{"args": {"by": 2}}', "args: an object of lists is wanted"),
    "other_name": ('{"args": {"bys": [2.0]}}', "has no parameter 'bys'; did you mean 'by'?"),
    "odd_case": ('{"cases": [[3, 4]]}', "cases: "),
    "low_text": ('{"low": "zero"}', "low: a number is wanted"),
    "refused": ('{"args": {"by": ["many"]}}', "no sample of its test is taken"),
}
RIGHT = '{"shapes": [[[3, 4]], [[5]]], "args": {"by": [1.0, -2.5]}, "low": 0.1}'
OPS = """
#include <adjoin/kit/function.hpp>
#include <adjoin/kit/ops.hpp>
using namespace adjoin;
using namespace adjoin::kit;
static aj_status* times(void*, aj_call* call) { return compose(call, [](Body& b) { b.ret(0, mul(b.tensor(0), b.scalar(1))); }); }
static aj_status* some(void*, aj_call* call) { return compose(call, [](Body& b) { b.ret(0, nonzero(b.tensor(0))); }); }
"""


@pytest.fixture(scope="module")
def guesses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guesses")
    ops = [(name, test) for name, (test, _) in WRONG.items()] + [("right", RIGHT)]
    rows = "".join(
        f'  def("guess::{name}(Tensor input, float by=2.0) -> Tensor", {json.dumps(test)}, times, 0);\n'
        for name, test in ops
    )
    source = f"""#include <adjoin/kit/kit.hpp>
{OPS}
AJ_PLUGIN_NOTE("guess", "1", "", "", "ops:guess", "");
AJ_PLUGIN_INIT {{
  bind(env->query);
  aj_status* failed = nullptr;
  auto def = [&](const char* schema, const char* test, aj_kernel_fn body, uint32_t flags) {{
    aj_op_def d = {{}};
    d.struct_size = sizeof d, d.flags = flags, d.schema = str(schema), d.doc = str("x"), d.test = str(test);
    if (flags) d.body = nullptr; else d.body = body;
    if (!failed) failed = dispatch().def_op(env->registrar, &d);
    if (flags && !failed) {{
      aj_kernel_def k = {{}};
      k.struct_size = sizeof k, k.op = str("guess::some"), k.key = str("cpu"), k.fn = body, k.flags = AJ_KERNEL_CASTS;
      failed = dispatch().def_kernel(env->registrar, &k);
    }}
  }};
{rows}  def("guess::some(Tensor input) -> Tensor<int64>", "", some, AJ_OP_ALLOCATES);
  return failed;
}}
"""
    path = folder / "guess.cpp"
    path.write_text(source)
    out = folder / "libaj_guess.so"
    subprocess.run(
        ["c++", "-std=c++20", "-shared", "-fPIC", *flags("--cflags", "--ldflags"), str(path), "-o", str(out)],
        check=True,
    )
    return str(out)


def test_a_wrong_guess_is_a_line_and_the_others_go_on(guesses):
    line = [sys.executable, "-m", "adjoin.testing.opcheck", guesses, "--check", "schema", "--check", "meta"]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    for name, (_, told) in WRONG.items():
        assert re.search(rf"guess::{name} +samples +FAILS +.*{re.escape(told)}", done.stdout), (name, done.stdout)
    for check in ("schema", "meta"):
        assert re.search(rf"guess::right +{check} +holds", done.stdout), done.stdout
    assert re.search(r"guess::some +schema +holds", done.stdout), done.stdout
    assert re.search(r"guess::some +meta +- +its shapes depend on data: refused", done.stdout), done.stdout


def test_conform_takes_it_alike(guesses):
    line = ["adjoin", "conform", guesses, "--device", "cpu", "--mode", "test", "--dtype", "float32", "--json", "-"]
    for name in WRONG:
        line += ["--op", f"guess::{name}"]
    done = subprocess.run([*line, "--op", "guess::right"], capture_output=True, text=True)
    report = json.loads(done.stdout)
    failed = {r["row"] for r in report["records"] if r["failed"]}
    form = {"no_json", "no_object", "flat_shapes", "negative", "bare_args", "odd_case", "low_text"}
    assert {f"guess::{name}" for name in form} <= failed and "guess::right" not in failed
    assert all(
        "its test: " in f for r in report["records"] for f in r["failures"] if r["row"].removeprefix("guess::") in form
    )


def test_every_row_of_ours_has_the_form():
    for name in T._C.op_names():
        for info in T._C.op_info(name) or ():
            Op(info["name"])


@pytest.mark.parametrize("name", ["nonzero", "masked_select", "unique", "bincount"])
def test_shapes_that_depend_on_data(name):
    (verdict,) = check_op(name, checks=["meta"])
    assert verdict.ok is None and "its shapes depend on data: refused" in verdict.text


@pytest.mark.parametrize(
    "text, told",
    [
        ("{", "no JSON"),
        ('{"a": 1}', "a list of calls"),
        ('[[{"shape": 3}]]', "a tensor is"),
        ('[[{"shape": [3], "dtype": "flaot"}]]', "a tensor is"),
    ],
)
def test_files_of_samples(text, told, tmp_path):
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(ValueError, match=told):
        from_file(tmp_path / "s.json")


def test_the_form_is_told():
    told = subprocess.run(["adjoin", "opcheck", "--help"], capture_output=True, text=True).stdout
    assert all(f"  {key} " in told for key in _form.KEYS)


THINGS = """#include <adjoin/abi/plugin.h>

#include <cstring>
AJ_PLUGIN_NOTE("things", "1", "", "", "ops:things;key:things", "");
static const aj_core* core;
static int32_t box_type;
static aj_str text(const char* s) { return {s, std::strlen(s)}; }
static aj_status* box(void*, aj_call* call) {
  void* inside;
  call->rets[0].tag = AJ_OBJECT;
  return core->object_new(box_type, &call->rets[0].v.object, &inside);
}
static aj_status* width(void*, aj_call* call) {
  call->rets[0].tag = AJ_INT;
  call->rets[0].v.i = call->args[0].v.tensor->dl.ndim;
  return nullptr;
}
AJ_PLUGIN_INIT {
  core = env->core;
  auto* ops = static_cast<const aj_dispatch*>(env->query("aj.op", 1));
  uint64_t key;
  aj_status* bad = core->type_register(text("things::box"), 8, nullptr, &box_type);
  auto def = [&](const char* schema, const char* test, aj_kernel_fn body) {
    aj_op_def d = {};
    d.struct_size = sizeof d, d.schema = text(schema), d.test = text(test), d.body = body;
    if (!body) d.flags = AJ_OP_ALLOCATES;
    if (!bad) bad = ops->def_op(env->registrar, &d);
  };
  def("things::box(float by=2.0) -> Object<things::box> box", "", box);
  def("things::open(Tensor input, Object<things::box> box) -> int", "{\\"after\\": \\"things::box\\"}", width);
  def("things::kept(Tensor input, Object<things::box> box) -> int", "", width);
  def("things::applied(Tensor input, Function function) -> int", "", width);
  def("things::wide(Tensor input, float[] by) -> int", "", width);
  def("things::keyed(Tensor input) -> int", "", nullptr);
  if (!bad) bad = ops->def_key(env->registrar, text("things"), AJ_KEY_BELOW_AUTOGRAD, &key);
  aj_kernel_def k = {};
  k.struct_size = sizeof k, k.op = text("things::keyed"), k.key = text("things"), k.fn = width;
  return bad ? bad : ops->def_kernel(env->registrar, &k);
}
"""


@pytest.fixture(scope="module")
def things(tmp_path_factory):
    folder = tmp_path_factory.mktemp("things")
    (folder / "things.cpp").write_text(THINGS)
    out = folder / "libaj_things.so"
    subprocess.run(
        ["c++", "-std=c++20", "-shared", "-fPIC", *flags("--cflags", "--ldflags"), folder / "things.cpp", "-o", out],
        check=True,
    )
    return str(out)


def test_what_no_sample_can_be_made_of_is_no_fault(things):
    line = [sys.executable, "-m", "adjoin.testing.opcheck", things, "--check", "schema"]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0 and "FAILS" not in done.stdout, done.stdout + done.stderr
    for told in (
        r"open +schema +holds",
        r"kept +samples +- +its argument 'box' is an object of type things::box, and none can be made: `after` ",
        r"applied +samples +- +its argument 'function' is a function, and none can be made",
        r"keyed +samples +- +it has kernels at key 'things' alone",
    ):
        assert re.search("things::" + told, done.stdout), (told, done.stdout)


def test_a_text_is_no_list_of_floats(things):
    T.load_plugin(things)
    with pytest.raises(TypeError, match="must be tuple of floats, not str; give a list of numbers$"):
        T.ops.things.wide(T.ones(2), "ab")
