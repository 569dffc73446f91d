// frontends/python/src/collect.cpp: references that Python objects hold through the graph, for the
// collector of cycles.
#include "collect.hpp"

#include <unordered_map>
#include <vector>

#include "function.hpp"
#include "hooks.hpp"
#include "methods.hpp"

namespace adjoin::py {
namespace {

struct Visitor {
  visitproc visit;
  void* arg;
  int result;
  void take(PyObject* o) {
    if (o && !result) result = visit(o, arg);
  }
};

void take_held(void* self, void (*drop)(void*), void* held) {
  auto& v = *static_cast<Visitor*>(self);
  PyObject* two[2] = {};
  if (drop == drop_context)
    two[0] = static_cast<PyObject*>(held);
  else if (drop == drop_word)
    two[0] = static_cast<PyObject*>(held);
  else
    objects_of_hook(drop, held, two);
  v.take(two[0]);
  v.take(two[1]);
}

using Met = std::unordered_map<PyObject*, Py_ssize_t>;

void gather(PyObject* o, int depth, Met& met, std::vector<void*>& out) {
  if (!o || (Py_REFCNT(o) != 1 && ++met[o] != Py_REFCNT(o))) return;
  if (is_tensor(o)) {
    auto* t = reinterpret_cast<TensorObject*>(o);
    if (!PyObject_GC_IsTracked(o) && !t->kept && core->tensor_unique(t->tensor))
      out.push_back(t->tensor);
    return;
  }
  if (depth == 0) return;
  if (PyDict_CheckExact(o)) {
    PyObject *key, *item;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &item);) gather(item, depth - 1, met, out);
  } else if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      gather(PySequence_Fast_GET_ITEM(o, i), depth - 1, met, out);
  }
}

}  // namespace

const aj_x_tape* tape() {
  static auto* found = static_cast<const aj_x_tape*>(aj_get_interface("x.tape", 1));
  return found;
}

int visit_held(void* const* objects, size_t n, visitproc visit, void* arg) {
  if (n == 0 || !tape()) return 0;
  Visitor v{visit, arg, 0};
  tape()->would_drop(objects, static_cast<uint32_t>(n), take_held, &v);
  return v.result;
}

int visit_held_in(PyObject* container, visitproc visit, void* arg) {
  std::vector<void*> tensors;
  Met met;
  gather(container, 3, met, tensors);
  return visit_held(tensors.data(), tensors.size(), visit, arg);
}

}  // namespace adjoin::py
