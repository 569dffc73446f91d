// frontends/python/src/compiled.cpp: the function that compile() gives: it passes calls on as they
// are, runs a trusted program, or asks adjoin._compile, at the cost of a call at most.
#include "compiled.hpp"

#include <algorithm>

#include "parse.hpp"
#include "replay.hpp"

namespace adjoin::py {
namespace {

struct Compiled {
  PyObject_HEAD vectorcallfunc call;
  PyObject *function, *look, *dict, *weak, *memory;
  long long plain,
      together;    // calls that are made as they are, or in a scope, before the next look
  unsigned flags;  // of the scope
  std::vector<std::unique_ptr<Plan>>* plans;
};
Compiled* cast(PyObject* o) { return reinterpret_cast<Compiled*>(o); }
// As they stand while nobody has said that nothing be compiled. They outlive the interpreter.
std::vector<Watched>& switches = *new std::vector<Watched>;

PyObject* look(Compiled* c, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  Ref given(PyTuple_New(n)), named(PyDict_New());
  if (!given || !named) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(given.get(), i, Py_NewRef(args[i]));
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k)
    if (PyDict_SetItem(named.get(), PyTuple_GET_ITEM(kwnames, k), args[n + k]) < 0) return nullptr;
  return PyObject_CallFunctionObjArgs(c->look, given.get(), named.get(), nullptr);
}

PyObject* call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Compiled* c = cast(self);
  if (likely(c->plain > 0)) {
    --c->plain;
    return PyObject_Vectorcall(c->function, args, nargsf, kwnames);
  }
  const auto n = size_t(PyVectorcall_NARGS(nargsf));
  const bool asked = !std::all_of(switches.begin(), switches.end(), stands);
  if (c->together > 0 && !asked && !scope_here() && !capturing()) {
    --c->together;
    PyObject* result;
    if (in_scope(c->memory, c->flags, c->function, args, nargsf, kwnames, &result) == Scoped::fresh)
      c->together = 0;
    return result;
  }
  for (const auto& p : *c->plans)
    if (!asked && p->takes(args, n, kwnames)) {
      if (p->left <= 0) break;
      --p->left;
      return p->run();
    }
  return look(c, args, Py_ssize_t(n), kwnames);
}

// compiled(function, look): look(args, kwargs) makes the calls that are not passed on.
PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *function, *look_at;
  if (!PyArg_ParseTuple(args, "OO", &function, &look_at)) return nullptr;
  PyObject* o = type->tp_alloc(type, 0);
  if (!o) return nullptr;
  Compiled* c = cast(o);
  c->call = call;
  c->function = Py_NewRef(function);
  c->look = Py_NewRef(look_at);
  c->plans = new std::vector<std::unique_ptr<Plan>>;
  return o;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  const Compiled* c = cast(self);
  Py_VISIT(c->function);
  Py_VISIT(c->look);
  Py_VISIT(c->dict);
  Py_VISIT(c->memory);
  if (c->plans)
    for (const auto& p : *c->plans)
      if (int stop = p->visit(visit, arg)) return stop;
  return 0;
}
int clear(PyObject* self) {
  Compiled* c = cast(self);
  Py_CLEAR(c->function);
  Py_CLEAR(c->look);
  Py_CLEAR(c->dict);
  Py_CLEAR(c->memory);
  if (c->plans) {
    auto plans = std::move(*c->plans);
    c->plans->clear();
  }
  return 0;
}
void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (cast(self)->weak) PyObject_ClearWeakRefs(self);
  clear(self);
  delete cast(self)->plans;
  Py_TYPE(self)->tp_free(self);
}

// As a function does: in a class it becomes a method.
PyObject* bind_to(PyObject* self, PyObject* object, PyObject*) {
  return !object || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<compiled %R>", cast(self)->function);
}

// Files and copies name it, as they name functions.
PyObject* reduce(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }

// plan_add(program, args, kwargs, watched, together, writes, runs, token, sizes): from now on a
// call with such arguments runs the program, so many times, as long as what is watched stands:
// dictionaries, lists and cells, or (dictionary, key). together: None, the only result; True, a
// tuple of them; or what makes the value of the tuple.
PyObject* plan_add(PyObject* self, PyObject* args) {
  PyObject *program, *given, *named, *watched, *together, *token, *sizes;
  int writes;
  long long runs;
  if (!PyArg_ParseTuple(args, "OO!O!O!OpLOO!", &program, &PyTuple_Type, &given, &PyDict_Type,
                        &named, &PyList_Type, &watched, &together, &writes, &runs, &token,
                        &PyList_Type, &sizes))
    return nullptr;
  std::unique_ptr<Plan> p = Plan::make(program, given, named, watched, together, writes, sizes);
  if (!p) return nullptr;
  p->left = runs;
  p->token = Ref::borrow(token);
  auto& plans = *cast(self)->plans;
  constexpr size_t kMost = 16;
  std::unique_ptr<Plan> oldest;
  if (plans.size() == kMost) oldest = std::move(plans.front()), plans.erase(plans.begin());
  plans.push_back(std::move(p));
  Py_RETURN_NONE;
}

PyObject* plans_clear(PyObject* self, PyObject*) {
  auto plans = std::move(*cast(self)->plans);
  cast(self)->plans->clear();
  Py_RETURN_NONE;
}

// plan_take(args, kwargs): the token of a plan for such arguments, run out or not, which goes; or
// None.
PyObject* plan_take(PyObject* self, PyObject* args) {
  PyObject *given, *named;
  if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &given, &PyDict_Type, &named)) return nullptr;
  Ref names(PyDict_Keys(named));
  Ref kwnames(names ? PyList_AsTuple(names.get()) : nullptr);
  if (!kwnames) return nullptr;
  std::vector<PyObject*> all;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i)
    all.push_back(PyTuple_GET_ITEM(given, i));
  PyObject *key, *item;
  for (Py_ssize_t at = 0; PyDict_Next(named, &at, &key, &item);) all.push_back(item);
  auto& plans = *cast(self)->plans;
  for (size_t i = 0; i < plans.size(); ++i)
    if (plans[i]->takes(all.data(), size_t(PyTuple_GET_SIZE(given)), kwnames.get())) {
      std::unique_ptr<Plan> gone = std::move(plans[i]);
      plans.erase(plans.begin() + std::ptrdiff_t(i));
      return Py_NewRef(gone->token.get());
    }
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"plan_add", plan_add, METH_VARARGS, nullptr},
    {"plan_take", plan_take, METH_VARARGS, nullptr},
    {"plans_clear", plans_clear, METH_NOARGS, nullptr},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {},
};
PyMemberDef members[] = {
    {"together", T_LONGLONG, offsetof(Compiled, together), 0, nullptr},
    {"memory", T_OBJECT, offsetof(Compiled, memory), 0, nullptr},
    {"flags", T_UINT, offsetof(Compiled, flags), 0, nullptr},
    {"plain", T_LONGLONG, offsetof(Compiled, plain), 0, nullptr},
    {},
};
PyGetSetDef properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {},
};

PyTypeObject compiled_type = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "adjoin._C.compiled",
    .tp_basicsize = sizeof(Compiled),
    .tp_dealloc = dealloc,
    .tp_vectorcall_offset = offsetof(Compiled, call),
    .tp_repr = repr,
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_weaklistoffset = offsetof(Compiled, weak),
    .tp_methods = methods,
    .tp_members = members,
    .tp_getset = properties,
    .tp_descr_get = bind_to,
    .tp_dictoffset = offsetof(Compiled, dict),
    .tp_new = make,
};

// compile_switches([(dictionary, key), ...]): where these are others than now, every call is asked
// about.
PyObject* set_switches(PyObject*, PyObject* list) {
  std::vector<Watched> found;
  for (Py_ssize_t i = 0; PyList_Check(list) && i < PyList_GET_SIZE(list); ++i)
    if (!watch(PyList_GET_ITEM(list, i), &found.emplace_back())) return nullptr;
  switches = std::move(found);
  Py_RETURN_NONE;
}

// op_kind(name): "binary", "product", "view", ... as its row says.
PyObject* op_kind(PyObject*, PyObject* name) {
  Py_ssize_t n;
  const char* text = PyUnicode_AsUTF8AndSize(name, &n);
  const aj_op* op = text ? dispatch->find_op(str({text, size_t(n)})) : nullptr;
  auto info = sized<aj_op_info>();
  if (!op) return text ? PyErr_Format(PyExc_KeyError, "no op is called %U", name) : nullptr;
  return failed(dispatch->op_info(op, &info)) ? nullptr : to_python(info.kind);
}

PyMethodDef functions[] = {
    {"op_kind", op_kind, METH_O, nullptr},
    {"compile_switches", set_switches, METH_O, nullptr},
    {},
};

}  // namespace

int init_compiled(PyObject* module) {
  if (PyType_Ready(&compiled_type) < 0 || PyModule_AddFunctions(module, functions) < 0) return -1;
  return PyModule_AddObjectRef(module, "compiled", reinterpret_cast<PyObject*>(&compiled_type));
}

}  // namespace adjoin::py
