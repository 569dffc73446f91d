// frontends/python/src/lazy.cpp: lazy scopes (abi/lazy.h) for adjoin.lazy and adjoin.compile.
#include <adjoin/abi/lazy.h>

#include <utility>

#include "compiled.hpp"
#include "extension.hpp"
#include "graphs.hpp"
#include "line.hpp"
#include "methods.hpp"
#include "tensor.hpp"

namespace adjoin::py {
namespace {

constexpr const char* kCapsule = "adjoin.lazy";

const aj_lazy* table() { return extension<aj_lazy>("x.lazy", "lazy", "libaj_graph.so"); }

aj_object* memory_of(PyObject* o) {
  return table() ? static_cast<aj_object*>(PyCapsule_GetPointer(o, kCapsule)) : nullptr;
}

PyObject* memory(PyObject*, PyObject*) {
  aj_object* made = nullptr;
  if (!table() || failed(table()->memory(&made))) return nullptr;
  PyObject* capsule = PyCapsule_New(
      made, kCapsule, [](PyObject* c) { core->release(PyCapsule_GetPointer(c, kCapsule)); });
  if (!capsule) core->release(made);
  return capsule;
}

// While a scope is open each call tells its line: which one ends a region is not known before.
int opened = 0;
const uint64_t* keys_before;
void note_lines(bool on) {
  static const uint64_t all = ~uint64_t{0};
  if (on && opened++ == 0) keys_before = std::exchange(line_keys, &all);
  if (!on && --opened == 0) line_keys = keys_before;
}

// lazy_enter(memory, flags)
PyObject* enter(PyObject*, PyObject* const* args, Py_ssize_t n) {
  aj_object* m = n == 2 ? memory_of(args[0]) : nullptr;
  if (!m || failed(table()->enter(m, uint32_t(PyLong_AsUnsignedLong(args[1]))))) return nullptr;
  note_lines(true);
  Py_RETURN_NONE;
}

PyObject* leave(PyObject*, PyObject*) {
  if (!table()) return nullptr;
  note_line();
  if (table()->depth()) note_lines(false);
  if (failed(table()->leave())) return nullptr;
  Py_RETURN_NONE;
}

PyObject* flush(PyObject*, PyObject*) {
  if (!table()) return nullptr;
  note_line();
  if (failed(table()->flush())) return nullptr;
  Py_RETURN_NONE;
}

PyObject* pause(PyObject*, PyObject*) {
  if (!table()) return nullptr;
  note_line();
  if (failed(table()->pause())) return nullptr;
  Py_RETURN_NONE;
}

PyObject* resume(PyObject*, PyObject*) {
  if (!table()) return nullptr;
  table()->resume();
  Py_RETURN_NONE;
}

PyObject* depth(PyObject*, PyObject*) {
  return table() ? PyLong_FromLong(table()->depth()) : nullptr;
}

// lazy_limits(calls, bytes)
PyObject* limits(PyObject*, PyObject* args) {
  unsigned calls;
  unsigned long long bytes;
  if (!PyArg_ParseTuple(args, "IK", &calls, &bytes) || !table()) return nullptr;
  table()->limits(calls, bytes);
  Py_RETURN_NONE;
}

// lazy_stats(memory): (calls, known, flushes, passes, groups, fused, kept, program, together,
// apart).
PyObject* stats(PyObject*, PyObject* o) {
  aj_object* m = memory_of(o);
  auto s = sized<aj_lazy_stats>();
  if (!m || failed(table()->stats(m, &s))) return nullptr;
  using U = unsigned long long;
  return Py_BuildValue("(KKKKKKKKKK)", U(s.calls), U(s.matched), U(s.flushes), U(s.passes),
                       U(s.groups), U(s.fused), U(s.kept), U(s.program), U(s.together), U(s.apart));
}

PyObject* report(PyObject*, PyObject* o) {
  aj_object *m = memory_of(o), *text = nullptr;
  return !m || failed(table()->report(m, &text)) ? nullptr : take_string(text);
}

PyObject* forget(PyObject*, PyObject* o) {
  aj_object* m = memory_of(o);
  if (!m || failed(table()->forget(m))) return nullptr;
  Py_RETURN_NONE;
}

// lazy_value(t): the number of a tensor that this thread's scope has written down, or None.
PyObject* value(PyObject*, PyObject* o) {
  if (!is_tensor(o) || !table()) return PyErr_Format(PyExc_TypeError, "lazy: a tensor is wanted");
  const uint32_t v = table()->value(tensor_of(o));
  return v == UINT32_MAX ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(v);
}

PyObject* with_inputs(PyObject* steal, aj_object* inputs) {
  Ref told(steal);
  HeldObject list(inputs);
  uint32_t n = 0;
  const aj_value* items = core->list_get(list.get(), &n);
  Ref given(PyList_New(n));
  for (uint32_t i = 0; given && i < n; ++i)
    PyList_SET_ITEM(given.get(), i, wrap_borrowed(items[i].v.tensor));
  return told && given ? PyTuple_Pack(2, told.get(), given.get()) : nullptr;
}

// lazy_program(memory): (the last program, or None, what it was given).
PyObject* kept_program(PyObject*, PyObject* o) {
  aj_object *m = memory_of(o), *program = nullptr, *inputs = nullptr;
  if (!m || failed(table()->program(m, &program, &inputs))) return nullptr;
  return with_inputs(program ? program_capsule(program) : Py_NewRef(Py_None), inputs);
}

PyMethodDef functions[] = {
    {"lazy_value", value, METH_O, nullptr},
    {"lazy_program", kept_program, METH_O, nullptr},
    {"lazy_memory", memory, METH_NOARGS, nullptr},
    {"lazy_enter", method(enter), METH_FASTCALL, nullptr},
    {"lazy_leave", leave, METH_NOARGS, nullptr},
    {"lazy_flush", flush, METH_NOARGS, nullptr},
    {"lazy_pause", pause, METH_NOARGS, nullptr},
    {"lazy_resume", resume, METH_NOARGS, nullptr},
    {"lazy_depth", depth, METH_NOARGS, nullptr},
    {"lazy_limits", limits, METH_VARARGS, nullptr},
    {"lazy_stats", stats, METH_O, nullptr},
    {"lazy_report", report, METH_O, nullptr},
    {"lazy_forget", forget, METH_O, nullptr},
    {},
};

}  // namespace

Scoped in_scope(PyObject* memory, uint32_t flags, PyObject* function, PyObject* const* args,
                size_t nargsf, PyObject* kwnames, PyObject** out) {
  *out = nullptr;
  aj_object* m = memory_of(memory);
  if (!m) return Scoped::failed;
  auto before = sized<aj_lazy_stats>(), after = before;
  if (failed(table()->stats(m, &before)) || failed(table()->enter(m, flags))) return Scoped::failed;
  note_lines(true);
  Ref result(PyObject_Vectorcall(function, args, nargsf, kwnames));
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  note_line();
  note_lines(false);
  if (aj_status* s = table()->leave()) {
    if (result) {
      raise(s);
      return Scoped::failed;
    }
    core->status_free(s);
  }
  PyErr_Restore(type, value, traceback);
  if (!result) return Scoped::failed;
  *out = result.release();
  if (failed(table()->stats(m, &after))) {
    Py_CLEAR(*out);
    return Scoped::failed;
  }
  return after.kept > before.kept ? Scoped::fresh : Scoped::met;
}

bool scope_here() { return opened && table()->depth() > 0; }

int init_lazy(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py
