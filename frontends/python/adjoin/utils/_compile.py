"""adjoin.utils._compile: turns sources into a plugin's file, once for each content.

A file is named by a digest of everything that it is made from: sources and the headers they include, flags, the compiler, our
headers. Several processes may ask for the same one at once: one compiles, under a lock that ends with its holder, and the file
appears by a rename.
"""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_EXPORTS = "{ global: aj_plugin_note_v1; aj_plugin_init_v1; aj_plugin_drain_v1; local: *; };\n"
_KEPT = 16  # builds of one name that stay on disk
_GPU = {"cuda": ("nvcc", "NVCC"), "hip": ("hipcc", "HIPCC")}


class CompileError(RuntimeError):
    """A compiler's refusal; the message begins with the lines of the user's own files."""


@functools.cache
def include_folder():
    """The folder that holds adjoin/abi and adjoin/kit."""
    package = Path(__file__).resolve().parent.parent
    prefix = os.environ.get("ADJOIN_PREFIX")
    places = [package, *package.parents[:6], *([Path(prefix)] if prefix else [])]
    for place in places:
        if (place / "include/adjoin/abi/base.h").exists():
            return place / "include"
    raise RuntimeError(
        f"cpp_extension: no include/adjoin/abi above {package}; install adjoin with its headers, or set ADJOIN_PREFIX"
    )


@functools.cache
def _headers_digest():
    digest = hashlib.sha256()
    for path in sorted((include_folder() / "adjoin").rglob("*.h*")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@functools.cache
def find_compiler(kind):
    """The command for a kind of source (c, c++, cuda, hip), as words."""
    variable, names, package = {
        "c": ("CC", ("cc", "gcc", "clang"), "gcc"),
        "c++": ("CXX", ("c++", "g++", "clang++"), "g++"),
        "cuda": ("NVCC", ("nvcc", "/usr/local/cuda/bin/nvcc"), "nvidia-cuda-toolkit"),
        "hip": ("HIPCC", ("hipcc", "/opt/rocm/bin/hipcc"), "hipcc"),
    }[kind]
    told = os.environ.get(variable, "").split()
    for words in [told] if told else [[name] for name in names]:
        if shutil.which(words[0]):
            return words
    sought = told[0] if told else ", ".join(names)
    raise RuntimeError(
        f"cpp_extension: no compiler for {kind}: {sought} is not there; install one (apt-get install {package}) or name one in {variable}"
    )


def _identity(words):
    """What tells one compiler from another without running it."""
    path = os.path.realpath(shutil.which(words[0]))
    told = os.stat(path)
    return [*words, path, told.st_size, told.st_mtime_ns]


def kind_of(source):
    """c, c++, cuda or hip, by the file's name."""
    ending = Path(source).suffix
    kind = {".c": "c", ".cu": "cuda", ".hip": "hip"}.get(ending)
    if kind is None and ending not in (".cpp", ".cc", ".cxx", ".c++", ".C"):
        raise ValueError(f"cpp_extension: {source}: the ending {ending!r} is not known; .c .cpp .cc .cxx .cu .hip are")
    return kind or "c++"


class Recipe:
    """Everything that a plugin's file is made from."""

    def __init__(
        self, name, sources, folder, cflags=(), ldflags=(), includes=(), gpu_cflags=(), verbose=False, pch=None
    ):
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", name):
            raise ValueError(f"cpp_extension: {name!r} is no name for a file: letters, digits, _ . - are wanted")
        self.name, self.folder, self.verbose = name, Path(folder), verbose
        self.sources = [Path(s).resolve() for s in sources]
        for s in self.sources:
            if not s.is_file():
                raise FileNotFoundError(f"cpp_extension: {s}: there is no such source")
        if not self.sources:
            raise ValueError("cpp_extension: no sources were given")
        self.kinds = [kind_of(s) for s in self.sources]
        self.gpu = next((k for k in self.kinds if k in _GPU), None)
        self.cflags, self.ldflags, self.gpu_cflags = list(cflags), list(ldflags), list(gpu_cflags)
        self.includes = [str(Path(p).resolve()) for p in includes]
        self.pch = pch  # a folder for precompiled headers of ours, or None

    def digest(self, contents=()):
        """Of the recipe, and of the contents of files."""
        made_of = [self.name, self.kinds, self.cflags, self.ldflags, self.gpu_cflags, self.includes, _headers_digest()]
        made_of += [
            _identity(find_compiler(kind)) for kind in sorted({*self.kinds, "c++"} if self.gpu else set(self.kinds))
        ]
        made_of += [[str(s) for s in self.sources], os.environ.get("CUDA_ARCH"), os.environ.get("HIP_ARCH")]
        digest = hashlib.sha256(json.dumps(made_of).encode())
        for path in contents:
            try:
                digest.update(b"\0" + str(path).encode() + b"\0" + Path(path).read_bytes())
            except OSError:
                digest.update(b"\0gone")
        return digest.hexdigest()[:20]

    def _known(self):
        """The file that is there already, or None."""
        try:
            with open(self._index()) as file:
                included = json.load(file)
        except (OSError, ValueError):
            return None
        path = self.folder / self.digest([*self.sources, *included]) / f"libaj_{self.name}.so"
        return path if path.exists() else None

    def _index(self):
        return self.folder / f"{self.digest()}.json"

    def build(self):
        """The plugin's file, compiled if nobody has."""
        if path := self._known():
            return path
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(self.folder / ".lock"):
            return self._known() or self._compile()

    def _compile(self):
        start = time.time_ns()
        with tempfile.TemporaryDirectory(prefix=".build-", dir=self.folder) as work:
            made = self._commands(Path(work))
            included = sorted(_included(work) - {str(s) for s in self.sources})
            out = self.folder / self.digest([*self.sources, *included])
            out.mkdir(mode=0o700, exist_ok=True)
            path = out / f"libaj_{self.name}.so"
            os.replace(made, path)
            # A source that was written meanwhile may not be what was compiled: the next call compiles again.
            if all(os.stat(p).st_mtime_ns < start for p in [*self.sources, *included]):
                Path(work, "index").write_text(json.dumps(included))
                os.replace(Path(work, "index"), self._index())
        self._tidy(out)
        return path

    def _tidy(self, newest):
        builds = sorted(
            (p for p in self.folder.iterdir() if p.is_dir() and not p.name.startswith(".")),
            key=lambda p: p.stat().st_mtime,
        )
        for old in builds[:-_KEPT]:
            if old != newest:
                shutil.rmtree(old, ignore_errors=True)

    def _commands(self, work):
        """Runs the compilers; returns the linked file."""
        (work / "exports.map").write_text(_EXPORTS)
        out = work / "plugin.so"
        link = ["-shared", f"-Wl,--version-script={work / 'exports.map'}", "-o", str(out), *self.ldflags]
        if len(self.sources) == 1 and not self.gpu:
            self._run([*self._line(0, work), *link])
            return out
        objects = [str(work / f"{i}.o") for i in range(len(self.sources))]
        jobs = [[*self._line(i, work), "-c", "-o", objects[i]] for i in range(len(objects))]
        from concurrent.futures import ThreadPoolExecutor  # rarely needed, and slow to import

        with ThreadPoolExecutor(int(os.environ.get("MAX_JOBS") or os.cpu_count() or 1)) as pool:
            for done in [pool.submit(self._run, job) for job in jobs]:
                done.result()
        if self.gpu:
            tool = find_compiler(self.gpu)
            self._run(
                [
                    *tool,
                    *[w.replace("-Wl,", "-Xlinker=", 1) if self.gpu == "cuda" else w for w in link[:2]],
                    *objects,
                    *link[2:],
                ]
            )
        else:
            self._run([*find_compiler("c++" if "c++" in self.kinds else "c"), *objects, *link])
        return out

    def _line(self, i, work):
        source, kind = self.sources[i], self.kinds[i]
        paths = [f"-I{p}" for p in [*self.includes, include_folder()]]
        depend = ["-MMD", "-MF", str(work / f"{i}.d")]
        if kind == "cuda":
            arch = os.environ.get("CUDA_ARCH") or ("native" if os.path.exists("/dev/nvidia0") else "sm_80")
            words = [
                "-x",
                "cu",
                "-std=c++20",
                "-O2",
                f"-arch={arch}",
                "--expt-relaxed-constexpr",
                "-Xcompiler",
                "-fPIC",
            ]
            return [*find_compiler(kind), *words, *paths, *depend, *self.gpu_cflags, str(source)]
        if kind == "hip":
            words = [
                "-x",
                "hip",
                "-std=c++20",
                "-O2",
                f"--offload-arch={os.environ.get('HIP_ARCH', 'gfx90a')}",
                "-fPIC",
            ]
            return [*find_compiler(kind), *words, *paths, *depend, *self.gpu_cflags, str(source)]
        standard = ["-std=c++20", "-fno-gnu-unique"] if kind == "c++" else ["-std=c11"]
        if "clang" in os.path.basename(find_compiler(kind)[0]):
            standard = [w for w in standard if w != "-fno-gnu-unique"]
        line = [*find_compiler(kind), *standard, "-O2", "-fPIC", *self.cflags]
        ready = ["-include", str(_precompiled(self.pch, tuple(line)))] if self.pch and kind == "c++" else []
        return [*line, *ready, *paths, *depend, str(source)]

    def _run(self, words):
        if self.verbose:
            print(" ".join(words), file=sys.stderr)
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", env={**os.environ, "LC_ALL": "C"}
        )
        if done.returncode:
            raise CompileError(explain(self.name, done.stderr + done.stdout, self.sources))
        if self.verbose and done.stderr:
            print(done.stderr, end="", file=sys.stderr)


@functools.cache
def _precompiled(folder, line):
    """Our headers, read once by the compiler; about 90 MB that halve the time of what includes them."""
    place = (
        Path(folder)
        / hashlib.sha256(json.dumps([line, _identity(list(line[:1])), _headers_digest()]).encode()).hexdigest()[:20]
    )
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    header = place / "adjoin.hpp"
    with _locked(place / ".lock"):
        if not (place / "adjoin.hpp.gch").exists():
            header.write_text("#include <adjoin/kit/function.hpp>\n#include <adjoin/kit/ops.hpp>\n")
            words = [*line, f"-I{include_folder()}", "-x", "c++-header", str(header), "-o", str(place / "new")]
            if not subprocess.run(words, capture_output=True).returncode:  # without it the plain header serves
                os.replace(place / "new", place / "adjoin.hpp.gch")
            for old in sorted(Path(folder).iterdir(), key=lambda p: p.stat().st_mtime)[:-3]:
                shutil.rmtree(old, ignore_errors=True)
    return header


def explain(name, output, sources):
    """A compiler's output with the errors in the user's own lines before everything else."""
    names = {str(s) for s in sources} | {s.name for s in sources}
    own, lines, system = [], output.splitlines(), (str(include_folder()), "/usr/", "ops of ")
    for i, line in enumerate(lines):
        at = re.match(r"([^:\n]+):(\d+):(?:\d+:)? *(.*)", line)
        if not at or not (at[1] in names or not at[1].startswith(system)):
            continue
        if "error: " in at[3] or "required from" in at[3]:
            own.append(f"  {os.path.basename(at[1])}:{at[2]}: {at[3]}")
            own += [f"    {text.strip()}" for text in lines[i + 1 : i + 2] if re.match(r" *\d+ \|", text)]
    if not own:  # in our headers, or the linker's: what the first errors say, without where
        said = [re.split(r"error: |(?=undefined reference)", line, maxsplit=1)[1:] for line in lines]
        own = [f"  {words[0].removeprefix('static assertion failed: ')}" for words in said if words][:2] + [
            "  (no line of yours is named)"
        ]
    first = "\n".join(dict.fromkeys(own))
    if "torch/extension.h" in output or "pybind11" in output:
        first += "\n  (there is no torch/extension.h and no pybind11 here: leave them out and name the functions: functions=[...])"
    if re.search(r"adjoin::Tensor' has no member named|data_ptr", output):
        first += "\n  (ops are functions: transpose(x, 0, 1), sum(x); a tensor has shape(), strides(), ndim(), dtype(), device(), data<float>())"
    if "no matching function for call to 'give(" in output:
        first += "\n  (a function returns Tensor, a list of Tensors, a number, bool, nothing, or a tuple of these)"
    return f"cpp_extension: {name} does not compile:\n{first}\nThe compiler's own words:\n{output.rstrip()}"


def _included(work):
    """The user's headers, out of the files that compilers wrote about dependencies."""
    own = str(include_folder())
    found = set()
    for path in Path(work).glob("*.d"):
        for word in path.read_text().replace("\\\n", " ").partition(":")[2].split():
            if not word.startswith((own, "/usr/")) and Path(word).exists():
                found.add(str(Path(word).resolve()))
    return found


@contextlib.contextmanager
def _locked(path):
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the kernel lets go of it when its holder dies
        yield
