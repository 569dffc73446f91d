// frontends/python/src/index.hpp: what stands between the brackets of x[...], taken apart.
#pragma once

#include <vector>

#include "tensor.hpp"

namespace adjoin::py {

// The plain part of a key as a view of the tensor, and the tensors in it by dimension of that view.
struct Indexed {
  HeldTensor view;                  // NULL with an error set if the key is bad
  std::vector<HeldTensor> tensors;  // NULL: the whole dimension
  bool advanced() const { return !tensors.empty(); }
};

Indexed apply_key(aj_tensor* t, PyObject* key);

}  // namespace adjoin::py
