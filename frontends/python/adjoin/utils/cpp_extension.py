"""adjoin.utils.cpp_extension: ops in C, C++ or CUDA, compiled while the program runs or by setuptools.

``load`` takes files that are plugins (they have an AJ_PLUGIN or a note); ``load_inline`` takes text with plain functions over
tensors and makes ops of them. Both compile once for each content and come back in milliseconds the next time. Called again with
changed sources they put the new functions in the place of the old ones: tensors, graphs and names stay as they are.
"""

import hashlib
import importlib
import os
import re
import shutil
import types
from pathlib import Path

from .. import _C
from ._compilers import (  # noqa: F401
    check_compiler_is_gcc,
    check_compiler_ok_for_platform,
    get_compiler_abi_compatibility_and_version,
    get_cxx_compiler,
    is_ninja_available,
    verify_ninja_availability,
)
from ._compile import CompileError, Recipe, find_compiler, include_folder, kind_of  # noqa: F401

_LAZY = {name: "_setuptools" for name in ("BuildExtension", "CppExtension", "CUDAExtension")}


def __getattr__(name):
    if name in _LAZY:
        return getattr(importlib.import_module(f"{__package__}.{_LAZY[name]}"), name)
    if name == "CUDA_HOME":
        nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        return str(Path(nvcc).resolve().parent.parent) if os.path.exists(nvcc) else None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_LAZY, "CUDA_HOME"})


class Extension(types.ModuleType):
    """The ops of one plugin as functions. ``__file__`` is the plugin's file."""

    def __init__(self, name, plugin, path, ops):
        super().__init__(name, f"The ops of the plugin {plugin!r}.")
        self.__file__, self.__plugin__, self.__all__ = str(path), plugin, []
        for full in ops:
            bare = full.split("::")[-1]
            if "." not in bare and not hasattr(self, bare):
                setattr(self, bare, _C.find_op(full))
                self.__all__.append(bare)

    def __repr__(self):
        return f"<extension {self.__name__!r}: {', '.join(self.__all__)}; from {self.__file__!r}>"


def include_paths(device_type="cpu"):
    """Folders for a compiler's -I."""
    return [str(include_folder())]


def library_paths(device_type="cpu"):
    """Folders for a linker's -L: a plugin links nothing of ours, a program links libadjoin."""
    found = include_folder().parent
    return [
        str(p)
        for p in (found / "lib", found / "lib64", *(found / "lib").glob("*-linux-gnu"))
        if (p / "libadjoin.so").exists()
    ]


def get_default_build_root():
    """Where load() keeps what it builds: ADJOIN_EXTENSIONS_DIR, else the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("ADJOIN_EXTENSIONS_DIR") or os.path.join(cache, "adjoin", "extensions")


def _ops_of(plugin):
    """Names of the ops that a plugin defines."""

    def own(names):
        return [n for n in names if any(info["provider"] == plugin for info in _C.op_info(n))]

    names = _C.op_names()
    return own(n for n in names if "::" in n) or own(n for n in names if "::" not in n)


def open_plugin(path, name=None):
    """Loads a plugin's file, in the place of an older one of its name, and returns its ops as a module."""
    plugin = _C.replace_plugin(os.fspath(path))
    return Extension(name or plugin, plugin, path, _ops_of(plugin))


def _words(flags):
    return [flags] if isinstance(flags, str) else list(flags or ())


def remove_extension_h_precompiler_headers():
    """Removes the headers that ``use_pch=True`` has compiled; the next build with it compiles them again."""
    shutil.rmtree(os.path.join(get_default_build_root(), "pch"), ignore_errors=True)


def SyclExtension(name, sources, *args, **kwargs):  # noqa: N802
    """There is none: no compiler for SYCL is driven here."""
    raise NotImplementedError(
        f"SyclExtension: no compiler for SYCL is driven here, {name!r} was not built; CppExtension and CUDAExtension build ops, "
        "`adjoin new-backend` a device of your own, whose build may call any compiler"
    )


def load(
    name, sources, extra_cflags=None, extra_cuda_cflags=None, extra_ldflags=None, extra_include_paths=None,
    build_directory=None, verbose=False, with_cuda=None, is_python_module=True, is_standalone=False, keep_intermediates=True,
    functions=None, use_pch=False,
):  # fmt: skip
    """Compiles sources into a plugin, loads it, and returns its ops as a module (with is_python_module=False: the file's path).

    functions: makes ops of plain C++ functions, as load_inline does, for sources without an AJ_PLUGIN of their own. use_pch: our
    headers are compiled once, which takes 90 MB and halves the time of each build after that.
    """
    if is_standalone:
        raise ValueError("load: a plugin is no program; build one with the flags of `adjoin config --cflags --libs`")
    sources = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    if with_cuda:
        find_compiler("cuda")
    folder = build_directory or os.path.join(get_default_build_root(), name)
    if functions is not None:
        sources = _joined(name, sources, functions, folder)
    recipe = Recipe(
        name, sources, folder, _words(extra_cflags),
        _words(extra_ldflags), _words(extra_include_paths), _words(extra_cuda_cflags), verbose,
        os.path.join(get_default_build_root(), "pch") if use_pch else None,
    )  # fmt: skip
    path = recipe.build()
    opened = open_plugin(path, name)
    return opened if is_python_module else str(path)


def load_inline(
    name, cpp_sources, cuda_sources=None, functions=None, extra_cflags=None, extra_cuda_cflags=None, extra_ldflags=None,
    extra_include_paths=None, build_directory=None, verbose=False, with_cuda=None, is_python_module=True,
    with_pytorch_error_handling=True, keep_intermediates=True, use_pch=False, no_implicit_headers=False,
):  # fmt: skip
    """Makes ops of C++ functions: ``load_inline("mine", "Tensor twice(Tensor x) { return x + x; }", functions="twice")``.

    functions: names, or a dictionary of names and what they do. Without it the sources have an AJ_PLUGIN of their own. A
    function may take and return tensors, numbers, text, lists of them, optional ones; a ``Tensor&`` is written to.
    """
    folder = build_directory or os.path.join(get_default_build_root(), name)
    text = "\n".join(_words(cpp_sources))
    if functions is not None:
        text = _with_plugin(name, text, functions, no_implicit_headers)
    sources = [_kept(folder, f"{name}.cpp", text)]
    if cuda_sources:
        head = "" if no_implicit_headers else _HEAD
        sources.append(_kept(folder, f"{name}.cu", f'{head}#line 1 "{name}.cu"\n' + "\n".join(_words(cuda_sources))))
    return load(
        name, sources, extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths, build_directory, verbose,
        with_cuda, is_python_module, use_pch=use_pch,
    )  # fmt: skip


_HEAD = """#include <adjoin/kit/function.hpp>
#include <adjoin/kit/ops.hpp>
namespace at = adjoin;
namespace torch = adjoin;
using adjoin::Tensor;
#define TORCH_CHECK(good, ...) \\
  do { if (!(good)) adjoin::kit::raise(AJ_INVALID_ARGUMENT __VA_OPT__(, ) __VA_ARGS__); } while (0)
"""


def _joined(name, sources, functions, folder):
    """The C++ among the sources as one file that makes ops of their functions; the others as they are."""
    ours = [Path(s).resolve() for s in sources if kind_of(s) == "c++"]
    text = "\n".join(p.read_text() for p in ours)
    whole = _with_plugin(name, text, functions, False).replace(text, "".join(f'#include "{p}"\n' for p in ours), 1)
    return [_kept(folder, f"{name}.cpp", whole), *(s for s in sources if kind_of(s) != "c++")]


def _kept(folder, file, text):
    """A source file with that text, at a place that only the text decides."""
    place = Path(folder) / "sources" / hashlib.sha256(text.encode()).hexdigest()[:20]
    path = place / file
    if not path.exists():
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = place / f".{os.getpid()}"
        new.write_text(text)
        os.replace(new, path)
    return path


def _with_plugin(name, text, functions, bare):
    plugin = name.lower()
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,40}", plugin):
        raise ValueError(f"load_inline: {name!r} becomes a plugin's name: letters, digits and _ are wanted, at most 41")
    docs = functions if isinstance(functions, dict) else dict.fromkeys(_words(functions), "")
    for f in docs:
        if not re.search(rf"\b{re.escape(f)}\b", text) and '#include "' not in text:
            raise ValueError(f"load_inline: there is no function {f!r} in the sources of {name!r}")
    rows = [
        f'  adjoin::kit::function<&::{f}>(plugin, "{plugin}::{f}", {_quoted(parameters(text, f))}, {_quoted(doc)});\n'
        for f, doc in docs.items()
    ]
    note = f'AJ_PLUGIN(.name = "{plugin}", .version = "0", .provides = "ops:{plugin}")'
    return (
        f'{"" if bare else _HEAD}#line 1 "{name}.cpp"\n{text}\n#line 1 "ops of {name}"\n{note} {{\n{"".join(rows)}}}\n'
    )


def _quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def parameters(text, function):
    """Names and defaults of a function's parameters, as the schema wants them: "x, by=1.0"; "" if they can't be read."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    for found in re.finditer(rf"\b{re.escape(function)}\s*\(", text):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += (text[end] == "(") - (text[end] == ")")
            end += 1
        before, after = text[: found.start()].rstrip(), text[end:].lstrip()
        if (
            depth
            or not before
            or not (before[-1].isalnum() or before[-1] in "_>&*")
            or not after.startswith(("{", ";", "noexcept"))
        ):
            continue
        if re.search(r"\b(return|else|throw)$", before):
            continue
        names = [_parameter(p) for p in _top_level(text[found.end() : end - 1])]
        return ", ".join(names) if all(names) else ""
    return ""


def _top_level(text):
    parts, depth, now = [], 0, ""
    for c in text:
        depth += (c in "<({[") - (c in ">)}]")
        if c == "," and depth == 0:
            parts.append(now)
            now = ""
        else:
            now += c
    return [*parts, now] if now.strip() else parts


def _parameter(text):
    declared, _, default = (part.strip() for part in text.partition("="))
    name = re.search(r"[\s&*>]([A-Za-z_]\w*)$", declared)
    if not name or name[1] in ("const", "int", "double", "float", "bool", "Tensor"):
        return ""
    words = {"true": "True", "false": "False", "std::nullopt": "None", "{}": "None", "nullptr": "None"}
    default = words.get(default, default)
    plain = re.fullmatch(r"(-?\d+\.?\d*(e[-+]?\d+)?)f?|True|False|None", default)
    return f"{name[1]}={plain[1] or default}" if plain else name[1]
