// frontends/cli/doctor/doctor.hpp: what the parts of `adjoin doctor` share: a list of findings.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "../cli.hpp"

namespace adjoin::cli::doctor {

enum class State { fine, note, complaint };

struct Finding {
  std::string section, name, text;
  State state = State::fine;
  std::string remedy;  // what to do, best a command; may be empty
};

class Findings {
 public:
  explicit Findings(std::vector<Finding>* all, std::string section)
      : all_(all), section_(std::move(section)) {}
  void fine(const std::string& name, const std::string& text) { add(name, text, State::fine, ""); }
  void note(const std::string& name, const std::string& text, const std::string& remedy = "") {
    add(name, text, State::note, remedy);
  }
  void complaint(const std::string& name, const std::string& text, const std::string& remedy) {
    add(name, text, State::complaint, remedy);
  }

 private:
  void add(const std::string& name, const std::string& text, State state,
           const std::string& remedy) {
    all_->push_back({section_, name, text, state, remedy});
  }
  std::vector<Finding>* all_;
  std::string section_;
};

// Each looks at one thing. plugins loads what can be loaded, so it comes before libraries.
void look_at_installation(Findings out);
void look_at_plugins(Findings out);
void look_at_libraries(Findings out);
void look_at_copies(Findings out, const std::string& maps);  // "/proc/self/maps"
void look_at_processor(Findings out);
void look_at_memory(Findings out);
void look_at_gpus(Findings out);
void look_at_caches(Findings out);
void look_at_python(Findings out);

std::string libadjoin_file();
std::string first_line(const std::string& file);  // "" if it cannot be read
std::string size_text(double bytes);              // "1.5 GiB"

// The output of a program, stderr left out, within `seconds`; false if it failed or cannot be run.
bool capture(const Words& words, double seconds, std::string* out);

}  // namespace adjoin::cli::doctor
