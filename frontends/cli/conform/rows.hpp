// frontends/cli/conform/rows.hpp: ops of the registry with what their rows say of testing them, and
// arguments made from that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json.hpp"
#include "tensors.hpp"

namespace adjoin::cli::conform {

struct Param {
  std::string name;
  int32_t base = 0, list = 0;  // AJ_PARAM_...; list as in aj_param
  uint32_t flags = 0;
  uint64_t dtypes = 0;
  aj_value value{};
  bool tensor() const { return base == AJ_PARAM_TENSOR || base == AJ_PARAM_OPERAND; }
  bool optional() const { return flags & AJ_PARAM_OPTIONAL; }
  bool has_default() const { return flags & AJ_PARAM_HAS_DEFAULT; }
  bool written() const { return flags & AJ_PARAM_WRITTEN; }
};

// What is given for one parameter: tensors (one, or a list's), a value of the row, or nothing.
struct Argument {
  enum Kind { kAbsent, kTensor, kTensors, kValue };
  Kind kind = kAbsent;
  std::vector<std::optional<HostTensor>> tensors;
  Json value;
};
using Given = std::vector<Argument>;  // one for each parameter

// The shapes of the tensors and the other arguments, before there are numbers.
struct Sample {
  std::vector<Json> shapes;
  std::vector<Json::Member> others;
  std::string text() const;
};

struct Row {
  const aj_op* op = nullptr;
  std::string name, kind, provider;
  uint32_t flags = 0;
  std::vector<Param> params, results;
  Json test;
  bool tested = false;  // the row has a `test`
  std::string wrong;    // with its test; then there is none

  explicit Row(const aj_op* op);
  bool takes_tensors() const;
  bool factory() const;    // makes a tensor of a dtype that is an argument
  bool random() const;     // draws from a generator
  bool pointwise() const;  // an element of a result depends on one of each argument
  bool compared() const;   // false: nobody writes the memory
  const Param* param(const std::string& name) const;
  std::vector<std::string> dtypes() const;
  std::vector<Sample> samples() const;
  // The first sample with one of its sizes replaced, those that had to agree with it too. Less than
  // wanted where tensors would have more than so many elements.
  std::vector<Sample> resized(int64_t wanted, int64_t largest) const;
};

std::vector<Row> all_rows(const std::string& provider);  // libadjoin's own, and the provider's

// Numbers for a sample: the same for the same row, sample and seed.
Given fill(const Row& row, const Sample& sample, const std::string& dtype, uint64_t seed);

extern const std::vector<std::string> kDtypes;

}  // namespace adjoin::cli::conform
