"""tests/cli/conform_test.py: `adjoin conform`: our backends pass it, and what is wrong with a backend is found and told."""

import json
import os
import re
import xml.etree.ElementTree as xml

import pytest

from abi_tools import PLUGINDIR, adjoin, compile_plugin

FULL = os.environ.get("ADJOIN_TEST_FULL") == "1"

# A backend whose device is sound and whose kernels each have another fault.
FAULTY = """
#include <adjoin/kit/kit.hpp>
#include <adjoin/kit/scalar.hpp>
#include <adjoin/kit/choosers.hpp>
#include <csignal>
#include <unistd.h>
using namespace adjoin::kit;

static aj_status* count(void*, int32_t* out) { *out = 1; return nullptr; }
static aj_status* mem_alloc(void*, int32_t, uint64_t bytes, uint32_t, void** out) {
  *out = bytes < (1ull << 40) ? aligned_alloc(64, (bytes / 64 + 1) * 64) : nullptr;
  return *out ? nullptr : fail(LACK_CODE, "broken: out of memory");
}
static aj_status* mem_free(void*, int32_t, void* p, uint64_t, uint32_t) { free(p); return nullptr; }
static aj_status* copy(void*, const aj_copy* c) {
  for (uint64_t r = 0; r < c->height; ++r)
    memcpy((char*)c->dst + r * c->DST_PITCH, (const char*)c->src + r * c->src_pitch, c->width);
  return nullptr;
}
struct Off { template <class T> T operator()(T x) const { return std::exp(x) * T(1.00002); } };  // the looser figure of sums would let it pass
struct Near { template <class T> T operator()(T x) const { return 1 / (1 + std::exp(-x)) + T(1e-6); } };
struct Good { template <class T> T operator()(T x) const { return -x; } };
template <int What>
aj_status* fault(void*, aj_call* call) {
  const aj_plan& p = *call->plan;
  if (What == 0) raise(SIGSEGV);
  if (What == 1) sleep(100);
  if (What == 2) {  // dense loops whatever the strides say, one element too far
    auto* y = (float*)p.ops[0].data;
    auto* x = (const float*)p.ops[1].data;
    for (int64_t i = 0; i <= p.numel; ++i) y[i] = i < p.numel ? std::floor(x[i]) : 0;
  }
  if (What == 3) return fail(AJ_INTERNAL, "the kernel is tired");
  return nullptr;
}
template <int What> constexpr Spec wrong = {&fault<What>, floating::own_mask, 0};
static const Kernel kernels[] = {
    {"exp", unary<Off, floating>}, {"neg", unary<Good, floating>}, {"sigmoid", unary<Near, floating>}, {"abs", wrong<0>}, {"sqrt", wrong<1>},
    {"floor", wrong<2>}, {"ceil", wrong<3>}, {nullptr, {}}};

AJ_PLUGIN(.name = "broken", .version = "1", .provides = "device:broken") {
  static aj_device_vtbl v = {};
  v.struct_size = sizeof v;
  v.flags = AJ_DEV_HOST_MEMORY | AJ_DEV_SYNCHRONOUS;
  v.name = AJ_STR_LIT("broken");
  v.count = count, v.mem_alloc = mem_alloc, v.mem_free = mem_free, v.copy = copy;
  plugin.device(v).kernels("broken", kernels);
}
"""

# The choice of samples that the row tests have too; differences near a kink fail for one in thousands.
SEED = ["--seed", os.environ["ADJOIN_TEST_SEED"]] if "ADJOIN_TEST_SEED" in os.environ else []


def conform(file, *options):
    got = adjoin("conform", file, "--json", "-", *options)
    assert got.stdout, got.stderr
    return got.returncode, json.loads(got.stdout)


def failures(report, row):
    return [f for r in report["records"] if r["row"] == row for f in r["failures"]]


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    return build_broken(tmp_path_factory.mktemp("broken"))


def build_broken(folder, code="AJ_OUT_OF_MEMORY", pitch="dst_pitch"):
    source = FAULTY.replace("LACK_CODE", code).replace("DST_PITCH", pitch)
    return compile_plugin(folder, source, "broken", "g++", ["-std=c++20"], suffix=".cpp")


# A GPU has no kernels for them: tests/plugins/emulated_test.py says which.
LACKS_A_FACTORISATION = re.compile(
    r"no plugin has a kernel for (linalg::(cholesky_ex|det|householder_product|inv_ex|ldl_factor_ex|lu_factor_ex|qr|slogdet)|geqrf"
    r"|_::(eig|eigh|ldl_solve|solve|solve_triangular|svd)_stack|_::pivot_order) on emulated"
)


def every_sixth_op():
    """The emulated device takes minutes for all values; the sanitizer's build checks others (tests/sanitized.sh)."""
    listed = re.split(r"(?m)^\d+ ops$", adjoin("ops").stdout)[0]
    names = [line.split()[0] for line in listed.splitlines()]
    return [word for name in names[int(SEED[1] if SEED else 0) % 6 :: 6] for word in ("--op", name)]


@pytest.mark.parametrize(
    ("name", "mode"), [("cpu", "all"), ("reference", "all"), ("emulated", "test"), ("emulated", "grad")]
)
def test_our_backends_conform(name, mode):
    part = every_sixth_op() if (name, mode) == ("emulated", "test") and not FULL else []
    code, report = conform(
        f"{PLUGINDIR}/libaj_{name}.so", "--mode", mode, "--timeout", "300", *["--full"] * FULL, *SEED, *part
    )
    assert [f for r in report["records"] for f in r["failures"]] == [] and code == 0, report["seed"]
    assert report["verdict"] == ("conforms" if mode == "all" else "no fault found in what was checked")
    rows = {r["row"] for r in report["records"] if r["passed"]}
    assert len(rows) > (75 if part else 300 if mode == "grad" else 400)
    lacking = [r["reason"] for r in report["records"] if r["unsupported"]]
    assert name == "emulated" or not lacking
    assert [reason for reason in lacking if not LACKS_A_FACTORISATION.search(reason)] == []
    checks = {r["check"] for r in report["records"]}
    assert mode == "grad" or {"memory", "copies", "fork", "threads", "out of memory", "values"} <= checks
    assert mode == "test" or "gradients" in checks


def test_a_provider_of_kernels_conforms_on_its_device():
    file = f"{PLUGINDIR}/libaj_onednn.so"
    if not os.path.exists(file):
        pytest.skip("built without oneDNN")
    code, report = conform(file, "--op", "convolution", "--op", "mm")
    assert code == 0 and report["device"] == "cpu"


def test_an_op_that_lacks_in_a_gradient_is_unsupported(tmp_path):
    """addr calls addcmul where nobody records: differences ask for it, derivatives do not."""
    made = adjoin("new-backend", "few", "--out", tmp_path / "few")
    assert made.returncode == 0, made.stderr
    text = (tmp_path / "few/few.cpp").read_text()
    row = '    {"addcmul", ternary<AddCMulChooser, reals>},\n'
    assert row in text
    file = compile_plugin(tmp_path, text.replace(row, ""), "few", "g++", ["-std=c++20", "-O0", "-w"], suffix=".cpp")
    code, report = conform(file, "--mode", "grad", "--op", "addr")
    record = next(r for r in report["records"] if (r["row"], r["dtype"]) == ("addr", "float64"))
    assert code == 0 and record["failed"] == 0 and record["unsupported"] >= 1 and record["passed"] > 0, record
    assert record["reason"] == "addr: addcmul: no plugin has a kernel for addcmul on few, and it has no body"


@pytest.mark.parametrize(
    "row, told",
    [
        ("exp", "elements differ"),
        ("sigmoid", "ULP apart (tolerance 4)"),
        ("abs", "crashes: "),
        ("sqrt", "does not come back"),
        ("floor", "bytes outside of it were written"),
        ("ceil", "refused: ceil: plugin 'broken' on broken: the kernel is tired"),
    ],
)
def test_a_fault_of_a_kernel_is_told_and_the_rest_goes_on(broken, row, told):
    code, report = conform(broken, "--op", row, "--op", "neg", "--dtype", "float32", "--timeout", "2", "--full")
    assert code == 1 and not report["conforms"]
    assert any(told in f for f in failures(report, row)), failures(report, row)
    assert failures(report, "neg") == []
    assert sum(r["passed"] for r in report["records"] if r["row"] == "neg") > 20


@pytest.mark.parametrize(
    "code, pitch, check",
    [("AJ_INTERNAL", "dst_pitch", "out of memory"), ("AJ_OUT_OF_MEMORY", "src_pitch", "copies")],
)
def test_a_fault_of_a_device_is_told(tmp_path, code, pitch, check):
    file = build_broken(tmp_path, code, pitch)
    _, report = conform(file, "--mode", "device", "--timeout", "20")
    assert {r["check"] for r in report["records"] if r["failed"]} - {"fork", "threads"} == {check}


def test_reports(tmp_path, broken):
    page, junit = tmp_path / "page.html", tmp_path / "junit.xml"
    got = adjoin("conform", broken, "--op", "exp", "--op", "neg", "--seed", "7", "--html", page, "--junit", junit)
    assert got.returncode == 1 and "does not conform" in got.stdout and "seed 7" in got.stdout
    suite = xml.parse(junit).getroot()
    assert suite.get("name") == "adjoin conform broken" and int(suite.get("failures")) > 0
    text = page.read_text()
    assert text.startswith("<!doctype html>") and "does not conform" in text and "float32" in text


def test_support_and_speed(broken):
    _, report = conform(broken, "--mode", "support", "--op", "neg", "--op", "mm")
    assert {r["reason"] for r in report["records"] if r["row"] == "neg" and r["passed"]} == {"its own kernel"}
    assert not any(r["passed"] for r in report["records"] if r["row"] == "mm")
    code, report = conform(f"{PLUGINDIR}/libaj_cpu.so", "--mode", "perf", "--op", "exp", "--op", "sum")
    assert code == 0 and all(r["figures"]["4 Mi elements: GB/s"] > 0.1 for r in report["records"] if r["row"] == "exp")


@pytest.mark.parametrize(
    "words, told",
    [
        ([], "which file?"),
        (["/nowhere/libaj_x.so"], "there is no file"),
        ([f"{PLUGINDIR}/libaj_cpu.so", "--mode", "fly"], "there is no mode 'fly'"),
        ([f"{PLUGINDIR}/libaj_cpu.so", "--op", "sigmiod"], "there is no op named 'sigmiod'; did you mean 'sigmoid'?"),
        ([f"{PLUGINDIR}/libaj_cpu.so", "--op", "add", "--op", "xyzzyx"], "there is no op named 'xyzzyx'"),
        (
            [f"{PLUGINDIR}/libaj_cpu.so", "--dtype", "flaot32"],
            "there is no dtype named 'flaot32'; did you mean 'float32'?",
        ),
    ],
)
def test_wrong_use(words, told):
    got = adjoin("conform", *words)
    assert got.returncode in (1, 2) and told in got.stderr and "conforms" not in got.stdout
