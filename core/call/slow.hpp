// core/call/slow.hpp: the rare branches of a call.
#pragma once
#include <string>
#include <vector>

#include "core/op/op.hpp"
#include "core/tensor/tensor.hpp"

namespace adjoin {

// Arguments after defaults are filled in and dimensions wrapped; memory for those that changed.
struct Settled {
  aj_value few[24];
  int64_t ints[64];
  std::vector<aj_value> many;
  std::vector<Ref> widened;  // indices of int32 as the int64 that they stand for
  Settled() {}               // nothing is initialised: most calls do not need it
};
// How many dimensions there are to point at: the first tensor's. Of a list's tensors the one with
// the most counts, because cat passes over vectors without elements.
int64_t dims_of(const aj_value* args, uint32_t n);
aj_status* settle_arguments(const aj_op* op, const aj_value** args, uint32_t* nargs, uint32_t nrets,
                            Settled* s);

// Several backends among the tensors: 0-dim host tensors may join the others' device.
aj_status* one_backend(const aj_op* op, const aj_value* args, uint32_t nargs, uint64_t* keys);
aj_status* backend_without_tensors(const aj_op* op, const aj_value* args, uint32_t nargs,
                                   uint64_t* keys);
std::string tag_name(int32_t tag);
bool may_copy(const aj_op* op, const aj_value* args,
              uint32_t nargs);  // does a policy allow copies for it?
// fallback.cpp: a device lacks the op: it is served by copies to the host, or the error says why
// not.
aj_status* serve_missing(aj_op* op, Device* d, const aj_value* args, uint32_t nargs, aj_value* rets,
                         uint32_t nrets);
aj_status* missing_kernel(aj_op* op, const aj_value* args, uint32_t nargs, aj_value* rets,
                          uint32_t nrets);

// Kernels at functionality keys, one for every op; they redispatch. writes: in place, into out=, or
// an argument of "(a!)".
aj_status* boxed(aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs, aj_value* rets,
                 uint32_t nrets, bool writes);

using RunStep = aj_status* (*)(aj_op*, uint64_t, const aj_value*, uint32_t, aj_value*, uint32_t,
                               bool);
// out= and in-place forms, rows with "(a!)".
aj_status* call_writing(aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs,
                        aj_value* rets, uint32_t nrets, bool rec, RunStep run);

}  // namespace adjoin
