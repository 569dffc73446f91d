"""tests/abi/announced_test.py: kernel tables that announce themselves are found, whoever compiles and links; other ways stay."""

import shutil

import pytest

from abi_tools import compile_plugin, needs_clang, run_python

FIRST = """
#include <adjoin/kit/kit.hpp>
using namespace adjoin;
using namespace adjoin::kit;
namespace {
template <int N>
void times(Body& b) { b.ret(0, b.tensor(0) * N); }
#ifdef ANNOUNCED
AJ_KERNELS(first_kernels) = {{"neg", {body<times<3>>, 0, 0}}, {"abs", {body<times<4>>, 0, 0}}, {nullptr, {nullptr, 0, 0}}};
#endif
}
AJ_PLUGIN(.name = "announced", .version = "1", .provides = "key:announced") {
  uint64_t mask;
  check(dispatch().def_key(plugin.env()->registrar, AJ_STR_LIT("announced"), AJ_KEY_BELOW_AUTOGRAD, &mask));
  static const Kernel named[] = {{"exp", {body<times<5>>, 0, 0}}, {nullptr, {nullptr, 0, 0}}};
  plugin.kernels("announced").kernels("announced", named);
}
"""
SECOND = """
#include <adjoin/kit/kit.hpp>
using namespace adjoin::kit;
namespace stranger {
void seven(Body& b) { b.ret(0, b.tensor(0) * 7); }
AJ_KERNELS(second_kernels) = {{"sqrt", {body<seven>, 0, 0}}, {nullptr, {nullptr, 0, 0}}};
}
"""
PROGRAM = """
import adjoin
x = adjoin.tensor([1.0, 4.0])
with adjoin.plugin.key("announced"):
    print(*(int(f(x).sum()) for f in (adjoin.neg, adjoin.abs, adjoin.sqrt, adjoin.exp)))
"""
STRICT = ["-Wl,-z,defs", "-Wl,--gc-sections", "-ffunction-sections", "-fdata-sections"]


def program(plugin):
    got = run_python(PROGRAM, ADJOIN_PLUGIN_PATH=plugin.parent)  # the name of the key loads it
    assert got.returncode == 0, got.stdout + got.stderr
    return got.stdout


def built(folder, compiler, *flags):
    (folder / "second.cpp").write_text(SECOND)
    common = ["-std=c++20", "-Werror", "-fvisibility=hidden", *flags]
    return compile_plugin(folder, FIRST, "announced", compiler, common, suffix=".cpp")


@pytest.mark.parametrize("compiler", ["g++", pytest.param("clang++", marks=needs_clang)])
@pytest.mark.parametrize("linker", ["bfd", "gold", "lld"])
def test_tables_of_all_files_are_found(tmp_path, compiler, linker):
    """-z defs and --gc-sections included: nothing of a table is lost, none is taken twice."""
    if not shutil.which(f"ld.{linker}"):
        pytest.skip(f"NOT TESTED: ld.{linker} is not installed")
    words = [f"-I{tmp_path}", "-DANNOUNCED", str(tmp_path / "second.cpp"), f"-fuse-ld={linker}"]
    assert program(built(tmp_path, compiler, *words, *STRICT)) == "15 20 35 25\n"


@pytest.mark.parametrize("compiler", ["g++", pytest.param("clang++", marks=needs_clang)])
def test_none_announces_itself(tmp_path, compiler):
    """The section is not there then, and its bounds are null."""
    got = program(built(tmp_path, compiler, *STRICT)).split()
    assert got[3] == "25" and got[0] == "-5"
