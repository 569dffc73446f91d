// core/base/dtype.hpp: dtypes by index, PyTorch's promotion, safe casts.
#pragma once
#include <adjoin/abi/core.h>

#include <string_view>

#include "core/base/status.hpp"

namespace adjoin {

struct DType {
  DLDataType dl;
  uint8_t index;  // AJ_DT_...
  uint8_t cls;    // AJ_CLASS_...
  uint8_t bytes;
  uint8_t promotes;
  const char* name;
};

extern DType dtypes[64];  // by index; name == nullptr where there is none
// Hot: from DLPack's triple to the index; nullptr if unknown.
const DType* find_dtype(DLDataType d);
const DType* find_dtype(std::string_view name);
inline const DType& dt(int index) { return dtypes[index]; }
bool same(DLDataType a, DLDataType b);
int promote(int a, int b);        // indices; -1 if there is no common dtype
bool can_cast(int from, int to);  // PyTorch's rule for results of in-place and out=
int default_dtype();
aj_status* set_default_dtype(int index);
aj_status* register_dtype(std::string_view name, uint32_t bits, int32_t cls, DLDataType* out);
int complex_of(int real_index);
int real_of(int complex_index);
int wider_of(
    int index);  // what numbers of a dtype that is only stored are computed in; else itself

}  // namespace adjoin
