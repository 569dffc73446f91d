// frontends/python/src/tensor.cpp: the life of a tensor's Python object: recycling, identity, the
// turn of ownership.
#include "tensor.hpp"

#include "collect.hpp"
#include "dispatch.hpp"
#include "dtype.hpp"
#include "methods.hpp"
#include "op.hpp"
#include "seen.hpp"

namespace adjoin::py {
namespace {

constexpr int kRecycled = 64;
TensorObject* recycled[kRecycled];
int recycled_count = 0;

// Python 3.11 finds methods fast only in objects that have a dictionary, later ones also in objects
// without: what has no attributes of its own shows this empty dictionary, which is taken away
// before anything could be written into it.
PyObject* no_attributes = nullptr;

bool own_dict(const TensorObject* o) { return o->dict && o->dict != no_attributes; }

void attach(TensorObject* o, aj_tensor* steal) {
  o->tensor = steal;
  o->dtype = reinterpret_cast<PyObject*>(dtype_object(steal->dl.dtype));
  core->set_frontend_word(steal, frontend_id, o, 0);
}

TensorObject* first_object() {
  TensorObject* o = PyObject_GC_New(TensorObject, &tensor_type);
  if (!o) return nullptr;
  o->dict = no_attributes;
  o->weakrefs = nullptr;
  o->kept = false;
  return o;
}

TensorObject* new_object() {
  if (unlikely(recycled_count == 0)) return first_object();
  TensorObject* o = recycled[--recycled_count];
  PyObject_Init(reinterpret_cast<PyObject*>(o), &tensor_type);
  return o;
}

// A tensor that has an object gives that one: its own kept one comes back to life, or another
// reference to a live one.
PyObject* wrap_again(aj_tensor* steal, TensorObject* o) {
  auto* object = reinterpret_cast<PyObject*>(o);
  if (o->kept) {
    o->kept = false;
    core->set_frontend_word(steal, frontend_id, o, 0);
    return object;  // the count that the tensor held, and its reference in exchange
  }
  Py_INCREF(object);
  core->release(steal);
  return object;
}

// An object that carries something of the user's outlives its last reference while the tensor
// lives: the tensor keeps it.
bool keep_alive(TensorObject* o) {
  bool carries =
      Py_TYPE(o) != &tensor_type || o->weakrefs || (own_dict(o) && PyDict_GET_SIZE(o->dict));
  if (likely(!carries) || core->tensor_unique(o->tensor)) return false;
  auto* object = reinterpret_cast<PyObject*>(o);
  Py_SET_REFCNT(object, 1);
  // subtype_dealloc gives up the reference to a heap type after this function, whatever it did.
  if (Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_INCREF(Py_TYPE(o));
  o->kept = true;
  core->set_frontend_word(o->tensor, frontend_id, o, 1);
  core->release(o->tensor);
  return true;
}

void drop_dict(TensorObject* o) {
  if (unlikely(own_dict(o))) Py_DECREF(std::exchange(o->dict, no_attributes));
}

void dealloc(PyObject* self) {
  auto* o = reinterpret_cast<TensorObject*>(self);
  if (likely(o->tensor != nullptr) && keep_alive(o)) return;
  if (PyObject_GC_IsTracked(self)) PyObject_GC_UnTrack(self);
  if (unlikely(o->weakrefs != nullptr)) PyObject_ClearWeakRefs(self);
  drop_dict(o);
  if (aj_tensor* t = std::exchange(o->tensor, nullptr)) {
    core->set_frontend_word(t, frontend_id, nullptr, 0);
    core->release(t);
  }
  if (likely(Py_TYPE(self) == &tensor_type && recycled_count < kRecycled)) {
    recycled[recycled_count++] = o;
  } else {
    Py_TYPE(self)->tp_free(self);
  }
}

// Who else has the tensor, a `.grad` or a node, has its attributes through it: they are held from
// outside, so nothing is visited. Whoever visits a kept object knows what keeps it.
int traverse(PyObject* self, visitproc visit, void* arg) {
  auto* o = reinterpret_cast<TensorObject*>(self);
  if (o->tensor && !o->kept && !core->tensor_unique(o->tensor)) return 0;
  if (own_dict(o)) Py_VISIT(o->dict);
  if (!o->tensor || o->kept) return 0;
  void* held = o->tensor;
  return visit_held(&held, 1, visit, arg);
}

int clear(PyObject* self) {
  drop_dict(reinterpret_cast<TensorObject*>(self));
  return 0;
}

// While something may give the object a dictionary. With one it enters the collector: only then can
// it be part of a cycle.
class MayGetDict {
 public:
  explicit MayGetDict(PyObject* self) : o_(reinterpret_cast<TensorObject*>(self)) {
    if (!own_dict(o_)) o_->dict = nullptr;
  }
  ~MayGetDict() {
    auto* self = reinterpret_cast<PyObject*>(o_);
    if (!o_->dict) {
      o_->dict = no_attributes;
    } else if (!PyObject_GC_IsTracked(self)) {
      PyObject_GC_Track(self);
    }
  }

 private:
  TensorObject* o_;
};

int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  MayGetDict scope(self);
  return PyObject_GenericSetAttr(self, name, value);
}

PyObject* get_dict(PyObject* self, void*) {
  MayGetDict scope(self);
  return PyObject_GenericGetDict(self, nullptr);
}

int set_dict(PyObject* self, PyObject* value, void*) {
  MayGetDict scope(self);
  return PyObject_GenericSetDict(self, value, nullptr);
}

// Tensor(2, 3)
bool is_shape(PyObject* args) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    if (!PyLong_CheckExact(PyTuple_GET_ITEM(args, i))) return false;
  return PyTuple_GET_SIZE(args) > 0;
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  if (type == &tensor_type && !kwargs && is_shape(args)) {
    PyObject* empty = find_function("empty");
    return empty ? PyObject_CallOneArg(empty, args) : nullptr;
  }
  PyObject* build = helper("adjoin._tensor", "_construct");
  if (!build) return nullptr;
  Ref all(PyTuple_New(PyTuple_GET_SIZE(args) + 1));
  if (!all) return nullptr;
  PyTuple_SET_ITEM(all.get(), 0, Py_NewRef(reinterpret_cast<PyObject*>(type)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    PyTuple_SET_ITEM(all.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
  return PyObject_Call(build, all.get(), kwargs);
}

int ignore_init(PyObject*, PyObject*, PyObject*) { return 0; }

PyObject* represent(PyObject* self) {
  if (unlikely(looked_on(self))) return override_slot("__repr__", self);
  return call_helper("adjoin._tensor_str", "tensor_repr", &self, 1);
}

Py_hash_t hash(PyObject* self) { return _Py_HashPointer(self); }

PyMemberDef members[] = {
    {"dtype", T_OBJECT_EX, offsetof(TensorObject, dtype), READONLY, "The type of the elements."},
    {}};
PyGetSetDef dict_property[] = {{"__dict__", get_dict, set_dict, nullptr, nullptr}, {}};

int add_properties(PyTypeObject* type, PyGetSetDef* list) {
  for (; list->name; ++list) {
    Ref d(PyDescr_NewGetSet(type, list));
    if (d) note_property(list->get, list->closure, d.get());
    if (!d || PyDict_SetItemString(type->tp_dict, list->name, d.get()) < 0) return -1;
  }
  return 0;
}

int add_methods(PyTypeObject* type, PyMethodDef* list) {
  for (; list->ml_name; ++list) {
    PyObject* made = list->ml_flags & METH_CLASS    ? PyDescr_NewClassMethod(type, list)
                     : list->ml_flags & METH_STATIC ? PyCFunction_New(list, nullptr)
                                                    : PyDescr_NewMethod(type, list);
    Ref d(made);
    if (d) note_method(reinterpret_cast<void*>(list->ml_meth), d.get());
    if (d && list->ml_flags & METH_STATIC) d = Ref(PyStaticMethod_New(d.get()));
    if (!d || PyDict_SetItemString(type->tp_dict, list->ml_name, d.get()) < 0) return -1;
  }
  return 0;
}

}  // namespace

PyTypeObject tensor_type = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "adjoin.Tensor",
    .tp_basicsize = sizeof(TensorObject),
    .tp_dealloc = dealloc,
    .tp_repr = represent,
    .tp_as_number = &number_methods,
    .tp_as_sequence = &sequence_methods,
    .tp_as_mapping = &mapping_methods,
    .tp_hash = hash,
    .tp_getattro = PyObject_GenericGetAttr,
    .tp_setattro = set_attribute,
    .tp_as_buffer = &buffer_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc =
        "An array of one dtype on one device, which remembers how it was computed when a gradient "
        "may be asked for.",
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_richcompare = compare,
    .tp_weaklistoffset = offsetof(TensorObject, weakrefs),
    .tp_iter = iterate,
    .tp_members = members,
    .tp_getset = dict_property,
    .tp_dictoffset = offsetof(TensorObject, dict),
    .tp_init = ignore_init,
    .tp_new = make,
};

PyObject* wrap(aj_tensor* steal) {
  if (auto* old = static_cast<TensorObject*>(core->frontend_word(steal, frontend_id)))
    return wrap_again(steal, old);
  if (PyObject * made; unlikely(!is_strided(steal)) && wrap_instance(steal, &made)) return made;
  TensorObject* o = new_object();
  if (unlikely(!o)) return core->release(steal), nullptr;
  attach(o, steal);
  return reinterpret_cast<PyObject*>(o);
}

PyObject* wrap_as(PyTypeObject* type, aj_tensor* steal) {
  if (type == &tensor_type) return wrap(steal);
  auto* o = reinterpret_cast<TensorObject*>(type->tp_alloc(type, 0));
  if (!o) {
    core->release(steal);
    return nullptr;
  }
  o->dict = no_attributes;
  attach(o, steal);
  return reinterpret_cast<PyObject*>(o);
}

void set_attributes(PyObject* object, PyObject* dict) {
  auto* o = reinterpret_cast<TensorObject*>(object);
  PyObject* old = std::exchange(o->dict, Py_NewRef(dict));
  if (old != no_attributes) Py_XDECREF(old);
}

void take_over(PyObject* self, PyObject* other) {
  auto *o = reinterpret_cast<TensorObject*>(self), *from = reinterpret_cast<TensorObject*>(other);
  aj_tensor* before = o->tensor;
  core->set_frontend_word(before, frontend_id, nullptr, 0);
  if (own_dict(from)) set_attributes(self, from->dict);
  attach(o, std::exchange(from->tensor, nullptr));
  core->release(before);
}

void dtype_changed(void* word) {
  Gil gil;
  auto* o = static_cast<TensorObject*>(word);
  o->dtype = reinterpret_cast<PyObject*>(dtype_object(o->tensor->dl.dtype));
}

namespace {

// A weak reference gave the object to somebody, of which it cannot tell: the tensor that is being
// taken apart leaves a copy behind, or an empty tensor where it has no copy.
void leave_copy(TensorObject* o) {
  aj_tensor* dying = o->tensor;
  core->retain(dying);  // for the call that copies; nobody releases it again
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const int32_t recorded = autograd->set_grad_mode(0);
  Ref copy(is_strided(dying) ? PyObject_CallMethod(reinterpret_cast<PyObject*>(o), "clone", nullptr)
                             : nullptr);
  autograd->set_grad_mode(recorded);
  aj_tensor* left = nullptr;
  if (copy && is_tensor(copy.get()) && tensor_of(copy.get()) != dying) {
    auto* made = reinterpret_cast<TensorObject*>(copy.get());
    left = std::exchange(made->tensor, nullptr);
    core->set_frontend_word(left, frontend_id, nullptr, 0);
  } else {
    int64_t nothing = 0;
    DLTensor like{nullptr, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &nothing, nullptr, 0};
    if (aj_status* s = core->tensor_empty(&like, 0, &left)) core->status_free(s);
  }
  PyErr_Restore(type, value, traceback);
  if (left) attach(o, left);
}

}  // namespace

void drop_word(void* word) {
  auto* o = static_cast<TensorObject*>(word);
  o->kept = false;
  if (unlikely(Py_REFCNT(o) > 1) && Py_IsInitialized() && is_python_thread()) {
    Gil gil;
    if (Py_REFCNT(o) > 1) leave_copy(o);
    Py_DECREF(o);
    return;
  }
  o->tensor = nullptr;
  drop_object(reinterpret_cast<PyObject*>(o));
}

namespace {

// Special names go into the dictionary without the type's slots being made anew: those are C and
// stay.
PyObject* set_tensor_attribute(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2 || PyDict_SetItem(tensor_type.tp_dict, args[0], args[1]) < 0) return nullptr;
  PyType_Modified(&tensor_type);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"set_tensor_attribute", method(set_tensor_attribute), METH_FASTCALL, nullptr}, {}};

}  // namespace

int init_tensor(PyObject* module) {
#if PY_VERSION_HEX < 0x030c0000
  if (!(no_attributes = PyDict_New())) return -1;
#endif
  if (add_type(module, &tensor_type, "Tensor") < 0) return -1;
  // People hang methods onto Tensor, as they may in PyTorch.
  tensor_type.tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE;
  for (PyGetSetDef* list : {shape_properties, grad_properties})
    if (add_properties(&tensor_type, list) < 0) return -1;
  for (PyMethodDef* list : {shape_methods, grad_methods, in_place_view_methods, value_methods,
                            exchange_methods, conversion_methods})
    if (add_methods(&tensor_type, list) < 0) return -1;
  PyType_Modified(&tensor_type);
  return PyModule_AddFunctions(module, functions);
}

}  // namespace adjoin::py
