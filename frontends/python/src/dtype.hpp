// frontends/python/src/dtype.hpp: dtypes, layouts and memory formats as Python objects.
#pragma once

#include "py.hpp"

namespace adjoin::py {

struct DtypeObject {
  PyObject_HEAD DLDataType dtype;
  uint32_t index;  // AJ_DT_... or a registered number
  uint32_t bytes;
  int32_t kind;  // AJ_CLASS_...
  PyObject* name;
};
extern PyTypeObject dtype_type;

struct TagObject {  // a layout or a memory format
  PyObject_HEAD int64_t value;
  const char* name;
};
extern PyTypeObject layout_type;
extern PyTypeObject memory_format_type;

PyObject* layout_object(int64_t layout);

// A dtype object, or one of Python's float, int, bool, complex.
bool as_dtype(PyObject* o, DLDataType* out);

inline bool same(DLDataType a, DLDataType b) {
  return __builtin_bit_cast(uint32_t, a) == __builtin_bit_cast(uint32_t, b);
}

DtypeObject* find_dtype_object(DLDataType dtype);
extern DtypeObject*
    last_dtype;  // which find_dtype_object gave last; it lives as long as the module
// Borrowed; NULL with an error set for a dtype that nobody knows.
inline DtypeObject* dtype_object(DLDataType d) {
  return likely(same(last_dtype->dtype, d)) ? last_dtype : find_dtype_object(d);
}

constexpr DLDataType kBool = {kDLBool, 8, 1};
constexpr DLDataType kUint8 = {kDLUInt, 8, 1};
constexpr DLDataType kInt64 = {kDLInt, 64, 1};
constexpr DLDataType kFloat32 = {kDLFloat, 32, 1};
constexpr DLDataType kFloat64 = {kDLFloat, 64, 1};
constexpr DLDataType kComplex64 = {kDLComplex, 64, 1};
constexpr DLDataType kComplex128 = {kDLComplex, 128, 1};

}  // namespace adjoin::py
