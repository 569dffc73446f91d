// core/tensor/word.hpp: the word that one language may keep on a tensor.
#pragma once
#include <adjoin/abi/core.h>

namespace adjoin {

void* frontend_word(const aj_tensor* t, int32_t id);
void set_frontend_word(aj_tensor* t, int32_t id, void* word, int32_t owned);
void frontend_dtype_changed(const aj_tensor* t);

}  // namespace adjoin
