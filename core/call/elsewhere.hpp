// core/call/elsewhere.hpp: a call with copies of its arguments, whose results are copied back: on
// the host for a device that lacks the op, in a wider dtype for one that is only stored.
#pragma once
#include "core/op/op.hpp"
#include "core/tensor/tensor.hpp"

namespace adjoin {

// Which copies: of an argument for the call, and of a result of the call for whoever asked.
struct Elsewhere {
  virtual aj_status* there(aj_tensor* t,
                           aj_tensor** out) const = 0;  // `t` itself where it serves as it is
  virtual aj_status* back(aj_tensor* t, aj_tensor** out) const = 0;
  virtual void change(aj_value*) const {}  // of an argument that is no tensor
  virtual ~Elsewhere() = default;
};

class OnHost : public Elsewhere {
 public:
  OnHost(Device* host, Device* home) : host_(host), home_(home) {}
  aj_status* there(aj_tensor* t, aj_tensor** out) const override;
  aj_status* back(aj_tensor* t, aj_tensor** out) const override;
  void change(aj_value* v) const override;

 private:
  Device *host_, *home_;
};

// in, out: bytes that were copied.
aj_status* call_elsewhere(const Elsewhere& place, aj_op* op, const aj_value* args, uint32_t nargs,
                          aj_value* rets, uint32_t nrets, uint64_t* in, uint64_t* out);

// A call that no kernel takes because one of its dtypes is only stored (floats of 8 bits,
// complex32): computed in float32 or complex64. False: that is not the reason, and nothing was
// done.
bool call_wider(aj_op* op, const aj_value* args, uint32_t nargs, aj_value* rets, uint32_t nrets,
                aj_status** out);

}  // namespace adjoin
