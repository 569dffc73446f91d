"""tests/abi/freeze_test.py: today's contract against the candidate: nothing but appending; and each forbidden change is seen."""

import json
import shutil
import subprocess

import pytest

import freeze
from abi_tools import HERE, INCLUDE, LIBADJOIN
from contract import PUBLISHED, read_contract
from contract_diff import compare

CANDIDATE = HERE / freeze.CANDIDATE


@pytest.fixture(scope="module")
def candidate():
    return json.loads((CANDIDATE / "layout.json").read_text())


def test_the_installed_contract_only_appended(candidate):
    broken, added = compare(candidate, read_contract(INCLUDE / "adjoin/abi"))
    assert not broken, "the contract broke what was published:\n" + "\n".join(broken)
    print("appended since:", added)


def test_libadjoin_exports_what_was_published(candidate):
    out = subprocess.run(["nm", "-D", "--defined-only", LIBADJOIN], capture_output=True, text=True, check=True).stdout
    assert set(candidate["functions"]) <= {line.split()[-1].split("@")[0] for line in out.splitlines()}


def test_the_data_are_those_of_the_copies(tmp_path):
    made = freeze.write(freeze.CANDIDATE, abi=CANDIDATE, to=tmp_path)
    for file in ("layout.json", "layout.c"):
        assert (made / file).read_text() == (CANDIDATE / file).read_text(), f"{file}: written by hand? run freeze.py"


def test_structs_keep_to_the_rules(candidate):
    """Sizes first, no hidden padding, no EXTENSIBLE struct inside of another or in an array."""
    grows = {name for name, s in candidate["structs"].items() if s["kind"] == "EXTENSIBLE"}
    for name, s in candidate["structs"].items():
        end = 0
        for field, kind, offset, size in s["fields"]:
            assert offset == end, f"{name}: padding before {field}"
            assert kind.split("[")[0] not in grows, f"{name}.{field}: {kind} may grow: pass a pointer"
            end = offset + size
        assert end == s["size"], f"{name}: padding at the end"
        if name == "aj_plugin_note":  # it grows, though a reader of files wants the magic first
            assert [f[0] for f in s["fields"][:2]] == ["magic", "struct_size"]
        elif name in grows:
            assert s["fields"][0][:2] == ["struct_size", "uint32_t"], name
        if name in grows:
            assert s["size"] % 8 == 0, name


# file, what stands there, what is put in its place, what the complaint says
BREAKS = {
    "field inserted": (
        "core.h",
        "  int32_t (*num_threads)(void);",
        "  int32_t (*cores)(void);\n  int32_t (*num_threads)(void);",
        "aj_core.cores was put in before '",
    ),
    "field removed": ("device.h", "  uint64_t total_memory; ", "", "aj_device_props.total_memory is gone"),
    "last field removed": ("capi.h", "  aj_str ops; ", "  // aj_str ops; ", "aj_plugin_info.ops is gone"),
    "field renamed": (
        "op.h",
        "uint32_t nout, nops;",
        "uint32_t nouts, nops;",
        "aj_plan.nout is gone; 'nouts' stands in",
    ),
    "fields swapped": (
        "service.h",
        "int64_t batch, m, n, k;",
        "int64_t batch, n, m, k;",
        "aj_gemm.n stands in another place",
    ),
    "type changed, size kept": (
        "op.h",
        "  int64_t numel; ",
        "  uint64_t numel;",
        "aj_plan.numel was 'int64_t', is 'uint64_t'",
    ),
    "type widened": (
        "device.h",
        "uint32_t min_alignment;",
        "uint64_t min_alignment;",
        "aj_device_props.min_alignment was",
    ),
    "array grown": ("device.h", "bus_id[32]", "bus_id[64]", "aj_device_props.bus_id was 'char[32]', is 'char[64]'"),
    "function of a table: argument added": (
        "device.h",
        "(*ipc_close)(void* self, int32_t dev, void* p)",
        "(*ipc_close)(void* self, int32_t dev, void* p, uint32_t flags)",
        "aj_device_vtbl.ipc_close was 'aj_status* (*)(void*, int32_t, void*)', is",
    ),
    "function of a table: result changed": (
        "core.h",
        "  void (*status_free)(",
        "  int32_t (*status_free)(",
        "aj_core.status_free was 'void (*)",
    ),
    "callback type changed": (
        "op.h",
        "(*aj_kernel_fn)(void* self, aj_call* call)",
        "(*aj_kernel_fn)(void* self, const aj_call* call)",
        "type aj_kernel_fn was",
    ),
    "frozen struct grown": (
        "base.h",
        "  uint64_t len;\n} aj_str;",
        "  uint64_t len;\n  uint64_t capacity;\n} aj_str;",
        "aj_str is FROZEN and changed: 'capacity' was added",
    ),
    "kind of a struct changed": (
        "autograd.h",
        "aj_save { /* FROZEN",
        "aj_save { /* EXTENSIBLE",
        "aj_save was FROZEN, is EXT",
    ),
    "struct removed": ("service.h", "aj_blas", "aj_products", "struct aj_blas is gone"),
    "struct of DLPack grown": (
        "dlpack.h",
        "(struct DLManagedTensor* self);\n",
        "(struct DLManagedTensor* self);\n  int64_t more;\n",
        "DLManagedTensor is FROZEN and changed: 'more' was added",
    ),
    "type of an enum's name changed": (
        "dlpack.h",
        "  DLDeviceType device_type;\n  int32_t device_id;\n} DLDevice;",
        "  int32_t device_type;\n  int32_t device_id;\n} DLDevice;",
        "DLDevice.device_type was 'DLDeviceType', is 'int32_t'",
    ),
    "reserved word made wider": (
        "op.h",
        "  int32_t priority;    /* the highest that can_run agrees to serves; of equal ones the first defined */\n"
        "  uint32_t reserved;",
        "  int32_t priority;\n  uint64_t reserved;",
        "aj_kernel_def.reserved was 'uint32_t', is 'uint64_t'",
    ),
    "reserved word takes another sign": (
        "op.h",
        "  uint32_t reserved;\n  aj_kernel_fn fn;",
        "  int32_t timeout;\n  aj_kernel_fn fn;",
        "aj_kernel_def.reserved is gone; 'timeout' stands in its place",
    ),
    "name taken back": (
        "op.h",
        "  uint32_t nparams, nresults;",
        "  uint32_t reserved, nresults;",
        "aj_op_info.nparams is gone",
    ),
    "number changed": (
        "base.h",
        "AJ_COMPLEX = 4,\n  AJ_DTYPE = 5,",
        "AJ_COMPLEX = 5,\n  AJ_DTYPE = 4,",
        "AJ_COMPLEX was 4, is 5",
    ),
    "number removed": ("base.h", "AJ_ABORTED = 10,", "", "AJ_ABORTED = 10 is gone"),
    "number reused": ("base.h", "AJ_OBJECT = 71,", "AJ_OBJECT = 71, AJ_RANGE = 12,", "AJ_RANGE takes the number 12"),
    "macro changed": ("plugin.h", 'MAGIC "AJPLUG1"', 'MAGIC "AJPLUG2"', "macro AJ_PLUGIN_MAGIC was"),
    "macro removed": ("base.h", "#define AJ_END_OF(", "#define AJ_BEHIND(", "macro AJ_END_OF(T,f) is gone"),
    "major raised": (
        "base.h",
        "#define AJ_ABI_MAJOR 1",
        "#define AJ_ABI_MAJOR 2",
        "macro AJ_ABI_MAJOR was '1', is '2'",
    ),
    "exported function changed": (
        "capi.h",
        "aj_load_plugin(const char* path)",
        "aj_load_plugin(const char* path, uint32_t flags)",
        "function aj_load_plugin was 'aj_status* (const char*)', is",
    ),
    "exported function removed": (
        "capi.h",
        "aj_abi_version(void)",
        "aj_version(void)",
        "function aj_abi_version is gone",
    ),
}
ADDS = {
    "field appended": (
        "op.h",
        "} aj_dispatch;",
        "  uint64_t later;\n} aj_dispatch;",
        ["aj_dispatch.later"],
    ),
    "number added": ("base.h", "AJ_OBJECT = 71,", "AJ_OBJECT = 71, AJ_RANGE = 72,", ["AJ_RANGE = 72"]),
    "note made longer": (
        "plugin.h",
        "} aj_plugin_note;",
        "  uint32_t later, more;\n} aj_plugin_note;",
        ["aj_plugin_note.later", "aj_plugin_note.more"],
    ),
    "reserved word named": (
        "op.h",
        "  uint32_t reserved;\n  aj_kernel_fn fn;",
        "  uint32_t timeout;\n  aj_kernel_fn fn;",
        ["aj_kernel_def.reserved is timeout"],
    ),
    "function added": (
        "capi.h",
        "AJ_EXPORT uint32_t aj_abi_version(void);",
        "AJ_EXPORT uint32_t aj_abi_version(void);\nAJ_EXPORT uint32_t aj_later(void);",
        ["function aj_later"],
    ),
    "struct added": (
        "service.h",
        "typedef struct aj_blas {",
        "typedef struct aj_more { /* EXTENSIBLE */\n  uint32_t struct_size, flags;\n} aj_more;\ntypedef struct aj_blas {",
        ["struct aj_more"],
    ),
    "macro added": (
        "base.h",
        "#define AJ_ABI_MAJOR 1",
        "#define AJ_ABI_MAJOR 1\n#define AJ_LATER 1",
        ["macro AJ_LATER"],
    ),
    "minor raised": ("base.h", "#define AJ_ABI_MINOR 0", "#define AJ_ABI_MINOR 1", []),
    "parameter renamed": ("core.h", "(*interrupted)(void)", "(*interrupted)( void )", []),
    "comment changed": ("device.h", "Raw memory, aligned", "Memory that is aligned", []),
}


def altered(tmp_path, file, before, after):
    shutil.copytree(CANDIDATE, tmp_path / "abi")
    text = (tmp_path / "abi" / file).read_text()
    assert before in text, "the candidate no longer has what this test alters"
    (tmp_path / "abi" / file).write_text(text.replace(before, after))
    return read_contract(tmp_path / "abi")


@pytest.mark.parametrize("change", BREAKS)
def test_a_forbidden_change_is_named(change, candidate, tmp_path):
    file, before, after, words = BREAKS[change]
    broken, _ = compare(candidate, altered(tmp_path, file, before, after))
    assert any(words in line for line in broken), broken
    assert len(broken) <= 3, "one change, few complaints"


@pytest.mark.parametrize("change", ADDS)
def test_appending_is_allowed(change, candidate, tmp_path):
    file, before, after, wanted = ADDS[change]
    broken, added = compare(candidate, altered(tmp_path, file, before, after))
    assert not broken and added == wanted


def test_a_field_that_moves_unexplained_is_named(candidate):
    other = json.loads(json.dumps(candidate))
    other["structs"]["aj_copy"]["fields"][2][2] += 8
    broken, _ = compare(candidate, other)
    assert broken == ["aj_copy.dst moved from byte 8 to 16: a published field keeps its place"]


def test_other_headers_are_not_frozen():
    """They are experimental: what is not counted may change."""
    assert sorted(h.name for h in CANDIDATE.glob("*.h")) == PUBLISHED
    assert {h.name for h in (INCLUDE / "adjoin/abi").glob("*.h")} > set(PUBLISHED)
