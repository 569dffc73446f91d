"""adjoin.utils._setuptools: plugins built into a package by setuptools."""

import os
import shutil

import setuptools
from setuptools.command.build_ext import build_ext

from ._compile import Recipe, include_folder


def CppExtension(name, sources, *args, **kwargs):
    """A plugin of a package: "mine.squash" becomes mine/libaj_squash.so.

    One in the folder adjoin_plugins ("adjoin_plugins.squash") is found by adjoin wherever the package is installed.
    """
    kwargs["include_dirs"] = [*kwargs.get("include_dirs", ()), str(include_folder())]
    kwargs.setdefault("language", "c++")
    extension = setuptools.Extension(name, sources, *args, **kwargs)
    extension.adjoin_plugin = True
    return extension


CUDAExtension = CppExtension  # a .cu among the sources goes to nvcc


class BuildExtension(build_ext):
    """The command build_ext, which leaves the files of plugins to adjoin and the rest to setuptools."""

    @classmethod
    def with_options(cls, **options):
        """Kept for setup files that name it; the options of ninja have no meaning here."""
        return cls

    def get_ext_filename(self, fullname):
        folder, _, last = fullname.rpartition(".")
        known = getattr(self, "ext_map", {}).get(fullname) or next(
            (e for e in self.extensions or () if e.name == fullname), None
        )
        if not getattr(known, "adjoin_plugin", False):
            return super().get_ext_filename(fullname)
        return os.path.join(*folder.split("."), f"libaj_{last}.so")

    def build_extension(self, extension):
        """Compiles a plugin and puts it where get_ext_filename says."""
        if not getattr(extension, "adjoin_plugin", False):
            return super().build_extension(extension)
        flags = extension.extra_compile_args or []
        cxx, nvcc = (flags.get("cxx", []), flags.get("nvcc", [])) if isinstance(flags, dict) else (flags, [])
        defines = [f"-D{key}" if value is None else f"-D{key}={value}" for key, value in extension.define_macros]
        links = [f"-L{p}" for p in extension.library_dirs] + [f"-l{lib}" for lib in extension.libraries]
        last = extension.name.rpartition(".")[2]
        folder = os.path.join(os.path.abspath(self.build_temp), f"adjoin-{last}")
        made = Recipe(
            last, extension.sources, folder, [*defines, *cxx], [*links, *extension.extra_link_args],
            extension.include_dirs, [*defines, *nvcc], bool(self.verbose),
        ).build()  # fmt: skip
        out = self.get_ext_fullpath(extension.name)
        os.makedirs(os.path.dirname(out), exist_ok=True)
        shutil.copyfile(made, out)
        return None
