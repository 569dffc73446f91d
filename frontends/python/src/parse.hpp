// frontends/python/src/parse.hpp: keyword arguments of the functions that are no ops.
#pragma once

#include "py.hpp"

namespace adjoin::py {

// The names of a function's parameters; out[i] is a borrowed object or NULL where nothing was
// given.
class Signature {
 public:
  static constexpr int kMax = 10;
  template <size_t N>
  Signature(const char* function, int positional, int required, const char* const (&names)[N])
      : function_(function), positional_(positional), required_(required), count_(N) {
    static_assert(N <= kMax);
    for (size_t i = 0; i < N; ++i) names_[i] = PyUnicode_InternFromString(names[i]);
  }

  bool parse(PyObject* const* args, Py_ssize_t n, PyObject* kwnames, PyObject** out) const {
    for (int i = 0; i < count_; ++i) out[i] = nullptr;
    if (n > positional_) {
      PyErr_Format(PyExc_TypeError,
                   "%s() takes %d positional argument%s but %zd were given; the others go by name",
                   function_, positional_, positional_ == 1 ? "" : "s", n);
      return false;
    }
    for (Py_ssize_t i = 0; i < n; ++i) out[i] = args[i];
    Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t k = 0; k < nkw; ++k) {
      int i = find(PyTuple_GET_ITEM(kwnames, k));
      if (i < 0) {
        Ref function(PyUnicode_FromString(function_));
        if (function) unknown_keyword(function.get(), PyTuple_GET_ITEM(kwnames, k), names_, count_);
        return false;
      }
      if (out[i]) {
        PyErr_Format(PyExc_TypeError, "%s() got twice the keyword argument '%U'", function_,
                     PyTuple_GET_ITEM(kwnames, k));
        return false;
      }
      out[i] = args[n + k];
    }
    for (int i = 0; i < required_; ++i) {
      if (out[i]) continue;
      PyErr_Format(PyExc_TypeError, "%s() missing 1 required argument: '%U'", function_, names_[i]);
      return false;
    }
    return true;
  }

 private:
  int find(PyObject* name) const {
    for (int i = 0; i < count_; ++i)
      if (names_[i] == name) return i;
    for (int i = 0; i < count_; ++i)
      if (PyUnicode_Compare(names_[i], name) == 0) return i;
    return -1;
  }

  const char* function_;
  int positional_, required_, count_;
  PyObject* names_[kMax];
};

inline bool given(PyObject* o) { return o && o != Py_None; }
// Where Python says neither, an error is set.
inline bool truth(PyObject* o, bool otherwise) { return o ? PyObject_IsTrue(o) == 1 : otherwise; }

}  // namespace adjoin::py
