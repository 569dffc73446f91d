// extensions/graph/record.hpp: capture: calls are carried out and written down.
#pragma once
#include "ir.hpp"

namespace adjoin::graph {

// What a traced tensor holds: the value of which program it is, and its values.
struct Payload {
  uint64_t recording;
  uint32_t value;
  aj_tensor* real;
};
void register_payload();

aj_status* begin(aj_str name, uint64_t limit);
aj_status* input(aj_tensor* t, aj_str name, aj_tensor** traced);
aj_status* param(aj_tensor* t, aj_str name);
// The program; the thread records no more.
std::unique_ptr<Program> finish(aj_tensor* const* results, uint32_t n);
void cancel();
int32_t capturing();
aj_status* open();
aj_status* carry(aj_tensor* t, aj_tensor** inside);
aj_status* close(aj_tensor* const* results, uint32_t n);
aj_status* branch(aj_tensor* decides, aj_tensor** out, uint32_t n);
aj_status* loop(aj_tensor* const* carried, uint32_t n, aj_tensor** out);

aj_value record_script(Program& p, std::string_view name, std::string_view callee,
                       const aj_value* args, uint32_t nargs, const aj_str* names, uint32_t nnames);

// The kernel at the key "capture", and what a traced tensor does when it is asked for values.
aj_status* serve(void*, aj_call* call);
aj_status* settle(void*, aj_tensor* t, aj_tensor** strided);
aj_status* describe(void*, aj_tensor* t, aj_object** text);

}  // namespace adjoin::graph
