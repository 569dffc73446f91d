"""tests/plugins/vendors_test.py: the plugins cuda and hip where there may be no GPU: they load, say why there is no device,
find their vendor's libraries or say what was tried, and two of a kind serve side by side."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "abi"))
from abi_tools import INCLUDE, PLUGINDIR, ROOT, adjoin, clean_environment

BUILT = [name for name in ("cuda", "hip") if (PLUGINDIR / f"libaj_{name}.so").exists()]
for _name in {"cuda", "hip"} - set(BUILT):
    print(f"NOT TESTED: the plugin {_name} is not built: its compiler or headers are missing", file=sys.stderr)

either = pytest.mark.parametrize("name", BUILT)


def python(program, **extra):
    return subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, env=python_environment(**extra)
    )


def python_environment(**extra):
    return {**clean_environment(**extra), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}


def has_device(name):
    got = python(f"import adjoin; print(adjoin.{name}.device_count())")
    assert got.returncode == 0, got.stderr
    return int(got.stdout) > 0


@pytest.fixture
def without_device(name):
    if has_device(name):
        pytest.skip(f"there is a {name} device here")


@either
def test_loads_and_keeps_the_rules(name):
    got = json.loads(adjoin("plugins", "check", PLUGINDIR / f"libaj_{name}.so", "--json").stdout)
    assert got["ok"], got
    assert got["symbols"] == []


@either
def test_needs_no_library_of_the_vendor_to_load(name):
    got = subprocess.run(
        ["readelf", "-d", PLUGINDIR / f"libaj_{name}.so"], check=True, capture_output=True, text=True
    ).stdout
    needed = [line for line in got.splitlines() if "NEEDED" in line]
    assert needed
    for vendor in ("cuda", "cublas", "cudnn", "cusolver", "nv", "hip", "roc"):
        assert not any(f"[lib{vendor}" in line for line in needed), needed


@either
@pytest.mark.usefixtures("without_device")
def test_says_why_there_is_no_device(name):
    listed = adjoin("plugins", "list").stdout
    assert f"device '{name}': no device, because " in listed
    why = adjoin("plugins", "why", name)
    assert why.returncode == 0
    assert f"device {name}: no device, because " in why.stdout
    got = python(f"import adjoin; adjoin.ones(2, device='{name}')")
    assert f"device '{name}': no device, because " in got.stderr.splitlines()[-1]
    assert "RuntimeError" in got.stderr


@either
@pytest.mark.usefixtures("without_device")
def test_everything_else_goes_on_without_a_device(name):
    program = f"""
import adjoin
assert str(adjoin.device("{name}:1")) == "{name}:1"
assert not adjoin.{name}.is_available() and adjoin.{name}.memory_allocated() == 0
adjoin.{name}.empty_cache(); adjoin.{name}.manual_seed(1); adjoin.manual_seed(1)
try:
    adjoin.{name}.Stream()
except RuntimeError as e:
    assert "no device, because" in str(e)
print(float((adjoin.ones(3) * 2).sum()))
"""
    assert python(program).stdout == "6.0\n"


@either
def test_counting_devices_survives_a_fork(name):
    program = f"""
import adjoin, os
adjoin.{name}.device_count()
pid = os.fork()
if pid == 0:
    adjoin.{name}.device_count()
    os._exit(int(float(adjoin.ones(2).sum()) != 2.0))
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""
    got = python(program)
    assert got.returncode == 0, got.stderr


@either
def test_libraries_are_reported_found_or_not(name):
    lines = adjoin("plugins", "why", name).stdout.splitlines()
    wanted = {"cuda": ["CUDA driver", "cuBLASLt"], "hip": ["HIP", "rocBLAS"]}[name]
    for library in wanted:
        line = next(line for line in lines if line.strip().startswith(f"library {library}"))
        assert ": not found: " in line or ": /" in line or ".so" in line, line


@either
def test_a_library_that_was_named_and_is_missing_is_told(name):
    variable, library = {"cuda": ("ADJOIN_CUBLASLT", "cuBLASLt"), "hip": ("ADJOIN_ROCBLAS", "rocBLAS")}[name]
    got = adjoin("plugins", "why", name, **{variable: "/no/such/library.so"})
    assert f"library {library}: not found: /no/such/library.so: " in got.stdout


def kernels_of(device):
    """The ops that a plugin's own kernels serve, with the dtypes of each. Where nothing is built for it: none."""
    program = f"""
import adjoin
for name in adjoin._C.op_names():
    for line in adjoin._C.explain_op(name, "{device}").splitlines():
        if "plugin {device}, priority 0" in line:
            print(name, line.split("priority 0")[1])
"""
    got = python(program)
    assert got.returncode == 0, got.stderr
    return set(got.stdout.splitlines())


@either
def test_every_kernel_of_the_emulated_gpu_is_there(name):
    wanted = kernels_of("emulated")
    if not wanted:
        pytest.skip("NOT TESTED: the plugin emulated is not built")
    has = kernels_of(name)
    if name == "hip" and not has and not shutil.which("hipcc"):
        pytest.skip("NOT TESTED: hipcc is missing, so hip has no kernels")
    assert has == wanted
    assert len(has) > 100


@either
def test_products_of_the_library_come_before_our_own(name):
    got = python(f"import adjoin; print(adjoin._C.explain_op('mm', '{name}'))")
    lines = [line for line in got.stdout.splitlines() if f"plugin {name}" in line]
    assert "priority 10" in lines[0]
    assert "priority 0" in lines[-1] or (name == "hip" and not shutil.which("hipcc"))


def test_kernels_of_hip_compile_for_another_vendor(tmp_path):
    """HIP's sources through a header that maps its names to CUDA's: what hipcc alone would accept is found here."""
    toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    nvcc = toolkit / "bin/nvcc"
    if not nvcc.exists():
        pytest.skip("NOT TESTED: nvcc is missing")
    plugins = ROOT / "plugins"
    (tmp_path / "hip").mkdir()
    (tmp_path / "hip/hip_runtime.h").write_text(f'#include "{Path(__file__).parent}/hip_on_cuda/names.h"\n')
    source = tmp_path / "softmax.cu"
    source.write_text(f'#include "{plugins}/gpu/kernels/softmax.cuh"\n')
    flags = ["-std=c++20", "-O0", "-Ofc=max", "-arch=sm_90", "--expt-relaxed-constexpr", "-diag-suppress=186,445"]
    flags += [f"-I{INCLUDE}", f"-I{tmp_path}", f"-I{plugins}/hip"]
    flags += ["-DAJ_GPU_TARGET=<target.hpp>", "-DAJ_GPU_RUNTIME=<runtime.hpp>"]
    got = subprocess.run([nvcc, *flags, "-c", source, "-o", tmp_path / "softmax.o"], capture_output=True, text=True)
    assert got.returncode == 0, got.stderr
    assert b"softmax_kernel" in (tmp_path / "softmax.o").read_bytes()


def second(name, folder):
    """The plugin once more under another name, as one built for another version of the vendor's runtime."""
    other = name[:-1] + "2"
    data = (PLUGINDIR / f"libaj_{name}.so").read_bytes()
    at = data.index(b"AJPLUG1\0")
    field = data.index(name.encode() + b"\0", at)
    assert field - at < 64
    file = folder / f"libaj_{other}.so"
    file.write_bytes(data[:field] + other.encode() + data[field + len(name) :])
    return other


@either
def test_two_side_by_side(name, tmp_path):
    other = second(name, tmp_path)
    program = f"""
import adjoin
ours = {{p["name"]: p for p in adjoin._C.plugin_list()}}
assert {{"{name}", "{other}"}} <= set(ours)
for device in ("{name}", "{name}@{name}", "{name}@{other}"):
    try:
        adjoin.ones(2, device=device)
    except RuntimeError as e:
        print(e)
assert {{p["name"] for p in adjoin._C.plugin_list() if p["state"] == 1}} >= {{"{name}", "{other}"}}
"""
    got = python(program, ADJOIN_PLUGIN_PATH=tmp_path)
    assert got.returncode == 0, got.stderr
    if not has_device(name):
        assert got.stdout.count("no device, because") == 3, got.stdout
        assert f"device '{name}@{other}'" in got.stdout or f"device '{name}@{name}'" in got.stdout


def test_hip_runs_over_another_runtime_of_the_same_shape(tmp_path):
    toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    if "hip" not in BUILT or not (toolkit / "lib64/libcudart_static.a").exists():
        pytest.skip("NOT TESTED: the plugin hip or the CUDA toolkit is missing")
    library = tmp_path / "libamdhip64.so"
    source = Path(__file__).parent / "hip_on_cuda/runtime.cpp"
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", f"-I{toolkit}/include", f"-L{toolkit}/lib64"]
    subprocess.run(["g++", *flags, source, "-o", library, "-lcudart_static", "-ldl", "-lrt", "-pthread"], check=True)
    got = adjoin("plugins", "why", "hip", ADJOIN_HIP_RUNTIME=library).stdout
    assert f"library HIP: {library}" in got
    if not has_device("cuda"):
        assert "device hip: no device, because HIP says cudaError" in got
        return
    program = """
import adjoin
x = adjoin.arange(1000, dtype=adjoin.float32)
y = x.to("hip")
assert y.device.type == "hip" and adjoin.equal(y.to("cpu"), x)
with adjoin.hip.stream(adjoin.hip.Stream()) as s:
    z = y.to("cpu")
s.synchronize()
print(float(z.sum()))
"""
    assert python(program, ADJOIN_HIP_RUNTIME=library).stdout == "499500.0\n"


def test_hip_opens_the_runtime_that_was_named(tmp_path):
    if "hip" not in BUILT:
        pytest.skip("NOT TESTED: the plugin hip is not built")
    if not shutil.which("cc"):
        pytest.skip("NOT TESTED: no C compiler")
    source = tmp_path / "empty.c"
    source.write_text("int hipGetDeviceCount(int* n) { *n = 1; return 0; }\n")
    library = tmp_path / "libamdhip64.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    got = adjoin("plugins", "why", "hip", ADJOIN_HIP_RUNTIME=library)
    assert f"{library}: it has no hip" in got.stdout
