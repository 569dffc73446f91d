// frontends/python/src/pt.hpp: what the reader and the writer of `.pt` files share.
#pragma once

#include "../../cpp/files/storages.hpp"
#include "tensor.hpp"

namespace adjoin::py {

// A Python exception on its way through code that throws; the exception itself is set.
struct PythonError {};

inline PyObject* must(PyObject* o) {
  if (!o) throw PythonError{};
  return o;
}
inline void must(int result) {
  if (result < 0) throw PythonError{};
}
inline void must_status(aj_status* s) {
  if (failed(s)) throw PythonError{};
}

// A Python reference that may be copied.
class Shared {
 public:
  Shared() = default;
  explicit Shared(PyObject* owned) : object_(must(owned)) {}
  Shared(const Shared& other) : object_(Py_XNewRef(other.object_)) {}
  Shared(Shared&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Shared& operator=(Shared other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Shared() { Ref last(object_); }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  bool operator!() const { return !object_; }

 private:
  PyObject* object_ = nullptr;
};

int init_pt_read(PyObject* module);
int init_pt_write(PyObject* module);

// From now on a bus error on a mapped file says which.
PyObject* watch_mapped_files(PyObject*, PyObject*);

// The exception in flight as a Python one; always NULL. Of a catch (...).
PyObject* raise_caught();

}  // namespace adjoin::py
