// core/tape/ops.hpp: the few ops that the tape itself calls.
#pragma once
#include <span>

#include "core/op/call.hpp"

namespace adjoin::tape {

// An op looked up once.
class Op {
 public:
  explicit constexpr Op(const char* name) : name_(name) {}
  aj_status* run(std::span<const aj_value> args, aj_tensor** out, aj_tensor* into = nullptr);
  aj_status* run(std::initializer_list<aj_value> args, aj_tensor** out, aj_tensor* into = nullptr) {
    return run(std::span<const aj_value>(args.begin(), args.size()), out, into);
  }

 private:
  const char* name_;
  std::atomic<const aj_op*> op_{nullptr};
};

aj_status* add(aj_tensor* a, aj_tensor* b, aj_tensor** out);
aj_status* add_into(aj_tensor* a, aj_tensor* b);  // a += b
aj_status* copy_into(aj_tensor* to, aj_tensor* from);
aj_status* zero(aj_tensor* t);
aj_status* clone(aj_tensor* t, aj_tensor** out);
aj_status* cast(aj_tensor* t, int dtype, aj_tensor** out);
aj_status* real(aj_tensor* t, aj_tensor** out);
aj_status* reshape(aj_tensor* t, std::span<const int64_t> shape, aj_tensor** out);
aj_status* sum(aj_tensor* t, std::span<const int64_t> dims, bool keep, aj_tensor** out);
aj_status* sum_to(aj_tensor* t, std::span<const int64_t> shape, aj_tensor** out);
// offset in elements from t's own first element.
aj_status* strided(aj_tensor* t, std::span<const int64_t> shape, std::span<const int64_t> strides,
                   int64_t offset, aj_tensor** out);
aj_status* filled(Device* d, int dtype, std::span<const int64_t> shape, double value,
                  aj_tensor** out);
// Zeros that g can be written into: of its key, where it has no strides.
aj_status* zeros_for(aj_tensor* g, int dtype, std::span<const int64_t> shape, aj_tensor** out);
aj_status* has_nan(aj_tensor* t, bool* out);
bool expands_to(std::span<const int64_t> small, std::span<const int64_t> big);

}  // namespace adjoin::tape
