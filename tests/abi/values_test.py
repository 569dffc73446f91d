"""tests/abi/values_test.py: who owns results and saved values; memory that is lent; dtypes that DLPack does not have."""

import shutil

import pytest

from abi_tools import build_host, build_plugin, run, run_python

LINES = {
    "first": "tag 67 aux 0, 1 + 2 i",
    "second": "tag 67 aux 0, 3 + 4 i",
    "product": "1 2 -2 1",
    "custom": "tag 66 of 2: t5 t6 tag 66 of 3: 7 8 9 tag 65 word tag 67 tag 66 of 2: -1 -1",
    "cat": "tag 66 of 2: t5 t6 tag 2",
    "mul": "tag 0 tag 64 t6",
    "list of tag 7": "code 3",
    "list of tag 8": "code 3",
    "list of tag 4": "code 3",
    "fits": "code 0 byte_offset 0 at 0 drops 1",
    "4000 bytes in 16": "code 11 drops 0",
    "one more": "code 11 drops 0",
    "behind an offset": "code 11 drops 0",
    "at an offset": "code 0 byte_offset 0 at 4 drops 1",
    "far steps": "code 11 drops 0",
    "backward steps": "code 11 drops 0",
    "none": "code 0 byte_offset 0 at 0 drops 1",
    "a number of elements that wraps": "code 11 drops 0",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build_host(tmp_path_factory.mktemp("values") / "values", source="values.c")


@pytest.fixture(scope="module")
def lines(program):
    got = run(program)
    assert got.returncode == 0, got.stdout + got.stderr
    return {what: said.strip() for what, _, said in (line.partition(":") for line in got.stdout.splitlines())}


@pytest.mark.parametrize("what", LINES)
def test_what_comes_back(what, lines):
    assert lines[what] == LINES[what]


@pytest.mark.parametrize("op", ["mul", "expand", "cat", "stack"])
def test_what_ops_saved(op, lines):
    """Never a pointer to memory of somebody: tags 4 and 7 to 11 own nothing."""
    words = lines[op].split()
    tags = {int(words[i + 1]) for i, word in enumerate(words) if word == "tag"}
    assert not tags & {4, 7, 8, 9, 10, 11}, lines[op]


def test_data_rules(lines):
    """Shape, strides and byte_offset of tensors with strides, whatever made them."""
    rules = {what: said for what, said in lines.items() if what.startswith("rules ")}
    assert len(rules) == 9
    for what, said in rules.items():
        assert said == "strided 1 strides 1 offset 0 elements 1", what


@pytest.mark.skipif(not shutil.which("valgrind"), reason="NOT TESTED: valgrind is not installed")
def test_nothing_is_read_after_its_death(program):
    """The one fault that no line shows."""
    words = ["valgrind", "--quiet", "--error-exitcode=9", "--undef-value-errors=no", program]
    got = run(*words, ADJOIN_CPU_ISA="base")
    assert got.returncode == 0, got.stdout + got.stderr[-3000:]


PRIVATE = """
  DLDataType acme;
  DLTensor like;
  int64_t shape[1] = {4};
  aj_tensor* t = NULL;
  DLManagedTensorVersioned* m = NULL;
  aj_status* bad = env->core->dtype_register(AJ_STR_LIT("acme8"), 8, %s, &acme);
  if (bad) return bad;
  memset(&like, 0, sizeof like);
  like.device.device_type = kDLCPU;
  like.ndim = 1;
  like.shape = shape;
  like.dtype = acme;
  bad = env->core->tensor_empty(&like, 0, &t);
  if (bad) return bad;
  printf("code %%d\\n", acme.code >= 128);
  fflush(stdout);
  bad = env->core->tensor_to_dlpack(t, NULL, 0, &m);
  if (m) m->deleter(m);
  env->core->release(t);
  return bad;
"""


@pytest.mark.parametrize("kind", ["AJ_CLASS_OPAQUE", "AJ_CLASS_FLOAT"])
def test_a_private_dtype_stays_here(kind, tmp_path, host):
    """Its code means nothing to another library."""
    lines = host("load", build_plugin(tmp_path, init=PRIVATE % kind)).stdout.splitlines()
    assert lines[0] == "code 1", lines
    assert lines[1].startswith("error 16: ") and "acme8" in lines[1] and "dlpack" in lines[1].lower(), lines


GEMM = """
static int32_t score(void* self, const aj_gemm* g) {
  (void)self;
  if (g->struct_size >= AJ_END_OF(aj_gemm, stream))
    printf("device %d:%d flags %d reserved %d offsets %d\\n", g->device.device_type, g->device.device_id,
           (int)(g->flags >> 16), g->reserved, (int)(g->offset_a + g->offset_b + g->offset_c));
  fflush(stdout);
  return 0;
}
static aj_status* gemm(void* self, const aj_gemm* g) { return (void)self, (void)g, (aj_status*)0; }
static aj_str path(void* self) { return (void)self, AJ_STR_LIT(""); }
"""
GEMM_INIT = """
  static aj_blas blas;
  aj_service_def s;
  memset(&s, 0, sizeof s);
  blas.struct_size = sizeof blas;
  blas.name = AJ_STR_LIT("listener");
  blas.score = score;
  blas.gemm = gemm;
  blas.path = path;
  s.struct_size = sizeof s;
  s.priority = 1000;
  s.slot = AJ_STR_LIT("aj.blas/cpu");
  s.name = AJ_STR_LIT("listener");
  s.table = &blas;
  return env->def_service(env->registrar, &s);
"""


@pytest.mark.parametrize("mode,flags", [("False", 0), ("True", 1)])
def test_a_product_names_its_device(mode, flags, tmp_path):
    """A NULL stream says nothing of a device, and the deterministic mode reaches the provider."""
    build_plugin(tmp_path, extra=GEMM, init=GEMM_INIT, provides="service:aj.blas/cpu")
    program = f"""
import adjoin
adjoin.use_deterministic_algorithms({mode})
x = adjoin.ones(300, 300)
assert (x @ x)[7, 9].item() == 300
"""
    got = run_python(program, ADJOIN_PLUGIN_PATH=tmp_path, ADJOIN_BLAS="listener")
    assert got.returncode == 0, got.stderr
    assert set(got.stdout.splitlines()) == {f"device 1:0 flags {flags} reserved 0 offsets 0"}, got.stdout


FFT = """
#include <adjoin/abi/fft.h>
#include <adjoin/abi/service.h>
static const aj_services* services;
static const aj_fft* own(void) {
  aj_service_def s;
  for (uint32_t i = 0; i < services->count(AJ_STR_LIT("aj.fft/cpu")); ++i) {
    memset(&s, 0, sizeof s);
    s.struct_size = sizeof s;
    if (!services->at(AJ_STR_LIT("aj.fft/cpu"), i, &s) && s.name.len == 3 && !memcmp(s.name.data, "own", 3)) return s.table;
  }
  abort();
}
static int32_t score(void* self, const aj_fft_desc* d) { return (void)self, own()->score(own()->self, d); }
static aj_status* plan(void* self, const aj_fft_desc* d, aj_object** out) {
  aj_fft_desc doubled = *d;
  (void)self;
  doubled.scale *= 2;
  printf("kind %d forward %d rank %d n %d batch %d\\n", d->kind, d->forward, d->rank, (int)d->sizes[d->rank - 1], (int)d->batch);
  fflush(stdout);
  return own()->plan(own()->self, &doubled, out);
}
static aj_status* transform(void* self, aj_object* plan, const void* in, uint64_t offset_in, void* out, uint64_t offset_out,
                            void* stream) {
  (void)self;
  return own()->run(own()->self, plan, in, offset_in, out, offset_out, stream);
}
"""
FFT_INIT = """
  static aj_fft fft;
  aj_service_def s;
  services = env->query("aj.service", 1);
  memset(&s, 0, sizeof s);
  fft.struct_size = sizeof fft;
  fft.name = AJ_STR_LIT("double 1.0");
  fft.score = score;
  fft.plan = plan;
  fft.run = transform;
  s.struct_size = sizeof s;
  s.priority = 10;
  s.slot = AJ_STR_LIT("aj.fft/cpu");
  s.name = AJ_STR_LIT("double");
  s.table = &fft;
  return env->def_service(env->registrar, &s);
"""


def test_another_offer_of_fourier_transforms_goes_first(tmp_path):
    """It hands all work to our own offer, which serves by its table too, and asks for twice the result. Plans are kept."""
    build_plugin(tmp_path, extra=FFT, init=FFT_INIT, provides="service:aj.fft/cpu")
    program = """
import adjoin, numpy as np
fft = adjoin.fft
x = np.random.default_rng(0).standard_normal((4, 5, 6))
z = x + 1j * x[::-1]
t, c = adjoin.tensor(x), adjoin.tensor(z)
near = lambda a, b: np.abs(a.numpy() - 2 * b).max() < 1e-12
for _ in range(2):
    assert near(fft.fft(c), np.fft.fft(z)) and near(fft.ifft(c, dim=0), np.fft.ifft(z, axis=0))
assert near(fft.fftn(c), np.fft.fftn(z)) and near(fft.rfft2(t), np.fft.rfft2(x)) and near(fft.fft(t, dim=2), np.fft.fft(x))
assert near(fft.irfftn(c, (4, 5, 7)), np.fft.irfftn(z, (4, 5, 7), (0, 1, 2))) and near(fft.irfft(c), np.fft.irfft(z))
assert near(fft.hfft(c), np.fft.hfft(z)) and near(fft.rfft(t.float()), np.fft.rfft(x)) is not None
assert np.abs(fft.fft(c, dim=1).numpy() - np.fft.fft(z, axis=1)).max() < 1e-12  # two loops beside it: no desc says that
"""
    got = run_python(program, ADJOIN_PLUGIN_PATH=tmp_path)
    assert got.returncode == 0, got.stderr
    lines = got.stdout.splitlines()
    assert lines[:3] == [
        "kind 0 forward 1 rank 1 n 6 batch 20",
        "kind 0 forward 0 rank 1 n 4 batch 30",
        "kind 0 forward 1 rank 3 n 6 batch 1",
    ]
    assert "kind 2 forward 0 rank 3 n 7 batch 1" in lines and "kind 2 forward 1 rank 1 n 10 batch 20" in lines
