// frontends/cli/conform/report.hpp: what all groups found, and the ways to show it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checks.hpp"

namespace adjoin::cli::conform {

struct Record {
  std::string check, row, dtype;
  Verdict verdict;
  double seconds = 0;
  std::string name() const;
};

struct Report {
  Settings settings;
  std::string version, vendor, device_text, about;  // of the plugin; what the device says of itself
  std::vector<Record> records;
  size_t rows = 0;  // of the registry, that were asked for

  Verdict total() const;
  bool conforms() const;
  std::vector<const Record*> failed() const;
  // Reasons of what is unsupported or skipped, with how many groups gave them.
  std::map<std::string, int64_t> reasons() const;
};

std::string escaped(const std::string& text);  // for XML and HTML; control characters go
std::string to_line(const Record& record);  // one line of JSON
Record from_line(const std::string& line);

void print_report(const Report& report);
std::string report_json(const Report& report);
std::string report_junit(const Report& report);
std::string certificate(const Report& report);  // one page of HTML

// Runs the plan in child processes; what crashes or hangs is a verdict, and the rest goes on.
Report run_plan(const Settings& settings, const std::vector<std::string>& words, double timeout,
                bool show_progress);
// The child's half: `adjoin conform --serve FD FROM ...` runs the groups from number FROM on.
int serve(const Settings& settings, int fd, size_t from);

std::vector<Group> plan_of(Bench& bench);

}  // namespace adjoin::cli::conform
