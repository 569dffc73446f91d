"""tests/packages/wheel_test.py: the wheel, in an empty environment that has no compiler in PATH."""

import json
import os
import pathlib
import statistics
import subprocess
import sysconfig
import tarfile
import zipfile

import pytest
from wheels import MIB, ROOT, environment, newest, ok, python, run, site_of

NATIVE = "_C" + sysconfig.get_config_var("EXT_SUFFIX")


@pytest.fixture(scope="session")
def empty(wheel, tmp_path_factory):
    return environment(tmp_path_factory.mktemp("empty"), wheel)


@pytest.fixture(scope="session")
def site(empty):
    return site_of(empty) / "adjoin"


def test_sizes(wheel):
    files = zipfile.ZipFile(wheel).infolist()
    whole = sum(f.file_size for f in files)
    print(f"wheel {wheel.stat().st_size / MIB:.1f} MiB, unpacked {whole / MIB:.1f} MiB")
    assert wheel.stat().st_size <= 15 * MIB and whole <= 50 * MIB
    (core,) = [f.file_size for f in files if f.filename == "adjoin/lib/libadjoin.so"]
    assert core <= 3 * MIB


def test_it_has_what_it_should_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    rooms = {name.split("/")[0] for name in names}
    assert rooms == {"adjoin", f"adjoin-{wheel.name.split('-')[1]}.dist-info"}
    for wanted in [
        f"adjoin/{NATIVE}",
        "adjoin/bin/adjoin",
        "adjoin/include/adjoin/abi/plugin.h",
        "adjoin/include/adjoin/adjoin.hpp",
        "adjoin/include/adjoin/kit/ops.hpp",
        "adjoin/lib/adjoin/plugins-1/libaj_cpu.so",
        "adjoin/lib/adjoin/plugins-1/libaj_reference.so",
        "adjoin/lib/pkgconfig/adjoin.pc",
        "adjoin/share/adjoin/plugin.map",
        "adjoin/share/adjoin/templates/op/c/acme.c",
    ]:
        assert wanted in names
    endings = {pathlib.PurePath(n).suffix for n in names}
    assert not endings & {".pyc", ".a", ".o", ".in", ".gen"}
    assert [n for n in names if n.endswith(".toml")] == [n for n in names if n.endswith("bindings/rust/Cargo.toml")]
    assert not [n for n in names if "test" in n.rsplit("/", 1)[-1] and "templates" not in n]


def dynamic(file, tag):
    lines = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split("[")[1].rstrip("]") for line in lines if f"({tag})" in line]


def test_it_links_the_system_and_itself_alone(site):
    system = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0"}
    for file in [site / NATIVE, site / "bin/adjoin", *site.glob("lib/**/*.so")]:
        own = {"libadjoin.so"} if file.name in (NATIVE, "adjoin") else set()
        assert set(dynamic(file, "NEEDED")) <= system | own, file
        paths = dynamic(file, "RUNPATH")
        assert paths == ({NATIVE: ["$ORIGIN/lib"], "adjoin": ["$ORIGIN/../lib"]}.get(file.name, [])), file


def test_import_and_a_step(empty, site):
    code = "import adjoin; x = adjoin.ones(3, 2, requires_grad=True); (x @ x.T).sum().backward(); print(x.grad.sum().item()); "
    code += "print(adjoin.__file__); print({m.split()[-1] for m in open('/proc/self/maps') if 'libadjoin' in m})"
    lines = python(empty, code).splitlines()
    assert lines == ["36.0", str(site / "__init__.py"), str({str(site / "lib/libadjoin.so")})]


def test_figures_of_import(empty):
    code = "import time; t = time.perf_counter(); import adjoin; print(time.perf_counter() - t); "
    code += "print([int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmRSS')][0] / 1024)"
    seconds, memory = zip(*[map(float, python(empty, code).split()) for _ in range(5)])
    print(f"import {statistics.median(seconds):.3f} s, {statistics.median(memory):.0f} MiB")
    assert min(seconds) <= 0.15 and statistics.median(memory) <= 60


def test_the_command(empty, site):
    got = json.loads(ok(run(empty, "adjoin", "config", "--json")))
    assert got["cflags"] == f"-I{site}/include" and got["libdir"] == str(site / "lib")
    listed = json.loads(ok(run(empty, "adjoin", "plugins", "list", "--json")))
    assert {p["name"] for p in listed} >= {"cpu", "reference"} and {p["state"] for p in listed} == {"found"}
    assert "add(Operand input" in ok(run(empty, "adjoin", "ops", "add"))
    assert ok(run(empty, empty / "bin/python", "-m", "adjoin", "--version")) == ok(run(empty, "adjoin", "--version"))


def test_doctor_has_no_complaint(empty, site):
    got = run(empty, "adjoin", "doctor", "--json")
    findings = json.loads(got.stdout)
    assert got.returncode == 0 and findings["ok"], got.stdout
    notes = {f["name"]: f for f in findings["findings"] if f["state"] == "note"}
    assert notes["compiler"]["remedy"] == "apt-get install g++"
    (package,) = [f for f in findings["findings"] if (f["section"], f["name"]) == ("Python", "adjoin")]
    assert package["text"].endswith(str(site))
    assert "no complaint" in ok(run(empty, "python", "-m", "adjoin.utils.collect_env"))


def test_an_extension_compiles_against_it(empty, tmp_path):
    made = run(empty, "adjoin", "new-op", "squash", "--lang", "c", "--out", tmp_path / "squash")
    ok(made)
    flags = ok(run(empty, "adjoin", "config", "--cflags", "--ldflags")).split()
    command = ["gcc", "-std=c99", "-shared", "-fPIC", *flags, "squash.c", "-o", "libaj_squash.so"]
    subprocess.run(command, check=True, cwd=tmp_path / "squash")
    verdict = run(empty, "adjoin", "plugins", "check", tmp_path / "squash/libaj_squash.so")
    assert verdict.returncode == 0, verdict.stdout
    python(empty, f"import adjoin; adjoin.load_plugin({str(tmp_path / 'squash/libaj_squash.so')!r}); adjoin.ops.squash")


def test_a_program_builds_by_its_pkg_config(empty, site, tmp_path):
    (tmp_path / "one.cpp").write_text(
        "#include <adjoin/adjoin.hpp>\n#include <cstdio>\n"
        'int main() { auto x = adjoin::ones({2, 3}); std::printf("%g\\n", adjoin::sum(x).item<double>()); }\n'
    )
    env = {**os.environ, "PKG_CONFIG_PATH": str(site / "lib/pkgconfig")}
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "adjoin"], env=env, capture_output=True, text=True, check=True
    )
    subprocess.run(["g++", "-std=c++20", "one.cpp", "-o", "one", *flags.stdout.split()], cwd=tmp_path, check=True)
    assert ok(run(empty, tmp_path / "one")) == "6\n"


def test_the_demo(empty, tmp_path):
    pytest.importorskip("sklearn")
    others = sysconfig.get_path("purelib")  # scikit-learn and NumPy are the demo's, not the wheel's
    words = ["-m", "adjoin.demo.digits", "--epochs", "1", "--seeds", "1", "--out", tmp_path / "out"]
    got = ok(run(empty, empty / "bin/python", *words, PYTHONPATH=others))
    assert got.splitlines()[-1].startswith("held-out accuracy: 0.")


def test_the_source_archive_is_what_git_has(built):
    archive = newest(built, "adjoin-*.tar.gz")
    with tarfile.open(archive) as tar:
        inside = {name.split("/", 1)[1] for name in tar.getnames() if "/" in name and tar.getmember(name).isfile()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode == 0:
        assert inside - {"PKG-INFO"} == {f for f in tracked.stdout.split("\n") if f and (ROOT / f).is_file()}
    assert {"PKG-INFO", "meson.build", "pyproject.toml", "LICENSE"} <= inside
