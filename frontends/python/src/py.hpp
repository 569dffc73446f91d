// frontends/python/src/py.hpp: what every part of the native module shares: the tables, owned
// references, small helpers.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <adjoin/abi/capi.h>
#include <structmember.h>  // these two want Python.h before them, as sorted includes would not have it
#include <structseq.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace adjoin::py {

extern const aj_core* core;
extern const aj_dispatch* dispatch;
extern const aj_autograd* autograd;
extern const aj_plugins* plugins;
extern int32_t frontend_id;

constexpr uint64_t kAutogradKey = uint64_t{1} << 33;

inline bool likely(bool x) { return __builtin_expect(x, 1); }
inline bool unlikely(bool x) { return __builtin_expect(x, 0); }

// The interpreter, when it ends, unwinds every other thread from where it next asks for the lock.
// What stands on that thread's stack must not be taken apart then, for that needs the lock: the
// thread waits here for the process to end.
extern bool ending;
void wait_if_over();
inline void before_python() {
  if (unlikely(ending)) wait_if_over();
}
void drop_last(PyObject* object);  // whose end may run anything

// An owned reference to a Python object.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(other.release()) {}
  Ref& operator=(Ref&& other) noexcept {
    PyObject* old = object_;
    object_ = other.release();
    drop(old);
    return *this;
  }
  ~Ref() { drop(object_); }
  static Ref borrow(PyObject* object) {
    Py_XINCREF(object);
    return Ref(object);
  }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  static void drop(PyObject* object) {
    if (!object) return;
    before_python();
    if (Py_REFCNT(object) == 1)
      drop_last(object);
    else
      Py_DECREF(object);
  }

  PyObject* object_ = nullptr;
};

// An owned reference to a tensor or another counted object of the core.
template <class T>
class Held {
 public:
  Held() = default;
  explicit Held(T* owned) : object_(owned) {}
  Held(Held&& other) noexcept : object_(other.release()) {}
  Held& operator=(Held&& other) noexcept {
    T* old = object_;
    object_ = other.release();
    if (old) core->release(old);
    return *this;
  }
  ~Held() {
    if (!object_) return;
    before_python();
    core->release(object_);
  }
  T* get() const { return object_; }
  T* release() { return std::exchange(object_, nullptr); }
  T** out() { return &object_; }
  explicit operator bool() const { return object_ != nullptr; }
  T* operator->() const { return object_; }

 private:
  T* object_ = nullptr;
};
using HeldTensor = Held<aj_tensor>;
using HeldObject = Held<aj_object>;

// Takes the interpreter's lock on whatever thread the core calls from.
class Gil {
 public:
  Gil();
  ~Gil() {
    before_python();
    PyGILState_Release(state_);
  }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;

 private:
  PyGILState_STATE state_;
};

// Whether this thread runs Python now and then. A worker of the pool does not, and must never wait
// for the interpreter's lock: whoever holds it may be waiting for the worker.
inline bool is_python_thread() { return PyGILState_GetThisThreadState() != nullptr; }

// Gives up a reference on whatever thread the core calls from.
void drop_object(PyObject* object);

using FastCall = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);
using FastCallKw = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
inline PyCFunction method(FastCall f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
inline PyCFunction method(FastCallKw f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
inline PyCFunction method(PyCFunction f) { return f; }

inline aj_str str(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view view(aj_str s) { return {s.data, s.len}; }
// Text from outside may be no UTF-8: what is not shows as replacement characters.
inline PyObject* to_python(std::string_view s) {
  return PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace");
}
inline PyObject* to_python(aj_str s) { return to_python(view(s)); }

template <class T>
T sized() {
  T t{};
  t.struct_size = sizeof(T);
  return t;
}

// An attribute of a module of the package, imported when first asked for. Borrowed; NULL with an
// error set.
PyObject* helper(const char* module, const char* name);
PyObject* call_helper(const char* module, const char* name, PyObject* const* args, size_t n);

// The TypeError of a call with a keyword that the function does not know, with the name that is
// like it.
PyObject* unknown_keyword(PyObject* function, PyObject* keyword, PyObject* const* known, int n);

// Adds a type to the module after making it ready.
int add_type(PyObject* module, PyTypeObject* type, const char* name);

// What the module's parts add to it; each returns 0, or -1 with an error set.
int init_errors(PyObject* module);
int init_dtype(PyObject* module);
int init_device(PyObject* module);
int init_size(PyObject* module);
int init_generator(PyObject* module);
int init_object(PyObject* module);
int init_tensor(PyObject* module);
int init_wrap(PyObject* module);
int init_transform(PyObject* module);
int init_graphs(PyObject* module);
int init_lazy(PyObject* module);
int init_forward(PyObject* module);
int init_memory(PyObject* module);
int init_profile(PyObject* module);
int init_ops(PyObject* module);
int init_numbers(PyObject* module);
int init_index(PyObject* module);
int init_convert(PyObject* module);
int init_interop(PyObject* module);
int init_modes(PyObject* module);
int init_autocast(PyObject* module);
int init_node(PyObject* module);
int init_hooks(PyObject* module);
int init_engine(PyObject* module);
int init_function(PyObject* module);
int init_module_base(PyObject* module);
int init_module_tree(PyObject* module);
int init_override(PyObject* module);
int init_seen(PyObject* module);
int init_operate(PyObject* module);
int init_runtime(PyObject* module);
int init_define(PyObject* module);
int init_streams(PyObject* module);
int init_optimizer(PyObject* module);
int init_shared(PyObject* module);
int init_ipc(PyObject* module);
int init_distributed(PyObject* module);

}  // namespace adjoin::py
