// frontends/python/src/op.hpp: the callable that stands for a name of the registry, and how names
// are found.
#pragma once

#include "device.hpp"
#include "dtype.hpp"
#include "program.hpp"
#include "size.hpp"

namespace adjoin::py {

struct OpObject {
  PyObject_HEAD vectorcallfunc call;
  Program* first;    // the overloads
  PyObject* name;    // as users write it, without the space
  PyObject* module;  // where it is found when it is unpickled
  bool in_place;     // the derived form name_
  PyObject* dict;  // what users hang onto it; an op lives as long as the process, so no cycle is to
                   // be found
};
extern PyTypeObject op_type;         // a function
extern PyTypeObject op_method_type;  // the same in Tensor's dictionary, bound without an object

// Everything under one name.
struct OpEntry {
  Program* first = nullptr;
  Program* last = nullptr;
  PyObject *function = nullptr, *method = nullptr, *function_in_place = nullptr,
           *method_in_place = nullptr;
};

// Takes in what the registry has gained since the last time.
int sync_ops();
// "add", "max.dim", "linalg::qr", "add_"; NULL without an error if there is none. May load a
// plugin.
OpEntry* find_entry(std::string_view name, bool* in_place);
// The first overload of a row that the front end itself uses; NULL with an error set if the core
// lacks it.
const Program* find_program(const char* name, bool* in_place);
// The function of a name, borrowed; NULL with an error set.
PyObject* find_function(const char* name);

PyObject* plain_value(aj_value v);
// inplace=True: the derived form where there is one, else the result is copied into the first
// argument.
PyObject* run_in_place(const Program& p, Frame& f, PyObject* first);
PyObject* call_op(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames);
PyObject* explain_mismatch(OpObject* op, PyObject* const* args, Py_ssize_t n, PyObject* kwnames);
Program* make_program(const aj_op* op, const aj_op_info& info);
PyObject* list_names(bool in_place);
// The type of several results of a row; made when first needed. NULL with an error set.
PyTypeObject* named_type(const Program& p);
int init_binding();

// A row that the front end calls by itself: looked up once, then a pointer.
class Row {
 public:
  explicit constexpr Row(const char* name) : name_(name) {}
  const Program* get() {
    return likely(program_ != nullptr) ? program_ : (program_ = find_program(name_, &in_place_));
  }
  const char* name() const { return name_; }
  bool in_place() const { return in_place_; }  // after get(): "fill_" is the derived form of "fill"

 private:
  const char* name_;
  const Program* program_ = nullptr;
  bool in_place_ = false;
};

// A call from inside: values for the first parameters, defaults for the rest. The result is owned;
// NULL with an error set.
template <class... V>
aj_tensor* call_row(Row& row, V... values);

inline aj_value value(aj_tensor* t) {
  aj_value v{};
  v.tag = t ? AJ_TENSOR : AJ_NONE;
  v.v.tensor = t;
  return v;
}
inline aj_value value(int64_t i) {
  aj_value v{};
  v.tag = AJ_INT;
  v.v.i = i;
  return v;
}
inline aj_value value(int i) { return value(int64_t{i}); }
inline aj_value value(double f) {
  aj_value v{};
  v.tag = AJ_FLOAT;
  v.v.f = f;
  return v;
}
inline aj_value value(bool b) {
  aj_value v{};
  v.tag = AJ_BOOL;
  v.v.i = b;
  return v;
}
inline aj_value value(aj_value v) { return v; }
inline aj_value value(const int64_t* data, size_t n) {
  aj_value v{};
  v.tag = AJ_INTS;
  v.aux = static_cast<uint32_t>(n);
  v.v.ints = data;
  return v;
}
inline aj_value value(DLDataType d) {
  aj_value v{};
  v.tag = AJ_DTYPE;
  v.v.dtype = d;
  return v;
}

bool call_program(const Program& p, aj_value* values, size_t given, aj_value* rets, bool in_place);

template <class... V>
aj_tensor* call_row(Row& row, V... values) {
  const Program* p = row.get();
  if (!p) return nullptr;
  aj_value all[kMaxParams], rets[kMaxResults];  // call_program fills in the rest of both
  size_t at = 0;
  ((all[at++] = value(values)), ...);
  if (!call_program(*p, all, sizeof...(V), rets, row.in_place())) return nullptr;
  return rets[0].v.tensor;
}

}  // namespace adjoin::py
