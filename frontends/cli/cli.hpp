// frontends/cli/cli.hpp: what the parts of the command `adjoin` share.
#pragma once

#include <adjoin/abi/capi.h>

#include <boost/program_options.hpp>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace adjoin::cli {

namespace options = boost::program_options;
using Words = std::vector<std::string>;

// Wrong use: told on stderr with exit code 2. Anything else that fails is a std::runtime_error:
// exit code 1.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int plugins_command(const Words& words);
int ops_command(const Words& words);
int config_command(const Words& words);
int blas_command(const Words& words);
int tune_command(const Words& words);
int conform_command(const Words& words);
int new_backend_command(const Words& words);
int new_op_command(const Words& words);
int opcheck_command(const Words& words);
int run_command(const Words& words);
int launch_command(const Words& words);
int doctor_command(const Words& words);
int explain_command(const Words& words);
int lock_command(const Words& words);
int verify_command(const Words& words);
int bindgen_command(const Words& words);
int graph_command(const Words& words);
int look_command(const Words& words);     // of `adjoin graph`, too
int convert_command(const Words& words);  // of `adjoin graph`
int run_program_command(const Words& words);
bool is_program(
    const Words& words);  // does `adjoin run` get a captured program, not one of Python's?

// One command's options: `--help` and what the command adds. positional names the words without
// dashes, in order.
class Arguments {
 public:
  Arguments(std::string usage, std::string about);
  options::options_description_easy_init add() { return shown_.add_options(); }
  void positional(const char* name, int count);

  // False if help was asked for, and has been printed.
  bool parse(const Words& words);
  UsageError misuse(const std::string& text) const {
    return UsageError(text + "\nusage: " + usage_);
  }
  bool has(const char* name) const { return values_.count(name) > 0; }
  template <class T>
  const T& get(const char* name) const {
    return values_[name].template as<T>();
  }

 private:
  std::string usage_, about_;
  options::options_description shown_{"options"}, hidden_;
  options::positional_options_description places_;
  options::variables_map values_;
};

// The folder above libadjoin under which `file` is: lib and lib/x86_64-linux-gnu both lead to the
// same include and share.
std::filesystem::path prefix_with(const char* file);
// For programs of Python's that this one starts: PYTHONPATH finds the package.
void add_package_folder();

const aj_core& core();
const aj_dispatch& dispatch();
const aj_plugins& plugins();

inline std::string text(aj_str s) { return s.data ? std::string(s.data, s.len) : std::string(); }
inline aj_str borrow(std::string_view s) { return {s.data(), s.size()}; }
void check(aj_status* s);             // throws its message
std::string take(aj_object* string);  // releases it

std::vector<std::string> split(std::string_view text, char separator);
std::vector<aj_plugin_info> list_plugins();
const char* state_name(uint32_t state);

// How many letters must be put in, left out or replaced.
size_t letters_apart(std::string_view a, std::string_view b);
// "; did you mean 'x'?" with the known word that differs in the fewest letters, or nothing.
std::string hint(const std::string& word, const Words& known);

// JSON, built as text: json({{"name", quote(n)}, {"ok", "true"}}).
std::string quote(std::string_view text);
std::string json(const std::vector<std::pair<const char*, std::string>>& members);
std::string json_list(const std::vector<std::string>& items);
std::string quote_all(const std::vector<std::string>& items);

// Columns of equal width; the last one is not padded.
void print_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace adjoin::cli
