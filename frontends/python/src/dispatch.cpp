// frontends/python/src/dispatch.cpp: __torch_dispatch__: a key below the tape at which Python sees
// each call, of a thread that has entered a mode and of tensors of a class that holds others.
#include "dispatch.hpp"

#include <adjoin/abi/transform.h>
#include <adjoin/abi/wrap.h>

#include <algorithm>
#include <vector>

#include "define.hpp"
#include "device.hpp"
#include "tensor.hpp"

namespace adjoin::py {
namespace {

constexpr const char* kName = "python";
uint64_t key;  // 0: nobody has asked for it
// (op's name, is it written in place, arguments) -> results, or NotImplemented: the ops of the body
// are to be seen. If the body fails then, it is asked again, with None in the second place.
PyObject* handler;
thread_local int bodies;  // how many bodies are being run for it
PyObject* opened;         // names of ops whose bodies are seen instead; of layers all but `whole`
PyObject* whole;
int32_t payload_type;

// A tensor without memory is an instance of `type` with these attributes, wherever it comes up
// again: as an alias that the tape has kept, as a gradient.
struct Instance {
  PyObject *type, *dict;
};

void drop_instance(void* payload) {
  Gil gil;
  auto* held = static_cast<Instance*>(payload);
  Py_XDECREF(held->type);
  Py_XDECREF(held->dict);
}

const aj_wrappers* wrappers() {
  static auto* found = static_cast<const aj_wrappers*>(aj_get_interface("x.wrap", 1));
  return found;
}

const Instance* instance_of(const aj_tensor* t) {
  aj_object* o = key && !is_strided(t) ? wrappers()->tensor_payload(t, key) : nullptr;
  return o ? static_cast<const Instance*>(core->object_payload(o)) : nullptr;
}

// The core moved what a call returned into the tensor that it had to write: so do its attributes.
void follow(const aj_value& lent, PyObject* result) {
  if (lent.tag != AJ_TENSOR || !is_tensor(result) || tensor_of(result) == lent.v.tensor) return;
  const Instance* now = instance_of(tensor_of(result));
  auto* word = static_cast<PyObject*>(core->frontend_word(lent.v.tensor, frontend_id));
  if (now && word) set_attributes(word, now->dict);
}

// Memory was to be written, and the class says that it was by returning an instance: its own word
// for what is there now, as PyTorch takes it.
Ref written(const aj_value& lent, Ref result) {
  if (!is_tensor(result.get()) || !is_strided(lent.v.tensor) ||
      is_strided(tensor_of(result.get())) || !(tensor_of(result.get())->keys & key))
    return result;
  return Ref(wrap_borrowed(lent.v.tensor));
}

// While Python works, neither the key nor what excludes it holds: the handler includes it again for
// the modes that remain, and tensors bring it with them.
struct Outside {
  Outside() {
    dispatch->thread_keys(&include, &exclude);
    enter();
  }
  void enter() const { dispatch->set_thread_keys(include & ~key, exclude & ~key); }
  ~Outside() { dispatch->set_thread_keys(include, exclude); }
  uint64_t include, exclude;
};

const aj_lower* lowering() {
  static auto* found = static_cast<const aj_lower*>(aj_get_interface("x.lower", 1));
  return found;
}

// Is the op one that its own calls are seen of: its body's, which PyTorch has no op for?
bool opens(const aj_op_info& info) {
  if (!(info.flags & AJ_INFO_COMPOSITE) || !lowering()) return false;
  Ref name(to_python(info.name));
  if (!name) return false;
  if (!view(info.name).starts_with("nn::")) return PySet_Contains(opened, name.get()) == 1;
  return !(info.flags & AJ_INFO_OWN_VJP) && PySet_Contains(whole, name.get()) == 0;
}

aj_status* run_body(const aj_call* call, const Outside& outside) {
  dispatch->set_thread_keys(outside.include, outside.exclude & ~key);
  for (uint32_t i = 0; i < call->nrets; ++i)
    if (call->rets[i].tag == AJ_TENSOR) call->rets[i].aux = 0;
  return lowering()->call_body(call->op, call->args, call->nargs, call->rets, call->nrets);
}

// The result of a view has to say whose it is; of an instance its class cannot.
bool seen_as_view(aj_tensor* base, aj_value* ret) {
  aj_tensor* t = ret->tag == AJ_TENSOR ? ret->v.tensor : nullptr;
  if (!t || t == base || is_strided(t) || is_strided(base)) return true;
  HeldObject payload;
  if (failed(wrappers()->tensor_payload_get(t, key, payload.out()))) return false;
  if (!payload) return true;
  auto w = sized<aj_wrap>();
  w.key = key;
  w.like = t->dl;
  w.like.data = nullptr;
  w.payload = payload.get();
  w.view_of = base;
  aj_tensor* view = nullptr;
  if (failed(wrappers()->tensor_wrap(&w, &view))) return false;
  core->release(t);
  ret->v.tensor = view;
  return true;
}

bool seen_as_views(const aj_call* call) {
  if (call->nargs == 0 || call->args[0].tag != AJ_TENSOR) return true;
  aj_tensor* base = call->args[0].v.tensor;
  for (uint32_t i = 0; i < call->nrets; ++i) {
    aj_value& ret = call->rets[i];
    if (ret.tag != AJ_LIST_OBJ) {
      if (!seen_as_view(base, &ret)) return false;
      continue;
    }
    uint32_t n = 0;
    const aj_value* items = core->list_get(ret.v.object, &n);
    std::vector<aj_value> views(items, items + n);
    std::vector<HeldTensor> kept;
    bool good = true;
    for (aj_value& v : views) {
      if (v.tag == AJ_TENSOR) core->retain(v.v.tensor);
      good = good && seen_as_view(base, &v);
      if (v.tag == AJ_TENSOR) kept.emplace_back(v.v.tensor);
    }
    aj_object* list = nullptr;
    if (!good || failed(core->list_new(views.data(), n, &list))) return false;
    core->release(std::exchange(ret.v.object, list));
  }
  return true;
}

// The handler's results. `how`: whether the call writes its first argument; None: its body failed.
Ref ask(const aj_call* call, const aj_op_info& info, PyObject* how) {
  Ref args(arguments(call)), name(to_python(info.name));
  return Ref(args && name
                 ? PyObject_CallFunctionObjArgs(handler, name.get(), how, args.get(), nullptr)
                 : nullptr);
}

// The ops of the body come here one by one. If they cannot do it, the handler may serve the call.
aj_status* by_body(aj_call* call, const aj_op_info& info, const Outside& outside) {
  std::vector<aj_value> before(call->rets, call->rets + call->nrets);
  ++bodies;
  aj_status* bad = run_body(call, outside);
  --bodies;
  if (!bad) return nullptr;
  outside.enter();
  std::copy(before.begin(), before.end(), call->rets);
  Ref result = ask(call, info, Py_None);
  if (result.get() == Py_NotImplemented) return bad;
  core->status_free(bad);
  return result && put_results(call, result.get()) ? nullptr : status_from_python();
}

aj_status* see(void*, aj_call* call) {
  Gil gil;
  Outside outside;
  aj_value lent = call->nrets == 1 ? call->rets[0] : aj_value{};
  auto info = sized<aj_op_info>();
  if (failed(dispatch->op_info(call->op, &info))) return status_from_python();
  if (opens(info)) return by_body(call, info, outside);
  if (PyErr_Occurred()) return status_from_python();
  bool writes = lent.tag == AJ_TENSOR && call->nargs > 0 && call->args[0].tag == AJ_TENSOR &&
                call->args[0].v.tensor == lent.v.tensor;
  Ref result = ask(call, info, writes ? Py_True : Py_False);
  if (result.get() == Py_NotImplemented && (info.flags & AJ_INFO_COMPOSITE) && lowering())
    return by_body(call, info, outside);
  if (result && writes) result = written(lent, std::move(result));
  if (!result || !put_results(call, result.get())) return status_from_python();
  if (view(info.kind) == "view" && !seen_as_views(call)) return status_from_python();
  follow(lent, result.get());
  return nullptr;
}

aj_status* define_key(void*, const aj_plugin_env* env) {
  aj_status* bad = dispatch->def_key(env->registrar, str(kName), AJ_KEY_BELOW_AUTOGRAD, &key);
  if (!bad) bad = dispatch->def_fallback(env->registrar, str(kName), see, nullptr);
  auto d = sized<aj_wrapper_def>();
  d.key = str(kName);
  d.hint =
      str("its class has no memory of its own: take out what it holds, or write the op in its "
          "__torch_dispatch__");
  return bad ? bad : wrappers()->def_wrapper(env->registrar, &d);
}

// set_dispatch_handler(function, opened, whole): the key is there from now on.
PyObject* set_handler(PyObject*, PyObject* const* a, Py_ssize_t n) {
  if (n != 3 || !PyAnySet_Check(a[1]) || !PyAnySet_Check(a[2]))
    return PyErr_Format(PyExc_TypeError, "set_dispatch_handler: wanted a function and two sets");
  if (!key) {
    if (!wrappers() || !experimental() ||
        failed(core->type_register(str("python.instance"), sizeof(Instance), drop_instance,
                                   &payload_type)) ||
        failed(experimental()->define(str("python:dispatch"), define_key, nullptr)))
      return nullptr;
  }
  Py_XSETREF(handler, Py_NewRef(a[0]));
  Py_XSETREF(opened, Py_NewRef(a[1]));
  Py_XSETREF(whole, Py_NewRef(a[2]));
  Py_RETURN_NONE;
}

PyObject* wrapper(PyObject* type, const DLTensor& like, PyObject* dict, bool requires_grad) {
  aj_object* payload = nullptr;
  void* room = nullptr;
  if (failed(core->object_new(payload_type, &payload, &room))) return nullptr;
  *static_cast<Instance*>(room) = {Py_NewRef(type), Py_NewRef(dict)};
  auto w = sized<aj_wrap>();
  w.key = key;
  w.like = like;
  w.like.data = nullptr;
  w.payload = payload;
  HeldTensor made;
  bool bad = failed(wrappers()->tensor_wrap(&w, made.out()));
  core->release(payload);
  if (bad || (requires_grad && failed(autograd->set_requires_grad(made.get(), 1)))) return nullptr;
  return wrap(made.release());
}

// make_wrapper(cls, like, device, requires_grad): an instance without memory, with the sizes,
// strides and dtype of `like`, a tensor of the device meta.
PyObject* make_wrapper(PyObject*, PyObject* const* a, Py_ssize_t n) {
  DLDevice device;
  if (n != 4 || !key || !PyType_Check(a[0]) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(a[0]), &tensor_type) || !is_tensor(a[1]))
    return PyErr_Format(PyExc_TypeError, "make_wrapper: wanted a subclass of Tensor and a tensor");
  if (!as_device(a[2], &device))
    return PyErr_Occurred() ? nullptr
                            : PyErr_Format(PyExc_TypeError, "make_wrapper: %R is no device", a[2]);
  DLTensor like = tensor_of(a[1])->dl;
  like.device = concrete(device);
  Ref dict(PyDict_New());
  return dict ? wrapper(a[0], like, dict.get(), a[3] == Py_True) : nullptr;
}

// another_wrapper(t, requires_grad): an instance with the same attributes that are its own from now
// on.
PyObject* another_wrapper(PyObject*, PyObject* const* a, Py_ssize_t n) {
  const Instance* held = n == 2 && is_tensor(a[0]) ? instance_of(tensor_of(a[0])) : nullptr;
  if (!held) return PyErr_Format(PyExc_TypeError, "another_wrapper: wanted an instance");
  Ref dict(PyDict_Copy(held->dict));
  return dict ? wrapper(held->type, tensor_of(a[0])->dl, dict.get(), a[1] == Py_True) : nullptr;
}

// dispatch_bodies(): how many bodies are being run on this thread because the handler wants it so.
PyObject* count_bodies(PyObject*, PyObject*) { return PyLong_FromLong(bodies); }

// leave_out_classes(on): no class sees the calls of this thread, whatever its tensors are. Returns
// what it was.
PyObject* leave_out_classes(PyObject*, PyObject* on) {
  const int now = PyObject_IsTrue(on);
  if (now < 0) return nullptr;
  uint64_t include, exclude;
  dispatch->thread_keys(&include, &exclude);
  dispatch->set_thread_keys(include, now ? exclude | key : exclude & ~key);
  return PyBool_FromLong((exclude & key) != 0);
}

// call_all(op, arguments...): the results that frontends hide are given, too.
PyObject* call_all(PyObject*, PyObject* const* a, Py_ssize_t n, PyObject* kwnames) {
  if (n < 1 || !PyObject_TypeCheck(a[0], &op_type))
    return PyErr_Format(PyExc_TypeError, "call_all: wanted an op and its arguments");
  Frame f;
  auto* op = reinterpret_cast<OpObject*>(a[0]);
  for (const Program* p = op->first; p; p = p->next) {
    Match match = bind(*p, a + 1, n - 1, kwnames, f);
    if (match == Match::Error) return nullptr;
    if (match != Match::Bound) continue;
    aj_value rets[kMaxResults] = {};
    if (failed(dispatch->call(p->op, f.values, p->nparams, rets, p->nresults))) return nullptr;
    Ref all(PyTuple_New(p->nresults));
    for (int i = 0; i < p->nresults; ++i) {
      PyObject* item = take_value(rets[i]);
      if (!all || !item) return nullptr;
      PyTuple_SET_ITEM(all.get(), i, item);
    }
    return all.release();
  }
  return PyObject_Vectorcall(a[0], a + 1, static_cast<size_t>(n - 1), kwnames);
}

PyMethodDef functions[] = {
    {"another_wrapper", method(another_wrapper), METH_FASTCALL, nullptr},
    {"dispatch_bodies", count_bodies, METH_NOARGS, nullptr},
    {"leave_out_classes", leave_out_classes, METH_O, nullptr},
    {"call_all", method(call_all), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"set_dispatch_handler", method(set_handler), METH_FASTCALL, nullptr},
    {"make_wrapper", method(make_wrapper), METH_FASTCALL, nullptr},
    {},
};

}  // namespace

std::atomic<int> watching;

void see_calls(aj_tensor* t) { t->keys |= key; }

bool is_seen(const aj_tensor* t) { return key && t->keys & key; }

void watch_values(uint64_t mask, int more) {
  if (mask == key) watching.fetch_add(more, std::memory_order_relaxed);
}

bool wrap_instance(aj_tensor* steal, PyObject** out) {
  const Instance* held = instance_of(steal);
  if (!held) return false;
  *out = wrap_as(reinterpret_cast<PyTypeObject*>(held->type), steal);
  if (*out) set_attributes(*out, held->dict);
  return true;
}

int init_dispatch(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py
