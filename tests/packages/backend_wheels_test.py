"""tests/packages/backend_wheels_test.py: a backend alone, installed beside adjoin: found without a setting, what is missing told
with the command that brings it, and over simulated libraries (tests/plugins/paper_card) it trains."""

import json
import re
import subprocess
import sysconfig
import zipfile

import pytest
from paper import BODIES, VENDORS, either, needs_cuda
from wheels import MIB, environment, install, make, newest, ok, pip, python, run, site_of

LIBRARIES = {  # and what brings them
    "cuda": {"cuBLASLt": "pip install nvidia-cublas-cu12", "cuDNN": "pip install nvidia-cudnn-cu12"},
    "hip": {"rocBLAS": "apt-get install rocblas"},
}
DRIVER = {"cuda": ("ADJOIN_CUDA_DRIVER", "nvidia-driver"), "hip": ("ADJOIN_HIP_RUNTIME", "hip-runtime-amd")}


@pytest.fixture(scope="session")
def backends():
    return {name: newest(make(name), f"adjoin_{name}-*.whl") for name in VENDORS}


@pytest.fixture(scope="session")
def both(wheel, backends, tmp_path_factory):
    return environment(tmp_path_factory.mktemp("both"), wheel, *backends.values())


@pytest.fixture(scope="session")
def plain(wheel, tmp_path_factory):
    """adjoin alone."""
    return environment(tmp_path_factory.mktemp("plain"), wheel)


def call_it(card, *files):
    """The simulated card under names that are looked for."""
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        command = ["gcc", "-shared", "-o", file, f"-Wl,-soname,{file.name}", "-Wl,--no-as-needed", card]
        subprocess.run([*command, f"-Wl,-rpath,{card.parent}"], check=True)


@pytest.fixture(scope="session")
def loaders(card, tmp_path_factory):
    """A folder of the loader's, with all of NVIDIA's."""
    folder = tmp_path_factory.mktemp("loaders")
    names = ("cuda.so.1", "cublasLt.so.13", "cublas.so.13", "cusolver.so.12", "cufft.so.12", "cudnn.so.9")
    call_it(card, *(folder / f"lib{name}" for name in names))
    return folder


def surroundings(name, card, loaders, orders=""):
    """Of hip the runtime is named, for one that is found asks for the kernel's driver."""
    paper = {"ADJOIN_PAPER_CARD": orders, "ADJOIN_PAPER_CARD_BODIES": BODIES}
    of_hip = (
        "ADJOIN_HIP_RUNTIME",
        "ADJOIN_HIPBLASLT",
        "ADJOIN_ROCBLAS",
        "ADJOIN_HIPSOLVER",
        "ADJOIN_HIPBLAS",
        "ADJOIN_HIPFFT",
    )
    return paper | ({"LD_LIBRARY_PATH": loaders} if name == "cuda" else dict.fromkeys(of_hip, card))


@either
def test_it_is_one_file_and_small(name, backends):
    wheel = backends[name]
    files = {f.filename: f for f in zipfile.ZipFile(wheel).infolist()}
    plugin = files.pop(f"adjoin_plugins/libaj_{name}.so")
    print(f"{wheel.name} {wheel.stat().st_size / MIB:.1f} MiB, unpacked {plugin.file_size / MIB:.1f} MiB")
    assert wheel.stat().st_size <= 12 * MIB
    assert wheel.name.endswith(f"-py3-none-{sysconfig.get_platform().replace('-', '_')}.whl")
    (about,) = {name.split("/")[0] for name in files}
    metadata = zipfile.ZipFile(wheel).read(f"{about}/METADATA").decode()
    version = about.removesuffix(".dist-info").split("-")[1]
    assert f"\nName: adjoin-{name}\nVersion: {version}\n" in metadata
    assert re.findall("^Requires-Dist: (.*)$", metadata, re.M) == [
        f"adjoin ~= {version}"
    ]  # and nothing of the vendor's


@either
def test_it_comes_and_goes(name, backends, plain):
    def files():
        return sorted(p for p in site_of(plain).rglob("*") if "__pycache__" not in p.parts)

    before = files()
    assert run(plain, "adjoin", "plugins", "why", name).returncode == 1
    install(plain, backends[name])
    listed = json.loads(ok(run(plain, "adjoin", "plugins", "list", "--json")))
    file = site_of(plain) / f"adjoin_plugins/libaj_{name}.so"
    assert (name, str(file)) in [(p["name"], p["path"]) for p in listed]
    # A program that is not Python's, with libadjoin of the package.
    assert f"plugin {name} " in ok(run(plain, site_of(plain) / "adjoin/bin/adjoin", "plugins", "why", name))
    pip(plain, "uninstall", "-q", "-y", f"adjoin-{name}")
    assert files() == before


def test_importing_opens_none_of_it(both):
    code = "import adjoin; print(adjoin.ones(3).sum().item()); maps = open('/proc/self/maps').read(); "
    code += "print([word for word in ('libaj_cuda', 'libaj_hip', 'libcuda', 'libamdhip64') if word in maps])"
    assert python(both, code) == "3.0\n[]\n"


@either
def test_what_is_missing_is_told(name, both):
    variable, package = DRIVER[name]
    why = ok(run(both, "adjoin", "plugins", "why", name, **{variable: "/no/such/library.so"}))
    reason = f"device '{name}': no device, because "
    (told,) = [line for line in why.splitlines() if f"device {name}: no device, because " in line]
    assert "cannot be used" in told and "/no/such/library.so: " in told and f"apt-get install {package}" in told
    lines = [line.strip() for line in why.splitlines()]
    for library, command in LIBRARIES[name].items():
        (found,) = [line for line in lines if line.startswith(f"library {library}")]
        missing = [line for line in lines if line.startswith(f"missing: {library}: ")]
        if ": not found: " in found:  # where was it looked for?
            assert "; looked for " in found and str(site_of(both)) in found
            assert len(missing) == 1 and command in missing[0], why
        else:
            assert not missing
    got = run(both, both / "bin/python", "-c", f"import adjoin; adjoin.ones(2, device='{name}')")
    if got.returncode:  # here is no GPU
        assert f"RuntimeError: {reason}" in got.stderr.splitlines()[-1]


@pytest.fixture
def elsewhere(name, backends, tmp_path):
    """Another place of packages, with the backend."""
    site = tmp_path / "site-packages"
    with zipfile.ZipFile(backends[name]) as wheel:
        wheel.extract(f"adjoin_plugins/libaj_{name}.so", site)
    return site


@either
def test_it_may_lie_in_another_place_of_python(name, plain, elsewhere):
    """adjoin for all, the backend for one user."""
    file = elsewhere / f"adjoin_plugins/libaj_{name}.so"
    assert f"plugin {name} " in ok(run(plain, "adjoin", "plugins", "why", name, PYTHONPATH=elsewhere))
    code = f"import adjoin; print([p['path'] for p in adjoin._C.plugin_list() if p['name'] == '{name}'])"
    assert python(plain, code, PYTHONPATH=elsewhere) == f"{[str(file)]}\n"


@either
def test_one_of_another_contract_is_told(name, plain, elsewhere):
    file = elsewhere / f"adjoin_plugins/libaj_{name}.so"
    data = bytearray(file.read_bytes())
    at = data.index(b"AJPLUG1\0") + 12  # the note's abi_major
    data[at : at + 2] = (2).to_bytes(2, "little")
    file.write_bytes(data)
    why = ok(run(plain, "adjoin", "plugins", "why", name, PYTHONPATH=elsewhere))
    assert re.search(rf"plugin {name} .*: refused: built for ABI 2\.\d+, this libadjoin serves 1\.\d+", why), why


@either
def test_it_trains_the_digits(name, both, card, loaders, tmp_path):
    pytest.importorskip("sklearn")
    around = surroundings(name, card, loaders)
    why = ok(run(both, "adjoin", "plugins", "why", name, **around))
    assert f"device {name}: 2 devices" in why and "not found" not in why and "missing: " not in why, why
    around["PYTHONPATH"] = sysconfig.get_path("purelib")  # scikit-learn is the demo's
    losses = {}
    for device in ("cpu", name):
        out = tmp_path / device
        words = ["--seeds", "1", "--steps", "5", "--device", device, "--out", str(out)]
        python(both, f"from adjoin.demo import digits; digits.BATCH = 16; digits.main({words})", **around)
        (losses[device],) = json.loads((out / "losses.json").read_text())["losses"]
    assert losses[name] == pytest.approx(losses["cpu"], rel=1e-5) and len(losses[name]) == 5


DRIVER_12_4 = "version=12040"


def with_driver_alone(card, folder):
    call_it(card, folder / "driver/libcuda.so.1")
    return surroundings("cuda", card, folder / "driver", DRIVER_12_4)


@needs_cuda
@pytest.mark.parametrize(
    "variable, value, root",
    [("VIRTUAL_ENV", "", ""), ("HOME", "", ".local"), ("ADJOIN_PYTHON", "bin/python3", "")],
    ids=["the active environment", "the user's packages", "those of the interpreter"],
)
def test_libraries_in_packages_of_python_are_found(variable, value, root, both, card, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").write_text("")
    file = tmp_path / root / "lib/python3.11/site-packages/nvidia/cublas/lib/libcublasLt.so.12"
    call_it(card, file)
    around = with_driver_alone(card, tmp_path) | {variable: tmp_path / value}
    assert f": {file}\n" in ok(run(both, "adjoin", "plugins", "why", "cuda", **around))
    file.parent.chmod(0o777)
    why = ok(run(both, "adjoin", "plugins", "why", "cuda", **around))
    assert f"'{file.parent}' may be written by everybody; only places" in why


@needs_cuda
def test_what_does_not_fit_the_driver_is_told(both, card, tmp_path):
    """A driver that is too old for the kernels, and libraries of other versions."""
    site = tmp_path / "lib/python3.11/site-packages/nvidia"
    files = [site / "cu11/lib/libcublasLt.so.11", site / "cu13/lib/libcublasLt.so.13"]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text("")
    around = with_driver_alone(card, tmp_path) | {"VIRTUAL_ENV": tmp_path}
    call_it(card, tmp_path / "driver/libcudnn.so.9")
    why = ok(run(both, "adjoin", "plugins", "why", "cuda", **around))
    assert re.search(r"missing: a driver of CUDA \d+: .* the driver serves up to 12\.4; apt-get install", why), why
    assert f"of another version: {files[0]}, {files[1]}; looked for" in why and "missing: cuBLASLt: " in why
    assert "libcudnn.so.9: it is for CUDA 13.0, and the driver serves up to 12.4" in why and "missing: cuDNN: " in why
