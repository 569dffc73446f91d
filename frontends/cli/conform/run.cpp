// frontends/cli/conform/run.cpp: the parent's half: starts children, listens, tells, and outlives
// them.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <set>

#include "../cli.hpp"
#include "report.hpp"
#include "served.hpp"

namespace adjoin::cli::conform {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kInARow = 5, kAltogether = 10;  // groups that hang: then the rest is given up
constexpr double kLeast = 10;                 // seconds that a case has even then
constexpr size_t kMostTold = 200;             // failures; the report has them all

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What a person sees while it runs: failures at once, and how far it is.
class Teller {
 public:
  explicit Teller(std::ostream& out) : out_(out), live_(isatty(2)) {}
  ~Teller() { clear(); }

  void line(const std::string& text) {
    clear();
    out_ << text << std::endl;
  }
  void failure(const std::string& text) {
    if (++failures_ <= kMostTold) line("failed: " + text);
    if (failures_ == kMostTold) line("failed: more, which only --json and --junit list");
  }
  void step(size_t done, size_t all, const std::string& what) {
    if (!live_ && since(last_) < 10) return;
    last_ = Clock::now();
    std::string text = std::to_string(done) + "/" + std::to_string(all) + " " + what;
    if (failures_) text += ", " + std::to_string(failures_) + " failed";
    if (live_) text.resize(78, ' ');
    std::cerr << (live_ ? "\r" : "conform: ") << text << (live_ ? "" : "\n") << std::flush;
  }

 private:
  void clear() const {
    if (live_) std::cerr << '\r' << std::string(78, ' ') << '\r' << std::flush;
  }
  std::ostream& out_;
  bool live_;
  size_t failures_ = 0;
  Clock::time_point last_ = Clock::now();
};

class Run {
 public:
  Run(const Settings& settings, const Words& words, double timeout, std::ostream& out)
      : words_(words), patience_(timeout), tell_(out) {
    report_.settings = settings;
  }

  Report go() {
    while (!finished_) one_child();
    return std::move(report_);
  }

 private:
  // From the next group on, until the end or until a group ends the child.
  void one_child() {
    Words words = {std::to_string(next_), "-", "-"};
    if (report_.settings.quick > 0)
      words[1] = std::to_string(std::max(0.0, report_.settings.quick - since(start_)));
    for (const std::string& row : hanging_) words[2] += "," + row;
    words.insert(words.end(), words_.begin(), words_.end());
    Served child(words);
    running_ = false, wrong_.clear(), misuse_.clear();
    std::string line;
    double patience = patience_;
    while (!finished_ && child.line(line, patience)) hear(line[0], line.substr(1));
    std::string ending = child.end();
    if (!misuse_.empty()) throw UsageError("conform: " + misuse_);
    if (!wrong_.empty()) throw std::runtime_error("conform: " + wrong_);
    if (!finished_ && !running_)
      throw std::runtime_error("conform: the plugin " +
                               (ending.empty() ? "ends the process" : ending) +
                               " while it is loaded or between two checks");
    if (finished_ && ending.empty()) return;
    if (finished_) now_ = {"end of the process", "", "", {}, 0};
    if (child.late()) ending += kit::text(" within ", patience, " s");
    if (ending.empty()) ending = "the process ended";
    std::string told = (where_.empty() ? now_.name() : where_) + ": " + ending;
    tell_.failure(told);
    now_.verdict.failures.insert(now_.verdict.failures.begin(), told);
    ++now_.verdict.failed;
    report_.records.push_back(now_);
    ++next_;
    if (child.late()) hung();
  }

  void hear(char what, const std::string& line) {
    if (what == 'N' && next_ == 0) {
      all_ = std::stoul(line), report_.rows = std::stoul(line.substr(line.find(' ') + 1));
      tell_.line(report_.settings.plugin + ", device " + report_.settings.device_name + ": " +
                 std::to_string(all_) + " groups of checks, seed " +
                 std::to_string(report_.settings.seed));
    }
    if (what == 'U') misuse_ = line;
    if (what == 'X') wrong_ = line;
    if (what == 'C') where_ = line;
    if (what == 'B') now_ = from_line(line), running_ = true, where_.clear();
    if (what == 'F') {
      tell_.failure(line);
      now_.verdict.failures.push_back(line);
      ++now_.verdict.failed;
    }
    if (what == 'R') {
      report_.records.push_back(from_line(line));
      running_ = false, ++next_;
      if (report_.records.back().verdict.passed) in_a_row_ = 0;
      tell_.step(next_, all_, report_.records.back().name());
    }
    if (what == 'L') ++next_, ++report_.left_out;
    finished_ = what == 'E';
  }

  // The row is not tried again; too many, and nothing is.
  void hung() {
    if (!now_.row.empty()) hanging_.insert(now_.row);
    ++in_a_row_, ++altogether_;
    patience_ = std::max(std::min(patience_, kLeast), patience_ / 2);
    if (in_a_row_ < kInARow && altogether_ < kAltogether) return;
    Record rest{"the rest", "", "", {}, 0};
    report_.left_out += all_ - std::min(all_, next_);
    std::string told = std::to_string(report_.left_out) + " groups were not tried: " +
                       (in_a_row_ >= kInARow ? std::to_string(kInARow) + " in a row"
                                             : std::to_string(kAltogether)) +
                       " did not come back";
    rest.verdict.fail(told);
    tell_.failure(told);
    report_.records.push_back(rest);
    finished_ = true;
  }

  const Words& words_;
  double patience_;  // seconds for a case; less for each that has used it up
  Teller tell_;
  Report report_;
  Clock::time_point start_ = Clock::now();
  size_t all_ = 0, next_ = 0;
  int in_a_row_ = 0, altogether_ = 0;  // groups that hang
  std::set<std::string> hanging_;      // rows
  bool finished_ = false, running_ = false;
  Record now_;
  std::string where_, wrong_, misuse_;
};

}  // namespace

Report run_plan(const Settings& settings, const Words& words, double timeout, std::ostream& out) {
  return Run(settings, words, timeout, out).go();
}

}  // namespace adjoin::cli::conform
