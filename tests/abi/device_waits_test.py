"""tests/abi/device_waits_test.py: a function of a device's table that does not come back is named while the user waits, whichever it is."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from abi_tools import HERE, PREFIX, clean_environment, compile_plugin, source

FUNCTIONS = """
#include "broken.h"
static const char* sleeper;
/* The one that the environment names never comes back; an alarm ends the program. */
static int is_it(const char* name) {
  if (!sleeper) sleeper = getenv("SLEEPER");
  return !strcmp(sleeper, name) && (alarm(3), 1);
}
static void look(const char* name) {
  if (is_it(name))
    for (;;) usleep(1000);
}
static aj_status* slow_count(void* self, int32_t* out) { look("count"); return count(self, out); }
static aj_status* slow_alloc(void* self, int32_t dev, uint64_t bytes, uint32_t kind, void** out) {
  look("mem_alloc");
  if (is_it("callback")) { /* under the lock that the core holds, for the core wants it again */
    DLTensor like;
    aj_tensor* t;
    int64_t size = 100000;
    memset(&like, 0, sizeof like);
    core->device_find(text("slate"), (int32_t*)&like.device.device_type);
    like.dtype.code = kDLFloat, like.dtype.bits = 32, like.dtype.lanes = 1;
    like.ndim = 1;
    like.shape = &size;
    core->tensor_empty(&like, 0, &t);
  }
  return mem_alloc(self, dev, bytes, kind, out);
}
static aj_status* slow_free(void* self, int32_t dev, void* p, uint64_t bytes, uint32_t kind) {
  look("mem_free");
  return mem_free(self, dev, p, bytes, kind);
}
static aj_status* slow_copy(void* self, const aj_copy* c) { look("copy"); return copy(self, c); }
static aj_status* slow_stream_new(void* self, int32_t dev, int32_t priority, void** out) {
  (void)self, (void)dev, (void)priority;
  look("stream_new");
  *out = malloc(1);
  return 0;
}
static aj_status* slow_sync(void* self, int32_t dev, void* stream) {
  (void)self, (void)dev, (void)stream;
  look("stream_sync");
  return 0;
}
static aj_status* slow_event_new(void* self, int32_t dev, uint32_t flags, void** out) {
  (void)self, (void)dev, (void)flags;
  *out = malloc(1);
  return 0;
}
static aj_status* slow_record(void* self, int32_t dev, void* event, void* stream) {
  (void)self, (void)dev, (void)event, (void)stream;
  look("event_record");
  return 0;
}
static aj_status* slow_event_sync(void* self, int32_t dev, void* event) {
  (void)self, (void)dev, (void)event;
  look("event_sync");
  return 0;
}
"""
INIT = """
  aj_device_vtbl v = good_device();
  begin(env);
  v.flags = 0; /* no stream_query: nobody can be asked */
  v.count = slow_count;
  v.mem_alloc = slow_alloc;
  v.mem_free = slow_free;
  v.copy = slow_copy;
  v.stream_new = slow_stream_new;
  v.stream_sync = slow_sync;
  v.event_new = slow_event_new;
  v.event_record = slow_record;
  v.event_sync = slow_event_sync;
  return env->def_device(env->registrar, &v);
"""
PROGRAM = """
import sys, adjoin
from adjoin import _C
adjoin.load_plugin(sys.argv[1])
d = adjoin.device("slate")
x = adjoin.empty(100000, device=d)
adjoin.ones(100000).to(d)
adjoin.accelerator.synchronize(d)
s = _C.stream_new(d, 0)
e = _C.event_new(d)
_C.event_record(d, e, s)
_C.event_sync(d, e)
del x
adjoin.accelerator.empty_cache()
print("none of them slept")
"""
WAITS = [
    "count",
    "mem_alloc",
    "callback",
    "mem_free",
    "copy",
    "stream_new",
    "stream_sync",
    "event_record",
    "event_sync",
]


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    text = source("acme", INIT, FUNCTIONS, provides="device:slate")
    flags = ["-w", "-D_GNU_SOURCE", "-std=gnu11", f"-I{HERE}"]
    return compile_plugin(tmp_path_factory.mktemp("waits"), text, "acme", "gcc", flags)


def start(plugin, sleeper):
    env = clean_environment(SLEEPER=sleeper, ADJOIN_WATCHDOG="0.3", PYTHONPATH=PREFIX / "lib/adjoin/python")
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(plugin)], capture_output=True, text=True, env=env, timeout=60
    )


def test_nobody_is_named_who_comes_back(plugin):
    got = start(plugin, "nobody")
    assert got.stdout == "none of them slept\n" and "acme" not in got.stderr, got.stdout + got.stderr


@pytest.fixture(scope="module")
def ends(plugin):
    """They sleep together."""
    with ThreadPoolExecutor(len(WAITS)) as pool:
        yield {name: pool.submit(start, plugin, name) for name in WAITS}


@pytest.mark.parametrize("sleeper", WAITS)
def test_who_does_not_come_back_is_named(sleeper, ends):
    got = ends[sleeper].result()
    assert got.returncode == -signal.SIGALRM, (got.returncode, got.stdout, got.stderr)
    name = "mem_alloc" if sleeper == "callback" else sleeper
    lines = [line for line in got.stderr.splitlines() if f"plugin 'acme': its {name} has been running for " in line]
    assert len(lines) == 1 and lines[0].endswith(" s and has not come back yet"), got.stderr


EARLY = """
#include "broken.h"
/* Tells of a fault once, while what was queued behind it still runs. */
static int asked;
static aj_status* early_query(void* self, int32_t dev, void* stream, int32_t* done) {
  (void)self, (void)dev, (void)stream;
  *done = ++asked > 5;
  return asked == 1 ? fails("a kernel has failed") : 0;
}
static aj_status* late_sync(void* self, int32_t dev, void* stream) {
  (void)self, (void)dev, (void)stream;
  return asked > 5 ? 0 : fails("it is not idle");
}
"""
EARLY_INIT = """
  aj_device_vtbl v = good_device();
  begin(env);
  v.flags = 0;
  v.stream_query = early_query;
  v.stream_sync = late_sync;
  return env->def_device(env->registrar, &v);
"""
EARLY_PROGRAM = """
import sys, adjoin
adjoin.load_plugin(sys.argv[1])
try:
    adjoin.accelerator.synchronize(adjoin.device("slate"))
except RuntimeError as e:
    print(e)
adjoin.accelerator.synchronize(adjoin.device("slate"))
"""


def test_who_is_told_of_a_fault_finds_an_idle_stream(tmp_path):
    """Even where the device tells of it while its stream still runs."""
    text = source("acme", EARLY_INIT, EARLY, provides="device:slate")
    plugin = compile_plugin(tmp_path, text, "acme", "gcc", ["-w", "-D_GNU_SOURCE", "-std=gnu11", f"-I{HERE}"])
    env = clean_environment(PYTHONPATH=PREFIX / "lib/adjoin/python")
    got = subprocess.run([sys.executable, "-c", EARLY_PROGRAM, str(plugin)], capture_output=True, text=True, env=env)
    assert got.returncode == 0 and "a kernel has failed" in got.stdout, got.stdout + got.stderr
    assert "not idle" not in got.stdout + got.stderr
