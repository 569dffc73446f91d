// frontends/python/src/replay.hpp: a call that was recorded and is trusted: what it was given and
// what it looked at, and the program that gives its results.
#pragma once

#include <memory>
#include <vector>

#include "tensor.hpp"

namespace adjoin::py {

// A value that an argument has to be again. Tensors are leaves, in order.
struct Wanted {
  enum class Kind { tensor, same, tuple, list, dict };
  Kind kind = Kind::same;
  Ref object;  // same: itself, or an equal number or text; tensor: its class
  uint64_t keys = 0;
  uint32_t flags = 0;
  DLDataType dtype{};
  DLDevice device{};
  std::vector<int64_t> shape;  // -1 - s: any size from 2 on, the same wherever s stands
  std::vector<Ref> names;      // of a dictionary
  std::vector<Wanted> items;
};

// A dictionary, list or cell that the function reads: its items, or one of them, are still these.
struct Watched {
  Ref container, key;
  std::vector<PyObject*> held;  // owned: of a dictionary keys and values in turn
  Watched() = default;
  Watched(Watched&&) = default;
  ~Watched() {
    for (PyObject* o : held) Py_DECREF(o);
  }
};

// False with an error set where `what` cannot be watched: a dictionary, list or cell, or a tuple
// (dictionary, key).
bool watch(PyObject* what, Watched* w);
bool stands(const Watched& w);
bool capturing();  // is this thread at a program?

class Plan {
 public:
  Plan(const Plan&) = delete;
  // NULL with an error set. See plan_add in compiled.cpp.
  static std::unique_ptr<Plan> make(PyObject* program, PyObject* args, PyObject* kwargs,
                                    PyObject* watched, PyObject* together, bool writes,
                                    PyObject* sizes);
  bool takes(PyObject* const* args, size_t n, PyObject* kwnames);
  PyObject* run();  // of the arguments that it took last
  int visit(visitproc visit, void* arg) const;

  long long left = 0;  // runs until the function is looked at again
  Ref token;           // what who added it knows it by

 private:
  Plan() = default;
  bool fits(const Wanted& w, PyObject* o);
  bool apart() const;

  Ref program_, kwnames_, together_;
  std::vector<Wanted> args_;
  std::vector<Watched> watched_;
  std::vector<aj_tensor*> leaves_;  // borrowed, while a call is made
  std::vector<int64_t> sizes_;      // of the call: what symbols stand for
  size_t count_ = 0;                // of leaves
  uint32_t results_ = 0;
  uint64_t include_ = 0, exclude_ = 0;
  int32_t grad_ = 0;
  DLDataType default_dtype_{};
  bool writes_ = false;
};

}  // namespace adjoin::py
