// tests/plugins/paper_card/orders.cpp: what a test orders and asks, as exported functions of C.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

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
      {"idle", &orders.idle},       {"delay_us", &orders.delay_us},
      {"record", &orders.record}};
  return *all;
}

struct Answer {
  int64_t code = 0, countdown = 1;
  bool loses = false;
};
struct Answers {
  std::mutex lock;
  std::map<std::string, Answer> by_step;
  std::atomic<bool> any{false};
};
Answers& answers() {
  static auto* one = new Answers;
  return *one;
}

void set_answer(bool loses, const std::string& text) {
  std::istringstream parts(text);
  std::string step, code, n;
  std::getline(parts, step, ':');
  std::getline(parts, code, ':');
  std::getline(parts, n);
  std::lock_guard held(answers().lock);
  answers().by_step[step] = {std::atoll(code.c_str()), n.empty() ? 1 : std::atoll(n.c_str()),
                             loses};
  answers().any = true;
}

// What was ordered and has not come about is forgotten; what was lost is there again.
void forget() {
  std::lock_guard held(answers().lock);
  answers().by_step.clear();
  answers().any = false;
  for (auto& [name, value] : known())
    if (name == "fail_alloc" || name == "full" || name == "lost" || name == "wrong" ||
        name == "fail_kernel" || name == "hang" || name == "no_image" || name == "idle")
      *value = 0;
  repair_devices();
}

void set(const char* text) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    auto it = known().find(name);
    if (word == "well") {
      forget();
    } else if (equals != std::string::npos && (name == "answer" || name == "loses")) {
      set_answer(name == "loses", word.substr(equals + 1));
    } else if (equals != std::string::npos && it != known().end()) {
      *it->second = std::atoll(word.c_str() + equals + 1);
    } else {
      std::fprintf(stderr, "paper card: the order '%s' is not known\n", word.c_str());
      std::abort();
    }
  }
}

[[maybe_unused]] const bool read = [] {
  if (const char* text = std::getenv("ADJOIN_PAPER_CARD")) set(text);
  return true;
}();

}  // namespace

namespace {
std::mutex recording;
std::string recorded;
}  // namespace

void note(const std::string& what) {
  if (!orders.record) return;
  std::lock_guard held(recording);
  recorded += what + "\n";
}
std::string take_notes() {
  std::lock_guard held(recording);
  return std::exchange(recorded, {});
}

int ordered(const char* step, bool* loses) {
  if (!answers().any) return 0;
  std::lock_guard held(answers().lock);
  auto it = answers().by_step.find(step);
  if (it == answers().by_step.end() || --it->second.countdown > 0) return 0;
  Answer due = it->second;
  answers().by_step.erase(it);
  if (loses) *loses = due.loses;
  return int(due.code);
}

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
// A line for each piece of work since it was asked last.
const char* paper_recorded() {
  static std::string text;
  text = paper::take_notes();
  return text.c_str();
}
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
