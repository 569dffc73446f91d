// plugins/cuda/switches.cpp: the switches by name.
#include "switches.hpp"

#include <adjoin/kit/error.hpp>
#include <iterator>
#include <string_view>

namespace adjoin::vendor {

constinit Switches switches;

namespace {

struct Named {
  const char* name;
  std::atomic<bool>* value;
};
constexpr Named kAll[] = {{"tf32_products", &switches.tf32_products},
                          {"tf32_convolutions", &switches.tf32_convolutions},
                          {"benchmark", &switches.benchmark},
                          {"deterministic", &switches.deterministic}};

aj_status* set(void*, aj_str name, int32_t on, int32_t* previous) {
  std::string_view wanted(name.data, name.len);
  for (const Named& s : kAll) {
    if (wanted != s.name) continue;
    bool before = s.value->exchange(on != 0);
    if (previous) *previous = before;
    return nullptr;
  }
  return kit::fail(AJ_NOT_FOUND, "cuda: there is no switch '", wanted, "'");
}

}  // namespace

const aj_switches switch_table = {sizeof(aj_switches), 0, nullptr, set};

}  // namespace adjoin::vendor
