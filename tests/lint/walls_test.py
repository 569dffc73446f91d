"""tests/lint/walls_test.py: lint says no to what it is there to keep out, each fault in a copy of the house."""

import pathlib
import shutil
import subprocess
import sys
import tomllib

import pytest

import machine_code
import measure
import sass

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = '["softmax", "log_softmax", "relu", "gelu", "silu", "mish", "selu", "celu"]'
FAULTS = {  # file, what is put at its end; the script; what it says
    "an arrow up": ("core/base/status.cpp", '#include "core/call/frame.hpp"\n', "house.py", "core/call/frame.hpp"),
    "a folder without a floor": (
        "core/cellar/one.cpp",
        "// core/cellar/one.cpp: a room.\n",
        "house.py",
        "has no place",
    ),
    "two tests of one name": ("tests/python/nn/rows_test.py", "# a test\n", "house.py", "has this name, too"),
    "a core that includes a plugin": (
        "core/op/kinds.cpp",
        '#include "plugins/cpu/device.hpp"\n',
        "house.py",
        "core includes",
    ),
    "a backend's name in the core": (
        "core/op/kinds.cpp",
        'const char* best = "cuda";\n',
        "house.py",
        "names a backend",
    ),
    "a number read by the locale": (
        "core/op/kinds.cpp",
        "double n = strtod(text, nullptr);\n",
        "house.py",
        "the locale",
    ),
    "a file too long": ("core/op/kinds.cpp", "//\n" * 800, "house.py", "make two rooms"),
    "an op's name in the core": ("core/op/kinds.cpp", 'const char* one = "softmax";\n', "names.py", "the op softmax"),
    "a second list of ops": ("frontends/python/adjoin/hub.py", f"_KNOWN = {NAMES}\n", "names.py", "a list of 8 names"),
    "one in a string": (
        "frontends/python/adjoin/hub.py",
        f"_KNOWN = '{' '.join(eval(NAMES))}'.split()\n",
        "names.py",
        "a list of 8 names",
    ),
    "one in bench": ("bench/memory.py", f"_KNOWN = {NAMES}\n", "names.py", "bench/memory.py"),
    "a type twice in a program": (
        "core/op/kinds.cpp",
        "namespace adjoin {\nstruct Frame {\n  int a;\n};\n}  // namespace adjoin\n",
        "twins.py",
        "Frame",
    ),
}


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """What git knows of this checkout, in a folder of its own."""
    copy = tmp_path_factory.mktemp("house")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    subprocess.run(["git", "init", "-q", "."], cwd=copy, check=True)
    return copy


def look(house, script):
    done = subprocess.run([sys.executable, f"tests/lint/{script}"], cwd=house, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("script", ["house.py", "names.py", "twins.py"])
def test_the_house_passes(house, script):
    code, said = look(house, script)
    assert code == 0, said


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told(house, fault):
    name, more, script, told = FAULTS[fault]
    path = house / name
    before = path.read_text() if path.exists() else None
    path.parent.mkdir(exist_ok=True)
    path.write_text((before or "") + more)
    try:
        code, said = look(house, script)
    finally:
        path.unlink() if before is None else path.write_text(before)
    assert code == 1 and told in said, said
    assert pathlib.Path(name).name in said


@pytest.mark.parametrize(
    "name, text", [("core/op/more.cpp", "int   a ;\n"), ("bench/more.py", "a   = 1\n"), ("run.sh", "cd $1\n")]
)
def test_what_is_not_in_form_is_told(house, name, text):
    tools = ("clang-format", "shellcheck")
    if not all(map(shutil.which, tools)) or not (ROOT / ".venv/bin/ruff").exists():
        pytest.skip(f"NOT TESTED: {', '.join(tools)} or ruff is missing; ./run setup installs them")
    few = house.parent / f"form{name.replace('/', '_')}"
    (few / name).parent.mkdir(parents=True)
    (few / name).write_text(text)
    (few / "run").write_text("#!/bin/sh\n")
    for kept in (".clang-format", "pyproject.toml", "tests/lint/format.sh"):
        (few / kept).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / kept, few / kept)
    (few / ".venv").symlink_to(ROOT / ".venv")
    subprocess.run(["git", "init", "-q", "."], cwd=few, check=True)
    subprocess.run(["git", "add", "-A"], cwd=few, check=True)
    done = subprocess.run(["bash", "tests/lint/format.sh"], cwd=few, capture_output=True, text=True)
    assert done.returncode != 0 and pathlib.Path(name).name in done.stdout + done.stderr, done.stdout + done.stderr


def test_the_path_of_a_call_is_as_measure_lists_it():
    """Each function that measure.py counts is where it says."""
    for listed in (measure.CALL, measure.GENERAL):
        lines, functions, files = measure.path_of_call(listed)
        assert lines > functions >= files > 0


LOOPS = """
.text.f:
        /*0000*/                   S2R R0, SR_TID.X ;
.L_x_1:
        /*0010*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
.L_x_2:
        /*0020*/                   LDG.E R8, desc[UR4][R2.64] ;
        /*0030*/                   HMMA.16816.F32 R8, R4, R6, R8 ;
        /*0040*/              @!P0 BRA `(.L_x_4) ;
.L_x_3:
        /*0050*/               @P1 BRA `(.L_x_2) ;
        /*0060*/                   CALL.ABS.NOINC `(g) ;
        /*0070*/               @P0 BRA `(.L_x_1) ;
        /*0080*/                   STL [R1], R8 ;
        /*0090*/                   EXIT ;
.L_x_4:
        /*00a0*/                   FFMA R8, R8, R8, R8 ;
        /*00b0*/                   BRA `(.L_x_3) ;
.L_x_5:
        /*00c0*/                   BRA `(.L_x_5);
.text.g:
        /*0000*/                   CALL.REL.NOINC `($g$__cuda_sm20_div_s64) ;
        /*0010*/                   RET.REL.NODEC R20 `(g) ;
"""


def test_loops_are_found_in_machine_code():
    bodies = sass.bodies_of(LOOPS.splitlines())
    said = bodies["f"].measures({"g"})
    assert len(said["loops"]) == 1
    assert (
        said["loops"][0].items()
        >= {"loads": 1, "matrix": 1, "plain": 1, "wide": 0, "instructions": 6, "load_bytes": 4}.items()
    )
    assert said["loads_wide"] and not said["stores_wide"] and said["matrix_in_loops"] == 1
    assert said["divides_in_loops"] and said["local_in_loops"] == 0
    assert bodies["g"].measures(set())["loops"] == []
    assert said["frame"] and not bodies["g"].frame
    assert sass.reached(bodies, "f") == {"g"}


def kernel(source, name, **more):
    loop = {"loads": 4, "matrix": 1, "plain": 0, "wide": 1, "load_bytes": 16, "store_bytes": 16}
    said = {
        "stack": 0,
        "frame": False,
        "framed": [],
        "local_in_loops": 0,
        "divides_in_loops": False,
        "loads": True,
        "loads_wide": True,
        "stores_wide": True,
        "loops": [loop],
    }
    return {"arch": "sm_90", "source": source, "kernel": True, "name": name, **said, **more}


GOOD_KERNELS = [
    kernel("softmax", "void softmax_kernel<float>(float)"), kernel("attention", "void attention_kernel<adjoin::kit::Half>()"),
    kernel("reduce", "void fold_kernel<float>()"), kernel("copy", "void flat_kernel<Move<float>, float, float, 1, float>()"),
    *(kernel("unary", f"void flat_kernel<Exp<float>, {t}, {t}, 1, float>()") for t in ("float", "adjoin::kit::Half", "adjoin::kit::BFloat16")),
]  # fmt: skip
WORSE_KERNELS = {
    "stack: softmax: 1": (0, {"stack": 8}),
    "stack: attention: 1": (1, {"stack": 8, "frame": True}),
    "stack: reduce: 1": (2, {"stack": 16, "framed": ["long adjoin::gpu::divide<adjoin::kit::scalar::Sin>(long)"]}),
    "local_memory: attention: 1": (1, {"local_in_loops": 2}),
    "no_matrix_unit: attention: 1": (1, {"loops": [{"loads": 4, "matrix": 0, "plain": 1, "wide": 1}]}),
    "few_loads: reduce: 1": (2, {"loops": [{"loads": 1, "matrix": 0, "plain": 0, "wide": 0}]}),
    "narrow: copies: 1": (3, {"stores_wide": False}),
    "narrow: float32: 1": (4, {"loads_wide": False}),
    "narrow: bfloat16: 1": (6, {"name": "void map_kernel<>()"}),
    "division: softmax: 1": (0, {"divides_in_loops": True}),
}


def gates(kernels, table, compiler="13.0", megabytes=8):
    found = {"functions": kernels, "sizes": {"sm_90": 1}, "packed": megabytes * 10**6}
    result = machine_code.all_figures(found)
    return machine_code.compared(result, table, compiler)


@pytest.fixture(scope="module")
def good():
    result = machine_code.all_figures({"functions": GOOD_KERNELS, "sizes": {"sm_90": 1}, "packed": 8 * 10**6})
    return tomllib.loads(machine_code.written(result, "13.0"))


@pytest.mark.parametrize("told", WORSE_KERNELS)
def test_machine_code_that_is_worse_is_told(good, told):
    place, change = WORSE_KERNELS[told]
    worse = [each | (change if at == place else {}) for at, each in enumerate(GOOD_KERNELS)]
    assert gates(GOOD_KERNELS, good) == ([], [])
    wrong, _ = gates(worse, good)
    assert any(line.startswith(f"sm_90: {told}, at most 0 was reached") for line in wrong), wrong
    bad = tomllib.loads(
        machine_code.written(machine_code.all_figures({"functions": worse, "sizes": {"sm_90": 1}, "packed": 1}), "13.0")
    )
    assert gates(worse, bad) == ([], [])  # it is not reached, and stands so
    assert any("better than the table's 1: write it down" in line for line in gates(GOOD_KERNELS, bad)[0])
    wrong, unseen = gates(worse, bad, compiler="14.0")
    assert wrong == [] and any("not reached; the table is of compiler 13.0" in line for line in unseen)


def test_a_loop_that_needs_no_load_is_not_narrow(good):
    """A constant of every element: what is left of the last 16 bytes may read its element."""
    rest = {"loads": 1, "matrix": 0, "plain": 0, "wide": 0, "load_bytes": 1, "store_bytes": 1}
    fills = rest | {"loads": 0, "load_bytes": 0, "store_bytes": 16}
    for loops, wrong in (([rest, fills], 0), ([rest, fills | {"loads": 1, "load_bytes": 1}], 1)):
        kernels = [*GOOD_KERNELS[:4], GOOD_KERNELS[4] | {"loads_wide": False, "loops": loops}, *GOOD_KERNELS[5:]]
        assert len(gates(kernels, good)[0]) == wrong


def test_stacks_of_functions_of_elements_are_not_counted(good):
    calls = {
        "stack": 48,
        "framed": ["__internal_lgamma_pos", "adjoin::kit::scalar_complex::exp(adjoin::kit::Complex<double>)"],
    }
    assert gates([each | calls for each in GOOD_KERNELS], good) == ([], [])


def test_a_package_that_is_too_large_is_told(good):
    wrong, _ = gates(GOOD_KERNELS, good, megabytes=13)
    assert [line.split(",")[0] for line in wrong] == ["package: megabytes: one: 13.0"]


def test_a_kernel_that_spills_is_told(tmp_path):
    """One of ours, compiled: an array on the stack, a division, a load of 4 bytes."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not pathlib.Path(nvcc).exists() or not all(map(sass.tool, ("cuobjdump", "nvdisasm"))):
        pytest.skip("NOT TESTED: nvcc, cuobjdump or nvdisasm is missing")
    (tmp_path / "cuda_softmax.cu").write_text("""
__global__ void softmax_kernel(const float* from, float* to, const int* where, long n, long width) {
  float kept[32];
  for (int i = 0; i < 32; ++i) kept[i] = from[i];
  for (long i = threadIdx.x; i < n; i += 128) { kept[where[i] & 31] += from[i / width]; to[i % width] = kept[where[i + 1] & 31]; }
}
__global__ void good_kernel(const float4* from, float4* to) { to[threadIdx.x] = from[threadIdx.x]; }
""")
    library = tmp_path / "lib.so"
    command = [
        nvcc,
        "-arch=sm_90",
        "--shared",
        "-Xcompiler=-fPIC",
        "-cudart=none",
        "-o",
        library,
        tmp_path / "cuda_softmax.cu",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    functions, _, sizes = sass.read(library)
    said = {each["name"].split("(")[0]: each for each in functions if each["kernel"]}
    assert list(sizes) == ["sm_90"] and {each["source"] for each in functions} == {"softmax"}
    bad, good = said["softmax_kernel"], said["good_kernel"]
    assert bad["stack"] >= 128 and bad["frame"] and not good["frame"]
    assert bad["local_in_loops"] > 0 and bad["divides_in_loops"] and not bad["loads_wide"]
    assert good["stack"] == 0 and good["loads_wide"] and good["stores_wide"] and good["loops"] == []
    figures = machine_code.figures(functions)
    assert figures["stack"] == figures["local_memory"] == figures["division"] == {"softmax": (1, 2)}
