// frontends/cli/conform/report.hpp: what all groups found, and the ways to show it.
#pragma once

#include <iosfwd>
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
  size_t rows = 0;      // that could be asked for
  size_t left_out = 0;  // groups that the time did not suffice for

  Verdict total() const;
  // "conforms" only if everything was tried; of a part, that no fault was found in it.
  std::string verdict() const;
  bool good() const;  // something was checked, and nothing failed
  std::vector<std::string> checked() const, not_checked() const;
  std::vector<const Record*> failed() const;
  // Reasons of what is unsupported or skipped, with how many groups gave them.
  std::map<std::string, int64_t> reasons() const;
};

std::string escaped(const std::string& text);  // for XML and HTML; control characters go
std::string to_line(const Record& record);     // one line of JSON
Record from_line(const std::string& line);

void print_report(const Report& report);
std::string report_json(const Report& report);
std::string report_junit(const Report& report);
std::string certificate(const Report& report);  // one page of HTML

// Runs the plan in child processes; what crashes or hangs is a verdict, and the rest goes on.
// timeout: seconds for a case. out: failures are told there at once.
Report run_plan(const Settings& settings, const std::vector<std::string>& words, double timeout,
                std::ostream& out);
// The child's half, of `adjoin conform --serve FD FROM SECONDS ROWS ...`.
struct Order {
  int fd = -1;
  size_t from = 0;                 // the number of the first group
  double seconds = -1;             // for all rows; < 0: no limit
  std::vector<std::string> spare;  // rows that did not come back before
};
int serve(const Settings& settings, const Order& order);

}  // namespace adjoin::cli::conform
