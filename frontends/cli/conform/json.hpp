// frontends/cli/conform/json.hpp: reads JSON: what rows say of their tests, what a worker reports.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace adjoin::cli::conform {

// Whole numbers stay whole; NaN and Infinity are taken as Python writes them.
struct Json {
  enum Kind { kNull, kBool, kInt, kFloat, kText, kList, kObject };
  Kind kind = kNull;
  bool yes = false;
  int64_t whole = 0;
  double real = 0;
  std::string text;
  std::vector<Json> items;
  struct Member;  // complete when Json is
  std::vector<Member> members;

  const Json* find(std::string_view name) const;
  bool number() const { return kind == kInt || kind == kFloat; }
  double to_double() const { return kind == kInt ? double(whole) : real; }
};

struct Json::Member {
  std::string name;
  Json value;
};

// Throws std::runtime_error: where, and what was wanted there.
Json parse_json(std::string_view text);

}  // namespace adjoin::cli::conform
