"""tests/abi/broken_test.py: every kind of broken plugin that we could think of, each in a process of its own: somebody says which
plugin it is and what is wrong with it, and nobody dies of it but by the plugin's own hand."""

import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from abi_tools import ADJOIN, HERE, PREFIX, VERSION_SCRIPT, build_plugin, clean_environment, compile_plugin, source

SIGNAL = {"crashed": -signal.SIGSEGV, "aborted": -signal.SIGABRT}
ALIVE = "ok neg -1 -2 -3 -4 -5 -6 -7 -8"
BOOM = 'throw std::runtime_error("boom");'
LOOK = """
import sys, time
import adjoin as t
t.load_plugin(sys.argv[1])
def told(f):
    try:
        print("gave", f())
    except Exception as e:
        print(type(e).__name__, str(e).replace(chr(10), " "))
x, go = t.ones(8), t.ops.slate.go if t._C.find_op("slate::go") else None
"""


@dataclass
class Row:
    said: str  # a regular expression, in a line that names the plugin
    init: str = "return pointwise(env, twice);"
    extra: str = ""
    words: str = "load {} call slate::go"  # of the host; "check {}" asks the command
    py: str = ""  # a program in their place
    code: int = 0
    cpp: bool = False
    note: dict = field(default_factory=dict)
    spoil: object = None  # changes the file, or is there in its place
    flags: tuple = ()
    env: dict = field(default_factory=dict)
    name: str = "acme"


def row(said, init=Row.init, extra="", **more):
    text = (init or "") + extra
    return Row(said, init, extra, cpp="throw" in text or "struct Ends" in text, **more)


def callback(result, name, parameters, body):
    """A function for a table, that does what it should not."""
    return f"static {result} {name}({parameters}) {{ {body} }}\n"


def kernel(body):
    return callback("aj_status*", "bad", "void* self, aj_call* call", "(void)self, (void)call; " + body)


def infer(body):
    return callback(
        "aj_status*", "bad", "void* self, aj_call* call", "(void)self; int64_t shape[65] = {8}; (void)shape;" + body
    )


def vjp(body):
    return callback("aj_status*", "bad", "void* self, aj_grad_call* g", "(void)self, (void)g; " + body)


def hook(body):
    return callback("aj_status*", "bad", "void* self, aj_tensor** g", "(void)self, (void)g; " + body) + callback(
        "aj_status*", "hooked", "void* self, aj_call* call",
        "TRY(tape->hook_tensor(argument(call), AJ_HOOK_TENSOR, bad, 0, 0, 0)); return twice(self, call);")  # fmt: skip


def no_table(body):
    return callback("aj_status*", "bad", "void", body)


def patched(at, value, size=1):
    def patch(file):
        data = bytearray(file.read_bytes())
        data[at : at + size] = value.to_bytes(size, "little")
        file.write_bytes(data)

    return patch


def instead(make):
    def replace(file):
        file.unlink(missing_ok=True)
        make(file)

    return replace


def truncated(file):
    file.write_bytes(file.read_bytes()[:5000])


def as_program(file):
    (file.parent / "main.c").write_text("int main(void) { return 0; }")
    subprocess.run(["gcc", "-no-pie", str(file.parent / "main.c"), "-o", str(file)], check=True)


def as_object(file):
    subprocess.run(["gcc", "-c", f"-I{HERE}", "-x", "c", "/dev/null", "-o", str(file)], check=True)


def needs_a_library(file):
    folder = file.parent
    (folder / "gone.c").write_text("int gone(void) { return 1; }")
    subprocess.run(["gcc", "-shared", "-fPIC", str(folder / "gone.c"), "-o", str(folder / "libgone.so")], check=True)
    flags = ["-Wl,--no-as-needed", f"-L{folder}", "-lgone"]
    build_plugin(folder, flags=flags)
    (folder / "libgone.so").unlink()


FILES = {
    "a wrong magic": row("bad note: it does not begin with", note={"magic": '"AJPLUG9"'}),
    "a small struct_size": row("bad note: its struct_size is 10", note={"struct_size": "10"}),
    "a large struct_size": row("bad note: its struct_size is 99999", note={"struct_size": "99999"}),
    "another major": row("built for ABI 9", note={"major": "9"}),
    "a newer minor": row("needs ABI 1.777", note={"minor_min": "777"}),
    "another machine in the note": row("its note says ELF machine 7", note={"machine": "7"}),
    "a text without an end": row("a text in it does not end", note={"provides": "ops:" + "x" * 1020}),
    "a control character": row("control characters", note={"version": r"1\033[2J"}),
    "no UTF-8": row("is not UTF-8", note={"version": r"1\377"}),
    "a name that is none": row("its name is not a word", name="Acme!"),
    "what is no offer": row("provides 'everything', wanted KIND:NAME", note={"provides": "everything"}),
    "a sanitizer": row("built with the thread sanitizer", note={"build_flags": "AJ_BUILD_TSAN"}),
    "unknown build flags": row("build flags that this libadjoin does not know: 256", note={"build_flags": "256"}),
    "needs who is not there": row("needs plugin 'nobody', which is not installed", note={"requires": "plugin:nobody"}),
    "needs an interface that is not there": row("iface:x.nothing|needs interface 'x.nothing'|x.nothing",
        note={"requires": "iface:x.nothing>=0"}),
    "needs a newer interface": row("aj.op", note={"requires": "iface:aj.op>=900"}),
    "needs itself": row("is being initialised and needs itself", note={"requires": "plugin:acme"}),
    "no note": row("it has no section .adjoin.plugin", spoil=instead(lambda f: compile_plugin(f.parent, "int aj_plugin_init_v1(void);",
        script="{ local: *; };"))),
    "no init": row("does not export aj_plugin_init_v1", init=None),
    "another note in memory": row("the note that it exports is not the one in its file",
        spoil=instead(lambda f: compile_plugin(f.parent, two_notes()))),  # fmt: skip
    "an undefined symbol": row("nowhere_defined", extra="int nowhere_defined(void);", init="return nowhere_defined() ? 0 : 0;"),
    "a missing library": row("cannot be loaded: libgone.so", spoil=instead(needs_a_library)),
    "another machine": row("built for another machine", spoil=patched(18, 183, 2)),
    "a class of 32 bits": row("not a 64-bit library", spoil=patched(4, 1)),
    "the other byte order": row("built for the other byte order", spoil=patched(5, 2)),
    "a truncated file": row("truncated", spoil=truncated),
    "an empty file": row("0 bytes are too few", spoil=instead(lambda f: f.write_bytes(b""))),
    "a text": row("it does not begin with an ELF header", spoil=instead(lambda f: f.write_text("#!/bin/sh\n" * 20))),
    "a directory": row("is not a regular file", spoil=instead(lambda f: f.mkdir())),
    "a pipe": row("is not a regular file", spoil=instead(lambda f: os.mkfifo(f))),
    "a link to nowhere": row("cannot be opened: No such file", spoil=instead(lambda f: f.symlink_to("/nowhere/at/all"))),
    "a program": row("wanted 3", spoil=instead(as_program)),
    "an object file": row("wanted 3", spoil=instead(as_object)),
}  # fmt: skip


def two_notes():
    text = source(provides="ops:slate").replace("AJ_EXPORT const aj_plugin_note aj_plugin_note_v1;", "", 1)
    text = text.replace("aj_plugin_note_v1 = {", "shown_note = {", 1).replace("used)) const", "used)) static const", 1)
    other = 'AJ_PLUGIN_MAGIC, 0, 1, 0, 0, 0, 0, "evil", "", "", "", "", ""'
    return text + f"AJ_EXPORT const aj_plugin_note aj_plugin_note_v1 = {{{other}}};"


def constructor(body):
    return f"__attribute__((constructor)) static void early(void) {{ {body} }}\n"


DRAIN = "AJ_EXTERN_C_ AJ_EXPORT aj_status* aj_plugin_drain_v1(void);\nAJ_EXTERN_C_ AJ_EXPORT aj_status* aj_plugin_drain_v1(void) { %s }\n"
SLEEP = "alarm(%d); for (;;) usleep(1000); return 0;"
GONE = "load {} disable acme"

LOADING = {
    "init fails": row("out of fuel", 'return fails("out of fuel");'),
    "init fails half way": row("out of fuel", 'TRY(pointwise(env, twice)); return fails("out of fuel");'),
    "init throws": row("its init let an exception out: boom|its init threw an exception: boom", BOOM),
    "init throws a number": row("its init threw something that is no std::exception", "throw 7;"),
    "init crashes": row("the process crashed while it was being loaded", "*(volatile int*)8 = 1; return 0;", code=-signal.SIGSEGV),
    "init aborts": row("the process aborted while it was being loaded", "abort();", code=-signal.SIGABRT),
    "init divides by zero": row("the process crashed while it was being loaded", "volatile int n = 0; n = 7 / n; return 0;",
        code=-signal.SIGFPE),
    "init exits": row(r"called exit\(\) while it was being loaded", "exit(0);"),
    "init leaves": row("ends the process while it is loaded: exit code 4", "_exit(4);", words="check {}", code=1),
    "init kills": row("crashes while it is loaded: Killed", "raise(SIGKILL); return 0;", words="check {}", code=1),
    "init stops": row("does not come back from loading within 2 s", "raise(SIGSTOP); return 0;", words="check {} --timeout 2", code=1),
    "init forks": row("forked while it was initialising, and the child went on", "if (fork() < 0) return 0; return pointwise(env, twice);"),
    "init jumps out": row("the process aborted while it was being loaded", "longjmp(place, 1);",
        "static jmp_buf place;\n" + constructor("if (setjmp(place)) abort();"), flags=("-O1", "-D_FORTIFY_SOURCE=2"), code=-signal.SIGABRT),
    "init never ends": row("has been initialising for 5 s and has not come back yet", SLEEP % 6, code=-signal.SIGALRM),
    "init uses up the stack": row("the process crashed while it was being loaded", "return burrow(1) ? 0 : 0;",
        "__attribute__((noinline)) static int burrow(int n) { volatile char room[4096]; room[0] = (char)n;"
            " return burrow(n + 1) + room[0]; }",
        code=-signal.SIGSEGV),
    "init closes what is not open": row("aborted while it was being loaded",
        "void* volatile p = malloc(2000); void* volatile q = malloc(9); (void)q;"
        " free(p); free(p); return 0;", code=-signal.SIGABRT),
    "a constructor throws": row("aborted while it was being loaded", extra="static struct Ends { Ends() { throw 7; } } ends;",
        code=-signal.SIGABRT),
    "a constructor crashes": row("crashed while it was being loaded", extra=constructor("*(volatile int*)8 = 1;"), code=-signal.SIGSEGV),
    "a constructor exits": row(r"called exit\(\) while it was being loaded", extra=constructor("exit(5);"), code=5),
    "a constructor never ends": row("has been initialising for 5 s", extra=constructor("alarm(6); for (;;) usleep(1000);"),
        code=-signal.SIGALRM),
    "drain fails": row("it is disabled, but its drain failed: .*not today", extra=DRAIN % 'return fails("not today");', words=GONE),
    "drain throws": row("its drain threw an exception: boom", extra=DRAIN % BOOM, words=GONE),
    "drain crashes": row("crashed while it was being drained", extra=DRAIN % "*(volatile int*)8 = 1; return 0;", words=GONE,
        code=-signal.SIGSEGV),
    "drain exits": row(r"called exit\(\) while it was being drained", extra=DRAIN % "exit(6);", words=GONE, code=6),
    "drain never ends": row("has been draining for 5 s and has not come back yet", extra=DRAIN % (SLEEP % 6), words=GONE,
        code=-signal.SIGALRM),
    "a destructor crashes": row("the process crashed",
        extra="__attribute__((destructor)) static void late(void) { *(volatile int*)8 = 1; }", code=-signal.SIGSEGV),
    "a destructor throws": row("the process aborted", extra="static struct Ends { ~Ends() noexcept(false) { throw 7; } } ends;",
        code=-signal.SIGABRT),
    "a function at exit crashes": row("the process crashed", "atexit(late); return pointwise(env, twice);",
        "static void late(void) { *(volatile int*)8 = 1; }\n", code=-signal.SIGSEGV),
    "a thread of its own crashes": row("the process crashed", "pthread_t t; pthread_create(&t, 0, run, 0); pthread_join(t, 0); return 0;",
        "static void* run(void* p) { *(volatile int*)8 = 1; return p; }\n", code=-signal.SIGSEGV),
    "a thread is left": row("stays mapped: 1 threads? of the process",
        extra="static void* run(void* p) { for (;;) usleep(1000); return p; }\n" + DRAIN % "return 0;",
        init="pthread_t t; return pthread_create(&t, 0, run, 0) ? 0 : pointwise(env, twice);",
        py="print(go(x).sum().item()); t.plugin.unload('acme'); print(t.plugin.why('acme'))"),
    "a drain that promises nothing": row("stays mapped: it exports no aj_plugin_drain_v1",
        py="t.plugin.unload('acme'); print(t.plugin.why('acme'))"),
}  # fmt: skip

SCHEMAS = {
    "the op twice": ("TRY(pointwise(env, twice)); return pointwise(env, twice);", "defines it twice"),
    "an op of the core's": ('return add_op(env, "add(Tensor x) -> Tensor", "unary", 0);', "defined by the core already"),
    "half a schema": ('return add_op(env, "slate::x(Tensor -> ", "", 0);', "slate::x"),
    "no schema": ('return add_op(env, "", "", 0);', "schema"),
    "two parameters of one name": ('return add_op(env, "slate::x(Tensor a, Tensor a) -> Tensor", "", 0);', "slate::x"),
    "an unknown type": ('return add_op(env, "slate::x(Teapot a) -> Tensor", "", 0);', "Teapot"),
    "an unknown kind": ('return add_op(env, "slate::x(Tensor a) -> Tensor", "sideways", 0);', "sideways"),
    "unknown flags of an op": ('return add_op(env, "slate::x(Tensor a) -> Tensor", "", 1u << 15);', "does not know the flags 32768"),
    "an op of no size": ('aj_op_def d = good_op("slate::x(Tensor a) -> Tensor"); d.struct_size = 8;'
        ' return ops->def_op(env->registrar, &d);',
                         "struct_size is 8"),
    "NULL for an op": ("return ops->def_op(env->registrar, 0);", "struct_size is 0"),
    "no kernel function": ("return add_kernel(env, 0);", "slate::go at cpu: fn is NULL; a function is needed"),
    "unknown flags of a kernel": ("aj_kernel_def k = good_kernel(twice); k.flags = 1u << 15; return ops->def_kernel(env->registrar, &k);",
                                  "does not know the flags 32768"),
    "a reserved word": ("aj_kernel_def k = good_kernel(twice); k.reserved = 3; return ops->def_kernel(env->registrar, &k);",
        "a reserved word is 3"),
    "a schema that the op never had": (
        'TRY(add_op(env, "slate::go(Tensor x) -> Tensor", "unary", 0)); aj_kernel_def k = good_kernel(twice);'
        ' k.built_schema = text("slate::go(int x, str y) -> Tensor"); return ops->def_kernel(env->registrar, &k);', "slate::go"),
    "a fallback of no key": ('return ops->def_fallback(env->registrar, text("nothing"), twice, 0);', "no functionality key 'nothing'"),
    "a fallback without a function": ('return ops->def_fallback(env->registrar, text("nothing"), 0, 0);', "no function"),
    "the key twice": ('TRY(ops->def_key(env->registrar, text("slate"), 1, &slate_key));'
        ' return ops->def_key(env->registrar, text("slate"), 1, &slate_key);',
                      "a key or device named 'slate' already"),
    "a key without a name": ('return ops->def_key(env->registrar, text(""), 1, &slate_key);', "a name, and a place"),
    "a key in no place": ('return ops->def_key(env->registrar, text("slate"), 77, &slate_key);', "a name, and a place"),
    "more keys than there are": ("char name[9]; for (int i = 0; i < 99; ++i) { snprintf(name, 9, \"k%d\", i);"
        " TRY(ops->def_key(env->registrar, text(name), 1, &slate_key)); } return 0;", "keys of that place are taken"),
    "a derivative of the core's op": ('aj_vjp_def v = good_vjp(same_grad); v.op = text("neg"); return tape->def_vjp(env->registrar, &v);',
                                      "has a derivative already"),
    "a derivative at no key": ('aj_vjp_def v = good_vjp(same_grad); v.key = text("nothing"); TRY(pointwise(env, twice));'
                               " return tape->def_vjp(env->registrar, &v);", "no key below autograd is called 'nothing'"),
    "a reserved word of a derivative": ("aj_vjp_def v = good_vjp(same_grad); v.reserved = 9; return tape->def_vjp(env->registrar, &v);",
                                        "a reserved word is 9"),
    "a derivative without a function": (
        "aj_vjp_def v = good_vjp(0); TRY(pointwise(env, twice)); return tape->def_vjp(env->registrar, &v);", "no function"),
    "a saved argument that is not there": (
        "static const aj_save s = {AJ_SAVE_ARG, 7, 0}; aj_vjp_def v = good_vjp(same_grad); v.save = &s;" " v.nsave = 1;"
        " TRY(pointwise(env, twice)); return tape->def_vjp(env->registrar, &v);", "saves argument 7"),
    "a device that cannot count": ("DEVICE(v.count = 0);", "count"),
    "a device with a bad name": ('DEVICE(v.name = text("Slate!"));', "is not of the form"),
    "a device without mem_free": ("DEVICE(v.mem_free = 0);", "has no mem_free"),
    "a device without copy": ("DEVICE(v.copy = 0);", "has no copy"),
    "a device that cannot wait": ("DEVICE(v.flags = 0);", "has no stream_sync"),
    "a device with memory of two kinds": ("DEVICE(v.flags |= AJ_DEV_HOST_MEMORY | AJ_DEV_OPAQUE_POINTERS);", "it is one of the two"),
    "unknown flags of a device": ("DEVICE(v.flags |= 1u << 15);", "does not know: 32768"),
    "the device twice": ("aj_device_vtbl d = good_device(); TRY(env->def_device(env->registrar, &d)); DEVICE((void)0);",
        "has defined device 'slate' already"),
    "the device 'meta'": ('DEVICE(v.name = text("meta"));', "is libadjoin's own"),
    "NULL for a device": ("return env->def_device(env->registrar, 0);", "struct_size is 0"),
    "a service without a table": ('return service(env, "aj.blas/slate", 0);', "a name and a table are needed"),
    "a table of no size": ('static const uint32_t table[16] = {0}; return service(env, "aj.blas/slate", table);',
        "cannot be its struct_size"),
    "a table that begins with an address": ('static void* table[16]; table[0] = table; return service(env, "aj.blas/slate", table);',
                                            "cannot be its struct_size"),
    "the service twice": ('static const uint32_t table[16] = {64}; TRY(service(env, "aj.slate/cpu", table));'
        ' return service(env, "aj.slate/cpu", table);',
                          "has a 'slate' already"),
    "casts that nobody can read": ('static aj_autocast_lists l; l.struct_size = sizeof l; l.lists = text("sideways mm");'
                                   ' return service(env, "aj.autocast/cpu", &l);', "sideways"),
    "a type with a bad name": ('return core->type_register(text("a b"), 8, 0, &slate_type);', "is no name of a type"),
    "the type twice": ('TRY(core->type_register(text("slate"), 8, 0, &slate_type));'
        ' return core->type_register(text("slate"), 8, 0, &slate_type);',
                       "registered already"),
    "a dtype of no bits": ('DLDataType d; return core->dtype_register(text("slate"), 0, 0, &d);', "slate"),
    "a dtype that is there": ('DLDataType d; return core->dtype_register(text("float32"), 64, 0, &d);', "float32"),
    "a frontend without a name": ("aj_frontend f; memset(&f, 0, sizeof f); f.struct_size = sizeof f;"
        " return core->frontend_register(&f, &slate_type);",
                                  "name"),
    "a wrapper twice": ("aj_wrapper_def e; memset(&e, 0, sizeof e); TRY(wrappers(env, &e)); return wraps->def_wrapper(env->registrar, &e);",
                        "has defined key 'slate' already"),
    "a wrapper of a key that is not its own": (
        'aj_wrapper_def e; memset(&e, 0, sizeof e); e.struct_size = sizeof e; e.key = text("autocast");'
                                               " return wraps->def_wrapper(env->registrar, &e);", "has no key 'autocast'"),
    "a wrapper of no size": ('aj_wrapper_def e; memset(&e, 0, sizeof e); e.key = text("slate");'
        ' return wraps->def_wrapper(env->registrar, &e);',
                             "struct_size is 0"),
}  # fmt: skip
DEFINITIONS = {name: row(said, init, extra="#include <adjoin/abi/autocast.h>\n" if "autocast_lists" in init else "",
    words="load {} find slate::go")
               for name, (init, said) in SCHEMAS.items()}  # fmt: skip
DEFINITIONS["a definition after init"] = row(
    "only while its init runs", "kept = *env; return pointwise(env, bad);",
    "static aj_plugin_env kept;\n" + kernel("(void)call; return add_op(&kept, \"slate::late(Tensor x) -> Tensor\", \"\", 0);"))  # fmt: skip
# What loads, or would, and serves nobody: `adjoin plugins check` says so.
CHECKED = {
    "a space that is the name of an op": row("its space 'exp' is the name of an op",
        'return add_op(env, "exp::go(Tensor x) -> Tensor", "unary", 0);', note={"provides": "ops:exp"}, words="check {}", code=1),
    "a device is promised and not defined": row("verdict +loads, but its note promises device:slate, which its init does not define",
        words="check {}", code=1),
    "a device is defined and not promised": row("loads, but its init defines device:slate, which its note does not promise",
        "DEVICE((void)0);", note={"provides": "ops:slate"}, words="check {}", code=1),
    "a key is promised and not defined": row("loads, but its note promises key:slate, which its init does not define",
        note={"provides": "key:slate;ops:slate"}, words="check {}", code=1),
    "a service is promised and not defined": row("loads, but its note promises service:aj.slate/cpu, which its init does not define",
        note={"provides": "service:aj.slate/cpu;ops:slate"}, words="check {}", code=1),
    "count throws when it is checked": row("loads, but device 'slate': .*its count let an exception out: boom",
        "DEVICE(v.count = bad);", callback("aj_status*", "bad", "void* self, int32_t* out", "(void)self, (void)out; " + BOOM),
        words="check {}", code=1),
    "a kernel at a key that nobody has": row("loads, but has 1 kernel at cpuu, which no installed plugin has; did you mean 'cpu'",
        'TRY(add_op(env, "slate::go(Tensor x) -> Tensor", "unary", 0)); aj_kernel_def k = good_kernel(twice); k.key = text("cpuu");'
        " return ops->def_kernel(env->registrar, &k);", note={"provides": "ops:slate"}, words="check {}", code=1),
    "a derivative of an op of its own that is not there": row("its derivative for 'slate::none' is for an op that nobody defines",
        'aj_vjp_def v = good_vjp(same_grad); v.op = text("slate::none"); return tape->def_vjp(env->registrar, &v);'),
    "a kernel for an op of its own that is not there": row("its kernel for 'slate::go' is for an op that nobody defines",
        "return add_kernel(env, twice);"),
}  # fmt: skip

NO_STATUS = "return (aj_status*)(uintptr_t)0x1234567;"
SAID = ": what its function returned is no status"
GARBAGE = {
    "a kernel returns no status": row("the process crashed in a call of slate::go" + SAID, "return pointwise(env, bad);",
        callback("aj_status*", "bad", "void* self, aj_call* call", "(void)self, (void)call; " + NO_STATUS)),
    "a body returns no status": row("the process crashed in a call of slate::go" + SAID,
        'aj_op_def d = good_op("slate::go(Tensor x) -> Tensor"); d.body = bad; return ops->def_op(env->registrar, &d);',
        callback("aj_status*", "bad", "void* self, aj_call* call", "(void)self, (void)call; " + NO_STATUS)),
    "infer returns no status": row("the process crashed in a call of slate::go" + SAID,
        'return inferred(env, "slate::go(Tensor x) -> Tensor", "", bad);',
        callback("aj_status*", "bad", "void* self, aj_call* call", "(void)self, (void)call; " + NO_STATUS)),
    "a derivative returns no status": row("the process crashed.*" + SAID, "return derived(env, bad);",
        callback("aj_status*", "bad", "void* self, aj_grad_call* g", "(void)self, (void)g; " + NO_STATUS), words="load {} grad slate::go"),
    "mem_alloc returns no status": row("the process crashed in a call of .*to_copy" + SAID, "DEVICE(v.mem_alloc = bad);",
        callback("aj_status*", "bad", "void* self, int32_t dev, uint64_t bytes, uint32_t kind, void** out",
            "(void)self, (void)dev, (void)bytes, (void)kind, (void)out; " + NO_STATUS), py="x.to('slate')"),
    "count returns no status": row("the process crashed.*" + SAID, "DEVICE(v.count = bad);",
        callback("aj_status*", "bad", "void* self, int32_t* out", "(void)self, (void)out; " + NO_STATUS), py="x.to('slate')"),
    "what is saved returns no status": row("the process crashed.*" + SAID,
        "aj_vjp_def v = good_vjp(same_grad); v.save_more = bad; TRY(pointwise(env, twice)); return tape->def_vjp(env->registrar, &v);",
        callback("aj_status*", "bad", "void* self, const aj_call* done, struct aj_saver* s", "(void)self, (void)done, (void)s; " + NO_STATUS),
        words="load {} grad slate::go"),
    "init returns no status": row("the process crashed while it was being loaded" + SAID, NO_STATUS),
    "drain returns no status": row("the process crashed while it was being drained" + SAID, extra=DRAIN % NO_STATUS, words=GONE),
}  # fmt: skip
for garbage in GARBAGE.values():
    garbage.code = -signal.SIGSEGV

KERNELS = {
    "a kernel throws": row("let an exception out: boom", "return pointwise(env, bad);", kernel(BOOM)),
    "a kernel throws a number": row("let an unknown exception out", "return pointwise(env, bad);", kernel("throw 7;")),
    "a kernel gives nothing": row("gave None as result 0", "return allocating(env, bad);", kernel("return 0;")),
    "a kernel gives NULL": row("gave None as result 0", "return allocating(env, bad);", kernel("return give(call, 0);")),
    "a kernel gives a number": row("gave int as result 0", "return allocating(env, bad);", kernel("call->rets[0].tag = AJ_INT; return 0;")),
    "a kernel gives an unknown tag": row("as result 0", "return allocating(env, bad);", kernel("call->rets[0].tag = 55; return 0;")),
    "a kernel gives an object": row("as result 0",
        'TRY(core->type_register(text("slate"), 8, 0, &slate_type)); return allocating(env, bad);',
        kernel("aj_object* o; void* p; TRY(core->object_new(slate_type, &o, &p)); call->rets[0].tag = AJ_OBJECT;"
            " call->rets[0].v.object = o; return 0;")),
    "a kernel declines for ever": row("not for me", "return pointwise(env, bad);",
        kernel('return core->status_new(AJ_UNIMPLEMENTED, text(""), text("not for me"), "", 0);')),
    "a kernel never agrees": row("candidates declined: acme",
        'TRY(add_op(env, "slate::go(Tensor x) -> Tensor", "", AJ_OP_ALLOCATES)); aj_kernel_def k = good_kernel(twice); k.can_run = no;'
        " return ops->def_kernel(env->registrar, &k);", callback("int32_t", "no", "void* self, const aj_call* c",
            "(void)self, (void)c; return 0;")),
    "can_run throws": row("its can_run let an exception out: boom",
        "aj_kernel_def k = good_kernel(twice); k.can_run = no;"
        ' TRY(add_op(env, "slate::go(Tensor x) -> Tensor", "", AJ_OP_ALLOCATES)); return ops->def_kernel(env->registrar, &k);',
        callback("int32_t", "no", "void* self, const aj_call* c", "(void)self, (void)c; " + BOOM)),
    "a kernel fails without a word": row("go: plugin 'acme' on cpu: $", "return pointwise(env, bad);", kernel('return fails("");')),
    "a kernel never ends": row("its kernel has been running for 0 s and has not come back yet", "return pointwise(env, bad);",
        kernel(SLEEP % 2),
        code=-signal.SIGALRM, env={"ADJOIN_WATCHDOG": "0.4"}),
    "a kernel calls itself": row("256 calls inside each other", "return allocating(env, bad);",
        kernel('aj_value v = call->args[0]; return ops->call(call->op, &v, 1, call->rets, 1);')),
    "a kernel crashes on a thread of the pool": row("the process crashed in a call of slate::go", "return pointwise(env, bad);",
        "static aj_status* part(void* self, int64_t lo, int64_t hi) { (void)self, (void)hi;"
            " if (lo) *(volatile int*)8 = 1; usleep(100000); return 0; }\n"
        + kernel("(void)call; return core->parallel_for(64, 1, part, 0);"), code=-signal.SIGSEGV),
    "a kernel frees an error twice": row("the process aborted in a call of slate::go", "return pointwise(env, bad);",
        kernel('aj_status* s = fails("a rather long text, so that it is an allocation of its own, and one that no small list keeps");'
               " aj_status* keep = fails(\"x\"); void* volatile text_of_it = (void*)core->status_message(s).data;"
                   " core->status_free(s); (void)text_of_it; free(s);"
               " return keep;"), code=-signal.SIGABRT),
    "a kernel frees the argument's memory": row("the process aborted in a call of slate::go", "return pointwise(env, bad);",
        kernel("free((char*)argument(call)->dl.data + 4); return 0;"), code=-signal.SIGABRT),
    "a kernel exits": row(r"called exit\(\) in a call of slate::go", "return pointwise(env, bad);", kernel("exit(3);"), code=3),
    "a kernel at its key throws": row("let an exception out: boom",
        'TRY(ops->def_key(env->registrar, text("slate"), 1, &slate_key)); TRY(ops->def_fallback(env->registrar, text("slate"), bad, 0));'
        " ops->set_thread_keys(slate_key, 0); return 0;", kernel("static int n;"
            " if (n++) return ops->redispatch(call->op, call->keys, call->args, call->nargs, call->rets," " call->nrets); " + BOOM),
            words="load {} call neg"),
    "a fallback declines": row("neg: the fallback of plugin 'acme' at key 'slate' did not pass the call on: not of this device",
        'TRY(ops->def_key(env->registrar, text("slate"), 1, &slate_key)); TRY(ops->def_fallback(env->registrar, text("slate"), bad, 0));'
        " ops->set_thread_keys(slate_key, 0); return 0;",
        kernel("static int n; if (n++) return ops->redispatch(call->op, call->keys, call->args, call->nargs, call->rets, call->nrets);"
               ' return core->status_new(AJ_UNIMPLEMENTED, text(""), text("not of this device"), "", 0);'), words="load {} call neg"),
    "a body throws": row("let an exception out: boom",
        'aj_op_def d = good_op("slate::go(Tensor x) -> Tensor"); d.body = bad; return ops->def_op(env->registrar, &d);', kernel(BOOM)),
    "a body gives nothing": row("gave None as result 0",
        'aj_op_def d = good_op("slate::go(Tensor x) -> Tensor"); d.body = bad;' ' return ops->def_op(env->registrar, &d);',
            kernel("return 0;")),
    "an op without a kernel": row("no plugin has a kernel for slate::go on cpu.*plugin 'acme' has the op",
        'return add_op(env, "slate::go(Tensor x) -> Tensor", "unary", 0);'),
}  # fmt: skip
GO = 'return inferred(env, "slate::go(Tensor x) -> Tensor", "", bad);'
VIEW = 'return inferred(env, "slate::go(Tensor(a) x) -> Tensor(a)", "view", bad);'
D = "argument(call)->dl.dtype"
SHAPES = {
    "infer throws": row("its infer let an exception out: boom", GO, infer(BOOM)),
    "infer fails": row("no idea", GO, infer('return fails("no idea");')),
    "infer declares nothing": row("has declared no result 0", GO, infer("(void)call; return 0;")),
    "infer declares too much": row("declares output 4 of 1", GO, infer(f"return ops->declare(call, 4, {D}, 1, shape, 0);")),
    "infer declares twice": row("declares output 0 twice", GO, infer(
        f"TRY(ops->declare(call, 0, {D}, 1, shape, 0)); return ops->declare(call, 0, {D}, 1, shape, 0);")),
    "infer declares a negative size": row(r"the shape \[-3\]; sizes must not be negative", GO,
        infer(f"shape[0] = -3; return ops->declare(call, 0, {D}, 1, shape, 0);")),
    "infer declares 65 dimensions": row("declares 65 dimensions", GO, infer(f"return ops->declare(call, 0, {D}, 65, shape, 0);")),
    "infer declares too many elements": row(r"^error 8: tensor: Storage size calculation overflowed: shape \[1099511627776, 1099511627776, 1099511627776\] has more bytes than 2\^63$", GO, infer(
        f"shape[0] = shape[1] = shape[2] = 1ll << 40; return ops->declare(call, 0, {D}, 3, shape, 0);")),
    "infer declares an unknown dtype": row("declares the unknown", GO,
        infer("DLDataType d = {99, 3, 1}; return ops->declare(call, 0, d, 1, shape, 0);")),
    "a view of no tensor": row("a view of argument 7, which is no tensor", VIEW,
        infer(f"return ops->declare_view(call, 0, 1, 7, {D}, 1, shape, shape, 0);")),
    "a view beyond the memory": row("reaches outside the memory of argument 0", VIEW, infer(f"int64_t one = 1; shape[0] = 1000000;"
        f" return ops->declare_view(call, 0, 1, 0, {D}, 1, shape, &one, 0);")),
    "a view before the memory": row("reaches outside the memory of argument 0", VIEW,
        infer(f"int64_t one = 1; return ops->declare_view(call, 0, 1, 0, {D}, 1, shape, &one, -4);")),
    "a view of a negative size": row(r"a view of shape \[-8\]", VIEW, infer(
        f"int64_t one = 1; shape[0] = -8; return ops->declare_view(call, 0, 1, 0, {D}, 1, shape, &one, 0);")),
}  # fmt: skip
GRAD = "load {} grad slate::go"
GRADIENTS = {
    "a derivative throws": row("its derivative let an exception out: boom", "return derived(env, bad);", vjp(BOOM), words=GRAD),
    "a derivative throws a number": row("its derivative let an unknown exception out", "return derived(env, bad);", vjp("throw 7;"),
        words=GRAD),
    "a derivative fails": row("its derivative: out of fuel", "return derived(env, bad);", vjp('return fails("out of fuel");'), words=GRAD),
    "a derivative of another shape": row(r"a gradient of shape \[3\] for input 0 of shape \[8\]", "return derived(env, bad);",
        vjp("return new_tensor(g->grad_out[0], 3, g->grad_out[0]->dl.dtype, &g->grad_in[0]);"), words=GRAD),
    "a derivative of another dtype": row("a gradient of int64", "return derived(env, bad);",
        vjp("DLDataType d = {kDLInt, 64, 1}; return new_tensor(g->grad_out[0], 8, d, &g->grad_in[0]);"), words=GRAD),
    "a derivative crashes": row("the process crashed", "return derived(env, bad);", vjp("*(volatile int*)8 = 1; return 0;"), words=GRAD,
        code=-signal.SIGSEGV),
    "save_more throws": row("its save_more let an exception out: boom",
        "aj_vjp_def v = good_vjp(same_grad); v.save_more = bad; TRY(pointwise(env, twice)); return tape->def_vjp(env->registrar, &v);",
        callback("aj_status*", "bad", "void* self, const aj_call* done, struct aj_saver* s", "(void)self, (void)done, (void)s; " + BOOM),
        words=GRAD),
    "an op without a derivative": row("slate::go has no gradient; .*plugin 'acme' has the op", words=GRAD),
    "a hook throws": row("its hook let an exception out: boom", "return pointwise(env, hooked);", hook(BOOM), words=GRAD,
        py="y = t.ones(8).requires_grad_()\n"
        "with t.no_grad(): go(y)\ntold((y * 2).sum().backward)"),
    "a hook fails": row("its hook: out of fuel", "return pointwise(env, hooked);", hook('return fails("out of fuel");'),
        py="y = t.ones(8).requires_grad_()\n"
        "with t.no_grad(): go(y)\ntold((y * 2).sum().backward)"),
    "the end of a hook throws": row("its drop function let an exception out: boom", "return pointwise(env, hooked);",
        "static void drop(void* p) { (void)p; " + BOOM + " }\n" + hook("return 0;").replace("bad, 0, 0, 0", "bad, 0, drop, 0"),
        py="y = t.ones(8).requires_grad_()\nwith t.no_grad(): go(y)\ndel y"),
    "what is saved is not packed": row("its pack hook let an exception out: boom", "return pointwise(env, bad);",
        "static aj_status* pack(void* self, aj_tensor* x, aj_object** o) { (void)self, (void)x, (void)o; " + BOOM + " }\n"
        "static aj_status* unpack(void* self, aj_object* o, aj_tensor** x) { (void)self, (void)o, (void)x; return 0; }\n"
        + kernel("TRY(tape->push_saved_hooks(pack, unpack, 0, 0)); return twice(self, call);"),
        py="y = t.ones(8).requires_grad_()\nwith t.no_grad(): go(x)\ntold(y.exp)"),
}  # fmt: skip
OBJECTS = {
    "a function throws": row("its function let an exception out: boom", "return pointwise(env, bad);",
        "static aj_status* run(void* self, const aj_value* a, uint32_t n, aj_value* r) { (void)self," " (void)a, (void)n, (void)r; "
            + BOOM + " }\n"
        + kernel("aj_object* f; aj_value r; TRY(core->function_new(run, 0, 0, &f));"
            " aj_status* s = core->function_call(f, 0, 0, &r); core->release(f); return s;")),
    "a function gives what is not its own": row("which owns nothing", "return pointwise(env, bad);",
        "static aj_status* run(void* self, const aj_value* a, uint32_t n, aj_value* r) { (void)self,"
            " (void)a, (void)n; r->tag = AJ_STRING; return 0; }\n"
        + kernel("aj_object* f; aj_value r; TRY(core->function_new(run, 0, 0, &f));"
            " aj_status* s = core->function_call(f, 0, 0, &r); core->release(f); return s;")),
    "the end of a function throws": row("its drop function let an exception out: boom", "return pointwise(env, bad);",
        "static aj_status* run(void* self, const aj_value* a, uint32_t n, aj_value* r) { (void)self,"
            " (void)a, (void)n, (void)r; return 0; }\n"
        "static void drop(void* p) { (void)p; " + BOOM + " }\n"
        + kernel("aj_object* f; TRY(core->function_new(run, 0, drop, &f)); core->release(f); return twice(self, call);")),
    "destroy throws": row("its destroy function let an exception out: boom",
        'TRY(core->type_register(text("slate"), 8, bad, &slate_type)); return pointwise(env, run);',
        "static void bad(void* p) { (void)p; " + BOOM + " }\n"
        "static aj_status* run(void* self, aj_call* call) { aj_object* o; void* p;"
            " TRY(core->object_new(slate_type, &o, &p)); core->release(o); return twice(self, call); }\n"),
    "destroy crashes": row("the process crashed in a call of slate::go",
        'TRY(core->type_register(text("slate"), 8, bad, &slate_type)); return pointwise(env, run);',
        "static void bad(void* p) { (void)p; *(volatile int*)8 = 1; }\n"
        "static aj_status* run(void* self, aj_call* call) { aj_object* o; void* p;"
            " TRY(core->object_new(slate_type, &o, &p)); core->release(o); return twice(self, call); }\n",
        code=-signal.SIGSEGV),
    "the end of memory throws": row("its drop function let an exception out: boom", "return allocating(env, bad);",
        "static void drop(void* p) { (void)p; " + BOOM + " }\n"
        + kernel("static float room[8]; aj_tensor* y; DLTensor dl = argument(call)->dl; dl.data = room; dl.strides = 0; dl.byte_offset = 0;"
                 " TRY(core->tensor_from_memory(&dl, sizeof room, 0, 0, drop, &y)); return give(call, y);")),
}  # fmt: skip


def device(said, field, parameters, body, **more):
    names = [p.split()[-1].lstrip("*") for p in parameters.split(", ")]
    unused = "".join(f"(void){n.split('[')[0]}; " for n in names)
    more.setdefault("words", "load {} device slate")
    return row(said, f"DEVICE(v.{field} = bad);", callback("aj_status*", "bad", parameters, unused + body), **more)


ALLOC = "void* self, int32_t dev, uint64_t bytes, uint32_t kind, void** out"
FREE = "void* self, int32_t dev, void* p, uint64_t bytes, uint32_t kind"
COPY = "void* self, const aj_copy* c"
DEVICES = {
    "no device can be counted": device("its count: no driver", "count", "void* self, int32_t* out", 'return fails("no driver");'),
    "counting throws": device("its count let an exception out: boom", "count", "void* self, int32_t* out", BOOM),
    "fewer than no devices": device("counts -3 devices", "count", "void* self, int32_t* out", "*out = -3; return 0;"),
    "counting crashes": device("the process crashed", "count", "void* self, int32_t* out", "*(volatile int*)8 = 1; return 0;",
        code=-signal.SIGSEGV),
    "memory at NULL": device("gave NULL and no status", "mem_alloc", ALLOC, "return 0;"),
    "memory that is not aligned": row("is not aligned to 64 bytes", "DEVICE(v.mem_alloc = bad; v.mem_free = keep);",
        callback("aj_status*", "bad", ALLOC,
            "(void)self, (void)dev, (void)kind; *out = (char*)aligned_alloc(64, (bytes + 128) / 64 * 64) + 4;" " return 0;")
        + callback("aj_status*", "keep", FREE, "(void)self, (void)dev, (void)p, (void)bytes, (void)kind; return 0;"),
            words="load {} device slate"),
    "memory that was given before": row("gave memory that it has given before", "DEVICE(v.mem_alloc = bad; v.mem_free = keep);",
        callback("aj_status*", "bad", ALLOC, "static char* room; (void)self, (void)dev, (void)kind;"
            " if (!room) room = (char*)aligned_alloc(64, 64 << 20);"
                 " (void)bytes; *out = room; return 0;")
        + callback("aj_status*", "keep", FREE, "(void)self, (void)dev, (void)p, (void)bytes, (void)kind; return 0;"),
        py="a = t.empty(3 << 20, device='slate')\ntold(lambda: t.empty(3 << 20, device='slate'))"),
    "no memory for ever": device("out of memory.*mem_alloc of plugin 'acme': none left", "mem_alloc", ALLOC,
        'return core->status_new(AJ_OUT_OF_MEMORY, text(""), text("none left"), "", 0);'),
    "memory fails": device("its mem_alloc: the driver is sad", "mem_alloc", ALLOC, 'return fails("the driver is sad");'),
    "allocating throws": device("its mem_alloc let an exception out: boom", "mem_alloc", ALLOC, BOOM),
    "copying fails": device("its copy: bad bus", "copy", COPY, 'return fails("bad bus");'),
    "copying throws": device("its copy let an exception out: boom", "copy", COPY, BOOM),
    "copying crashes": device("the process crashed", "copy", COPY, "*(volatile int*)8 = 1; return 0;", code=-signal.SIGSEGV),
    "work that never passes": row("what is queued there has been waited for for 0 s and is not done yet",
        "DEVICE(v.flags = 0; v.stream_sync = wait_for; v.stream_query = query);",
        callback("aj_status*", "wait_for", "void* self, int32_t dev, void* s", "(void)self, (void)dev, (void)s; return 0;")
        + callback("aj_status*", "query", "void* self, int32_t dev, void* s, int32_t* done",
            "(void)self, (void)dev, (void)s; static int asked; if (!asked++) alarm(2); *done = 0; return 0;"),
        words="load {} device slate", code=-signal.SIGALRM, env={"ADJOIN_WATCHDOG": "0.4"}),
    "waiting fails": row("the queue is lost", "DEVICE(v.flags = 0; v.stream_sync = wait_for);",
        callback("aj_status*", "wait_for", "void* self, int32_t dev, void* s",
            '(void)self, (void)dev, (void)s; return fails("the queue is lost");'),
        words="load {} device slate"),
    "no kernel for its device": row("no plugin has a kernel for fill_ on slate.*plugin 'acme' has the device", "DEVICE((void)0);",
        py="told(lambda: t.ones(2, device='slate'))"),
}  # fmt: skip

GEMM = "void* self, const aj_gemm* g"


def blas(said, score, gemm, **more):
    table = callback("int32_t", "score", GEMM, "(void)self, (void)g; " + score) + "static aj_blas table;\n"
    table += callback("aj_status*", "gemm", GEMM, "(void)self, (void)g; " + gemm)
    init = 'table.struct_size = sizeof table; table.name = text("acme 1.0"); table.score = score; table.gemm = gemm;'
    init += ' return service(env, "aj.blas/cpu", &table);'
    py = "told(lambda: t.ones(70, 80, dtype=t.complex64) @ t.ones(80, 90, dtype=t.complex64))"
    return row(said, init, table, py=py, note={"provides": "service:aj.blas/cpu"}, **more)


SERVICES = {
    "a product fails": blas(
        "the BLAS provider 'acme 1.0': out of fuel", "return 1 << 30;", 'return fails("out of fuel");'
    ),
    "a product throws": blas("the BLAS provider 'acme 1.0': it let an exception out: boom", "return 1 << 30;", BOOM),
    "a score throws": blas("the BLAS provider 'acme 1.0': it let an exception out: boom", BOOM, "return 0;"),
    "a product crashes": blas(
        "the process crashed", "return 1 << 30;", "*(volatile int*)8 = 1; return 0;", code=-signal.SIGSEGV
    ),
}

SETTLE = "void* self, aj_tensor* t, aj_tensor** out"


def wrapper(said, field, parameters, body, py, **more):
    extra = callback("aj_status*", "bad", parameters, "(void)self; " + body)
    return row(said, f"WRAPPER(d.{field} = bad);", extra, py="y = go(x)\n" + py, **more)


UNUSED = "(void)t, (void)out; "
TWO = "void* self, aj_tensor* a, aj_tensor* b, aj_tensor** sum"
SUM = "z = t.ones(8).requires_grad_()\ntold(lambda: (t.autograd.grad(go(z), z, go(x))))\n"
ADD = """
leaf = go(x).detach().requires_grad_()
def pass_(): leaf.backward(go(x))
told(pass_)
told(pass_)
told(pass_)
"""
WRAPPERS = {
    "settle throws": wrapper("its `settle` let an exception out: boom", "settle", SETTLE, UNUSED + BOOM, "told(y.tolist)"),
    "settle throws a number": wrapper("its `settle` let an unknown exception out", "settle", SETTLE, UNUSED + "throw 7;", "told(y.tolist)"),
    "settle fails": wrapper("its `settle`: out of fuel", "settle", SETTLE, UNUSED + 'return fails("out of fuel");', "told(y.tolist)"),
    "settle gives nothing": wrapper("gave no strided tensor", "settle", SETTLE, UNUSED + "return 0;", "told(y.tolist)"),
    "settle gives another shape": wrapper("gave no strided tensor of the same dtype and shape", "settle", SETTLE,
        "return new_tensor(t, 3, t->dl.dtype, out);", "told(y.tolist)"),
    "settle gives another dtype": wrapper("gave no strided tensor of the same dtype and shape", "settle", SETTLE,
        "DLDataType d = {kDLInt, 64, 1}; return new_tensor(t, 8, d, out);", "told(y.tolist)"),
    "settle gives the tensor itself": wrapper("gave no strided tensor", "settle", SETTLE, "core->retain(*out = t); return 0;",
        "told(y.tolist)"),
    "settle asks for the same": wrapper("asks for the same again", "settle", SETTLE, 'return wraps->tensor_strided(t, text("me"), out);',
        "told(y.tolist)"),
    "describe throws": wrapper("its `describe` let an exception out: boom", "describe", "void* self, aj_tensor* t, aj_object** out",
        UNUSED + BOOM, "told(lambda: repr(y))"),
    "describe gives no text": wrapper(r"^gave tensor\(\[1\., 1\., 1\., 1\., 1\., 1\., 1\., 1\.\]\)$", "describe", "void* self, aj_tensor* t, aj_object** out", UNUSED + "return 0;",
        "told(lambda: repr(y))"),
    "parts throws": wrapper("its `parts` let an exception out: boom", "parts", "void* self, aj_tensor* t, aj_object** out", UNUSED + BOOM,
        "import pickle\ntold(lambda: pickle.dumps(y))"),
    "copy throws": wrapper("its `copy` let an exception out: boom", "copy", SETTLE, UNUSED + BOOM,
        "import copy\ntold(lambda: copy.deepcopy(y))"),
    "copy fails": wrapper("its `copy`: out of fuel", "copy", SETTLE, UNUSED + 'return fails("out of fuel");',
        "import copy\ntold(lambda: copy.deepcopy(y))"),
    "add_gradient throws": wrapper("its `add_gradient` let an exception out: boom", "add_gradient", TWO,
        "(void)a, (void)b, (void)sum; " + BOOM, ADD),
    "add_gradient throws a number": wrapper("its `add_gradient` let an unknown exception out", "add_gradient", TWO,
        "(void)a, (void)b, (void)sum; throw 7;", ADD),
    "add_gradient gives nothing": wrapper("gave no tensor of the same dtype and shape", "add_gradient", TWO,
        "(void)a, (void)b, (void)sum; return 0;", ADD),
    "add_gradient gives another shape": wrapper("gave no tensor of the same dtype and shape", "add_gradient", TWO,
        "(void)b; return new_tensor(a, 3, a->dl.dtype, sum);", ADD),
}  # fmt: skip

# Broken so little that nobody has to name the plugin: the values are shown, or the shape is refused.
UNNAMED = {
    "describe gives no text", "infer declares too many elements",
}  # fmt: skip
CASES = (
    FILES
    | LOADING
    | DEFINITIONS
    | CHECKED
    | GARBAGE
    | KERNELS
    | SHAPES
    | GRADIENTS
    | OBJECTS
    | DEVICES
    | SERVICES
    | WRAPPERS
)
CRASHES = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGFPE}


def build(folder, case):
    init, cpp = case.init, case.cpp
    if init is not None and not case.spoil:
        init = "begin(env); " + init
    text = source(
        case.name, init, '#include "broken.h"\n' + case.extra, **{"provides": "ops:slate;device:slate", **case.note}
    )
    if cpp:
        note = "AJ_EXPORT const aj_plugin_note aj_plugin_note_v1;"
        text = "#include <stdexcept>\n" + text.replace(note, f'extern "C" {{ extern {note} }}', 1)
    compiler, suffix, std = ("g++", ".cpp", "-std=c++20") if cpp else ("gcc", ".c", "-std=gnu11")
    flags = ["-O0", "-w", "-D_GNU_SOURCE", std, f"-I{HERE}", *case.flags]
    file = compile_plugin(folder, text, "acme", compiler, flags, suffix=suffix, script=VERSION_SCRIPT)
    if case.spoil:
        case.spoil(file)
    return file


def start(host, folder, case):
    """What it said, and how it ended."""
    plugin = build(folder, case)
    if case.py:
        words = [sys.executable, "-c", LOOK + case.py + "\nprint((-x)[0].item(), 'alive')", plugin]
    elif case.words.startswith("check"):
        words = [ADJOIN, "plugins", *case.words.format(plugin).split()]
    else:
        words = [host, *case.words.format(plugin).split(), "call", "neg"]
    env = clean_environment(**case.env)
    if case.py:
        env["PYTHONPATH"] = os.pathsep.join(
            filter(None, [str(PREFIX / "lib/adjoin/python"), os.environ.get("PYTHONPATH")])
        )
    return subprocess.run(
        [str(w) for w in words], capture_output=True, text=True, timeout=60, env=env, errors="replace"
    )


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory):
    """Those who wait do so together."""
    from abi_tools import build_host

    folder = tmp_path_factory.mktemp("broken")
    host = build_host(folder / "host")
    wanted = [
        item.callspec.params["case"] for item in request.session.items if item.name.startswith("test_it_is_named[")
    ]
    wanted.sort(key=lambda name: "never" not in name)  # those take seconds, and no processor
    with ThreadPoolExecutor(12) as pool:
        yield {name: pool.submit(start, host, folder / str(i), CASES[name]) for i, name in enumerate(wanted)}


@pytest.mark.parametrize("case", CASES)
def test_it_is_named(case, runs):
    wanted, done = CASES[case], runs[case].result()
    said = done.stdout + done.stderr
    assert done.returncode == wanted.code, (done.returncode, said)
    if not wanted.code and "exit" not in case:
        assert ALIVE in done.stdout or "-1.0 alive" in done.stdout, said
    lines = [line for line in said.splitlines() if re.search(wanted.said, line)]
    if case in UNNAMED:
        assert len(lines) == 1, said
        return
    named = [line for line in lines if "acme" in line or (wanted.words.startswith("check") and "libaj_acme.so" in said)]
    assert named, said
    if wanted.code in CRASHES:
        assert any(line.startswith("adjoin: plugin acme 0.1 (") for line in named), said


def test_there_are_enough_of_them():
    assert len(CASES) >= 60 and len(
        {(c.init, c.extra, c.words, c.py, str(c.note), str(c.spoil), c.name) for c in CASES.values()}
    ) == len(CASES)


LEAKS = {
    "settle throws": "y = go(x); fails(y.tolist)",
    "describe throws": "y = go(x); fails(lambda: repr(y))",
    "copy throws": "y = go(x); fails(lambda: copy.deepcopy(y))",
    "parts throws": "y = go(x); fails(lambda: pickle.dumps(y))",
    "add_gradient throws": "leaf = go(x).detach().requires_grad_(); leaf.backward(go(x)); fails(lambda: leaf.backward(go(x)))",
    "add_gradient gives nothing": "leaf = go(x).detach().requires_grad_(); leaf.backward(go(x)); fails(lambda: leaf.backward(go(x)))",
    "a hook throws": "y = t.ones(5000).requires_grad_()\n    with t.no_grad(): go(y)\n    fails((y * 2).sum().backward)",
    "a derivative throws": "y = x.clone().requires_grad_(); fails(go(y).sum().backward)",
    "a kernel throws": "fails(lambda: go(x))",
    "infer throws": "fails(lambda: go(x))",
    "infer declares twice": "fails(lambda: go(x))",
}


@pytest.mark.parametrize("case", LEAKS)
def test_what_fails_leaves_nothing(case, tmp_path):
    program = f"""
import copy, gc, pickle, sys
import adjoin as t
t.load_plugin(sys.argv[1])
go, x = t.ops.slate.go, t.ones(5000)
def fails(f):
    try:
        f()
    except RuntimeError:
        return
    raise AssertionError("nothing failed")
def once():
    {LEAKS[case]}
once()
gc.collect()
held = t.cpu.memory_allocated()
for i in range(50):
    once()
gc.collect()
print(t.cpu.memory_allocated() - held)
"""
    env = clean_environment()
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PREFIX / "lib/adjoin/python"), os.environ.get("PYTHONPATH")]))
    plugin = build(tmp_path, CASES[case])
    done = subprocess.run(
        [sys.executable, "-c", program, str(plugin)], capture_output=True, text=True, timeout=60, env=env
    )
    assert done.returncode == 0 and int(done.stdout) < 4096, done.stdout + done.stderr
