// frontends/python/src/distributed.cpp: groups of processes (abi/distributed.h) for
// adjoin.distributed.
#include <adjoin/abi/distributed.h>

#include <vector>

#include "errors.hpp"
#include "extension.hpp"
#include "line.hpp"
#include "table.hpp"
#include "tensor.hpp"

namespace adjoin::py {
namespace {

const aj_distributed* table() {
  return extension<aj_distributed>("x.distributed", "distributed", "libaj_distributed.so");
}

constexpr const char* kServer = "adjoin.server";
constexpr const char* kLink = "adjoin.link";
constexpr const char* kGroup = "adjoin.group";
constexpr const char* kWork = "adjoin.work";
constexpr const char* kReducer = "adjoin.reducer";

template <class F>
void unlocked(F&& f) {
  Py_BEGIN_ALLOW_THREADS;
  f();
  Py_END_ALLOW_THREADS;
}

PyObject* serve(PyObject*, PyObject* args) {
  const char* host;
  int port;
  void* server;
  int32_t got;
  if (!PyArg_ParseTuple(args, "si", &host, &port) || !table() ||
      failed(table()->serve(str(host), port, &server, &got)))
    return nullptr;
  return Py_BuildValue("(Ni)", PyCapsule_New(server, kServer, nullptr), int(got));
}

PyObject* end_server(PyObject*, PyObject* args) {
  PyObject* held;
  long long timeout;
  if (!PyArg_ParseTuple(args, "OL", &held, &timeout)) return nullptr;
  void* server = PyCapsule_GetPointer(held, kServer);
  if (!server || PyCapsule_SetName(held, "adjoin.server that has ended") < 0) return nullptr;
  unlocked([&] { table()->end_server(server, timeout); });
  Py_RETURN_NONE;
}

PyObject* connect(PyObject*, PyObject* args) {
  const char* host;
  int port;
  long long timeout;
  void* link;
  if (!PyArg_ParseTuple(args, "siL", &host, &port, &timeout) || !table() ||
      !waited([&] { return table()->connect(str(host), port, timeout, &link); }))
    return nullptr;
  return PyCapsule_New(link, kLink, nullptr);
}

PyObject* disconnect(PyObject*, PyObject* held) {
  void* link = PyCapsule_GetPointer(held, kLink);
  if (!link || PyCapsule_SetName(held, "adjoin.link that is closed") < 0) return nullptr;
  unlocked([&] { table()->disconnect(link); });
  Py_RETURN_NONE;
}

const aj_store* store_of(PyObject* held) {
  void* link = PyCapsule_GetPointer(held, kLink);
  return link ? table()->store(link) : nullptr;
}

PyObject* store_set(PyObject*, PyObject* args) {
  PyObject* held;
  const char *key, *value;
  Py_ssize_t nkey, nvalue;
  if (!PyArg_ParseTuple(args, "Os#y#", &held, &key, &nkey, &value, &nvalue)) return nullptr;
  const aj_store* s = store_of(held);
  if (!s || !waited([&] {
        return s->set(s->self, {key, uint64_t(nkey)}, {value, uint64_t(nvalue)});
      }))
    return nullptr;
  Py_RETURN_NONE;
}

PyObject* bytes_of(aj_object* steal) {
  HeldObject held(steal);
  std::string_view text = view(core->string_get(held.get()));
  return PyBytes_FromStringAndSize(text.data(), Py_ssize_t(text.size()));
}

PyObject* store_get(PyObject*, PyObject* args) {
  PyObject* held;
  const char* key;
  Py_ssize_t nkey;
  long long timeout;
  aj_object* found;
  if (!PyArg_ParseTuple(args, "Os#L", &held, &key, &nkey, &timeout)) return nullptr;
  const aj_store* s = store_of(held);
  if (!s || !waited([&] { return s->get(s->self, {key, uint64_t(nkey)}, timeout, &found); }))
    return nullptr;
  return bytes_of(found);
}

PyObject* store_swap(PyObject*, PyObject* args) {
  PyObject* held;
  const char *key, *expected, *desired;
  Py_ssize_t nkey, nexpected, ndesired;
  aj_object* found;
  if (!PyArg_ParseTuple(args, "Os#y#y#", &held, &key, &nkey, &expected, &nexpected, &desired,
                        &ndesired))
    return nullptr;
  const aj_store* s = store_of(held);
  if (!s || !waited([&] {
        return s->swap(s->self, {key, uint64_t(nkey)}, {expected, uint64_t(nexpected)},
                       {desired, uint64_t(ndesired)}, &found);
      }))
    return nullptr;
  return bytes_of(found);
}

// store_number(link, "add", key, by): or "erase", "count".
PyObject* store_number(PyObject*, PyObject* args) {
  PyObject* held;
  const char *what, *key;
  Py_ssize_t nkey;
  long long by = 0;
  int64_t got = 0;
  if (!PyArg_ParseTuple(args, "Oss#|L", &held, &what, &key, &nkey, &by)) return nullptr;
  const aj_store* s = store_of(held);
  const aj_str k = {key, uint64_t(nkey)};
  if (!s || !waited([&] {
        return what[0] == 'a'   ? s->add(s->self, k, by, &got)
               : what[0] == 'e' ? s->erase(s->self, k, &got)
                                : s->count(s->self, k, &got);
      }))
    return nullptr;
  return PyLong_FromLongLong(got);
}

PyObject* join(PyObject*, PyObject* args) {
  PyObject* held;
  const char* world;
  int rank, size;
  if (!PyArg_ParseTuple(args, "Osii", &held, &world, &rank, &size)) return nullptr;
  void* link = PyCapsule_GetPointer(held, kLink);
  if (!link || !waited([&] { return table()->join(link, str(world), rank, size); })) return nullptr;
  Py_RETURN_NONE;
}

PyObject* tell(PyObject*, PyObject* args) {
  PyObject* held;
  const char* what;
  if (!PyArg_ParseTuple(args, "Os", &held, &what)) return nullptr;
  void* link = PyCapsule_GetPointer(held, kLink);
  if (!link || !waited([&] { return table()->tell(link, str(what)); })) return nullptr;
  Py_RETURN_NONE;
}

PyObject* leave(PyObject*, PyObject* held) {
  void* link = PyCapsule_GetPointer(held, kLink);
  if (!link) return nullptr;
  unlocked([&] { table()->leave(link); });
  Py_RETURN_NONE;
}

// group_open(link, name, label, engine, device, its index, ranks, rank, timeout)
PyObject* group_open(PyObject*, PyObject* args) {
  PyObject *held, *list;
  const char *name, *label, *engine, *device;
  auto def = sized<aj_group_def>();
  long long timeout;
  void* group;
  if (!PyArg_ParseTuple(args, "OssssiO!iL", &held, &name, &label, &engine, &device,
                        &def.device_index, &PyTuple_Type, &list, &def.rank, &timeout))
    return nullptr;
  void* link = PyCapsule_GetPointer(held, kLink);
  std::vector<int32_t> ranks;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list); i++)
    ranks.push_back(int32_t(PyLong_AsLong(PyTuple_GET_ITEM(list, i))));
  if (PyErr_Occurred()) return nullptr;
  def.name = str(name), def.label = str(label), def.engine = str(engine), def.device = str(device);
  def.ranks = ranks.data();
  def.size = int32_t(ranks.size());
  def.timeout_ms = timeout;
  if (!link || !waited([&] { return table()->group_open(link, &def, &group); })) return nullptr;
  return PyCapsule_New(group, kGroup, nullptr);
}

// engine(name, device): "nccl 2.28.9"; raises where it cannot serve.
PyObject* engine(PyObject*, PyObject* args) {
  const char *name, *device;
  auto caps = sized<aj_comm_caps>();
  if (!PyArg_ParseTuple(args, "ss", &name, &device) || !table() ||
      !waited([&] { return table()->engine_caps(str(name), str(device), &caps); }))
    return nullptr;
  const std::string_view text = view(caps.engine);
  return PyUnicode_FromStringAndSize(text.data(), Py_ssize_t(text.size()));
}

PyObject* group_close(PyObject*, PyObject* held) {
  void* group = PyCapsule_GetPointer(held, kGroup);
  if (!group || PyCapsule_SetName(held, "adjoin.group that is closed") < 0) return nullptr;
  unlocked([&] { table()->group_close(group); });
  Py_RETURN_NONE;
}

PyObject* group_history(PyObject*, PyObject* held) {
  void* group = PyCapsule_GetPointer(held, kGroup);
  aj_object* said;
  if (!group || !waited([&] { return table()->group_history(group, &said); })) return nullptr;
  return take_string(said);
}

void drop_work(PyObject* held) {
  void* work = PyCapsule_GetPointer(held, kWork);
  unlocked([&] { table()->work_drop(work); });
}

bool take_counts(PyObject* list, std::vector<uint64_t>* out, const uint64_t** at) {
  if (list == Py_None) return true;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list); i++)
    out->push_back(PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(list, i)));
  *at = out->data();
  return !PyErr_Occurred();
}

// All memory of a collective is on one device; the group says whether that is its own.
bool take_memory(PyObject* o, std::vector<aj_tensor*>* keep, aj_coll* c, char** at) {
  if (o == Py_None) return true;
  if (!is_tensor(o)) {
    PyErr_Format(PyExc_TypeError, "distributed: wanted a tensor, not %s", Py_TYPE(o)->tp_name);
    return false;
  }
  aj_tensor* t = tensor_of(o);
  if (!settled(t, "distributed")) return false;
  const bool same = keep->empty() || (t->dl.device.device_type == c->device.device_type &&
                                      t->dl.device.device_id == c->device.device_id);
  if (!(t->obj.flags & AJ_TENSOR_DENSE) || !same) {
    PyErr_SetString(PyExc_RuntimeError, "distributed: an engine wants dense memory of one device");
    return false;
  }
  keep->push_back(t);
  c->dtype = t->dl.dtype;
  c->device = t->dl.device;
  *at = data_of(t);
  return true;
}

// start(group, kind, op, peer, tag, count, in, out, in_counts, out_counts, scale): a work.
PyObject* start(PyObject*, PyObject* args) {
  PyObject *held, *in, *out, *in_counts, *out_counts;
  auto c = sized<aj_coll>();
  int tag;
  unsigned long long count;
  if (!PyArg_ParseTuple(args, "OiiiiKOOOOd", &held, &c.kind, &c.op, &c.peer, &tag, &count, &in,
                        &out, &in_counts, &out_counts, &c.scale))
    return nullptr;
  void* group = PyCapsule_GetPointer(held, kGroup);
  std::vector<aj_tensor*> keep;
  std::vector<uint64_t> ins, outs;
  char *from = nullptr, *to = nullptr;
  c.count = count;
  c.dtype = {kDLUInt, 8, 1};
  c.device = {kDLCPU, 0};
  if (!group || !take_memory(in, &keep, &c, &from) || !take_memory(out, &keep, &c, &to) ||
      !take_counts(in_counts, &ins, &c.in_counts) || !take_counts(out_counts, &outs, &c.out_counts))
    return nullptr;
  c.in = from, c.out = to;
  if (c.device.device_type != kDLCPU && failed(core->stream_current(c.device, &c.stream)))
    return nullptr;
  note_line();
  void* work;
  if (!waited([&] {
        return table()->group_start(group, &c, tag, keep.data(), uint32_t(keep.size()), &work);
      }))
    return nullptr;
  if (out != Py_None) core->tensor_bump_version(tensor_of(out));  // no op writes there
  return PyCapsule_New(work, kWork, drop_work);
}

PyObject* work_test(PyObject*, PyObject* held) {
  void* work = PyCapsule_GetPointer(held, kWork);
  int32_t done;
  if (!work || !waited([&] { return table()->work_test(work, &done); })) return nullptr;
  return PyBool_FromLong(done);
}

PyObject* work_wait(PyObject*, PyObject* args) {
  PyObject* held;
  long long timeout;
  if (!PyArg_ParseTuple(args, "OL", &held, &timeout)) return nullptr;
  void* work = PyCapsule_GetPointer(held, kWork);
  if (!work || !waited([&] { return table()->work_wait(work, timeout); })) return nullptr;
  Py_RETURN_NONE;
}

// A reducer and the object whose `_full` it calls; that object holds the capsule.
struct HeldReducer {
  void* reducer = nullptr;
  PyObject* owner = nullptr;
};

aj_status* full(void* self, int32_t bucket) {
  PyGILState_STATE state = PyGILState_Ensure();
  Ref done(PyObject_CallMethod(static_cast<HeldReducer*>(self)->owner, "_full", "i", int(bucket)));
  aj_status* s = done ? nullptr : status_from_python();
  PyGILState_Release(state);
  return s;
}

HeldReducer* reducer_of(PyObject* held) {
  return static_cast<HeldReducer*>(PyCapsule_GetPointer(held, kReducer));
}

void drop_reducer(PyObject* held) {
  HeldReducer* r = reducer_of(held);
  unlocked([&] { table()->reducer_drop(r->reducer); });
  delete r;
}

std::vector<aj_tensor*> tensors_in(PyObject* list) {
  std::vector<aj_tensor*> all;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list); i++)
    all.push_back(tensor_of(PyTuple_GET_ITEM(list, i)));
  return all;
}

// reducer_new(owner, group or None, params, their names, views, flats, bucket of each, factor)
PyObject* reducer_new(PyObject*, PyObject* args) {
  PyObject *owner, *group, *params, *names, *views, *flats, *places;
  auto def = sized<aj_reducer_def>();
  if (!PyArg_ParseTuple(args, "OOO!O!O!O!O!d", &owner, &group, &PyTuple_Type, &params,
                        &PyTuple_Type, &names, &PyTuple_Type, &views, &PyTuple_Type, &flats,
                        &PyTuple_Type, &places, &def.factor))
    return nullptr;
  def.group = group == Py_None ? nullptr : PyCapsule_GetPointer(group, kGroup);
  const auto ps = tensors_in(params), vs = tensors_in(views), fs = tensors_in(flats);
  std::vector<uint32_t> bucket_of;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places); i++)
    bucket_of.push_back(uint32_t(PyLong_AsLong(PyTuple_GET_ITEM(places, i))));
  std::vector<aj_str> words;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
    Py_ssize_t n;
    const char* name = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(names, i), &n);
    if (!name) return nullptr;
    words.push_back({name, uint64_t(n)});
  }
  if (PyErr_Occurred() || !table()) return nullptr;
  def.names = words.data();
  def.params = ps.data(), def.views = vs.data(), def.flats = fs.data();
  def.bucket_of = bucket_of.data();
  def.nparams = uint32_t(ps.size()), def.nbuckets = uint32_t(fs.size());
  auto* r = new HeldReducer{nullptr, owner};
  def.full = full, def.self = r;
  if (failed(table()->reducer_new(&def, &r->reducer))) {
    delete r;
    return nullptr;
  }
  return PyCapsule_New(r, kReducer, drop_reducer);
}

// reducer_arm(reducer, number of parameters, roots or None): bytes, which of them are reached; or
// None.
PyObject* reducer_arm(PyObject*, PyObject* args) {
  PyObject *held, *roots;
  Py_ssize_t n;
  if (!PyArg_ParseTuple(args, "OnO", &held, &n, &roots)) return nullptr;
  HeldReducer* r = reducer_of(held);
  if (!r) return nullptr;
  if (roots == Py_None) {
    if (failed(table()->reducer_arm(r->reducer, nullptr, 0, nullptr))) return nullptr;
    Py_RETURN_NONE;
  }
  const auto all = tensors_in(roots);
  std::vector<uint8_t> reached(static_cast<size_t>(n));
  note_line();
  if (failed(table()->reducer_arm(r->reducer, all.data(), uint32_t(all.size()), reached.data())))
    return nullptr;
  return PyBytes_FromStringAndSize(reinterpret_cast<char*>(reached.data()), n);
}

PyObject* reducer_go(PyObject*, PyObject* held) {
  HeldReducer* r = reducer_of(held);
  note_line();
  if (!r || failed(table()->reducer_go(r->reducer))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* reducer_wait(PyObject*, PyObject* held) {
  HeldReducer* r = reducer_of(held);
  if (!r || !waited([&] { return table()->reducer_wait(r->reducer); })) return nullptr;
  Py_RETURN_NONE;
}

// Bytes, which parameters got no gradient in a pass that has begun; None: there is no such pass.
PyObject* reducer_missing(PyObject*, PyObject* args) {
  PyObject* held;
  Py_ssize_t n;
  if (!PyArg_ParseTuple(args, "On", &held, &n)) return nullptr;
  HeldReducer* r = reducer_of(held);
  if (!r) return nullptr;
  std::vector<uint8_t> missing(static_cast<size_t>(n));
  int32_t waits = 0;
  table()->reducer_missing(r->reducer, missing.data(), &waits);
  if (!waits) Py_RETURN_NONE;
  return PyBytes_FromStringAndSize(reinterpret_cast<char*>(missing.data()), n);
}

PyObject* reducer_hook(PyObject*, PyObject* args) {
  PyObject* held;
  int on;
  if (!PyArg_ParseTuple(args, "Op", &held, &on)) return nullptr;
  HeldReducer* r = reducer_of(held);
  if (!r) return nullptr;
  table()->reducer_hook(r->reducer, on);
  Py_RETURN_NONE;
}

PyObject* launch(PyObject*, PyObject* list) {
  if (!PyList_Check(list)) return PyErr_Format(PyExc_TypeError, "launch: wanted a list of words");
  std::vector<aj_str> words;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
    Py_ssize_t n;
    const char* word = PyUnicode_AsUTF8AndSize(PyList_GET_ITEM(list, i), &n);
    if (!word) return nullptr;
    words.push_back({word, uint64_t(n)});
  }
  int32_t code;
  if (!table() ||
      !waited([&] { return table()->launch(words.data(), uint32_t(words.size()), &code); }))
    return nullptr;
  return PyLong_FromLong(code);
}

PyMethodDef functions[] = {
    {"dist_serve", serve, METH_VARARGS, nullptr},
    {"dist_end_server", end_server, METH_VARARGS, nullptr},
    {"dist_connect", connect, METH_VARARGS, nullptr},
    {"dist_disconnect", disconnect, METH_O, nullptr},
    {"dist_store_set", store_set, METH_VARARGS, nullptr},
    {"dist_store_get", store_get, METH_VARARGS, nullptr},
    {"dist_store_swap", store_swap, METH_VARARGS, nullptr},
    {"dist_store_number", store_number, METH_VARARGS, nullptr},
    {"dist_join", join, METH_VARARGS, nullptr},
    {"dist_tell", tell, METH_VARARGS, nullptr},
    {"dist_leave", leave, METH_O, nullptr},
    {"dist_group_open", group_open, METH_VARARGS, nullptr},
    {"dist_engine", engine, METH_VARARGS, nullptr},
    {"dist_group_close", group_close, METH_O, nullptr},
    {"dist_group_history", group_history, METH_O, nullptr},
    {"dist_start", start, METH_VARARGS, nullptr},
    {"dist_work_test", work_test, METH_O, nullptr},
    {"dist_work_wait", work_wait, METH_VARARGS, nullptr},
    {"dist_launch", launch, METH_O, nullptr},
    {"dist_reducer_new", reducer_new, METH_VARARGS, nullptr},
    {"dist_reducer_arm", reducer_arm, METH_VARARGS, nullptr},
    {"dist_reducer_go", reducer_go, METH_O, nullptr},
    {"dist_reducer_wait", reducer_wait, METH_O, nullptr},
    {"dist_reducer_missing", reducer_missing, METH_VARARGS, nullptr},
    {"dist_reducer_hook", reducer_hook, METH_VARARGS, nullptr},
    {},
};

}  // namespace

int init_distributed(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py
