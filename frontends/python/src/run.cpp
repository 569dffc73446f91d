// frontends/python/src/run.cpp: a bound call goes to the core, and its results come back as Python
// objects.

#include "line.hpp"
#include "object.hpp"
#include "op.hpp"
#include "package.hpp"
#include "plain.hpp"

namespace adjoin::py {
namespace {

PyObject* list_of(aj_object* steal) {
  HeldObject held(steal);
  uint32_t n = 0;
  const aj_value* items = core->list_get(steal, &n);
  PyObject* t = PyTuple_New(n);
  if (!t) return nullptr;
  for (uint32_t i = 0; i < n; ++i) {
    aj_value v = items[i];
    if (v.tag >= AJ_TENSOR && v.v.ptr) core->retain(const_cast<void*>(v.v.ptr));
    PyObject* item = take_value(v);
    if (!item) {
      Py_DECREF(t);
      return nullptr;
    }
    PyTuple_SET_ITEM(t, i, item);
  }
  return t;
}

PyObject* from_floats(const double* values, uint32_t n) {
  Ref list(PyList_New(n));
  if (!list) return nullptr;
  for (uint32_t i = 0; i < n; ++i) PyList_SET_ITEM(list.get(), i, PyFloat_FromDouble(values[i]));
  return list.release();
}

// One result a line: a tensor may take many.
PyObject* named_repr(PyObject* self) {
  Ref text(PyUnicode_FromFormat("%s(\n", Py_TYPE(self)->tp_name));
  for (Py_ssize_t i = 0; text && i < Py_SIZE(self); ++i)
    text = Ref(PyUnicode_FromFormat("%U%s=%R%s", text.get(), Py_TYPE(self)->tp_members[i].name,
                                    PyStructSequence_GET_ITEM(self, i),
                                    i + 1 < Py_SIZE(self) ? ",\n" : ")"));
  return text.release();
}

// max(...) returns something that prints as adjoin.return_types.max(values=..., indices=...).
// Results that an op of somebody's own gives no names are a tuple.
PyTypeObject* make_named(const Program& p) {
  std::vector<std::string_view> names;
  for (uint32_t i = 0; i < p.nresults; ++i) {
    if (p.hidden >> i & 1) continue;
    auto r = sized<aj_param>();
    if (failed(dispatch->op_result(p.op, i, &r))) return nullptr;
    names.push_back(view(r.name));
    if (names.back().empty())
      return reinterpret_cast<PyTypeObject*>(Py_NewRef(reinterpret_cast<PyObject*>(&PyTuple_Type)));
  }
  auto info = sized<aj_op_info>();
  if (failed(dispatch->op_info(p.op, &info))) return nullptr;
  std::string name(view(info.name));
  if (size_t space = name.find("::"); space != name.npos) name.replace(space, 2, "_");
  Ref package = package_name();
  const char* home = package ? PyUnicode_AsUTF8(package.get()) : nullptr;
  if (!home) return nullptr;
  auto* full =
      new std::string(std::string(home) + ".return_types." + name.substr(0, name.find('.')));
  auto* fields = new PyStructSequence_Field[kMaxResults + 1]();  // kept: the type points into both
  int n = 0;
  for (std::string_view field : names) fields[n++] = {(new std::string(field))->c_str(), nullptr};
  PyStructSequence_Desc d{full->c_str(), nullptr, fields, n};
  PyTypeObject* type = PyStructSequence_NewType(&d);
  if (type) type->tp_repr = named_repr;
  return type;
}

}  // namespace

PyTypeObject* named_type(const Program& p) {
  if (unlikely(!p.named)) const_cast<Program&>(p).named = make_named(p);
  return p.named;
}

namespace {

PyObject* several(const Program& p, aj_value* rets) {
  PyTypeObject* type = named_type(p);
  if (!type) return nullptr;
  Ref t(type == &PyTuple_Type ? PyTuple_New(p.nvisible) : PyStructSequence_New(type));
  if (!t) return nullptr;
  int n = 0;
  for (uint32_t i = 0; i < p.nresults; ++i) {
    if (p.hidden >> i & 1) continue;
    PyObject* item = take_value(std::exchange(rets[i], aj_value{}));
    if (!item) return nullptr;
    PyStructSequence_SET_ITEM(t.get(), n++, item);
  }
  return t.release();
}

void drop_value(aj_value v) {
  if (v.tag >= AJ_TENSOR && v.v.ptr) core->release(const_cast<void*>(v.v.ptr));
}

// out= may be a tensor or, for several results, a tuple of them.
bool set_out(const Program& p, PyObject* out, aj_value* rets) {
  bool tuple = PyTuple_Check(out) || PyList_Check(out);
  Py_ssize_t n = tuple ? PySequence_Fast_GET_SIZE(out) : 1;
  if (n != p.nvisible) {
    PyErr_Format(PyExc_TypeError, "argument 'out' must be %d tensors, not %zd", p.nvisible, n);
    return false;
  }
  Py_ssize_t k = 0;
  for (int i = 0; i < p.nresults; ++i) {
    if (p.hidden >> i & 1) continue;
    PyObject* o = tuple ? PySequence_Fast_ITEMS(out)[k++] : out;
    if (!is_tensor(o)) {
      PyErr_Format(PyExc_TypeError, "argument 'out' must be Tensor, not %s", Py_TYPE(o)->tp_name);
      return false;
    }
    rets[i].tag = AJ_TENSOR;
    rets[i].aux = 0;
    rets[i].v.tensor = tensor_of(o);
  }
  return true;
}

PyObject* results(const Program& p, aj_value* rets) {
  if (p.nvisible > 1) {
    PyObject* t = several(p, rets);
    for (int i = 0; i < p.nresults; ++i) drop_value(rets[i]);
    return t;
  }
  PyObject* shown = nullptr;
  for (int i = 0; i < p.nresults; ++i) {
    if (p.hidden >> i & 1) {
      drop_value(rets[i]);
    } else {
      shown = take_value(rets[i]);
    }
  }
  return shown || PyErr_Occurred() ? shown : Py_NewRef(Py_None);
}

}  // namespace

PyObject* grant(PyObject* made, uint8_t wishes) {
  if (!made || !is_tensor(made)) return made;
  if (const int layout = wishes >> kLayoutBits) {
    Ref whole(made), home(PyImport_ImportModule("adjoin._sparse"));
    made = home ? PyObject_CallMethod(home.get(), "made_in", "Oi", whole.get(), layout) : nullptr;
    if (!made) return nullptr;
  }
  bool meta = is_meta(tensor_of(made));  // shapes have no memory
  if (wishes & kWantsPinned && !meta) {
    Ref whole(made);
    if (!(made = PyObject_CallMethod(whole.get(), "pin_memory", nullptr))) return nullptr;
  }
  if (wishes & kWantsGrad && failed(autograd->set_requires_grad(tensor_of(made), 1)))
    Py_CLEAR(made);
  return made;
}

PyObject* take_value(aj_value v) {
  if (likely(v.tag == AJ_TENSOR)) return wrap_or_none(v.v.tensor);
  switch (v.tag) {
    case AJ_NONE:
      Py_RETURN_NONE;
    case AJ_BOOL:
      return PyBool_FromLong(v.v.i != 0);
    case AJ_INT:
      return PyLong_FromLongLong(v.v.i);
    case AJ_FLOAT:
      return PyFloat_FromDouble(v.v.f);
    case AJ_COMPLEX_OBJ:
      return take_complex(v.v.object);
    case AJ_STRING_OBJ:
      return take_string(v.v.object);
    case AJ_LIST_OBJ:
      return list_of(v.v.object);
    case AJ_STREAM:
    case AJ_FUNCTION:
    case AJ_OBJECT:
      return take_object(v.v.object);
    default:
      return plain_value(v);
  }
}

PyObject* plain_value(aj_value v) {
  switch (v.tag) {
    case AJ_DTYPE:
      return Py_XNewRef(reinterpret_cast<PyObject*>(dtype_object(v.v.dtype)));
    case AJ_DEVICE:
      return device_object(v.v.device);
    case AJ_INTS:
      return tuple_of(v.v.ints, static_cast<int32_t>(v.aux));
    case AJ_FLOATS:
      return from_floats(v.v.floats, v.aux);
    case AJ_BOOLS: {
      PyObject* t = PyTuple_New(v.aux);
      for (uint32_t i = 0; t && i < v.aux; ++i)
        PyTuple_SET_ITEM(t, i, PyBool_FromLong(v.v.bools[i]));
      return t;
    }
    case AJ_TENSORS: {
      PyObject* t = PyTuple_New(v.aux);
      for (uint32_t i = 0; t && i < v.aux; ++i) {
        aj_tensor* item = v.v.tensors[i];
        PyTuple_SET_ITEM(t, i, item ? wrap_borrowed(item) : Py_NewRef(Py_None));
      }
      return t;
    }
    case AJ_LAYOUT:
      return Py_NewRef(layout_object(v.v.i));
    case AJ_MEMORY_FORMAT:
      return Py_NewRef(memory_format_object(v.v.i));
    case AJ_STRING:
      return PyUnicode_FromStringAndSize(v.v.str, v.aux);
    case AJ_COMPLEX:
      return PyComplex_FromDoubles(v.v.c128[0], v.v.c128[1]);
    case AJ_GENERATOR:
      return generator_object(v.v.object);
    default:
      drop_value(v);
      Py_RETURN_NONE;
  }
}

bool call_program(const Program& p, aj_value* values, size_t given, aj_value* rets, bool in_place) {
  uint64_t keys = 0;
  for (size_t i = 0; i < given; ++i)
    if (values[i].tag == AJ_TENSOR) keys |= values[i].v.tensor->keys;
  for (size_t i = given; i < p.nparams; ++i) values[i] = p.params[i].value;
  for (int i = 0; i < p.nresults; ++i) rets[i] = aj_value{};
  if (in_place) rets[0] = values[0];
  if (wants_line(keys)) note_line();
  return !failed(dispatch->call(p.op, values, p.nparams, rets, p.nresults));
}

PyObject* run_in_place(const Program& p, Frame& f, PyObject* first) {
  static Row copy_row("copy_");
  f.in_place = false;
  if (p.in_place) return run(p, f, first);
  Ref result(run(p, f, nullptr));
  if (!result) return nullptr;
  HeldTensor written(call_row(copy_row, tensor_of(first), tensor_of(result.get())));
  return written ? Py_NewRef(first) : nullptr;
}

static bool makes_elsewhere(const Program& p, const Frame& f) {
  if (p.device < 0 || f.keys) return false;
  const aj_value& device = f.values[p.device];
  int32_t kind = device.tag == AJ_DEVICE ? device.v.device.device_type : kDLCPU;
  return kind != kDLCPU || wants_line(1ull << (kDLCPU - 1));
}

// out= where the op cannot write it by itself: the result is made first, and then put there.
static PyObject* run_and_put(const Program& p, Frame& f) {
  PyObject* out = std::exchange(f.out, nullptr);
  for (int i = 0; p.factory && is_tensor(out) && i < p.nparams; ++i) {
    if (f.values[i].tag != AJ_NONE) continue;
    if (p.params[i].kind == AJ_PARAM_DTYPE) f.values[i] = value(tensor_of(out)->dl.dtype);
    if (p.params[i].kind == AJ_PARAM_DEVICE)
      f.values[i].tag = AJ_DEVICE, f.values[i].v.device = tensor_of(out)->dl.device;
  }
  auto info = sized<aj_op_info>();
  if (failed(dispatch->op_info(p.op, &info))) return nullptr;
  Ref made(run(p, f, nullptr)), name(to_python(info.name));
  PyObject* args[] = {name.get(), made.get(), out};
  return made && name ? call_helper("adjoin._out", "put", args, 3) : nullptr;
}

// A sparse tensor has no memory that a kernel writes to.
static bool is_sparse(PyObject* out) {
  const int32_t layout = is_tensor(out) ? layout_of(tensor_of(out)) : AJ_LAYOUT_STRIDED;
  return layout != AJ_LAYOUT_STRIDED && layout != AJ_LAYOUT_OPAQUE && layout != AJ_LAYOUT_JAGGED;
}

// zeros and empty of a sparse layout keep no element: what runs makes a shape, on `meta`. The
// result is the device where the caller wants it, NULL where the op makes elements.
static PyObject* lay_out_on_meta(const Program& p, Frame& f) {
  auto info = sized<aj_op_info>();
  if (failed(dispatch->op_info(p.op, &info))) return nullptr;
  const std::string_view name = view(info.name);
  if (!name.ends_with("zeros") && !name.ends_with("empty") && name != "zeros_like") return nullptr;
  const aj_value& first = f.values[0];
  aj_value where{AJ_NONE, 0, {0}};
  if (first.tag == AJ_TENSOR) {
    if (layout_of(first.v.tensor) != AJ_LAYOUT_STRIDED) return nullptr;
    where.tag = AJ_DEVICE, where.v.device = first.v.tensor->dl.device;
  }
  for (int i = 0; i < p.nparams; ++i) {
    if (p.params[i].kind != AJ_PARAM_DEVICE) continue;
    int32_t type = 0;
    if (failed(core->device_find(str("meta"), &type))) return nullptr;
    aj_value meta{AJ_DEVICE, 0, {0}};
    meta.v.device = DLDevice{DLDeviceType(type), 0};
    if (f.values[i].tag == AJ_DEVICE) where = f.values[i];
    f.values[i] = meta;
  }
  return take_value(where);
}

PyObject* run(const Program& p, Frame& f, PyObject* in_place) {
  if (unlikely(f.out != nullptr && (p.puts || is_sparse(f.out)))) return run_and_put(p, f);
  aj_value rets[kMaxResults];
  for (int i = 0; i < p.nresults; ++i) {
    rets[i].tag = AJ_NONE;
    rets[i].aux = 0;
  }
  if (in_place) {
    rets[0].tag = AJ_TENSOR;
    rets[0].v.tensor = tensor_of(in_place);
  } else if (unlikely(f.out != nullptr) && !set_out(p, f.out, rets)) {
    return nullptr;
  }
  Ref where;
  if (unlikely(f.wishes >> kLayoutBits)) {
    where = Ref(lay_out_on_meta(p, f));
    if (!where && PyErr_Occurred()) return nullptr;
  }
  if (wants_line(f.keys) || makes_elsewhere(p, f)) note_line();
  if (aj_status* s = dispatch->call(p.op, f.values, p.nparams, rets, p.nresults);
      unlikely(s != nullptr)) {
    if (!f.out || view(core->status_kind(s)) != "OutShapeError") return raise(s);
    core->status_free(s);
    return run_and_put(p, f);
  }
  if (likely(p.nresults == 1 && rets[0].tag == AJ_TENSOR && !f.wishes)) {
    if (!in_place) return wrap_or_none(rets[0].v.tensor);
    core->release(rets[0].v.tensor);
    return Py_NewRef(in_place);
  }
  PyObject* result = results(p, rets);
  if (unlikely(where && result)) {
    Ref shape(result), layout(PyLong_FromLong(f.wishes >> kLayoutBits));
    PyObject* args[] = {shape.get(), layout.get(), where.get()};
    result = layout ? call_helper("adjoin._sparse", "without_elements", args, 3) : nullptr;
    f.wishes &= kWantsGrad | kWantsPinned;
  }
  return f.wishes ? grant(result, f.wishes) : result;
}

}  // namespace adjoin::py
