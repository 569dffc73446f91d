// frontends/python/src/package.cpp: the name of the package in texts, and as the module of the
// types that are written here.
#include "package.hpp"

#include <cstring>
#include <string>

#include "device.hpp"
#include "dtype.hpp"
#include "generator.hpp"
#include "size.hpp"
#include "tensor.hpp"

namespace adjoin::py {

Ref package_name() {
  Ref package(PyImport_ImportModule("adjoin"));
  return Ref(package ? PyObject_GetAttrString(package.get(), "__name__") : nullptr);
}

namespace {

// name_types(package): programs ask for the module of a type to learn whose it is. A static type
// has it in its name alone.
PyObject* name_types(PyObject*, PyObject* package) {
  const char* text = PyUnicode_AsUTF8(package);
  if (!text) return nullptr;
  for (PyTypeObject* type : {&tensor_type, &size_type, &dtype_type, &device_type, &generator_type,
                             &layout_type, &memory_format_type}) {
    // Kept for good: type objects and what they have said refer to it.
    auto* name = new std::string(std::string(text) + std::strrchr(type->tp_name, '.'));
    type->tp_name = name->c_str();
    PyType_Modified(type);
  }
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"name_types", name_types, METH_O, nullptr}, {}};

}  // namespace

int init_package(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py
