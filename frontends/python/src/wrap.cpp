// frontends/python/src/wrap.cpp: tensors without strides: their values for who reads them, what
// they print, save and copy.
#include <adjoin/abi/wrap.h>

#include "line.hpp"
#include "methods.hpp"
#include "op.hpp"
#include "tensor.hpp"
#include "value.hpp"

namespace adjoin::py {
namespace {

const aj_wrappers* table() {
  static auto* found = static_cast<const aj_wrappers*>(aj_get_interface("x.wrap", 1));
  if (!found)
    PyErr_SetString(PyExc_NotImplementedError, "wrap: libadjoin.so has no interface 'x.wrap'");
  return found;
}

bool wrapper_of(PyObject* o, aj_tensor** out) {
  if (!is_tensor(o)) {
    PyErr_Format(PyExc_TypeError, "wrap: a Tensor is wanted, not %s", Py_TYPE(o)->tp_name);
    return false;
  }
  *out = tensor_of(o);
  return table() != nullptr;
}

// wrapper_strided(t, who): t itself, or its values.
PyObject* wrapper_strided(PyObject*, PyObject* const* args, Py_ssize_t n) {
  aj_tensor* t;
  const char* who = n == 2 ? PyUnicode_AsUTF8(args[1]) : nullptr;
  if (!who || !wrapper_of(args[0], &t)) return nullptr;
  aj_tensor* made = strided(t, who);
  return made ? wrap(made) : nullptr;
}

// wrapper_text(t): what its key says about it, or None.
PyObject* wrapper_text(PyObject*, PyObject* o) {
  aj_tensor* t;
  aj_object* text = nullptr;
  if (!wrapper_of(o, &t) || failed(table()->tensor_describe(t, &text))) return nullptr;
  return text ? take_string(text) : Py_NewRef(Py_None);
}

// wrapper_copy(t): a copy that shares nothing, or None.
PyObject* wrapper_copy(PyObject*, PyObject* o) {
  aj_tensor *t, *made = nullptr;
  if (!wrapper_of(o, &t) || failed(table()->tensor_copy(t, &made))) return nullptr;
  return wrap_or_none(made);
}

PyMethodDef functions[] = {
    {"wrapper_strided", method(wrapper_strided), METH_FASTCALL, nullptr},
    {"wrapper_text", wrapper_text, METH_O, nullptr},
    {"wrapper_copy", wrapper_copy, METH_O, nullptr},
    {"wrapper_parts", wrapper_parts, METH_O, nullptr},
    {},
};

}  // namespace

PyObject* wrapper_parts(PyObject*, PyObject* o) {
  aj_tensor* t;
  aj_value list{};
  if (!wrapper_of(o, &t) || failed(table()->tensor_parts(t, &list.v.object))) return nullptr;
  if (!list.v.object) return Py_NewRef(Py_None);
  list.tag = AJ_LIST_OBJ;
  return take_value(list);
}

aj_tensor* strided(aj_tensor* t, const char* who) {
  aj_tensor* made = nullptr;
  if (is_strided(t) && settled(t)) {
    core->retain(t);
    return t;
  }
  note_line();  // a lazy scope tells where its values were asked for
  return PyErr_Occurred() || !table() || failed(table()->tensor_strided(t, str(who), &made))
             ? nullptr
             : made;
}

int32_t layout_of(const aj_tensor* t) {
  return is_strided(t) || !table() ? int32_t(AJ_LAYOUT_STRIDED) : table()->tensor_layout(t);
}

int init_wrap(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py
