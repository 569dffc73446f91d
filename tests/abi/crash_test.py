"""tests/abi/crash_test.py: who dies in a plugin's kernel is told whose it was, and in which op."""

import signal

import pytest

from abi_tools import DEFINE_TWICE, TWICE, build_plugin

BROKEN = {
    "a null pointer": ("*(volatile int*)0 = 1;", signal.SIGSEGV),
    "a wild pointer": ("*(volatile int*)0x123456789abcull = 1;", signal.SIGSEGV),
    "a null function": ("((void (*)(void))(volatile uintptr_t){0})();", signal.SIGSEGV),
    "a library's function": ("memset((void*)(volatile uintptr_t){64}, 1, 100000);", signal.SIGSEGV),
    "the stack": ("burrow(1);", signal.SIGSEGV),
    "read-only memory": ('*(volatile char*)(uintptr_t)"text" = 1;', signal.SIGSEGV),
    "a division": ("volatile int zero = 0; zero = 7 / zero;", signal.SIGFPE),
    "an instruction": ("__builtin_trap();", signal.SIGILL),
    "abort": ("abort();", signal.SIGABRT),
    "an assertion": ('assert(!"this");', signal.SIGABRT),
    "free of no memory": ("free((char*)calloc(1, 64) + 8);", signal.SIGABRT),
    "free, twice": (
        "void* volatile p = malloc(2000); void* volatile q = malloc(64); (void)q; free(p); free(p);",
        signal.SIGABRT,
    ),
    "a signal of its own": ("raise(SIGSEGV);", signal.SIGSEGV),
    "a mapping cut short": (
        'char name[] = "/tmp/ajXXXXXX"; int fd = mkstemp(name); unlink(name); if (ftruncate(fd, 4096)) return 0;'
        " volatile char* p = mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0); if (ftruncate(fd, 0)) return 0; (void)*p;",
        signal.SIGBUS,
    ),
    "exit": ("exit(3);", 3),
    "quick": ("exit(0);", 0),
}
HEAD = """
#include <assert.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
__attribute__((noinline, unused)) static int burrow(int n) {
  volatile char room[4096];
  room[0] = (char)n;
  return burrow(n + 1) + room[0];
}
static aj_status* broken(void) {
  %s
  return 0;
}
"""


def broken(folder, body):
    kernel = TWICE.replace("(void)self;", "(void)self; if (p) return broken();", 1)
    flags = ["-Wno-unused", "-Wno-infinite-recursion", "-Wno-use-after-free", "-Wno-free-nonheap-object", "-Wno-array-bounds",
             "-Wno-stringop-overflow", "-D_GNU_SOURCE"]  # fmt: skip
    return build_plugin(
        folder, flags=flags, extra=HEAD % body + kernel, init=DEFINE_TWICE + "return bad;", provides="ops:acme"
    )


@pytest.mark.parametrize("case", BROKEN)
def test_a_kernel_that_ends_the_process_is_named(case, tmp_path, host):
    body, code = BROKEN[case]
    plugin = broken(tmp_path, body)
    got = host("load", plugin, "call", "acme::twice")
    assert got.returncode == (-code if isinstance(code, signal.Signals) else code), got.stdout + got.stderr
    what = "called exit()" if case in ("exit", "quick") else "the process"
    label = "acme" if case == "a null function" else f"acme 0.1 ({plugin})"  # from nowhere no frame leads back
    assert f"adjoin: plugin {label}: {what}" in got.stderr, got.stderr
    assert "in a call of acme::twice\n" in got.stderr


def test_the_handler_is_left_out_where_it_is_not_wanted(tmp_path, host):
    plugin = broken(tmp_path, BROKEN["a null pointer"][0])
    got = host("load", plugin, "call", "acme::twice", ADJOIN_CRASH_HANDLER="0")
    assert got.returncode == -signal.SIGSEGV and "acme" not in got.stderr


def test_a_handler_of_the_program_stays(tmp_path, host):
    body = "*(volatile int*)0 = 1;"
    own = "static void mine(int n) { (void)n; _exit(7); } __attribute__((constructor)) static void take(void) { signal(SIGSEGV, mine); }"
    kernel = TWICE.replace("(void)self;", "(void)self; if (p) return broken();", 1)
    plugin = build_plugin(
        tmp_path,
        flags=["-D_GNU_SOURCE"],
        extra=HEAD % body + own + kernel,
        init=DEFINE_TWICE + "return bad;",
        provides="ops:acme",
    )
    got = host("load", plugin, "call", "acme::twice")
    assert got.returncode == 7 and "acme" not in got.stderr


def test_a_drain_that_crashes_is_named(tmp_path, host):
    drain = "AJ_EXPORT aj_status* aj_plugin_drain_v1(void); AJ_EXPORT aj_status* aj_plugin_drain_v1(void) { abort(); }"
    plugin = build_plugin(tmp_path, extra=drain, provides="ops:acme")
    got = host("load", plugin, "disable", "acme")
    assert (
        got.returncode == -signal.SIGABRT
        and f"plugin acme 0.1 ({plugin}): the process aborted while it was being drained" in got.stderr
    )
