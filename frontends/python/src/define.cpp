// frontends/python/src/define.cpp: ops whose body is a Python function, and a plugin's newer file
// in the place of the old one.
#include "define.hpp"

namespace adjoin::py {

const aj_x_plugins* experimental() {
  static auto* table = static_cast<const aj_x_plugins*>(aj_get_interface("x.plugins", 1));
  if (!table)
    PyErr_SetString(PyExc_NotImplementedError,
                    "plugins: libadjoin.so has no interface 'x.plugins'");
  return table;
}

PyObject* arguments(const aj_call* call) {
  PyObject* all = PyTuple_New(call->nargs);
  for (uint32_t i = 0; all && i < call->nargs; ++i) {
    const aj_value& v = call->args[i];
    if (v.tag >= AJ_TENSOR) core->retain(const_cast<void*>(v.v.ptr));  // take_value drops it
    PyObject* item = take_value(v);
    if (!item)
      Py_CLEAR(all);
    else
      PyTuple_SET_ITEM(all, i, item);
  }
  return all;
}

namespace {

bool put_list(PyObject* o, aj_value* ret) {
  Ref items(PySequence_Fast(o, "a list of tensors is wanted"));
  if (!items) return false;
  std::vector<aj_value> values;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (!is_tensor(item)) {
      PyErr_Format(PyExc_TypeError,
                   "its function returned a list with a %s, the schema says tensors",
                   Py_TYPE(item)->tp_name);
      return false;
    }
    values.push_back(value(tensor_of(item)));
  }
  aj_object* list = nullptr;
  if (failed(core->list_new(values.data(), static_cast<uint32_t>(values.size()), &list)))
    return false;
  ret->tag = AJ_LIST_OBJ;
  ret->v.object = list;
  return true;
}

bool put_result(const aj_param& p, PyObject* o, aj_value* ret) {
  if (o == Py_None && p.flags & AJ_PARAM_OPTIONAL) return true;
  if (p.list != 0) return put_list(o, ret);
  if (p.base == AJ_PARAM_TENSOR && is_tensor(o)) {
    if (ret->tag == AJ_TENSOR && ret->v.tensor == tensor_of(o)) return true;
    *ret = value(tensor_of(o));
    core->retain(ret->v.tensor);
    return true;
  }
  if ((p.base == AJ_PARAM_BOOL || p.base == AJ_PARAM_SCALAR) && PyBool_Check(o)) {
    *ret = value(o == Py_True);
    return true;
  }
  if (p.base != AJ_PARAM_TENSOR && plain_number(o, ret)) return true;
  PyErr_Format(PyExc_TypeError, "its function returned a %s, the schema says %s",
               Py_TYPE(o)->tp_name, p.base == AJ_PARAM_TENSOR ? "a tensor" : "a number");
  return false;
}

}  // namespace

bool put_results(const aj_call* call, PyObject* o) {
  bool several = call->nrets > 1 && PyTuple_Check(o);
  if (call->nrets > 1 &&
      (!several || PyTuple_GET_SIZE(o) != static_cast<Py_ssize_t>(call->nrets))) {
    PyErr_Format(PyExc_TypeError, "its function must return a tuple of %u results", call->nrets);
    return false;
  }
  for (uint32_t i = 0; i < call->nrets; ++i) {
    auto p = sized<aj_param>();
    if (failed(dispatch->op_result(call->op, i, &p))) return false;
    if (!put_result(p, several ? PyTuple_GET_ITEM(o, i) : o, &call->rets[i])) return false;
  }
  return true;
}

namespace {

aj_status* run_python_body(void* self, aj_call* call) {
  Gil gil;
  Ref args(arguments(call));
  Ref result(args ? PyObject_CallObject(static_cast<PyObject*>(self), args.get()) : nullptr);
  if (result && put_results(call, result.get())) return nullptr;
  for (uint32_t i = 0; i < call->nrets; ++i) {
    if (call->rets[i].tag >= AJ_TENSOR) core->release(const_cast<void*>(call->rets[i].v.ptr));
    call->rets[i] = aj_value{};
  }
  return status_from_python();
}

struct Definition {
  std::string_view schema, doc, tags;
  PyObject* body;
};

aj_status* register_op(void* self, const aj_plugin_env* env) {
  auto& d = *static_cast<Definition*>(self);
  auto def = sized<aj_op_def>();
  def.schema = str(d.schema);
  def.doc = str(d.doc);
  def.tags = str(d.tags);
  def.body = run_python_body;
  def.self = d.body;
  return dispatch->def_op(env->registrar, &def);
}

// define_op(provider, schema, doc, tags, body): the op calls body with its arguments.
PyObject* define_op(PyObject*, PyObject* args) {
  const char *provider, *schema, *doc, *tags;
  Definition d{};
  if (!PyArg_ParseTuple(args, "ssssO", &provider, &schema, &doc, &tags, &d.body) || !experimental())
    return nullptr;
  d.schema = schema;
  d.doc = doc;
  d.tags = tags;
  Py_INCREF(d.body);  // for good: a call may be inside
  if (failed(experimental()->define(str(provider), register_op, &d))) {
    Py_DECREF(d.body);
    return nullptr;
  }
  if (sync_ops() < 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* replace_plugin(PyObject*, PyObject* path) {
  Ref text(PyOS_FSPath(path));
  const char* p = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  aj_object* name = nullptr;
  if (!p || !experimental() || failed(experimental()->replace(str(p), &name)) || sync_ops() < 0)
    return nullptr;
  return take_string(name);
}

PyMethodDef functions[] = {
    {"define_op", define_op, METH_VARARGS, "define_op(provider, schema, doc, tags, body)"},
    {"replace_plugin", replace_plugin, METH_O,
     "Loads a plugin in the place of the one of its name; returns the name."},
    {},
};

}  // namespace

int init_define(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py
