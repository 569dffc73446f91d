"""adjoin.utils._compilers: which compiler of C++ there is, and whether tools of other builds are."""

import os
import re
import shutil
import subprocess

_KNOWN = ("g++", "gcc", "clang++", "clang")


def get_cxx_compiler():
    """The command of the environment's C++ compiler: CXX, or c++."""
    return os.environ.get("CXX", "c++")


def _said(compiler):
    """What a compiler says of itself; "" if it does not run."""
    for option in ("-v", "--version"):
        try:
            command, environment = [*compiler.split(), option], {**os.environ, "LC_ALL": "C"}
            return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stderr
        except (OSError, subprocess.CalledProcessError):
            continue
    return ""


def check_compiler_is_gcc(compiler):
    """Whether the compiler is GCC, under whatever name."""
    said = _said(compiler)
    return "COLLECT_GCC=" in said and "gcc version" in said


def check_compiler_ok_for_platform(compiler):
    """Whether the compiler is there and is GCC or clang, by itself or behind a wrapper."""
    path = shutil.which(compiler)
    if path is None:
        return False
    if any(name in os.path.basename(os.path.realpath(path)) for name in _KNOWN):
        return True
    found = re.search(r"^COLLECT_GCC=(.*)$", _said(compiler), re.MULTILINE)
    if found is None:
        return "clang version" in _said(compiler)
    inner = os.path.realpath(found.group(1).strip())
    return any(name in os.path.basename(inner) for name in _KNOWN)


def is_ninja_available():
    """Whether ninja can be called. Nothing here needs it: load() and BuildExtension compile by themselves."""
    try:
        subprocess.run(["ninja", "--version"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def verify_ninja_availability():
    """Raises RuntimeError if ninja cannot be called."""
    if not is_ninja_available():
        raise RuntimeError("ninja cannot be called; install ninja, or leave the check out: load() compiles without it")


def get_compiler_abi_compatibility_and_version(compiler):
    """(whether plugins that the compiler makes fit, its version). They meet in C alone, so those of any GCC and clang do."""
    from ..torch_version import TorchVersion

    if not check_compiler_ok_for_platform(compiler):
        return False, TorchVersion("0.0.0")
    found = subprocess.run([compiler, "-dumpfullversion", "-dumpversion"], capture_output=True, text=True)
    version = re.search(r"\d+(\.\d+)*", found.stdout)
    return True, TorchVersion(version[0] if version else "0.0.0")
