"""tests/abi/profile_test.py: events of calls, kernels, memory and labels, as a plugin in C hears them."""

import pytest

from abi_tools import HERE, LIBADJOIN, PLUGINDIR, adjoin, compile_plugin, run_python


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("profile")
    compile_plugin(folder, (HERE / "profile.c").read_text(), name="listen", flags=["-std=c99", "-Wpedantic", "-Werror"])
    return folder


BEGIN = f"""
import collections, ctypes, os, threading
import adjoin
import adjoin.memory
listen = adjoin.ops.listen
CALL, KERNEL, MEMORY, LABEL, ALL, TWICE = 1, 2, 4, 8, 15, 1
Event = collections.namedtuple("Event", "kind id parent name provider kind_of_device index stream thread line begin end bytes in_use data code")
def numbers(words):
    return [w if i in (3, 4) else int(w) for i, w in enumerate(words)]
def events(book):
    found = [Event(*numbers(line.split(chr(9)))) for line in listen.events(book).splitlines()]
    return [e for e in found if not e.name.startswith("listen")]
class heard(list):  # what is told inside of a with statement
    def __init__(self, kinds, flags=0):
        self.kinds, self.flags = kinds, flags
    def __enter__(self):
        self.book = listen.start(self.kinds, self.flags)
        return self
    def __exit__(self, *error):
        dropped = listen.stop(self.book)
        assert dropped == 1, dropped
        self.extend(events(self.book))
    def names(self, kind=CALL):
        return [e.name for e in self if e.kind == kind]
lib = ctypes.CDLL({str(LIBADJOIN)!r})
lib.aj_get_interface.restype = ctypes.c_void_p
table = lib.aj_get_interface(b"x.profile", 1)
class Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("len", ctypes.c_uint64)]
def function(n, result, *types):  # the n-th of the table
    return ctypes.CFUNCTYPE(result, *types)(ctypes.c_void_p.from_address(table + 8 + 8 * n).value)
begin_, end_ = function(1, ctypes.c_void_p, Text, ctypes.c_void_p), function(2, ctypes.c_void_p, ctypes.c_uint64)
now = function(3, ctypes.c_uint64)
def label(name):
    made = ctypes.c_uint64(7)
    assert not begin_(Text(name.encode(), len(name.encode())), ctypes.addressof(made))
    return made.value
def end(number):  # does it say no?
    return bool(end_(number))
listen.stop(listen.start(CALL))  # by now everything is loaded
"""


def python(plugin, program, **extra):
    got = run_python(BEGIN + program, ADJOIN_PLUGIN_PATH=plugin, **extra)
    assert got.returncode == 0, got.stdout + got.stderr
    return got


def test_check(plugin):
    got = adjoin("plugins", "check", plugin / "libaj_listen.so")
    assert got.returncode == 0 and "verdict   ok" in got.stdout, got.stdout + got.stderr


def test_calls_of_forward_and_backward(plugin):
    python(
        plugin,
        """
a, b = (adjoin.ones(3, 3).requires_grad_() for _ in range(2))
with heard(CALL) as told:
    loss = (a @ b + a).sum()
    before = now()
    loss.backward()
names = collections.Counter(told.names())
forward = collections.Counter(e.name for e in told if e.begin < before)
assert forward["mm"] == 1 and forward["add"] == 1 and forward["sum"] == 1, forward
backward = names - forward
assert backward["mm"] == 2 and backward["add"] == 1, backward  # g @ b.T, a.T @ g
assert all(e.provider in ("cpu", "onednn", "") and e.kind_of_device == 1 and e.index == 0 and e.code == 0 for e in told)
assert all(e.thread == threading.get_native_id() and 0 < e.begin <= e.end <= now() for e in told)
assert any(e.provider == "cpu" for e in told)
(a + b).sum()
assert not events(told.book)
""",
    )


def test_a_call_in_another_is_its_part(plugin):
    python(
        plugin,
        """
x, w = adjoin.ones(4, 8), adjoin.ones(5, 8)
with heard(CALL | KERNEL) as told:
    adjoin.nn.functional.linear(x, w)
    adjoin.logsumexp(x, 1)
by_id = {e.id: e for e in told}
assert len(by_id) == len(told)
for e in told:
    if e.parent:
        outer = by_id[e.parent]
        assert outer.begin <= e.begin and e.end <= outer.end and e.id > outer.id, (outer, e)
    if e.kind == KERNEL:
        assert by_id[e.parent].kind == CALL and by_id[e.parent].name == e.name and e.bytes > 0, e
        assert by_id[e.parent].provider == e.provider == "cpu"
outermost = [e.name for e in told if not e.parent]
assert outermost == ["nn::linear" if "nn::linear" in outermost else "linear", "logsumexp"], outermost
assert sum(e.kind == KERNEL for e in told) >= 2
""",
    )


def test_a_kernel_in_parts_on_several_threads(plugin):
    python(
        plugin,
        """
adjoin.set_num_threads(2)
x = adjoin.ones(1 << 22)
x.exp()
for _ in range(400):  # until both threads took part
    with heard(CALL | KERNEL) as told:
        x.exp()
    (call,) = [e for e in told if e.kind == CALL]
    parts = [e for e in told if e.kind == KERNEL]
    assert all(e.parent == call.id and e.name == "exp" for e in parts) and len(parts) > 1
    assert call.bytes == 0 and sum(e.bytes for e in parts) == 2 * 4 << 22
    if len({e.thread for e in parts}) == 2:
        break
else:
    raise AssertionError("one thread did it all")
""",
    )


def test_two_threads_at_once(plugin):
    python(
        plugin,
        """
x = adjoin.ones(16)
threads, ready = {}, threading.Barrier(2)
def work(name):
    ready.wait()
    for _ in range(1000):
        getattr(x, name)()
    threads[name] = threading.get_native_id()
with heard(CALL) as told:
    both = [threading.Thread(target=work, args=(name,)) for name in ("sin", "cos")]
    for t in both: t.start()
    for t in both: t.join()
counts = collections.Counter((e.name, e.thread, e.parent) for e in told)
assert counts == {(name, threads[name], 0): 1000 for name in threads}, counts
""",
    )


@pytest.mark.skipif(
    not (PLUGINDIR / "libaj_emulated.so").exists(), reason="NOT TESTED: no plugin with streams was built"
)
def test_the_stream_of_a_device(plugin):
    python(
        plugin,
        """
x, other = adjoin.ones(3000, device="emulated"), adjoin.Stream(device="emulated")
with heard(CALL | KERNEL) as told:
    x.sin()
    with other:
        x.exp()
assert {(e.name, e.stream, e.provider, e.kind_of_device) for e in told} == {
    ("sin", 0, "emulated", told[0].kind_of_device), ("exp", 1, "emulated", told[0].kind_of_device)}
assert len(told) == 4 and told[0].kind_of_device > 16
""",
    )


def test_the_line_of_the_user(plugin):
    python(
        plugin,
        """
x, y = adjoin.ones(3), adjoin.ones(3).requires_grad_()
book = listen.start(CALL)
x.exp()
adjoin.zeros(5)
(y * 2).sum().backward()
listen.stop(book)
lines = {}
for e in events(book):
    lines.setdefault(e.name, e.line)
own = [lines[name] for name in ("exp", "zeros", "mul", "sum")]
assert all(own) and len(set(own)) == 4 and lines["expand"] == lines["sum"], lines  # the last in backward
""",
    )


def test_memory_adds_up(plugin):
    python(
        plugin,
        """
in_use = lambda device: adjoin.memory.memory_stats(device)["in_use"]
for device in ("reference", "cpu"):
    adjoin.empty(4096, device=device)
    kept, before = [], in_use(device)
    with heard(MEMORY) as told:
        for n in (300, 4096, 100_000, 3_000_000):  # small, medium, medium, large
            kept.append(adjoin.empty(n, device=device))
        del kept[1], kept[2]
        x = kept[1].sin()
        middle = in_use(device)
    assert told.names(MEMORY)[-1] == "sin" and {e.provider for e in told} == {device}
    assert [e.bytes > 0 for e in told] == [True] * 4 + [False] * 2 + [True], told
    asked = [4 * n for n in (300, 4096, 100_000, 3_000_000, 4096, 3_000_000, 100_000)]
    assert all(n <= abs(e.bytes) <= 2.2e6 + n for n, e in zip(asked, told))
    assert all(e.begin == e.end and e.data for e in told) and told[0].data == kept[0].data_ptr()
    assert told[1].data == told[4].data
    small = 5 * 1024 if device == "cpu" else 0  # headers of the tensors
    assert abs(sum(e.bytes for e in told) - (middle - before)) <= small, (sum(e.bytes for e in told), middle - before)
    assert abs(told[-1].in_use - middle) <= small
    for one, next in zip(told, told[1:]):
        assert abs(next.in_use - one.in_use - next.bytes) <= small
    del x, kept
    assert not events(told.book)
""",
    )


def test_memory_of_a_thread_that_frees_what_another_made(plugin):
    python(
        plugin,
        """
before = adjoin.memory.memory_stats("reference")["in_use"]
with heard(MEMORY) as told:
    made = []
    t = threading.Thread(target=lambda: made.extend(adjoin.empty(5000, device="reference") for _ in range(20)))
    t.start(); t.join()
    made.clear()
assert len(told) == 40 and sum(e.bytes for e in told) == 0 and told[-1].in_use == before
assert {e.thread for e in told[20:]} == {threading.get_native_id()} != {e.thread for e in told[:20]}
""",
    )


def test_labels(plugin):
    python(
        plugin,
        """
assert label("nobody listens") == 0 and not end(0)
x = adjoin.ones(3)
with heard(CALL | LABEL) as told:
    outer = label("outer")
    x.exp()
    inner = label("in \\N{GREEK SMALL LETTER LAMDA}")
    x.sin()
    assert not end(inner)
    x.cos()
    assert not end(outer)
    x.tan()
parents = {e.name: e.parent for e in told}
assert parents == {"exp": outer, "in \\u03bb": outer, "sin": inner, "cos": outer, "outer": 0, "tan": 0}, parents
assert all(e.kind_of_device == 0 and not e.provider for e in told if e.kind == LABEL)
with heard(CALL | LABEL) as told:  # in any order
    a, b, c = label("a"), label("b"), label("c")
    assert not end(b)
    x.exp()
    assert not end(c) and end(c) and end(b) and end(12345678)
    x.sin()
    elsewhere = []
    t = threading.Thread(target=lambda: elsewhere.append(end(a)))
    t.start(); t.join()
    assert elsewhere == [True]
    assert not end(a)
    x.cos()
parents = {e.name: e.parent for e in told}
assert parents == {"b": a, "exp": c, "c": a, "sin": a, "a": 0, "cos": 0}, parents
with heard(CALL | LABEL) as told:  # one that is left open in a call ends with it
    left = listen.label("left")
    assert left and end(left)
    x.exp()
    open_at_the_end = label("open")
assert told.names(LABEL) == [] and told[-1].parent == 0
assert not end(open_at_the_end)  # nobody listens any more, and yet it can be ended
def leave_open():
    label("of a thread that ends")
with heard(LABEL):
    t = threading.Thread(target=leave_open)
    t.start(); t.join()
""",
    )


def test_beginnings(plugin):
    python(
        plugin,
        """
x = adjoin.ones(3, 3)
with heard(ALL, TWICE) as told:
    n = label("range")
    x @ x
    end(n)
ends = [e for e in told if e.end]
begins = [e for e in told if not e.end]
assert sorted(e.id for e in begins) == sorted(e.id for e in ends if e.kind != MEMORY)
assert [e.id for e in begins] == sorted(e.id for e in begins) and begins[0].name == "range"
for b in begins:
    (e,) = [e for e in ends if e.id == b.id]
    assert (e.name, e.begin, e.parent, e.kind) == (b.name, b.begin, b.parent, b.kind)
    assert told.index(b) < told.index(e)
""",
    )


def test_a_key_below_the_tape_and_a_failed_call(plugin, tmp_path):
    folder = tmp_path / "wrap"
    compile_plugin(folder, (HERE / "wrap.c").read_text(), name="wt", flags=["-std=c99"])
    python(
        f"{plugin}:{folder}",
        """
wt = adjoin.ops.wt
x = wt.later(adjoin.tensor([1.0, 2.0]))
with heard(CALL | KERNEL) as told:
    y = x + 1
    assert y.tolist() == [2.0, 3.0]
served = [(e.kind, e.provider) for e in told if e.name == "add"]
assert (CALL, "wt") in served and (KERNEL, "wt") in served and (CALL, "cpu") in served, served
a, b = adjoin.ones(2), adjoin.ones(3)
with heard(CALL) as told:
    try:
        a @ b
    except RuntimeError:
        pass
assert told and {e.code for e in told} == {3}, told
""",
    )


@pytest.mark.parametrize("n, words", [
    (0, "struct_size is 0"), (1, "struct_size is 32"), (2, "kinds are 0"), (3, "kinds are 17"), (4, "kinds are 9223372036854775808"),
    (5, "does not know the flags 2"), (7, "a function `event`"), (8, "struct_size is 0")])  # fmt: skip
def test_wrong_ways_to_listen(plugin, n, words):
    python(
        plugin,
        f"""
try:
    listen.wrong({n})
except (RuntimeError, NotImplementedError) as e:
    assert {words!r} in str(e), e
else:
    raise AssertionError("taken")
x = adjoin.ones(3).exp()
""",
    )


def test_hints_are_ignored(plugin):
    python(plugin, "assert listen.wrong(6) == 0")


def test_several_listen_and_each_hears_its_kinds(plugin):
    python(
        plugin,
        """
x = adjoin.ones(2000)
with heard(CALL) as calls:
    x.exp()
    with heard(MEMORY) as memory:
        x.sin()
        with heard(KERNEL) as kernels:
            x.cos()
    x.tan()
assert calls.names() == ["exp", "sin", "cos", "tan"]
assert {e.kind for e in memory} == {MEMORY} and {e.name for e in memory} <= {"sin", "cos", ""} and len(memory) == 4
assert kernels.names(KERNEL) == ["cos"] and {e.kind for e in kernels} == {KERNEL}
""",
    )


def test_release_while_others_call(plugin):
    """10,000 calls beside listeners that come and go: each is dropped once, and hears nothing afterwards."""
    python(
        plugin,
        """
x, over = adjoin.ones(2000), threading.Event()
calls = [0] * 3
def work(i):
    while not over.is_set() or calls[i] < 4000:
        (x + 1).sum()
        calls[i] += 1
threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
for t in threads: t.start()
words = []
for i in range(300):
    w = (ctypes.c_int64 * 3)()
    words.append(w)
    listen.count(ALL, ctypes.addressof(w))
    while not w[0]: x.exp()
    w[2] = 1
    while not w[1]: x.exp()
over.set()
for t in threads: t.join()
seen = [list(w) for w in words]
assert sum(calls) >= 10_000 and all(w[1] == 1 and w[0] >= 1 for w in words)
x.exp()
assert seen == [list(w) for w in words]
""",
    )


def test_a_plugin_that_listens_stays_mapped(plugin):
    python(
        plugin,
        """
import adjoin.plugin
x, w = adjoin.ones(3), (ctypes.c_int64 * 3)()
mapped = lambda: "libaj_listen" in open("/proc/self/maps").read()
listen.count(CALL, ctypes.addressof(w))
kept = adjoin.plugin.unload("listen")
assert "2 listeners point into it" in kept and mapped(), kept
before = w[0]
x.exp()
assert w[0] == before + 1
w[2] = 1
x.exp()
assert w[1] == 1 and w[0] == before + 2
x.exp()
assert w[0] == before + 2
kept = adjoin.plugin.unload("listen")
assert not kept and not mapped(), kept
x.exp()
""",
    )


THROWS = """
#include <adjoin/abi/plugin.h>
#include <adjoin/abi/profile.h>
#include <cstring>
AJ_PLUGIN_NOTE("thrower", "0.1.0", "", "Apache-2.0", "ops:thrower", "");
static const aj_core* core;
static const aj_profile* profile;
static int64_t heard, dropped;
static void hear(void*, const aj_event*) { heard++; throw 1; }
static void drop(void*) { dropped++; }
static aj_status* start(void*, aj_call* call) {
  static aj_object* listening;
  aj_listener l = {sizeof l, 0, AJ_EVENT_CALL, nullptr, hear, drop};
  call->rets[0].tag = AJ_INT;
  call->rets[0].v.i = heard * 10 + dropped;
  if (!listening) return profile->listen(&l, &listening);
  core->release(listening);
  listening = nullptr;
  return nullptr;
}
AJ_PLUGIN_INIT {
  core = env->core;
  profile = static_cast<const aj_profile*>(env->query("x.profile", 1));
  aj_op_def d = {};
  d.struct_size = sizeof d;
  d.flags = AJ_OP_ALLOCATES;
  d.schema = AJ_STR_LIT("thrower::start() -> int");
  d.body = start;
  return static_cast<const aj_dispatch*>(env->query("aj.op", 1))->def_op(env->registrar, &d);
}
"""


def test_who_throws_hears_no_more(plugin, tmp_path):
    compile_plugin(tmp_path, THROWS, name="thrower", compiler="g++", suffix=".cpp", flags=["-std=c++17"])
    got = run_python(
        """
import adjoin
start, x = adjoin.ops.thrower.start, adjoin.ones(3)
assert start() == 0
for _ in range(3): x.exp()
assert start() == 10 and start() == 11  # one event; dropped when it was released
x.exp()
""",
        ADJOIN_PLUGIN_PATH=tmp_path,
    )
    assert got.returncode == 0, got.stdout + got.stderr
    assert "thrower: its listener let an exception out, and is told no more" in got.stderr


def test_a_child_of_fork(plugin):
    python(
        plugin,
        """
x = adjoin.ones(3)
with heard(CALL) as told:
    x.exp()
    child = os.fork()
    if not child:
        x.sin()
        mine = events(told.book)
        good = [e.name for e in mine] == ["exp", "sin"] and mine[1].thread == os.getpid() and listen.stop(told.book) == 1
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert told.names() == ["exp"]
""",
    )
