// plugins/shadow/copies.hpp: a call's arguments on another device.
#ifndef ADJOIN_PLUGINS_SHADOW_COPIES_HPP
#define ADJOIN_PLUGINS_SHADOW_COPIES_HPP
#include <adjoin/kit/tensor.hpp>
#include <deque>
#include <string>
#include <vector>

namespace adjoin::shadow {

std::string describe(const Tensor& t);  // "float32 [2, 3]"

// Dense copies without history.
Tensor copied_to(const Tensor& t, DLDevice device, DLDataType dtype);
Tensor packed(const Tensor& t);

// No recording while it lives.
class Unrecorded {
 public:
  Unrecorded() : before_(kit::autograd().set_grad_mode(0)) {}
  ~Unrecorded() { kit::autograd().set_grad_mode(before_); }
  Unrecorded(const Unrecorded&) = delete;

 private:
  int32_t before_;
};

// Arguments of a call, moved to a device. Lists live as long as this.
class Copies {
 public:
  Copies(const aj_call* call, DLDevice to);
  const std::vector<aj_value>& args() const { return args_; }
  std::string describe() const { return description_; }
  const std::vector<Tensor>& tensors() const { return held_; }

 private:
  aj_tensor* moved(aj_tensor* t, DLDevice to);

  std::vector<aj_value> args_;
  std::vector<Tensor> held_;
  std::deque<std::vector<aj_tensor*>> lists_;
  std::string description_;
};

// The states of the generators that a call may draw from, to be played again elsewhere.
class Dice {
 public:
  Dice(const aj_call* call, DLDevice ours, DLDevice theirs);
  void play_again();  // theirs, and generators among the arguments, as ours were
  void put_back();    // as they are after our call

 private:
  struct State {
    aj_object* generator;
    uint64_t seed, offset;
  };
  State state_of(aj_object* generator) const;

  std::vector<State> before_, after_;
  aj_object* theirs_ = nullptr;
  State theirs_before_ = {};
};

}  // namespace adjoin::shadow
#endif
