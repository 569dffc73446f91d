// frontends/cli/conform/call.hpp: one call of a row on a device, and what became of it.
#pragma once

#include <deque>

#include "rows.hpp"

namespace adjoin::cli::conform {

struct Outcome {
  bool ok = false;
  int32_t code = 0;     // of the refusal
  std::string message;  // of the refusal
  std::vector<Tensor> tensors;
  std::vector<HostTensor> values;  // of the tensors; numbers as tensors without dimensions
};

// The arguments of a call, put on a device. Every generator starts at the same place in every run.
class Call {
 public:
  Call(const Row& row, const Given& given, DLDevice device, Lay lay);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // rets: tensors to write into, or empty: the core allocates. Values are fetched unless told not
  // to.
  Outcome run(const std::vector<Tensor>& rets = {}, bool fetch_values = true);
  void require_grad(size_t param);  // its tensors are leaves that ask for a gradient

  // Every tensor that was placed, and the parameter it stands for.
  struct Input {
    size_t param;
    Placed placed;
  };
  const std::vector<Input>& inputs() const { return inputs_; }
  Tensor first() const { return inputs_.empty() ? Tensor() : inputs_[0].placed.tensor; }
  // Bytes around what may be written, and inputs, that have changed: what is wrong, or "".
  std::string trespass() const;

 private:
  void put_tensors(size_t i, const Argument& a, Lay lay);
  void put_value(size_t i, const Json& v);
  void put_list(size_t i, const Json& v);

  const Row& row_;
  DLDevice device_;
  Tensor written_;
  std::vector<Input> inputs_;
  std::vector<aj_value> args_;
  std::deque<std::vector<aj_tensor*>> lists_;
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<double>> floats_;
  std::deque<std::vector<uint8_t>> bools_;
  std::deque<std::string> texts_;
};

// What the row gives for these arguments, all dense.
Outcome run_plain(const Row& row, const Given& given, DLDevice device);
// Fills in what a backward row is given by its forward row, computed on `device`.
void complete(const Row& row, Given& given, DLDevice device);

}  // namespace adjoin::cli::conform
