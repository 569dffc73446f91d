"""tests/plugins/operator_test.py: what an operator gets: who served, fallback policies, plugins that come and go."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import adjoin

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "abi"))
from abi_tools import build_plugin

# A device whose memory is the host's, with a kernel for neg of float32 alone.
DEVICE = """
#include <math.h>
static aj_status* one(void* self, int32_t* out) { (void)self; *out = 1; return 0; }
static aj_status* get(void* self, int32_t dev, uint64_t bytes, uint32_t kind, void** out) {
  (void)self; (void)dev; (void)kind;
  *out = aligned_alloc(64, (bytes + 64) / 64 * 64);
  return 0;
}
static aj_status* give(void* self, int32_t dev, void* p, uint64_t bytes, uint32_t kind) {
  (void)self; (void)dev; (void)bytes; (void)kind;
  free(p);
  return 0;
}
static aj_status* copy(void* self, const aj_copy* c) {
  (void)self;
  memcpy(c->dst, c->src, c->width * c->height);
  return 0;
}
static aj_status* negate(void* self, aj_call* call) {
  const aj_plan* p = call->plan;
  (void)self;
  if (p->ndim != 1) return complain(call->core, AJ_UNIMPLEMENTED, "one dimension only");
  for (int64_t i = 0; i < p->sizes[0]; ++i)
    *(float*)((char*)p->ops[0].data + i * p->ops[0].strides[0]) =
        SIGN * *(const float*)((const char*)p->ops[1].data + i * p->ops[1].strides[0]);
  return 0;
}
static aj_status* same(void* self, aj_call* call) {
  const aj_plan* p = call->plan;
  uint64_t size = p->ops[0].dtype.bits / 8;
  (void)self;
  if (p->ndim != 1) return complain(call->core, AJ_UNIMPLEMENTED, "one dimension only");
  for (int64_t i = 0; i < p->sizes[0]; ++i)
    memcpy((char*)p->ops[0].data + i * p->ops[0].strides[0], (const char*)p->ops[1].data + i * p->ops[1].strides[0], size);
  return 0;
}
"""
REGISTER = """
  const aj_dispatch* d = (const aj_dispatch*)env->query("aj.op", 1);
  aj_device_vtbl v;
  memset(&v, 0, sizeof v);
  v.struct_size = sizeof v;
  v.flags = AJ_DEV_HOST_MEMORY | AJ_DEV_SYNCHRONOUS;
  v.name = AJ_STR_LIT("acme");
  v.count = one; v.mem_alloc = get; v.mem_free = give; v.copy = copy;
  aj_status* bad = env->def_device(env->registrar, &v);
  if (bad) return bad;
  aj_kernel_def k;
  memset(&k, 0, sizeof k);
  k.struct_size = sizeof k;
  k.flags = AJ_KERNEL_INNER;
  k.op = AJ_STR_LIT("neg"); k.key = AJ_STR_LIT("acme");
  k.dtypes = 1u << AJ_DT_FLOAT32;
  k.fn = negate;
  bad = d->def_kernel(env->registrar, &k);
  if (bad) return bad;
  k.op = AJ_STR_LIT("copy_"); k.dtypes = 0; k.fn = same;
  return d->def_kernel(env->registrar, &k);
"""
DRAIN = """
AJ_EXPORT aj_status* aj_plugin_drain_v1(void);
AJ_EXPORT aj_status* aj_plugin_drain_v1(void) { return 0; }
"""


def device_plugin(folder, sign="-1"):
    return build_plugin(folder, extra=f"#define SIGN ({sign})\n" + DEVICE, init=REGISTER)


def run(program, **extra):
    got = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, env={**os.environ, **extra}
    )
    assert got.returncode == 0, got.stderr
    return got.stdout


def test_explain_counts_calls_of_every_server():
    a, b = adjoin.randn(100, 50), adjoin.randn(50, 20)
    with adjoin.plugin.explain() as served:
        for _ in range(3):
            c = a @ b
        adjoin.nn.functional.softmax(c, -1)
        c + 1
    rows = {(row["op"], row["served by"]): row for row in served.rows}
    assert rows["mm", "cpu"]["calls"] == 3 and rows["mm", "cpu"]["ns"] > 0 and rows["mm", "cpu"]["key"] == "cpu"
    assert rows["mm", "cpu"]["bytes"] == 3 * 4 * (100 * 50 + 50 * 20 + 100 * 20)
    assert rows["add", "cpu"]["calls"] == 1 and "priority" in rows["add", "cpu"]["why"]
    assert served.by("softmax") == ["cpu"]
    c + 1
    with adjoin.plugin.explain() as nothing:
        pass
    assert nothing.rows == []


def test_explain_of_cut_plans_and_other_threads():
    before = adjoin.get_num_threads()
    adjoin.set_num_threads(2)
    try:
        x = adjoin.randn(1 << 20)
        with adjoin.plugin.explain() as served:
            for _ in range(5):
                adjoin.tanh(x)
                x.sum()
    finally:
        adjoin.set_num_threads(before)
    calls = {row["op"]: row["calls"] for row in served.rows}
    assert calls["tanh"] == 5 and calls["sum"] == 5


@pytest.fixture(scope="module")
def acme(tmp_path_factory):
    folder = tmp_path_factory.mktemp("acme")
    device_plugin(folder)
    return folder


POLICIES = """
import adjoin
x = adjoin.tensor([1.0, 2.0, 4.0]).to("acme")
def attempt(f):
    try:
        r = f()
        print("ok", r.device.type if hasattr(r, "device") else "", r.cpu().tolist())
    except (RuntimeError, NotImplementedError) as e:
        print(type(e).__name__, e)
"""


def policies(program, acme, **extra):
    return run(POLICIES + program, ADJOIN_PLUGIN_PATH=str(acme), **extra).splitlines()


def test_without_a_policy_a_missing_kernel_is_an_error(acme):
    got = policies("attempt(lambda: -x); attempt(lambda: x.exp())", acme)
    assert got[0] == "ok acme [-1.0, -2.0, -4.0]"
    assert got[1].startswith("NotImplementedError exp: no plugin has a kernel for exp on acme, and it has no body")
    assert "ADJOIN_FALLBACK=host" in got[1]


def test_copies_to_the_host_their_ledger_and_gradients(acme):
    got = policies(
        """
adjoin.set_fallback("host")
attempt(lambda: x.exp())
y = x.clone().requires_grad_()
(y * y).sum().backward()
attempt(lambda: y.grad)
for row in adjoin.fallbacks():
    if row["op"] == "exp":
        print(row["calls"], row["bytes_in"], row["bytes_out"], row["device"])
""",
        acme,
    )
    assert got[0].startswith("ok acme [2.71828") and got[1] == "ok acme [2.0, 4.0, 8.0]" and got[2] == "1 12 12 acme"


def test_a_kernel_that_declines_the_dtype_counts_as_missing(acme):
    program = 'attempt(lambda: -adjoin.tensor([1.0], dtype=adjoin.float64).to("acme"))'
    assert "no acme kernel for float64; it has float32" in policies(program, acme)[0]
    assert policies(program, acme, ADJOIN_FALLBACK="host") == ["ok acme [-1.0]"]


def test_policies_by_op_and_from_the_environment(acme):
    program = "attempt(lambda: x.exp()); attempt(lambda: x.sin()); attempt(lambda: x.cos())"
    got = policies(program, acme, ADJOIN_FALLBACK="exp@acme=host,sin=cpu:1KB,cos=error")
    assert got[0].startswith("ok") and got[1].startswith("ok") and got[2].startswith("NotImplementedError cos")
    got = policies(program, acme, ADJOIN_FALLBACK="nonsense:,@acme=host")
    assert all(line.startswith("ok") for line in got)


def test_a_budget_ends_in_an_error_that_says_what_would_help(acme):
    got = policies(
        "attempt(lambda: x.exp())\nattempt(lambda: x.exp())\nattempt(lambda: x.sin())",
        acme,
        ADJOIN_FALLBACK="exp=host:20B,host",
    )
    assert got[0].startswith("ok")
    assert "have used their budget (24 of 20 bytes)" in got[1]
    assert "a kernel would declare op 'exp', key 'acme', dtype float32" in got[1]
    assert got[2].startswith("ok")  # of another rule


def test_a_body_serves_unless_the_op_is_named(acme):
    program = "attempt(lambda: adjoin.nn.functional.linear(x.reshape(1, 3), x.reshape(1, 3)))"
    got = policies(program, acme, ADJOIN_FALLBACK="nn::linear=error,host")
    assert got[0].startswith("NotImplementedError") and "policy keeps its body from serving" in got[0]
    assert policies(program, acme, ADJOIN_FALLBACK="nn::linear=decompose,host")[0] == "ok acme [[21.0]]"
    assert policies(program, acme, ADJOIN_FALLBACK="nn::linear=host")[0] == "ok acme [[21.0]]"


def test_bad_policies_are_told():
    for bad, told in (
        ("hots", "hots"),
        ("host:lots", "wanted a number"),
        ("error:5MB", "only host and warn"),
        ("", "are possible"),
    ):
        with pytest.raises(RuntimeError, match=told):
            adjoin.set_fallback(bad)
    adjoin.set_fallback("error")


def test_disabled_and_enabled_while_tensors_live(acme):
    got = policies(
        """
attempt(lambda: -x)
adjoin.plugin.disable("acme")
attempt(lambda: -x)
attempt(lambda: adjoin.ones(2).to("acme"))
attempt(lambda: adjoin.empty(2, device=x.device))
print(x.cpu().tolist(), adjoin.plugin.available()["acme"])
adjoin.plugin.enable("acme")
attempt(lambda: -x)
attempt(lambda: -adjoin.tensor([5.0]).to("acme"))
print(bool(adjoin.plugin.unload("acme")), "disabled" in adjoin.plugin.why("acme"))
attempt(lambda: -x)
print(x.cpu().tolist())
""",
        acme,
    )
    assert got[0] == "ok acme [-1.0, -2.0, -4.0]" and got[1].startswith("NotImplementedError neg")
    for line in (got.pop(2), got.pop(2)):
        assert line.startswith("RuntimeError device 'acme': plugin acme 0.1") and "disabled by request" in line
    assert got[2] == "[1.0, 2.0, 4.0] disabled"
    assert got[3:6] == ["ok acme [-1.0, -2.0, -4.0]", "ok acme [-5.0]", "True True"]
    assert got[6].startswith("NotImplementedError") and got[7] == "[1.0, 2.0, 4.0]"


OPS = """
static aj_status* times(void* self, aj_call* call) {
  const aj_plan* p = call->plan;
  (void)self;
  for (int64_t i = 0; i < p->sizes[0]; ++i)
    *(float*)((char*)p->ops[0].data + i * p->ops[0].strides[0]) =
        FACTOR * *(const float*)((const char*)p->ops[1].data + i * p->ops[1].strides[0]);
  return 0;
}
"""
DEFINE = """
  const aj_dispatch* d = (const aj_dispatch*)env->query("aj.op", 1);
  aj_op_def op;
  memset(&op, 0, sizeof op);
  op.struct_size = sizeof op;
  op.schema = AJ_STR_LIT(SCHEMA);
  op.kind = AJ_STR_LIT("unary");
  aj_status* bad = d->def_op(env->registrar, &op);
  if (bad) return bad;
  aj_kernel_def k;
  memset(&k, 0, sizeof k);
  k.struct_size = sizeof k;
  k.flags = AJ_KERNEL_INNER;
  k.op = AJ_STR_LIT("mill::times"); k.key = AJ_STR_LIT("cpu");
  k.dtypes = 1u << AJ_DT_FLOAT32;
  k.fn = times;
  return d->def_kernel(env->registrar, &k);
"""


def mill(folder, factor, schema="mill::times(Tensor x) -> Tensor", drain=DRAIN):
    head = f'#define FACTOR {factor}\n#define SCHEMA "{schema}"\n'
    beside = build_plugin(folder / "new", "mill", extra=head + OPS + drain, init=DEFINE, provides="ops:mill")
    file = folder / "libaj_mill.so"
    os.replace(beside, file)  # a new file: the one that is mapped stays whole
    return file


SWAP = """
import adjoin, os, sys
folder = {folder!r}
path = folder + "/libaj_mill.so"
adjoin.load_plugin(path)
x = adjoin.tensor([1.0, 2.0])
times = adjoin.ops.mill.times
def mapped():
    return any("libaj_mill" in line for line in open("/proc/self/maps"))
print(times(x).tolist(), mapped())
"""


def swap(folder, program, schema="mill::times(Tensor x) -> Tensor", **options):
    folder.chmod(0o755)
    mill(folder, 3, **options)
    mill(folder / "later", 5, schema=schema, **options)
    return run(SWAP.format(folder=str(folder)) + program).splitlines()


def test_a_plugin_is_unloaded_and_another_file_takes_its_place(tmp_path):
    got = swap(
        tmp_path,
        """
y = times(x)
print(repr(adjoin.plugin.unload("mill")), mapped(), y.tolist())
try:
    times(x)
except (RuntimeError, NotImplementedError) as e:
    print(type(e).__name__)
os.replace(folder + "/later/libaj_mill.so", path)
adjoin.plugin.enable("mill")
print(times(x).tolist(), mapped(), y.tolist())
""",
    )
    assert got == ["[3.0, 6.0] True", "'' False [3.0, 6.0]", "NotImplementedError", "[5.0, 10.0] True [3.0, 6.0]"]


def test_a_changed_signature_is_refused_and_nothing_breaks(tmp_path):
    got = swap(
        tmp_path,
        """
adjoin.plugin.unload("mill")
os.replace(folder + "/later/libaj_mill.so", path)
try:
    adjoin.plugin.enable("mill")
except RuntimeError as e:
    print(e)
print((x + 1).tolist())
""",
        schema="mill::times(Tensor x, *, int by=1) -> Tensor",
    )
    assert "needs a new process" in got[1] and got[2] == "[2.0, 3.0]"


def test_without_a_drain_it_stays_mapped(tmp_path):
    got = swap(
        tmp_path,
        """
print(adjoin.plugin.unload("mill"), mapped())
adjoin.plugin.enable("mill")
print(times(x).tolist())
""",
        drain="",
    )
    assert "aj_plugin_drain_v1" in got[1] and got[1].endswith("True") and got[2] == "[3.0, 6.0]"


def test_threads_that_call_while_plugins_come_and_go(tmp_path):
    got = swap(
        tmp_path,
        """
import threading
stop, wrong = False, []
def work():
    while not stop:
        try:
            if times(x).tolist() != [3.0, 6.0]:
                wrong.append("value")
        except (RuntimeError, NotImplementedError):
            pass
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads:
    t.start()
kept = []
for _ in range(60):
    kept += filter(None, [adjoin.plugin.unload("mill")])
    adjoin.plugin.enable("mill")
stop = True
for t in threads:
    t.join()
print(wrong, times(x).tolist(), len(kept) < 10 or kept)
""",
    )
    assert (
        got[1] == "[] [3.0, 6.0] True"
    )  # who waits for the loader's lock inside of a call keeps nobody from unmapping
