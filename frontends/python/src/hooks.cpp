// frontends/python/src/hooks.cpp: hooks on tensors and nodes, hooks for what is saved, and the
// handle that removes one.
#include "hooks.hpp"

#include <mutex>
#include <unordered_map>

#include "collect.hpp"

namespace adjoin::py {
namespace {

// How many hooks a leaf has: that are called, or wait to be dropped. A leaf outlives its hooks.
class LeafHooks {
 public:
  void change(const aj_tensor* leaf, int by) {
    std::lock_guard held(lock_);
    if (const auto at = count_.try_emplace(leaf).first; !(at->second += by)) count_.erase(at);
  }
  bool has(const aj_tensor* leaf) {
    std::lock_guard held(lock_);
    return count_.contains(leaf);
  }

 private:
  std::mutex lock_;
  std::unordered_map<const aj_tensor*, int> count_;
};
LeafHooks& leaf_hooks() {
  static auto& all = *new LeafHooks;  // the last hooks go with the process
  return all;
}

struct Hook {
  explicit Hook(PyObject* f, const aj_tensor* its_leaf = nullptr)
      : function(Py_NewRef(f)), leaf(its_leaf) {
    if (leaf) leaf_hooks().change(leaf, 1);
  }
  ~Hook() {
    if (leaf) leaf_hooks().change(leaf, -1);
    drop_object(function);
  }
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

  PyObject* const function;
  const aj_tensor* const leaf;
};

void drop_hook(void* self) { delete static_cast<Hook*>(self); }

// What a hook returned in place of a gradient; false with an error set if it is neither None nor a
// tensor.
bool take_grad(PyObject* result, aj_tensor** io) {
  if (result == Py_None) return true;
  if (!is_tensor(result)) {
    PyErr_Format(PyExc_TypeError, "hook: returned %s, wanted a Tensor or None",
                 Py_TYPE(result)->tp_name);
    return false;
  }
  aj_tensor* fresh = tensor_of(result);
  if (fresh == *io) return true;  // the one that was lent: nothing replaces it
  core->retain(fresh);
  *io = fresh;  // the core gives up what it was
  return true;
}

aj_status* on_gradient(void* self, aj_tensor** io) {
  Gil gil;
  Ref grad(*io ? wrap_borrowed(*io) : Py_NewRef(Py_None));
  Ref result(grad ? PyObject_CallOneArg(static_cast<Hook*>(self)->function, grad.get()) : nullptr);
  return result && take_grad(result.get(), io) ? nullptr : status_from_python();
}

aj_status* on_accumulated(void* self, aj_tensor** io) {
  Gil gil;
  auto* h = static_cast<Hook*>(self);
  Ref leaf(wrap_borrowed(*io));
  Ref result(leaf ? PyObject_CallOneArg(h->function, leaf.get()) : nullptr);
  return result ? nullptr : status_from_python();  // what it returns has no meaning, as in PyTorch
}

bool take_grads(PyObject* result, aj_tensor** io, uint32_t n) {
  if (result == Py_None) return true;
  if (is_tensor(result) && n == 1) return take_grad(result, io);
  if (!PyTuple_Check(result) || PyTuple_GET_SIZE(result) != static_cast<Py_ssize_t>(n)) {
    PyErr_Format(PyExc_RuntimeError, "hook: returned %R, wanted None or a tuple of %u gradients",
                 result, n);
    return false;
  }
  for (uint32_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(result, i);
    if (item == Py_None) {
      io[i] = nullptr;
    } else if (!take_grad(item, &io[i])) {
      return false;
    }
  }
  return true;
}

aj_status* before_node(void* self, aj_tensor** io, uint32_t n, aj_tensor* const*, uint32_t) {
  Gil gil;
  Ref grads(grads_tuple(io, n));
  Ref result(grads ? PyObject_CallOneArg(static_cast<Hook*>(self)->function, grads.get())
                   : nullptr);
  return result && take_grads(result.get(), io, n) ? nullptr : status_from_python();
}

aj_status* after_node(void* self, aj_tensor** io, uint32_t n, aj_tensor* const* other,
                      uint32_t nother) {
  Gil gil;
  Ref inputs(grads_tuple(io, n)), outputs(grads_tuple(other, nother));
  PyObject* args[] = {inputs.get(), outputs.get()};
  Ref result(inputs && outputs
                 ? PyObject_Vectorcall(static_cast<Hook*>(self)->function, args, 2, nullptr)
                 : nullptr);
  return result && take_grads(result.get(), io, n) ? nullptr : status_from_python();
}

struct HandleObject {
  PyObject_HEAD uint64_t id;
};

PyObject* remove_hook(PyObject* self, PyObject*) {
  uint64_t id = std::exchange(reinterpret_cast<HandleObject*>(self)->id, 0);
  if (id) {
    aj_status* s = autograd->hook_remove(id);
    if (s) core->status_free(s);  // its tensor is gone already
  }
  Py_RETURN_NONE;
}

PyObject* enter(PyObject* self, PyObject*) { return Py_NewRef(self); }
PyObject* leave(PyObject* self, PyObject*) { return remove_hook(self, nullptr); }
PyObject* get_id(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(reinterpret_cast<HandleObject*>(self)->id);
}

PyMethodDef handle_methods[] = {
    {"remove", remove_hook, METH_NOARGS, "Takes the hook away."},
    {"__enter__", enter, METH_NOARGS, nullptr},
    {"__exit__", leave, METH_VARARGS, nullptr},
    {},
};
PyGetSetDef handle_properties[] = {{"id", get_id, nullptr, nullptr, nullptr}, {}};

PyTypeObject handle_type = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "adjoin.HookHandle",
    .tp_basicsize = sizeof(HandleObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Removes a hook, by remove() or at the end of a with statement.",
    .tp_methods = handle_methods,
    .tp_getset = handle_properties,
};

PyObject* handle(uint64_t id) {
  auto* o = PyObject_New(HandleObject, &handle_type);
  if (o) o->id = id;
  return reinterpret_cast<PyObject*>(o);
}

bool callable(PyObject* f) {
  if (PyCallable_Check(f)) return true;
  PyErr_Format(PyExc_TypeError, "hook: must be callable, not %s", Py_TYPE(f)->tp_name);
  return false;
}

// Hooks for what the tape saves: pack gives any object, which comes back to unpack.
struct SavedPair {
  PyObject *pack, *unpack;
};
int32_t packed_type = 0;

void drop_packed(void* payload) { drop_object(*static_cast<PyObject**>(payload)); }

aj_status* pack(void* self, aj_tensor* t, aj_object** out) {
  Gil gil;
  Ref tensor(wrap_borrowed(t));
  Ref packed(tensor ? PyObject_CallOneArg(static_cast<SavedPair*>(self)->pack, tensor.get())
                    : nullptr);
  if (!packed) return status_from_python();
  void* payload = nullptr;
  if (aj_status* s = core->object_new(packed_type, out, &payload)) return s;
  *static_cast<PyObject**>(payload) = packed.release();
  return nullptr;
}

aj_status* unpack(void* self, aj_object* packed, aj_tensor** out) {
  Gil gil;
  auto* object = *static_cast<PyObject**>(core->object_payload(packed));
  Ref result(PyObject_CallOneArg(static_cast<SavedPair*>(self)->unpack, object));
  if (result && !is_tensor(result.get()))
    PyErr_Format(PyExc_TypeError, "saved_tensors_hooks: unpack returned %s, wanted a Tensor",
                 Py_TYPE(result.get())->tp_name);
  if (PyErr_Occurred()) return status_from_python();
  *out = tensor_of(result.get());
  core->retain(*out);
  return nullptr;
}

void drop_pair(void* self) {
  auto* p = static_cast<SavedPair*>(self);
  drop_object(p->pack);
  drop_object(p->unpack);
  delete p;
}

PyObject* push_saved(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2 || !callable(args[0]) || !callable(args[1])) return nullptr;
  if (!packed_type && failed(core->type_register(str("python.packed"), sizeof(PyObject*),
                                                 drop_packed, &packed_type)))
    return nullptr;
  auto* pair = new SavedPair{Py_NewRef(args[0]), Py_NewRef(args[1])};
  if (failed(autograd->push_saved_hooks(pack, unpack, pair, drop_pair))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* pop_saved(PyObject*, PyObject*) {
  if (failed(autograd->pop_saved_hooks())) return nullptr;
  Py_RETURN_NONE;
}

// leaf_hooks(tensors): has one of a list of leaves a hook?
PyObject* have_leaf_hooks(PyObject*, PyObject* leaves) {
  if (!PyList_Check(leaves)) return PyErr_Format(PyExc_TypeError, "leaf_hooks: a list is wanted");
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(leaves); ++i)
    if (leaf_hooks().has(tensor_of(PyList_GET_ITEM(leaves, i)))) Py_RETURN_TRUE;
  Py_RETURN_FALSE;
}

PyMethodDef functions[] = {
    {"push_saved_hooks", method(push_saved), METH_FASTCALL, nullptr},
    {"pop_saved_hooks", pop_saved, METH_NOARGS, nullptr},
    {"leaf_hooks", have_leaf_hooks, METH_O, nullptr},
    {},
};

}  // namespace

PyObject* grads_tuple(aj_tensor* const* grads, uint32_t n) {
  PyObject* t = PyTuple_New(n);
  for (uint32_t i = 0; t && i < n; ++i) {
    PyObject* item = grads[i] ? wrap_borrowed(grads[i]) : Py_NewRef(Py_None);
    if (!item) {
      Py_DECREF(t);
      return nullptr;
    }
    PyTuple_SET_ITEM(t, i, item);
  }
  return t;
}

void objects_of_hook(void (*drop)(void*), void* self, PyObject** two) {
  if (drop == drop_hook) two[0] = static_cast<Hook*>(self)->function;
  if (drop == drop_packed) two[0] = *static_cast<PyObject**>(self);
  if (drop == drop_pair)
    two[0] = static_cast<SavedPair*>(self)->pack, two[1] = static_cast<SavedPair*>(self)->unpack;
}

PyObject* hook_on_tensor(PyObject* tensor, PyObject* f, int32_t kind) {
  if (!callable(f)) return nullptr;
  watch_cycles(tensor);
  aj_tensor* t = tensor_of(tensor);
  bool after = kind == AJ_HOOK_POST_ACCUMULATE;
  auto* h = new Hook(f, t->obj.flags & AJ_TENSOR_LEAF ? t : nullptr);
  uint64_t id = 0;
  if (failed(
          autograd->hook_tensor(t, kind, after ? on_accumulated : on_gradient, h, drop_hook, &id)))
    return nullptr;
  return handle(id);
}

PyObject* hook_on_node(aj_node* n, PyObject* f, int32_t kind) {
  if (!callable(f)) return nullptr;
  auto* h = new Hook(f);
  uint64_t id = 0;
  if (failed(autograd->hook_node(n, kind, kind == AJ_HOOK_NODE_PRE ? before_node : after_node, h,
                                 drop_hook, &id)))
    return nullptr;
  return handle(id);
}

int init_hooks(PyObject* module) {
  if (add_type(module, &handle_type, "HookHandle") < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace adjoin::py
