"""tests/abi/dlpack_test.py: our declarations of DLPack have the real header's layout."""

import subprocess
import sys
from pathlib import Path

import pytest

from abi_tools import INCLUDE

PLACES = [
    Path("/usr/include/dlpack/dlpack.h"),
    Path("/usr/local/include/dlpack/dlpack.h"),
    *(Path(p) / "torch/include/ATen/dlpack.h" for p in sys.path if p),
    *Path("/opt").glob("*/lib/python3*/site-packages/torch/include/ATen/dlpack.h"),
]

# struct and fields; what an older header lacks is not compared, and said.
STRUCTS = {
    "DLDevice": ["device_type", "device_id"],
    "DLDataType": ["code", "bits", "lanes"],
    "DLTensor": ["data", "device", "ndim", "dtype", "shape", "strides", "byte_offset"],
    "DLManagedTensor": ["dl_tensor", "manager_ctx", "deleter"],
    "DLPackVersion": ["major", "minor"],
    "DLManagedTensorVersioned": ["version", "manager_ctx", "deleter", "flags", "dl_tensor"],
    "DLPackExchangeAPIHeader": ["version", "prev_api"],
    "DLPackExchangeAPI": [
        "header",
        "managed_tensor_allocator",
        "managed_tensor_from_py_object_no_sync",
        "managed_tensor_to_py_object_no_sync",
        "dltensor_from_py_object_no_sync",
        "current_work_stream",
    ],
}
CODES = [
    "kDLCPU",
    "kDLCUDA",
    "kDLCUDAHost",
    "kDLROCM",
    "kDLROCMHost",
    "kDLExtDev",
    "kDLCUDAManaged",
    "kDLInt",
    "kDLUInt",
    "kDLFloat",
    "kDLOpaqueHandle",
    "kDLBfloat",
    "kDLComplex",
    "kDLBool",
    "DLPACK_FLAG_BITMASK_READ_ONLY",
    "DLPACK_FLAG_BITMASK_IS_COPIED",
]


def measure(header, structs, codes, folder):
    """What a compiler says about a header: sizes, offsets, numbers."""
    lines = [
        f'#include "{header}"',
        "#include <stddef.h>",
        "#include <stdio.h>",
        "int main(void) {",
    ]
    for struct in structs:
        lines.append(f'printf("{struct} %zu\\n", sizeof({struct}));')
        lines += [f'printf("{struct}.{f} %zu\\n", offsetof({struct}, {f}));' for f in STRUCTS[struct]]
    lines += [f'printf("{code} %ld\\n", (long)({code}));' for code in codes]
    file = folder / "measure.c"
    file.write_text("\n".join(lines) + "\n return 0; }\n")
    built = subprocess.run(["gcc", str(file), "-o", str(folder / "measure")], capture_output=True, text=True)
    if built.returncode != 0:
        return None
    out = subprocess.run([str(folder / "measure")], capture_output=True, text=True, check=True).stdout
    return dict(line.rsplit(" ", 1) for line in out.splitlines())


def test_same_layout_as_the_real_header(tmp_path):
    real = next((p for p in PLACES if p.is_file()), None)
    if not real:
        pytest.skip("NOT TESTED: no real dlpack.h on this machine (Debian: libdlpack-dev)")
    theirs, lacking = {}, []
    for struct in STRUCTS:
        found = measure(real, [struct], [], tmp_path)
        theirs.update(found or {})
        lacking += [] if found else [struct]
    for code in CODES:
        found = measure(real, [], [code], tmp_path)
        theirs.update(found or {})
        lacking += [] if found else [code]
    ours = measure(INCLUDE / "adjoin/abi/dlpack.h", STRUCTS, CODES, tmp_path)
    assert {k: ours[k] for k in theirs} == theirs
    assert {"DLDevice", "DLDataType", "DLTensor", "DLManagedTensor"}.isdisjoint(lacking)
    if lacking:
        print(f"not compared, {real} is older: {' '.join(lacking)}")


def test_the_real_header_may_come_first(tmp_path):
    real = next((p for p in PLACES if p.is_file()), None)
    if not real:
        pytest.skip("NOT TESTED: no real dlpack.h on this machine (Debian: libdlpack-dev)")
    if not measure(real, ["DLManagedTensorVersioned"], [], tmp_path):
        pytest.skip(f"NOT TESTED: {real} is older than DLPack 1.0")
    file = tmp_path / "both.c"
    file.write_text(f'#include "{real}"\n#include <adjoin/abi/capi.h>\nDLTensor t;\naj_tensor a;\n')
    subprocess.run(["gcc", "-fsyntax-only", f"-I{INCLUDE}", str(file)], check=True)
