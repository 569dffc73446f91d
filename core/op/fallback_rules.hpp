// core/op/fallback_rules.hpp: the policies for ops that a device lacks, and the ledger.
#pragma once
#include <adjoin/abi/op.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace adjoin {

enum class FallbackPolicy { error, warn, decompose, host };

// By default a body serves, and what has none is an error.
struct FallbackRule {
  FallbackPolicy policy = FallbackPolicy::error;
  std::string device;                  // who serves; "": the host
  uint64_t budget = ~0ull, moved = 0;  // bytes
};

FallbackRule fallback_rule(const std::string& op, const std::string& device);
void fallback_note(const std::string& op, const std::string& device, const std::string& reason,
                   uint64_t in, uint64_t out, uint64_t ns);
// Tells of what ADJOIN_FALLBACK asks for and nobody can do.
void fallback_from_environment();
// May the op's body serve on the device? Not where a rule names the op and says otherwise.
bool body_may_serve(const std::string& op, const std::string& device);
aj_status* set_fallback(aj_str op, aj_str device, aj_str policy);
uint32_t fallback_count();
aj_status* fallback_at(uint32_t i, aj_fallback_entry* io);

}  // namespace adjoin
