// core/tensor/dlpack.hpp: tensors in and out as DLPack's managed tensors.
#pragma once
#include "core/tensor/tensor.hpp"

namespace adjoin {

aj_status* tensor_to_dlpack(aj_tensor* t, void* stream, uint64_t flags,
                            DLManagedTensorVersioned** out);
aj_status* tensor_from_dlpack(DLManagedTensorVersioned* steal, aj_tensor** out);

}  // namespace adjoin
