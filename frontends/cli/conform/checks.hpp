// frontends/cli/conform/checks.hpp: what a device is asked, in groups that one process answers
// each.
#pragma once

#include <adjoin/abi/capi.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "call.hpp"

namespace adjoin::cli::conform {

// What one group found. A case is one call, or one property.
struct Verdict {
  int64_t passed = 0, failed = 0;
  int64_t refused = 0;      // both backends refuse it, alike
  int64_t unsupported = 0;  // the device says that it has no kernel
  int64_t beyond = 0;       // the device takes what the reference has no kernel for: not compared
  int64_t skipped = 0;      // does not apply to this device
  std::vector<std::string> failures;                    // the first ones, told
  std::string reason;                                   // of what is unsupported or skipped
  std::vector<std::pair<std::string, double>> figures;  // --mode perf

  std::function<void(const std::string&)> told;  // (optional) hears of a failure at once

  void pass() { ++passed; }
  void fail(const std::string& what);
  void skip(const std::string& why) { ++skipped, reason = why; }
  void figure(const std::string& name, double value);  // the largest of each name is kept
  // A case by what it found: "" is right.
  void expect(const std::string& where, const std::string& wrong) {
    wrong.empty() ? pass() : fail(where + ": " + wrong);
  }
};

struct Settings {
  std::string file, plugin, device_name, mode = "all";
  std::vector<std::string> ops, dtypes;
  uint64_t seed = 0;
  bool full = false;
  double quick = 0;          // seconds after which no other row is begun; 0: no limit
  int64_t largest = 50'000;  // elements of a tensor with a large size
};

struct Bench {  // what every check works with
  Settings settings;
  DLDevice device{}, reference{};
  const aj_device_vtbl* table = nullptr;
  std::function<void(const std::string&)> begin;   // tells which case is running, should it crash
  std::function<void(const std::string&)> failed;  // tells of a failure at once
};

// One step of the plan: a property of the device ("memory", ...), or a row and a dtype.
struct Group {
  std::string check, row, dtype;
  std::function<void(Bench&, Verdict&)> run;
};

// Work on a stream that lasts `seconds`, or until `open` is set. False: the device cannot do that.
bool hold_up(Bench& bench, void* stream, double seconds,
             std::shared_ptr<std::atomic<bool>> open = nullptr);

void add_device_groups(std::vector<Group>& plan);
void add_stream_groups(std::vector<Group>& plan);
void add_sharing_groups(std::vector<Group>& plan);  // the first: it begins with a fork
void add_process_groups(std::vector<Group>& plan);
void check_values(Bench& bench, const Row& row, const std::string& dtype, Verdict& v);
void check_gradients(Bench& bench, const Row& row, const std::string& dtype, Verdict& v);
void measure(Bench& bench, const Row& row, const std::string& dtype, Verdict& v);
void explain_support(Bench& bench, const Row& row, const std::string& dtype, Verdict& v);

// The samples that are tried: all with --full, else a choice by the seed.
std::vector<Sample> chosen(const Bench& bench, const Row& row, size_t count,
                           const std::string& salt);

}  // namespace adjoin::cli::conform
