"""adjoin.utils.ffi: C functions as ops, with nothing but their header: no wrapper code.

``create_extension("mine", headers="mine.h", sources="mine.c").build()`` reads the declarations and gives a module whose functions
take tensors where C takes pointers. ``float*`` is a float32 tensor in C order on the host, ``const`` one that is only read; the
others are written to, and count as written. ``aj_tensor*`` and ``DLTensor*`` take any tensor as it is. Numbers, ``bool`` and ``const
char*`` are themselves; sizes are arguments like others. A number that the function returns comes back.
"""

import os
import re
from pathlib import Path

from ._compile import Recipe
from .cpp_extension import _kept, get_default_build_root, open_plugin

# C's names, ours, and the macro part that says the same to the compiler.
_ELEMENTS = {
    "float": "float32", "double": "float64", "int8_t": "int8", "int16_t": "int16", "int32_t": "int32", "int64_t": "int64",
    "uint8_t": "uint8", "uint16_t": "uint16", "uint32_t": "uint32", "uint64_t": "uint64", "int": "int32", "short": "int16",
    "long": "int64", "long long": "int64", "signed char": "int8", "unsigned char": "uint8", "bool": "bool", "_Bool": "bool",
    "float _Complex": "complex64", "double _Complex": "complex128",
}  # fmt: skip
_INTEGERS = {"int", "long", "long long", "short", "char", "signed char", "size_t", "ptrdiff_t", "ssize_t", "unsigned"}
_INTEGERS |= {f"unsigned {word}" for word in ("char", "short", "int", "long", "long long")}
_INTEGERS |= {f"{u}int{n}_t" for u in ("", "u") for n in (8, 16, 32, 64)}
_KEYWORDS = {
    "def",
    "class",
    "lambda",
    "in",
    "is",
    "from",
    "import",
    "pass",
    "with",
    "as",
    "not",
    "and",
    "or",
    "None",
    "True",
    "False",
    "del",
}


class _Parameter:
    def __init__(self, text, place, function):
        words = re.sub(r"\[[^]]*\]", "*", text).replace("*", " * ").split()
        self.const = "const" in words
        words = [w for w in words if w not in ("const", "restrict", "__restrict", "__restrict__", "struct", "register")]
        self.stars = words.count("*")
        words = [w for w in words if w != "*"]
        known = {*_ELEMENTS, *_INTEGERS, "float", "double", "bool", "aj_tensor", "DLTensor", "char", "void"}
        named = len(words) > 1 and " ".join(words) not in known
        self.name = words.pop() if named else f"arg{place}"
        if self.name in _KEYWORDS:
            self.name += "_"
        self.type, self.text = " ".join(words), text.strip()
        self.function = function

    def refuse(self):
        """For what has no counterpart."""
        if self.type.startswith("TH"):
            raise ValueError(
                f"create_extension: {self.function}: there are no {self.type} any more; say const float* for what is read, float* for "
                "what is written, and sizes as int64_t; aj_tensor* takes a tensor as it is"
            )
        raise ValueError(
            f"create_extension: {self.function}: the parameter '{self.text}' has no counterpart; pointers to numbers, aj_tensor*, "
            "DLTensor*, numbers, bool and const char* have"
        )

    def schema(self, letter):
        """The parameter in a schema."""
        if self.stars == 1 and self.type == "char" and self.const:
            return f"str {self.name}"
        if self.stars == 1 and (self.type in _ELEMENTS or self.type in ("aj_tensor", "DLTensor")):
            dtypes = f"<{_ELEMENTS[self.type]}>" if self.type in _ELEMENTS else ""
            return f"Tensor{dtypes}{'' if self.const else f'({letter}!)'} {self.name}"
        if self.stars == 0:
            word = (
                "bool"
                if self.type in ("bool", "_Bool")
                else "int"
                if self.type in _INTEGERS
                else "float"
                if self.type in ("float", "double")
                else ""
            )
            if word:
                return f"{word} {self.name}"
        return self.refuse()

    def argument(self, i):
        """C that takes the parameter out of the call."""
        if self.stars and self.type == "char":
            return f"text{i}"
        if self.type == "aj_tensor":
            return f"call->args[{i}].v.tensor"
        if self.type == "DLTensor":
            return f"(DLTensor*)&call->args[{i}].v.tensor->dl"
        if self.stars:
            return f"({self.type}*)memory{i}"
        return f"({self.type})call->args[{i}].v.{'f' if self.type in ('float', 'double') else 'i'}"

    def before(self, i):
        """C that makes ready what the argument needs."""
        if self.stars and self.type == "char":
            return f"  char text{i}[4096]; if (copy_text(call, {i}, text{i}, sizeof text{i})) return too_long({_c(self.name)});\n"
        if self.stars and self.type not in ("aj_tensor", "DLTensor"):
            return f"  void* memory{i}; if ((bad = dense(call, {i}, {_c(self.name)}, &memory{i}))) return bad;\n"
        if self.stars:
            return f"  if ((bad = unrecorded(call, {i}, {_c(self.name)}))) return bad;\n"
        return ""


def _c(text):
    return f'AJ_STR_LIT("{text}")'


class _Function:
    def __init__(self, result, name, parameters):
        self.name = name
        self.result = " ".join(w for w in result.split() if w not in ("extern", "const"))
        texts = [p for p in parameters.split(",") if p.strip() not in ("", "void")]
        self.parameters = [_Parameter(p, i, name) for i, p in enumerate(texts)]
        integer, real = self.result in _INTEGERS, self.result in ("float", "double")
        self.kind = "float" if real else "int" if integer else "bool" if self.result in ("bool", "_Bool") else ""
        if not self.kind and self.result != "void":
            raise ValueError(
                f"create_extension: {name}: its result '{self.result}' has no counterpart; numbers and void have"
            )

    def schema(self, space):
        """The op's signature."""
        parts = [p.schema(chr(ord("a") + i % 26)) for i, p in enumerate(self.parameters)]
        return f"{space}::{self.name}({', '.join(parts)}) -> {self.kind or '()'}"

    def body(self):
        """C that calls it."""
        call = f"{self.name}({', '.join(p.argument(i) for i, p in enumerate(self.parameters))})"
        tag, part = {"float": ("AJ_FLOAT", "f"), "int": ("AJ_INT", "i"), "bool": ("AJ_BOOL", "i")}.get(
            self.kind, ("", "")
        )
        run = (
            f"  call->rets[0] = (aj_value){{{tag}, 0, {{0}}}};\n  call->rets[0].v.{part} = {call};\n"
            if self.kind
            else f"  {call};\n"
        )
        before = "".join(p.before(i) for i, p in enumerate(self.parameters))
        return f"aj_status* run_{self.name}(void* self, aj_call* call) {{\n  aj_status* bad = NULL;\n{before}{run}  return bad;\n}}\n"


def declarations(text):
    """The functions that a header declares; everything else in it is passed over."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:\\\n|[^\n])*", " ", text, flags=re.S | re.M)
    text = re.sub(r'extern\s*"C"\s*\{?|__attribute__\s*\(\(.*?\)\)', " ", text)
    text = re.sub(r"\{[^{}]*\}", " ", text)
    found = []
    for statement in text.split(";"):
        at = re.fullmatch(r"\s*}?\s*((?:\w+[\s*]+)+?)(\w+)\s*\(([^()]*)\)\s*}?\s*", statement, flags=re.S)
        if at and not re.search(r"\b(typedef|static|inline|return|struct\s*$)\b", at[1]) and "*" not in at[1]:
            found.append(_Function(at[1], at[2], at[3]))
    return found


_HEAD = """/* Written by adjoin.utils.ffi. */
#include <adjoin/abi/plugin.h>
#include <stdbool.h>
#include <string.h>
%(includes)s
AJ_PLUGIN_NOTE("%(space)s", "0", "", "", "ops:%(space)s", "");
static const aj_core* core;
static const aj_autograd* tape;
static aj_status* refuse(aj_str name, const char* why) {
  char text[256] = {0};
  size_t n = name.len < 100 ? name.len : 100;
  memcpy(text, name.data, n);
  strncpy(text + n, why, sizeof text - n - 1);
  return core->status_new(AJ_INVALID_ARGUMENT, AJ_STR_LIT(""), (aj_str){text, strlen(text)}, "", 0);
}
/* The tape would not see what C does: no gradient may silently be zero. */
static inline aj_status* unrecorded(aj_call* call, int i, aj_str name) {
  if (!(call->args[i].v.tensor->obj.flags & AJ_TENSOR_REQUIRES_GRAD) || !tape->grad_mode()) return NULL;
  return refuse(name, ": it requires grad and C functions are not recorded; call .detach(), or wrap them in a Function");
}
static inline aj_status* dense(aj_call* call, int i, aj_str name, void** out) {
  const aj_tensor* t = call->args[i].v.tensor;
  if (t->dl.device.device_type != kDLCPU) return refuse(name, ": a tensor on the device cpu is wanted; call .cpu()");
  if (!(t->obj.flags & AJ_TENSOR_DENSE)) return refuse(name, ": a tensor in C order is wanted; call .contiguous()");
  *out = (char*)t->dl.data + t->dl.byte_offset;
  return unrecorded(call, i, name);
}
static inline bool copy_text(aj_call* call, int i, char* to, size_t room) {
  const aj_value* v = &call->args[i];
  if (v->aux >= room) return true;
  memcpy(to, v->v.str, v->aux);
  to[v->aux] = 0;
  return false;
}
static inline aj_status* too_long(aj_str name) { return refuse(name, ": the text is longer than 4095 bytes"); }
"""
_INIT = """
AJ_PLUGIN_INIT {
  struct { aj_str schema; aj_kernel_fn run; } rows[] = {
%s  };
  const aj_dispatch* dispatch = env->query("aj.op", 1);
  aj_status* bad = NULL;
  core = env->core;
  tape = env->query("aj.autograd", 1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows && !bad; ++i) {
    aj_op_def def = {sizeof def, .schema = rows[i].schema, .tags = AJ_STR_LIT("function-only"), .body = rows[i].run};
    bad = dispatch->def_op(env->registrar, &def);
  }
  return bad;
}
"""


def _plugin_source(space, headers, functions):
    head = _HEAD % {"includes": "\n".join(f'#include "{h}"' for h in headers), "space": space}
    rows = "".join(f"      {{{_c(f.schema(space))}, run_{f.name}}},\n" for f in functions)
    return head + "".join("static " + f.body() for f in functions) + _INIT % rows


class Extension:
    """What create_extension returns: build() compiles and loads it."""

    def __init__(self, name, headers, sources, relative_to, options):
        self.name = name.rsplit(".", 1)[-1]
        self.space = self.name.lower()
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.space):
            raise ValueError(f"create_extension: {name!r}: letters, digits and _ are wanted")
        base = Path(relative_to)
        base = base if base.is_dir() else base.parent
        *folders, _ = name.split(".")
        self.package = base.resolve().joinpath(*folders) if folders else None
        self.headers = [str((base / h).resolve()) for h in _listed(headers)]
        self.sources = [str((base / s).resolve()) for s in _listed(sources)]
        self.options = options
        self.functions = [f for h in self.headers for f in declarations(Path(h).read_text())]
        if not self.functions:
            raise ValueError(f"create_extension: no function is declared in {', '.join(self.headers)}")

    def build(self):
        """Compiles, or finds what was compiled before; returns the module of its functions."""
        o = self.options
        folder = o.get("build_directory") or os.path.join(get_default_build_root(), f"ffi-{self.name}")
        wrapper = _kept(folder, f"{self.name}_ffi.c", _plugin_source(self.space, self.headers, self.functions))
        flags = [f"-D{k}={v}" if v is not None else f"-D{k}" for k, v in o.get("define_macros", ())] + list(
            o.get("extra_compile_args", ())
        )
        links = (
            [f"-L{p}" for p in o.get("library_dirs", ())]
            + [f"-l{p}" for p in o.get("libraries", ())]
            + list(o.get("extra_link_args", ()))
        )
        path = Recipe(
            self.name,
            [*self.sources, wrapper],
            folder,
            flags,
            links,
            o.get("include_dirs", ()),
            (),
            o.get("verbose", False),
        ).build()
        if self.package:
            _write_package(self.package, self.name, path)
        return open_plugin(path, self.name)


def _write_package(base, name, path):
    """base/name.py, which loads the functions when a program imports it."""
    base.mkdir(parents=True, exist_ok=True)
    text = (
        f'"""{name}: written by adjoin.utils.ffi."""\n\nfrom adjoin.utils.cpp_extension import open_plugin as _open\n\n'
        f"_opened = _open({str(path)!r}, {name!r})\n__all__ = _opened.__all__\n"
        "globals().update({name: getattr(_opened, name) for name in __all__})\n"
    )
    (base / f"{name}.py").write_text(text)


def _listed(x):
    return [x] if isinstance(x, (str, os.PathLike)) else list(x)


def create_extension(name, headers, sources, verbose=False, with_cuda=False, package=False, relative_to=".", **kwargs):
    """C functions as ops: ``create_extension("mine", headers="mine.h", sources="mine.c").build()``.

    A name in a package, ``_ext.mine``, also writes ``_ext/mine.py``, which programs import: ``from _ext import mine``.

    relative_to: the folder, or a file in it, that paths start from. Further keywords are distutils' own: include_dirs, define_macros,
    libraries, library_dirs, extra_compile_args, extra_link_args; and build_directory.
    """
    known = {
        "include_dirs",
        "define_macros",
        "libraries",
        "library_dirs",
        "extra_compile_args",
        "extra_link_args",
        "build_directory",
    }
    if extra := set(kwargs) - known:
        raise TypeError(f"create_extension: unknown {', '.join(sorted(extra))}; {', '.join(sorted(known))} are known")
    if with_cuda:
        raise ValueError("create_extension: C functions run on the host; a .cu goes to adjoin.utils.cpp_extension.load")
    return Extension(name, headers, sources, relative_to, {**kwargs, "verbose": verbose})
