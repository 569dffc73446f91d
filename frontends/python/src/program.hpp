// frontends/python/src/program.hpp: a schema compiled for binding: one entry per parameter, and the
// values of one call.
#pragma once

#include <memory>
#include <vector>

#include "tensor.hpp"

namespace adjoin::py {

constexpr int kMaxParams = 32;
constexpr int kMaxResults = 8;
constexpr int32_t kMissing = -1;  // tag of a parameter's value that has no default

struct Param {
  uint8_t kind;  // AJ_PARAM_...
  bool optional, keyword_only, written;
  int32_t list;  // as aj_param.list
  bool optional_items;
  PyObject* name;  // interned
  aj_value value;  // the default
};

// One row, or one overload of a name; they are chained in the order of registration.
struct Program {
  const aj_op* op;
  uint8_t nparams, npositional, nrequired;
  uint8_t nresults, nvisible;
  uint32_t hidden;        // bit i: result i is not shown
  int8_t varargs;         // the list parameter that takes all remaining positional arguments, or -1
  int8_t device;          // where a factory's device stands, or -1
  bool factory;           // makes a tensor from nothing: takes requires_grad and pin_memory too
  bool out, in_place;     // has these forms
  bool puts;              // has out= although the op does not: the result is copied there
  bool network;           // takes inplace=, as functions of nn.functional do
  bool activation;        // inplace may stand behind the others: relu(x, True)
  bool function, method;  // where it is shown
  PyTypeObject* named;    // the type of several results, made when first needed
  Program* next;
  Param params[kMaxParams];
};

// Memory for one call's arguments that do not fit into an aj_value.
class Scratch {
 public:
  void* take(size_t words) {
    if (likely(used_ + words <= kWords)) {
      void* p = words_ + used_;
      used_ += words;
      return p;
    }
    more_.push_back({new int64_t[words](), [](void* p) { delete[] static_cast<int64_t*>(p); }});
    return more_.back().get();
  }
  void reset() { used_ = 0; }
  void keep(aj_object* steal) {
    more_.push_back({steal, [](void* o) { core->release(o); }});
  }  // to the call's end

 private:
  static constexpr size_t kWords = 64;
  int64_t words_[kWords];
  size_t used_ = 0;
  std::vector<std::unique_ptr<void, void (*)(void*)>> more_;
};

// What a call consists of once it is bound.
struct Frame {
  aj_value values[kMaxParams];
  uint64_t keys;  // of all tensor arguments
  PyObject* out;  // borrowed, or NULL
  bool in_place;
  uint8_t wishes;             // of who calls a factory: kWantsGrad | kWantsPinned, and a layout
  int8_t at;                  // on a mismatch: the parameter, or -1
  uint8_t converted;          // on a mismatch: how many arguments were right
  uint8_t why;                // on a mismatch: kTooMany ...
  PyObject* what;             // on a mismatch: the argument or keyword, borrowed
  PyObject* large = nullptr;  // an int of more than 63 bits, borrowed; see settle_large
  int8_t large_at;
  Scratch scratch;
};
enum Wish : uint8_t { kWantsGrad = 1, kWantsPinned = 2, kLayoutBits = 2 };
enum Why : uint8_t { kTooMany, kMissingArgument, kUnknownKeyword, kTwice, kWrongType };

enum class Match : uint8_t { Bound, No, Override, Error };

Match bind(const Program& p, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, Frame& f);
Match convert(const Param& p, PyObject* o, aj_value* v, Frame& f);

// Runs a bound call. first: with in_place, the Python object of argument 0.
PyObject* run(const Program& p, Frame& f, PyObject* in_place);

// A tensor just made as its caller wants it; takes and gives a reference.
PyObject* grant(PyObject* made, uint8_t wishes);

// One result of a call as a Python object; takes it.
PyObject* take_value(aj_value v);

// A number that is no tensor: Python's and NumPy's.
bool as_number(PyObject* o, aj_value* v, Scratch& scratch);
// An int from 2^63 on: among floats it is a float, to uint64 its 64 bits are given as a negative.
// Where nothing could hold it, or `among` is NULL, an error is set.
Match large_number(PyObject* o, aj_value* v, const DLDataType* among);
Match settle_large(const Program& p,
                   Frame& f);  // the one that a frame holds, when all arguments are there
inline bool plain_number(PyObject* o, aj_value* v) {
  v->aux = 0;
  if (PyFloat_CheckExact(o)) {
    v->tag = AJ_FLOAT;
    v->v.f = PyFloat_AS_DOUBLE(o);
    return true;
  }
  if (PyLong_CheckExact(o)) {
    int overflow;
    v->tag = AJ_INT;
    v->v.i = PyLong_AsLongLongAndOverflow(o, &overflow);
    return overflow == 0;
  }
  return false;
}

// A subclass that wants to see calls with its tensors.
bool overrides(PyTypeObject* type);
extern thread_local bool overrides_disabled;
PyObject* call_override(PyObject* func, PyObject* const* args, Py_ssize_t n, PyObject* kwnames);
bool any_override(PyObject* const* args, Py_ssize_t n);

// A mode that wants to see all calls of this thread; the count is over all threads, so that nobody
// else looks further.
extern int modes_entered;
bool mode_here();
inline bool mode_on() { return unlikely(modes_entered != 0) && mode_here(); }

}  // namespace adjoin::py
