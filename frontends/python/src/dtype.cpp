// frontends/python/src/dtype.cpp: dtype objects, one per dtype of the process, and the small tags
// beside them.
#include "dtype.hpp"

#include <map>

#include "errors.hpp"
#include "package.hpp"
#include "plain.hpp"

namespace adjoin::py {
namespace {

DtypeObject* table[16][16];  // [code][log2 bits], the built-in ones
std::map<uint32_t, DtypeObject*>& registered() {
  static auto& m = *new std::map<uint32_t, DtypeObject*>;  // never destroyed: threads may go on
                                                           // while the process ends
  return m;
}
PyObject* module_name;  // "adjoin", where the objects are found when they are unpickled

uint32_t key_of(DLDataType d) { return uint32_t{d.code} << 24 | uint32_t{d.bits} << 16 | d.lanes; }
DtypeObject* cast(PyObject* o) { return reinterpret_cast<DtypeObject*>(o); }

PyObject* repr(PyObject* self) {
  Ref package = package_name();
  return package ? PyUnicode_FromFormat("%U.%U", package.get(), cast(self)->name) : nullptr;
}
PyObject* reduce(PyObject* self, PyObject*) { return Py_NewRef(cast(self)->name); }
PyObject* is_floating(PyObject* self, void*) {
  return PyBool_FromLong(cast(self)->kind == AJ_CLASS_FLOAT);
}
PyObject* is_complex(PyObject* self, void*) {
  return PyBool_FromLong(cast(self)->kind == AJ_CLASS_COMPLEX);
}
PyObject* is_signed(PyObject* self, void*) {
  DLDataType d = cast(self)->dtype;
  return PyBool_FromLong(d.code != kDLUInt && d.code != kDLBool && d.code != kDLFloat8_e8m0fnu);
}
PyObject* itemsize(PyObject* self, void*) { return PyLong_FromUnsignedLong(cast(self)->bytes); }
PyObject* get_module(PyObject*, void*) { return Py_NewRef(module_name); }

PyObject* find(const char* name) {
  DLDataType d;
  if (failed(core->dtype_find(str(name), &d))) return nullptr;
  return Py_XNewRef(reinterpret_cast<PyObject*>(dtype_object(d)));
}

PyObject* to_real(PyObject* self, PyObject*) {
  DLDataType d = cast(self)->dtype;
  if (d.code == kDLComplex) d = {kDLFloat, static_cast<uint8_t>(d.bits / 2), 1};
  return Py_XNewRef(reinterpret_cast<PyObject*>(dtype_object(d)));
}

PyObject* to_complex(PyObject* self, PyObject*) {
  DLDataType d = cast(self)->dtype;
  if (d.code == kDLComplex) return Py_NewRef(self);
  if (cast(self)->kind != AJ_CLASS_FLOAT)
    return PyErr_Format(
        PyExc_RuntimeError,
        "to_complex: %S holds whole numbers, which have no complex dtype; floats have", self);
  if (d.code == kDLFloat && d.bits == 16) return find("complex32");
  return find(d.code == kDLFloat && d.bits == 64 ? "complex128" : "complex64");
}

PyGetSetDef properties[] = {
    {"is_floating_point", is_floating, nullptr, nullptr, nullptr},
    {"is_complex", is_complex, nullptr, nullptr, nullptr},
    {"is_signed", is_signed, nullptr, nullptr, nullptr},
    {"itemsize", itemsize, nullptr, nullptr, nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {},
};
PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"to_real", to_real, METH_NOARGS, "The dtype of the real part."},
    {"to_complex", to_complex, METH_NOARGS, "The complex dtype of this precision."},
    {},
};

PyObject* tag_repr(PyObject* self) {
  Ref package = package_name();
  return package ? PyUnicode_FromFormat("%U.%s", package.get(),
                                        reinterpret_cast<TagObject*>(self)->name)
                 : nullptr;
}
PyObject* tag_reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(reinterpret_cast<TagObject*>(self)->name);
}
PyMethodDef tag_methods[] = {{"__reduce__", tag_reduce, METH_NOARGS, nullptr}, {}};
PyGetSetDef tag_properties[] = {{"__module__", get_module, nullptr, nullptr, nullptr}, {}};

TagObject layouts[] = {
    {PyObject_HEAD_INIT(&layout_type) AJ_LAYOUT_STRIDED, "strided"},
    {PyObject_HEAD_INIT(&layout_type) AJ_LAYOUT_SPARSE_COO, "sparse_coo"},
    {PyObject_HEAD_INIT(&layout_type) AJ_LAYOUT_SPARSE_CSR, "sparse_csr"},
    {PyObject_HEAD_INIT(&layout_type) AJ_LAYOUT_OPAQUE, "opaque"},
    {PyObject_HEAD_INIT(&layout_type) AJ_LAYOUT_SPARSE_CSC, "sparse_csc"},
    {PyObject_HEAD_INIT(&layout_type) AJ_LAYOUT_SPARSE_BSR, "sparse_bsr"},
    {PyObject_HEAD_INIT(&layout_type) AJ_LAYOUT_SPARSE_BSC, "sparse_bsc"},
    {PyObject_HEAD_INIT(&layout_type) AJ_LAYOUT_JAGGED, "jagged"},
};
TagObject formats[] = {
    {PyObject_HEAD_INIT(&memory_format_type) AJ_FORMAT_CONTIGUOUS, "contiguous_format"},
    {PyObject_HEAD_INIT(&memory_format_type) AJ_FORMAT_PRESERVE, "preserve_format"},
    {PyObject_HEAD_INIT(&memory_format_type) AJ_FORMAT_CHANNELS_LAST, "channels_last"},
    {PyObject_HEAD_INIT(&memory_format_type) AJ_FORMAT_CHANNELS_LAST_3D, "channels_last_3d"},
};

int log2_of(unsigned bits) { return bits ? 31 - __builtin_clz(bits) : 0; }

DtypeObject* make(DLDataType d) {
  auto info = sized<aj_dtype_info>();
  if (failed(core->dtype_info(d, &info))) return nullptr;
  auto* o = PyObject_New(DtypeObject, &dtype_type);
  if (!o) return nullptr;
  o->dtype = d;
  o->index = info.index;
  o->bytes = info.bytes;
  o->kind = info.dtype_class;
  o->name = to_python(info.name);
  return o;
}

int add_named(PyObject* module, const char* name, const char* dtype) {
  DLDataType d;
  aj_status* s = core->dtype_find(str(dtype), &d);
  if (s) {  // the core does not know it (yet): the name stays away
    core->status_free(s);
    return 0;
  }
  DtypeObject* o = dtype_object(d);
  return o ? PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(o)) : -1;
}

// dtype("name"): one that a plugin has registered too. A dtype is its own name.
PyObject* by_name(PyTypeObject*, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"name", nullptr};
  PyObject* given;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:dtype", const_cast<char**>(names), &given))
    return nullptr;
  if (Py_IS_TYPE(given, &dtype_type)) return Py_NewRef(given);
  const char* name = PyUnicode_AsUTF8(given);
  return name ? find(name) : nullptr;
}

}  // namespace

PyTypeObject dtype_type = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "adjoin.dtype",
    .tp_basicsize = sizeof(DtypeObject),
    .tp_repr = repr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "The type of a tensor's elements; dtype(\"name\") finds one, a plugin's too.",
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_new = by_name,
};
PyTypeObject layout_type = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "adjoin.layout",
    .tp_basicsize = sizeof(TagObject),
    .tp_repr = tag_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = tag_methods,
    .tp_getset = tag_properties,
};
PyTypeObject memory_format_type = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "adjoin.memory_format",
    .tp_basicsize = sizeof(TagObject),
    .tp_repr = tag_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = tag_methods,
    .tp_getset = tag_properties,
};

namespace {
DtypeObject no_dtype = {};  // of no bits, which no tensor has
}
DtypeObject* last_dtype = &no_dtype;

DtypeObject* find_dtype_object(DLDataType d) {
  DtypeObject*& o =
      d.code < 16 && d.lanes == 1 ? table[d.code][log2_of(d.bits)] : registered()[key_of(d)];
  if (!o) o = make(d);
  if (o && o->dtype.bits) last_dtype = o;
  return o;
}

PyObject* layout_object(int64_t layout) {
  bool known = layout >= 0 && layout < static_cast<int64_t>(std::size(layouts));
  return reinterpret_cast<PyObject*>(&layouts[known ? layout : int64_t{AJ_LAYOUT_OPAQUE}]);
}

PyObject* memory_format_object(int64_t format) {
  return reinterpret_cast<PyObject*>(&formats[format]);
}

bool as_dtype(PyObject* o, DLDataType* out) {
  if (likely(Py_TYPE(o) == &dtype_type)) {
    *out = cast(o)->dtype;
    return true;
  }
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) {
    *out = kFloat64;
  } else if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) {
    *out = kInt64;
  } else if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) {
    *out = kBool;
  } else if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) {
    *out = kComplex128;
  } else {
    return false;
  }
  return true;
}

int init_dtype(PyObject* module) {
  module_name = PyUnicode_InternFromString("adjoin");
  if (add_type(module, &dtype_type, "dtype") < 0 || add_type(module, &layout_type, "layout") < 0 ||
      add_type(module, &memory_format_type, "memory_format") < 0)
    return -1;
  constexpr const char* names[][2] = {
      {"bool", "bool"},
      {"uint8", "uint8"},
      {"int8", "int8"},
      {"int16", "int16"},
      {"int32", "int32"},
      {"int64", "int64"},
      {"float16", "float16"},
      {"bfloat16", "bfloat16"},
      {"float32", "float32"},
      {"float64", "float64"},
      {"complex64", "complex64"},
      {"complex128", "complex128"},
      {"uint16", "uint16"},
      {"uint32", "uint32"},
      {"uint64", "uint64"},
      {"short", "int16"},
      {"int", "int32"},
      {"long", "int64"},
      {"half", "float16"},
      {"float", "float32"},
      {"double", "float64"},
      {"cfloat", "complex64"},
      {"cdouble", "complex128"},
      {"complex32", "complex32"},
      {"chalf", "complex32"},
      {"float8_e4m3fn", "float8_e4m3fn"},
      {"float8_e5m2", "float8_e5m2"},
      {"float8_e4m3fnuz", "float8_e4m3fnuz"},
      {"float8_e5m2fnuz", "float8_e5m2fnuz"},
      {"float8_e8m0fnu", "float8_e8m0fnu"},
  };
  for (auto& n : names)
    if (add_named(module, n[0], n[1]) < 0) return -1;
  for (TagObject& t : layouts)
    if (PyModule_AddObjectRef(module, t.name, reinterpret_cast<PyObject*>(&t)) < 0) return -1;
  for (TagObject& t : formats)
    if (PyModule_AddObjectRef(module, t.name, reinterpret_cast<PyObject*>(&t)) < 0) return -1;
  return 0;
}

}  // namespace adjoin::py
