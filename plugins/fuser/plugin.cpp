// plugins/fuser/plugin.cpp: a compiler for the processor: chains of element-wise calls and
// reductions of rows as steps over tiles in vector registers.
#include <adjoin/kit/plugin.hpp>

#include "program.hpp"
#include "vector/isa.hpp"

namespace adjoin::fuser {

const aj_graphs* graphs;

namespace {

constexpr aj_str kProgram = AJ_STR_LIT("fuser::program");

int32_t program_type() {
  static const int32_t type = [] {
    int32_t found = 0;
    check(core().type_find(kProgram, &found));
    return found;
  }();
  return type;
}

aj_status* compile_part(void*, const aj_graph* part, aj_object** out) {
  return guard("", [&] {
    auto made = compile(part);
    void* at = nullptr;
    check(core().object_new(program_type(), out, &at));
    *static_cast<Program**>(at) = made.release();
  });
}

aj_status* run_part(void*, aj_object* program, aj_tensor* const* in, aj_tensor* const* out,
                    const int64_t* sizes, void*) {
  return guard(
      "", [&] { run(**static_cast<Program**>(core().object_payload(program)), in, out, sizes); });
}

const aj_compiler table = {sizeof(aj_compiler), 0, nullptr, claim, compile_part, run_part};

}  // namespace
}  // namespace adjoin::fuser

AJ_PLUGIN(.name = "fuser", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "service:aj.compiler/cpu") {
  using namespace adjoin::fuser;
  const aj_plugin_env& env = *plugin.env();
  graphs = static_cast<const aj_graphs*>(env.query("x.graphs", 1));
  if (!graphs) raise(AJ_UNAVAILABLE, "there is no x.graphs; libaj_graph is missing or older");
  if (adjoin::cpu::isa() == adjoin::cpu::Isa::none)
    raise(AJ_UNAVAILABLE, "this build has no vector code for this processor");
  int32_t type;
  check(core().type_register(
      kProgram, sizeof(void*), [](void* p) { delete *static_cast<Program**>(p); }, &type));
  plugin.service("aj.compiler/cpu", "fuser", &table, 0);
}
