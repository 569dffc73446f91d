// frontends/python/src/graphs.cpp: captured programs (abi/program.h) for adjoin.jit, in capsules.
#include "graphs.hpp"

#include <adjoin/abi/passes.h>
#include <adjoin/abi/program.h>

#include <algorithm>
#include <vector>

#include "dtype.hpp"
#include "extension.hpp"
#include "methods.hpp"
#include "tensor.hpp"

namespace adjoin::py {
namespace {

constexpr const char* kCapsule = kProgramCapsule;

const aj_programs* table() { return extension<aj_programs>("x.program", "jit", "libaj_graph.so"); }

PyObject* capsule(aj_object* steal) { return program_capsule(steal); }
aj_object* program_of(PyObject* o) {
  return table() ? static_cast<aj_object*>(PyCapsule_GetPointer(o, kCapsule)) : nullptr;
}

bool tensors_in(PyObject* list, std::vector<aj_tensor*>* out) {
  Ref items(PySequence_Fast(list, "program: a list of tensors is wanted"));
  if (!items) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* o = PySequence_Fast_GET_ITEM(items.get(), i);
    if (!is_tensor(o)) {
      PyErr_Format(PyExc_TypeError, "program: a Tensor is wanted, not %s", Py_TYPE(o)->tp_name);
      return false;
    }
    out->push_back(tensor_of(o));
  }
  return true;
}

PyObject* list_of(const std::vector<aj_tensor*>& steal) {
  Ref list(PyList_New(Py_ssize_t(steal.size())));
  for (size_t i = 0; list && i < steal.size(); ++i)
    PyList_SET_ITEM(list.get(), Py_ssize_t(i), wrap_or_none(steal[i]));
  return list.release();
}

// program_begin(name, limit)
PyObject* begin(PyObject*, PyObject* args) {
  const char* name;
  unsigned long long limit;
  if (!PyArg_ParseTuple(args, "sK", &name, &limit) || !table() ||
      failed(table()->begin(str(name), limit)))
    return nullptr;
  Py_RETURN_NONE;
}

// program_input(t, name): the traced tensor.
PyObject* input(PyObject*, PyObject* args) {
  PyObject* t;
  const char* name;
  aj_tensor* made;
  if (!PyArg_ParseTuple(args, "O!s", &tensor_type, &t, &name) || !table() ||
      failed(table()->input(tensor_of(t), str(name), &made)))
    return nullptr;
  return wrap(made);
}

// program_param(t, name)
PyObject* param(PyObject*, PyObject* args) {
  PyObject* t;
  const char* name;
  if (!PyArg_ParseTuple(args, "O!s", &tensor_type, &t, &name) || !table() ||
      failed(table()->param(tensor_of(t), str(name))))
    return nullptr;
  Py_RETURN_NONE;
}

// program_end(results, form of inputs, form of results): the program.
PyObject* end(PyObject*, PyObject* args) {
  PyObject* list;
  const char *in, *out;
  aj_object* made = nullptr;
  std::vector<aj_tensor*> results;
  if (!PyArg_ParseTuple(args, "Oss", &list, &in, &out) || !table() || !tensors_in(list, &results) ||
      failed(table()->end(results.data(), uint32_t(results.size()), str(in), str(out), &made)))
    return nullptr;
  return capsule(made);
}

PyObject* cancel(PyObject*, PyObject*) {
  if (!table()) return nullptr;
  table()->cancel();
  Py_RETURN_NONE;
}

PyObject* capturing(PyObject*, PyObject*) {
  return table() ? PyBool_FromLong(table()->capturing()) : nullptr;
}

PyObject* parse(PyObject*, PyObject* text) {
  Py_ssize_t n;
  const char* t = PyUnicode_AsUTF8AndSize(text, &n);
  aj_object* made = nullptr;
  if (!t || !table() || failed(table()->parse(str({t, size_t(n)}), &made))) return nullptr;
  return capsule(made);
}

PyObject* text(PyObject*, PyObject* o) {
  aj_object *p = program_of(o), *made = nullptr;
  return !p || failed(table()->text(p, &made)) ? nullptr : take_string(made);
}

// program_source(p, line): what @line stands for.
PyObject* source(PyObject*, PyObject* args) {
  PyObject* o;
  unsigned line;
  aj_object *p, *made = nullptr;
  if (!PyArg_ParseTuple(args, "OI", &o, &line) || !(p = program_of(o)) ||
      failed(table()->source(p, line, &made)))
    return nullptr;
  return take_string(made);
}

PyObject* save(PyObject*, PyObject* args) {
  PyObject *o, *path;
  if (!PyArg_ParseTuple(args, "OO&", &o, PyUnicode_FSConverter, &path)) return nullptr;
  Ref held(path);
  aj_object* p = program_of(o);
  return !p || failed(table()->save(p, str(PyBytes_AS_STRING(path)))) ? nullptr
                                                                      : Py_NewRef(Py_None);
}

PyObject* load(PyObject*, PyObject* args) {
  PyObject* path;
  aj_object* made = nullptr;
  if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path)) return nullptr;
  Ref held(path);
  return !table() || failed(table()->load(str(PyBytes_AS_STRING(path)), &made)) ? nullptr
                                                                                : capsule(made);
}

// program_values(p, what): (name, dtype, shape) of each input, result, parameter or constant.
PyObject* values(PyObject*, PyObject* args) {
  PyObject* o;
  int what;
  aj_object* p;
  if (!PyArg_ParseTuple(args, "Oi", &o, &what) || !(p = program_of(o))) return nullptr;
  Ref list(PyList_New(0));
  for (uint32_t i = 0; list && i < table()->count(p, what); ++i) {
    auto v = sized<aj_program_value>();
    if (failed(table()->at(p, what, i, &v))) return nullptr;
    Ref shape(PyTuple_New(v.type.ndim));
    for (int d = 0; shape && d < v.type.ndim; ++d)
      PyTuple_SET_ITEM(shape.get(), d, PyLong_FromLongLong(v.type.shape[d]));
    PyObject* dtype = reinterpret_cast<PyObject*>(dtype_object(v.type.dtype));
    Ref item(dtype && shape
                 ? Py_BuildValue("(s#OO)", v.name.data, Py_ssize_t(v.name.len), dtype, shape.get())
                 : nullptr);
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
}

// program_forms(p): how inputs and results nest, texts of who captured it.
PyObject* forms(PyObject*, PyObject* o) {
  aj_object *p = program_of(o), *in = nullptr, *out = nullptr;
  if (!p || failed(table()->form(p, AJ_PROGRAM_INPUT, &in))) return nullptr;
  Ref first(take_string(in));
  if (!first || failed(table()->form(p, AJ_PROGRAM_RESULT, &out))) return nullptr;
  Ref second(take_string(out));
  return second ? PyTuple_Pack(2, first.get(), second.get()) : nullptr;
}

// program_weight(p, what, i): the tensor, or None.
PyObject* weight(PyObject*, PyObject* args) {
  PyObject* o;
  int what;
  unsigned i;
  aj_object* p;
  aj_tensor* t = nullptr;
  if (!PyArg_ParseTuple(args, "OiI", &o, &what, &i) || !(p = program_of(o)) ||
      failed(table()->weight(p, what, i, &t)))
    return nullptr;
  return wrap_or_none(t);
}

PyObject* set_weight(PyObject*, PyObject* args) {
  PyObject *o, *t;
  int what;
  unsigned i;
  aj_object* p;
  if (!PyArg_ParseTuple(args, "OiIO!", &o, &what, &i, &tensor_type, &t) || !(p = program_of(o)) ||
      failed(table()->set_weight(p, what, i, tensor_of(t))))
    return nullptr;
  Py_RETURN_NONE;
}

// program_takes(p, inputs): are these tensors of its dtypes and sizes?
PyObject* takes(PyObject*, PyObject* const* args, Py_ssize_t n) {
  aj_object* p = n == 2 ? program_of(args[0]) : nullptr;
  if (!p) return nullptr;
  if (!PyTuple_Check(args[1]) ||
      PyTuple_GET_SIZE(args[1]) != Py_ssize_t(table()->count(p, AJ_PROGRAM_INPUT)))
    Py_RETURN_FALSE;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[1]); ++i) {
    PyObject* o = PyTuple_GET_ITEM(args[1], i);
    auto v = sized<aj_program_value>();
    if (!is_tensor(o)) Py_RETURN_FALSE;
    if (failed(table()->at(p, AJ_PROGRAM_INPUT, uint32_t(i), &v))) return nullptr;
    const DLTensor& t = tensor_of(o)->dl;
    bool fits = same(t.dtype, v.type.dtype) && t.ndim == v.type.ndim;
    for (int d = 0; fits && d < t.ndim; ++d)
      fits = v.type.shape[d] == -1 || v.type.shape[d] == t.shape[d];
    if (!fits) Py_RETURN_FALSE;
  }
  Py_RETURN_TRUE;
}

// program_run(p, inputs, fused): the results, a list.
PyObject* run(PyObject*, PyObject* const* args, Py_ssize_t n) {
  std::vector<aj_tensor*> inputs;
  aj_object* p = n == 3 ? program_of(args[0]) : nullptr;
  if (!p || !tensors_in(args[1], &inputs)) return nullptr;
  std::vector<aj_tensor*> results(table()->count(p, AJ_PROGRAM_RESULT));
  if (failed(table()->run(p, inputs.data(), uint32_t(inputs.size()),
                          args[2] == Py_True ? 0 : AJ_RUN_NO_FUSION, results.data(),
                          uint32_t(results.size()))))
    return nullptr;
  return list_of(results);
}

// program_stats(p): (calls, passes, groups, fused calls) of the last run.
PyObject* stats(PyObject*, PyObject* o) {
  aj_object* p = program_of(o);
  auto s = sized<aj_program_stats>();
  if (!p || failed(table()->stats(p, &s))) return nullptr;
  return Py_BuildValue("(KKKK)", (unsigned long long)s.nodes, (unsigned long long)s.passes,
                       (unsigned long long)s.groups, (unsigned long long)s.fused);
}

// program_open()
PyObject* open(PyObject*, PyObject*) {
  return !table() || failed(table()->open()) ? nullptr : Py_NewRef(Py_None);
}

// program_carry(t): t inside of the loop.
PyObject* carry(PyObject*, PyObject* t) {
  aj_tensor* made;
  if (!is_tensor(t))
    return PyErr_Format(PyExc_TypeError, "while_loop: a Tensor is carried, not %s",
                        Py_TYPE(t)->tp_name);
  return !table() || failed(table()->carry(tensor_of(t), &made)) ? nullptr : wrap(made);
}

// program_close(results)
PyObject* close(PyObject*, PyObject* list) {
  std::vector<aj_tensor*> results;
  if (!table() || !tensors_in(list, &results) ||
      failed(table()->close(results.data(), uint32_t(results.size()))))
    return nullptr;
  Py_RETURN_NONE;
}

// program_branch(decides, n): the results.
PyObject* branch(PyObject*, PyObject* args) {
  PyObject* t;
  unsigned n;
  if (!PyArg_ParseTuple(args, "O!I", &tensor_type, &t, &n) || !table()) return nullptr;
  std::vector<aj_tensor*> out(n);
  return failed(table()->branch(tensor_of(t), out.data(), n)) ? nullptr : list_of(out);
}

// program_loop(carried): the results.
PyObject* loop(PyObject*, PyObject* list) {
  std::vector<aj_tensor*> carried;
  if (!table() || !tensors_in(list, &carried)) return nullptr;
  std::vector<aj_tensor*> out(carried.size());
  return failed(table()->loop(carried.data(), uint32_t(out.size()), out.data())) ? nullptr
                                                                                 : list_of(out);
}

// program_generalize(programs, names, sizes): one program; sizes is a flat list.
PyObject* generalize(PyObject*, PyObject* args) {
  PyObject *programs, *names, *sizes;
  if (!PyArg_ParseTuple(args, "O!O!O!", &PyList_Type, &programs, &PyList_Type, &names, &PyList_Type,
                        &sizes))
    return nullptr;
  std::vector<aj_object*> given;
  std::vector<aj_str> symbols;
  std::vector<int64_t> numbers;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(programs); ++i)
    if (aj_object* p = program_of(PyList_GET_ITEM(programs, i))) given.push_back(p);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names) && !PyErr_Occurred(); ++i)
    if (const char* name = PyUnicode_AsUTF8(PyList_GET_ITEM(names, i)))
      symbols.push_back(str(name));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(sizes) && !PyErr_Occurred(); ++i)
    numbers.push_back(PyLong_AsLongLong(PyList_GET_ITEM(sizes, i)));
  if (PyErr_Occurred()) return nullptr;
  if (numbers.size() != given.size() * symbols.size())
    return PyErr_Format(PyExc_ValueError, "trace: %zu sizes for %zu programs", numbers.size(),
                        given.size());
  aj_object* made = nullptr;
  if (failed(table()->generalize(given.data(), uint32_t(given.size()), symbols.data(),
                                 uint32_t(symbols.size()), numbers.data(), &made)))
    return nullptr;
  return capsule(made);
}

const aj_passes* passes_table() {
  static const auto* found = static_cast<const aj_passes*>(aj_get_interface("x.passes", 1));
  if (!found || found->struct_size < sizeof(aj_passes))
    PyErr_SetString(PyExc_NotImplementedError,
                    "jit: libaj_graph.so has not all passes; it is older");
  return PyErr_Occurred() ? nullptr : found;
}

// program_passes(p, AJ_PASS_...): another program.
PyObject* passes(PyObject*, PyObject* args) {
  PyObject* o;
  unsigned which;
  aj_object *p, *made = nullptr;
  if (!PyArg_ParseTuple(args, "OI", &o, &which) || !(p = program_of(o)) || !passes_table())
    return nullptr;
  return failed(passes_table()->apply(p, which, &made)) ? nullptr : capsule(made);
}

template <class T>
PyObject* tuple_of(const T* numbers, uint32_t n) {
  Ref made(PyTuple_New(n));
  for (uint32_t i = 0; made && i < n; ++i) {
    PyObject* number = PyLong_FromUnsignedLongLong(numbers[i]);
    if (!number) return nullptr;
    PyTuple_SET_ITEM(made.get(), i, number);
  }
  return made.release();
}

// program_calls(p): (AJ_CALL_..., values taken, values given, their bytes) of each call.
PyObject* calls(PyObject*, PyObject* o) {
  aj_object* p = program_of(o);
  if (!p || !passes_table()) return nullptr;
  Ref list(PyList_New(0));
  auto each = [](void* self, uint32_t flags, const uint32_t* takes, uint32_t ntakes,
                 const uint32_t* gives, const uint64_t* bytes, uint32_t ngives) {
    if (PyErr_Occurred()) return;
    Ref from(tuple_of(takes, ntakes)), to(tuple_of(gives, ngives)), large(tuple_of(bytes, ngives));
    Ref item(from && to && large ? Py_BuildValue("(IOOO)", flags, from.get(), to.get(), large.get())
                                 : nullptr);
    if (item) PyList_Append(static_cast<PyObject*>(self), item.get());
  };
  if (!list || failed(passes_table()->calls(p, each, list.get())) || PyErr_Occurred())
    return nullptr;
  return list.release();
}

// program_cut(p, calls, inputs, results): a program of these calls, between these values.
PyObject* cut(PyObject*, PyObject* args) {
  PyObject *o, *lists[3];
  aj_object *p, *made = nullptr;
  if (!PyArg_ParseTuple(args, "OO!O!O!", &o, &PyList_Type, &lists[0], &PyList_Type, &lists[1],
                        &PyList_Type, &lists[2]) ||
      !(p = program_of(o)) || !passes_table())
    return nullptr;
  std::vector<uint32_t> numbers[3];
  for (int k = 0; k < 3; ++k)
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(lists[k]); ++i) {
      const unsigned long n = PyLong_AsUnsignedLong(PyList_GET_ITEM(lists[k], i));
      if (PyErr_Occurred()) return nullptr;
      numbers[k].push_back(uint32_t(std::min<unsigned long>(n, UINT32_MAX)));
    }
  if (failed(passes_table()->cut(p, numbers[0].data(), uint32_t(numbers[0].size()),
                                 numbers[1].data(), uint32_t(numbers[1].size()), numbers[2].data(),
                                 uint32_t(numbers[2].size()), &made)))
    return nullptr;
  return capsule(made);
}

// program_numbers(p, parameter): (call, number, the input that the call takes first or None) of
// each call that has a constant number for the parameter of this name.
PyObject* numbers(PyObject*, PyObject* args) {
  PyObject* o;
  const char* name;
  aj_object* p;
  if (!PyArg_ParseTuple(args, "Os", &o, &name) || !(p = program_of(o))) return nullptr;
  Ref list(PyList_New(0));
  for (uint32_t call = 0; list; ++call) {
    aj_value v{};
    uint32_t first;
    if (failed(table()->number(p, str(name), &call, &v, &first))) return nullptr;
    if (call == UINT32_MAX) break;
    Ref number(v.tag == AJ_INT ? PyLong_FromLongLong(v.v.i) : PyFloat_FromDouble(v.v.f));
    Ref input(first == UINT32_MAX ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(first));
    Ref item(number && input ? Py_BuildValue("(IOO)", call, number.get(), input.get()) : nullptr);
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
}

// program_lift(p, call, parameter, i): that number is the i-th input from now on.
PyObject* lift(PyObject*, PyObject* args) {
  PyObject* o;
  unsigned call, input;
  const char* name;
  aj_object* p;
  if (!PyArg_ParseTuple(args, "OIsI", &o, &call, &name, &input) || !(p = program_of(o)) ||
      failed(table()->lift(p, call, str(name), input)))
    return nullptr;
  Py_RETURN_NONE;
}

// program_view(p, i, base, from, as): input i is made of the base-th; the tensors are of their
// kind.
PyObject* view(PyObject*, PyObject* args) {
  PyObject *o, *from, *as;
  unsigned input, base;
  aj_object* p;
  if (!PyArg_ParseTuple(args, "OIIO!O!", &o, &input, &base, &tensor_type, &from, &tensor_type,
                        &as) ||
      !(p = program_of(o)))
    return nullptr;
  void* data;
  uint64_t bytes, id, begin, at;
  if (failed(core->tensor_storage(tensor_of(from), &data, &bytes, &begin, &id)) ||
      failed(core->tensor_storage(tensor_of(as), &data, &bytes, &at, &id)))
    return nullptr;
  DLTensor like = tensor_of(as)->dl;
  like.byte_offset = (at - begin) / std::max(1, like.dtype.bits / 8);
  if (failed(table()->view(p, input, base, &tensor_of(from)->dl, &like))) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"program_numbers", numbers, METH_VARARGS, nullptr},
    {"program_lift", lift, METH_VARARGS, nullptr},
    {"program_view", view, METH_VARARGS, nullptr},
    {"program_passes", passes, METH_VARARGS, nullptr},
    {"program_calls", calls, METH_O, nullptr},
    {"program_cut", cut, METH_VARARGS, nullptr},
    {"program_generalize", generalize, METH_VARARGS, nullptr},
    {"program_open", open, METH_NOARGS, nullptr},
    {"program_carry", carry, METH_O, nullptr},
    {"program_close", close, METH_O, nullptr},
    {"program_branch", branch, METH_VARARGS, nullptr},
    {"program_loop", loop, METH_O, nullptr},
    {"program_begin", begin, METH_VARARGS, nullptr},
    {"program_input", input, METH_VARARGS, nullptr},
    {"program_param", param, METH_VARARGS, nullptr},
    {"program_end", end, METH_VARARGS, nullptr},
    {"program_cancel", cancel, METH_NOARGS, nullptr},
    {"program_capturing", capturing, METH_NOARGS, nullptr},
    {"program_parse", parse, METH_O, nullptr},
    {"program_text", text, METH_O, nullptr},
    {"program_source", source, METH_VARARGS, nullptr},
    {"program_save", save, METH_VARARGS, nullptr},
    {"program_load", load, METH_VARARGS, nullptr},
    {"program_values", values, METH_VARARGS, nullptr},
    {"program_forms", forms, METH_O, nullptr},
    {"program_weight", weight, METH_VARARGS, nullptr},
    {"program_set_weight", set_weight, METH_VARARGS, nullptr},
    {"program_takes", method(takes), METH_FASTCALL, nullptr},
    {"program_run", method(run), METH_FASTCALL, nullptr},
    {"program_stats", stats, METH_O, nullptr},
    {},
};

}  // namespace

PyObject* program_capsule(aj_object* steal) {
  PyObject* made = PyCapsule_New(
      steal, kCapsule, [](PyObject* c) { core->release(PyCapsule_GetPointer(c, kCapsule)); });
  if (!made) core->release(steal);
  return made;
}

int init_graphs(PyObject* module) {
  return PyModule_AddFunctions(module, functions) < 0 ? -1 : init_scripts(module);
}

}  // namespace adjoin::py
