// frontends/python/src/object.cpp: Object holds what an op gives that is neither tensor nor number:
// a plugin's plan, a function, a stream. It goes back into ops as it is. A Python callable goes
// where a schema says Function.
#include "object.hpp"

#include "device.hpp"
#include "errors.hpp"
#include "op.hpp"

namespace adjoin::py {
namespace {

struct ObjectObject {
  PyObject_HEAD aj_object* object;
};
extern PyTypeObject object_type;
aj_object* object_of(PyObject* o) { return reinterpret_cast<ObjectObject*>(o)->object; }

PyObject* python_of(const aj_value& borrowed) {
  aj_value v = borrowed;
  if (v.tag == AJ_STRING) return PyUnicode_DecodeUTF8(v.v.str, v.aux, "replace");
  if (v.tag >= AJ_INTS && v.tag <= AJ_TENSORS) return plain_value(v);
  if (v.tag == AJ_COMPLEX) return PyComplex_FromDoubles(v.v.c128[0], v.v.c128[1]);
  if (v.tag >= AJ_TENSOR) core->retain(v.v.object);
  return take_value(v);
}

// What a Python function returned, to be given away; false with an error set.
bool give_value(PyObject* o, aj_value* out) {
  Scratch scratch;
  aj_value v{};
  if (o == Py_None) return true;
  if (is_tensor(o)) {
    v.tag = AJ_TENSOR;
    core->retain(v.v.tensor = tensor_of(o));
  } else if (Py_TYPE(o) == &object_type) {
    v.tag = object_of(o)->type < AJ_DYNAMIC_BEGIN ? object_of(o)->type : AJ_OBJECT;
    core->retain(v.v.object = object_of(o));
  } else if (PyUnicode_Check(o)) {
    Py_ssize_t n;
    const char* text = PyUnicode_AsUTF8AndSize(o, &n);
    v.tag = AJ_STRING_OBJ;
    if (!text || failed(core->string_new({text, static_cast<uint64_t>(n)}, &v.v.object)))
      return false;
  } else if (PyTuple_Check(o) || PyList_Check(o)) {
    std::vector<aj_value> items(static_cast<size_t>(PySequence_Fast_GET_SIZE(o)));
    bool good = true;
    for (size_t i = 0; good && i < items.size(); ++i)
      good = give_value(PySequence_Fast_ITEMS(o)[i], &items[i]);
    v.tag = AJ_LIST_OBJ;
    good = good &&
           !failed(core->list_new(items.data(), static_cast<uint32_t>(items.size()), &v.v.object));
    for (const aj_value& item : items)
      if (item.tag >= AJ_TENSOR) core->release(item.v.object);
    if (!good) return false;
  } else if (!as_number(o, &v, scratch)) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_TypeError,
                   "a function for an op returned %s; wanted a tensor, a number, a str, a list of "
                   "them or None",
                   Py_TYPE(o)->tp_name);
    return false;
  } else if (v.tag == AJ_COMPLEX) {
    const double* z = v.v.c128;
    v.tag = AJ_COMPLEX_OBJ;
    if (failed(core->complex_new(z[0], z[1], &v.v.object))) return false;
  }
  *out = v;
  return true;
}

aj_status* call_python(void* self, const aj_value* args, uint32_t nargs, aj_value* ret) {
  Gil gil;
  Ref given(PyTuple_New(nargs));
  for (uint32_t i = 0; given && i < nargs; ++i) {
    PyObject* item = python_of(args[i]);
    if (!item) return status_from_python();
    PyTuple_SET_ITEM(given.get(), i, item);
  }
  Ref result(given ? PyObject_CallObject(static_cast<PyObject*>(self), given.get()) : nullptr);
  return result && give_value(result.get(), ret) ? nullptr : status_from_python();
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (kwargs && PyDict_GET_SIZE(kwargs))
    return PyErr_Format(PyExc_TypeError, "a function of an op takes no keyword arguments");
  std::vector<aj_value> values(static_cast<size_t>(PyTuple_GET_SIZE(args)));
  bool good = true;
  for (size_t i = 0; good && i < values.size(); ++i)
    good = give_value(PyTuple_GET_ITEM(args, i), &values[i]);
  aj_value ret{};
  good = good && !failed(core->function_call(object_of(self), values.data(),
                                             static_cast<uint32_t>(values.size()), &ret));
  for (const aj_value& v : values)
    if (v.tag >= AJ_TENSOR) core->release(v.v.object);
  return good ? take_value(ret) : nullptr;
}

PyObject* repr(PyObject* self) {
  aj_object* o = object_of(self);
  if (o->type == AJ_FUNCTION) return PyUnicode_FromFormat("<adjoin function at %p>", o);
  if (o->type == AJ_STREAM) return PyUnicode_FromFormat("<adjoin stream at %p>", o);
  std::string name(view(core->type_name(o->type)));
  return PyUnicode_FromFormat("<adjoin object of type '%s' at %p>", name.c_str(), o);
}

void dealloc(PyObject* self) {
  core->release(object_of(self));
  PyObject_Free(self);
}

PyTypeObject object_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "adjoin.Object",
    .tp_basicsize = sizeof(ObjectObject),
    .tp_dealloc = dealloc,
    .tp_repr = repr,
    .tp_call = call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "What an op gives that is neither tensor nor number; it goes back into ops as it is.",
};

// A stream of adjoin.cuda and its kin: they have a device and the plugin's handle.
Match stream_argument(PyObject* o, aj_value* v, Frame& f) {
  Ref device(PyObject_GetAttrString(o, "device")), handle(PyObject_GetAttrString(o, "_handle"));
  DLDevice d;
  if (!device || !handle || !as_device(device.get(), &d) || !PyLong_Check(handle.get()))
    return forget_error(), Match::No;
  auto native = static_cast<uint64_t>(PyLong_AsUnsignedLongLong(handle.get()));
  if (PyErr_Occurred() ||
      failed(core->stream_new(concrete(d), reinterpret_cast<void*>(native), &v->v.object)))
    return Match::Error;
  f.scratch.keep(v->v.object);
  return Match::Bound;
}

Match function_argument(PyObject* o, aj_value* v, Frame& f) {
  if (!PyCallable_Check(o)) return Match::No;
  auto drop = [](void* self) { drop_object(static_cast<PyObject*>(self)); };
  if (failed(core->function_new(call_python, Py_NewRef(o), drop, &v->v.object)))
    return Py_DECREF(o), Match::Error;
  f.scratch.keep(v->v.object);
  return Match::Bound;
}

}  // namespace

PyObject* take_object(aj_object* steal) {
  auto* o = PyObject_New(ObjectObject, &object_type);
  if (o)
    o->object = steal;
  else
    core->release(steal);
  return reinterpret_cast<PyObject*>(o);
}

aj_object* object_in(PyObject* o) { return Py_TYPE(o) == &object_type ? object_of(o) : nullptr; }

Match object_argument(const Param& p, PyObject* o, aj_value* v, Frame& f) {
  v->tag = p.kind == AJ_PARAM_STREAM     ? AJ_STREAM
           : p.kind == AJ_PARAM_FUNCTION ? AJ_FUNCTION
                                         : AJ_OBJECT;
  if (Py_TYPE(o) == &object_type) {
    v->v.object = object_of(o);
    bool fits =
        v->tag == AJ_OBJECT ? object_of(o)->type >= AJ_DYNAMIC_BEGIN : object_of(o)->type == v->tag;
    return fits ? Match::Bound : Match::No;  // of which registered type it is, the core looks at
  }
  if (v->tag == AJ_STREAM) return stream_argument(o, v, f);
  return v->tag == AJ_FUNCTION ? function_argument(o, v, f) : Match::No;
}

int init_object(PyObject* module) { return add_type(module, &object_type, "Object"); }

}  // namespace adjoin::py
