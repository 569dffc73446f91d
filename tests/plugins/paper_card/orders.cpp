// tests/plugins/paper_card/orders.cpp: what a test orders and asks, as exported functions of C.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>

#include "card.hpp"

namespace paper {

Orders orders;
Counts counts;

bool is_due(std::atomic<int64_t>& countdown) {
  return countdown > 0 && countdown.fetch_sub(1) == 1;
}

namespace {

const std::map<std::string, std::atomic<int64_t>*>& known() {
  static const auto* all = new std::map<std::string, std::atomic<int64_t>*>{
      {"devices", &orders.devices}, {"memory", &orders.memory},
      {"version", &orders.version}, {"fail_alloc", &orders.fail_alloc},
      {"full", &orders.full},       {"lost", &orders.lost},
      {"wrong", &orders.wrong},     {"fail_kernel", &orders.fail_kernel},
      {"hang", &orders.hang},       {"no_image", &orders.no_image},
      {"idle", &orders.idle},       {"delay_us", &orders.delay_us}};
  return *all;
}

void set(const char* text) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    size_t equals = word.find('=');
    auto it = known().find(word.substr(0, equals));
    if (it == known().end() || equals == std::string::npos) {
      std::fprintf(stderr, "paper card: the order '%s' is not known\n", word.c_str());
      std::abort();
    }
    *it->second = std::atoll(word.c_str() + equals + 1);
  }
}

[[maybe_unused]] const bool read = [] {
  if (const char* text = std::getenv("ADJOIN_PAPER_CARD")) set(text);
  return true;
}();

}  // namespace

const char* name_of(int result) {
  switch (result) {
    case kSuccess:
      return "SUCCESS";
    case kInvalidValue:
      return "INVALID_VALUE";
    case kOutOfMemory:
      return "OUT_OF_MEMORY";
    case kNotInitialized:
      return "NOT_INITIALIZED";
    case kNoDevice:
      return "NO_DEVICE";
    case kNoImage:
      return "NO_BINARY_FOR_GPU";
    case kIllegalAddress:
      return "ILLEGAL_ADDRESS";
    case kLaunchFailure:
      return "LAUNCH_FAILED";
    default:
      return "ERROR_OF_PAPER";
  }
}
const char* text_of(int result) {
  switch (result) {
    case kOutOfMemory:
      return "out of memory";
    case kNoDevice:
      return "no card of paper is here";
    case kNoImage:
      return "no kernel image is available for execution on the device";
    case kIllegalAddress:
      return "an illegal memory access was encountered";
    case kLaunchFailure:
      return "unspecified launch failure";
    default:
      return "what the card of paper refuses";
  }
}

}  // namespace paper

extern "C" {
void paper_order(const char* text) { paper::set(text); }
int64_t paper_count(const char* what) {
  std::string name = what;
  auto& c = paper::counts;
  return name == "launches"       ? c.launches.load()
         : name == "allocations"  ? c.allocations.load()
         : name == "refused"      ? c.refused.load()
         : name == "contexts"     ? c.contexts.load()
         : name == "waits"        ? c.waits.load()
         : name == "products"     ? c.products.load()
         : name == "convolutions" ? c.convolutions.load()
         : name == "recordings"   ? c.recordings.load()
         : name == "ranges"       ? c.ranges.load()
         : name == "solutions"    ? c.solutions.load()
         : name == "transforms"   ? c.transforms.load()
         : name == "plans"        ? c.plans.load()
         : name == "plans_alive"  ? c.plans_alive.load()
                                  : -1;
}
}
