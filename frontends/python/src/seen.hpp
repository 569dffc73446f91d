// frontends/python/src/seen.hpp: methods, properties and slots of Tensor that __torch_function__
// sees: of subclasses that have one, and of modes. A plain tensor pays two comparisons.
#pragma once

#include "program.hpp"
#include "tensor.hpp"

namespace adjoin::py {

// Whether somebody wants to know what is asked of the tensor: its class, or a mode.
inline bool looked_on(PyObject* self) {
  return unlikely(!is_exact_tensor(self) && overrides(Py_TYPE(self))) || mode_on();
}

// What an override makes of a method: the descriptor that was made of its table's row.
PyObject* override_method(void* code, PyObject* self, PyObject* const* args, Py_ssize_t n,
                          PyObject* kwnames);
// Of a property: its descriptor's __get__, or __set__ and __delete__.
PyObject* override_get(getter code, void* closure, PyObject* self);
int override_set(getter code, void* closure, PyObject* self, PyObject* value);
// Of a special method that is a slot.
PyObject* override_slot(const char* name, PyObject* self);

// tensor.cpp tells which descriptor stands for which function; the first name counts.
void note_method(void* code, PyObject* descriptor);
void note_property(getter code, void* closure, PyObject* descriptor);

template <PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)>
PyObject* seen_with_names(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  if (unlikely(looked_on(self)))
    return override_method(reinterpret_cast<void*>(&seen_with_names<f>), self, args, n, kwnames);
  return f(self, args, n, kwnames);
}

template <PyObject* (*f)(PyObject*, PyObject*)>
PyObject* seen(PyObject* self, PyObject* arg) {
  if (unlikely(looked_on(self)))
    return override_method(reinterpret_cast<void*>(&seen<f>), self, &arg, arg ? 1 : 0, nullptr);
  return f(self, arg);
}

template <PyObject* (*get)(PyObject*, void*)>
PyObject* seen_get(PyObject* self, void* closure) {
  if (unlikely(looked_on(self))) return override_get(&seen_get<get>, closure, self);
  return get(self, closure);
}

template <PyObject* (*get)(PyObject*, void*), int (*set)(PyObject*, PyObject*, void*)>
int seen_set(PyObject* self, PyObject* value, void* closure) {
  if (unlikely(looked_on(self))) return override_set(&seen_get<get>, closure, self, value);
  return set(self, value, closure);
}

}  // namespace adjoin::py
