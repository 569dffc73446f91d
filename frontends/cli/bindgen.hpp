// frontends/cli/bindgen.hpp: ops as a writer of bindings sees them.
#pragma once

#include <set>
#include <span>

#include "cli.hpp"

namespace adjoin::cli::bindgen {

struct OpParam {
  std::string name;
  aj_param info;

  bool has(uint32_t flag) const { return info.flags & flag; }
  // May it be left out, it and all that follow?
  bool given() const { return has(AJ_PARAM_HAS_DEFAULT); }
  // Does a binding have a form for it? If not, it takes None, and the library puts in the default.
  bool known() const;
};

struct OpModel {
  std::string op, space, name;  // "nn::max_pool2d.out": "nn", "max_pool2d_out"
  std::string schema, doc;
  std::vector<OpParam> params, results;
  bool in_place;
};

// Names of a language: its own words and what is taken get an underscore.
class Names {
 public:
  explicit Names(std::span<const std::string_view> reserved)
      : taken_(reserved.begin(), reserved.end()) {}
  std::string take(std::string name) {
    while (!taken_.insert(name).second) name += '_';
    return name;
  }

 private:
  std::set<std::string, std::less<>> taken_;
};

std::string number_text(double x, const char* infinity, const char* nan);
std::string lua_functions(const std::vector<OpModel>& ops);
std::string rust_functions(const std::vector<OpModel>& ops);

}  // namespace adjoin::cli::bindgen
