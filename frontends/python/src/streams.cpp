// frontends/python/src/streams.cpp: a device's own table for Python: streams, events, captured
// graphs, what the device is. Handles are numbers; adjoin/_accelerator.py makes objects of them.
#include <algorithm>
#include <chrono>
#include <thread>

#include "device.hpp"
#include "methods.hpp"
#include "object.hpp"
#include "table.hpp"
#include "tensor.hpp"

namespace adjoin::py {

thread_local int32_t current_index[kDeviceKinds];

namespace {

using Handle = unsigned long long;

void* pointer(Handle h) { return reinterpret_cast<void*>(h); }
PyObject* number(void* p) { return PyLong_FromVoidPtr(p); }

// What `sync` would wait for, in slices where `query` can be asked: the user may press Ctrl-C.
template <class Query, class Sync>
bool waited_for(bool can_ask, Query&& query, Sync&& sync) {
  int32_t done = !can_ask;
  for (int64_t us = 0; !done; us = std::min<int64_t>(us + us / 8 + 1, 1000)) {
    if (failed(query(&done))) return false;
    if (done) break;
    Py_BEGIN_ALLOW_THREADS;
    std::this_thread::sleep_for(std::chrono::microseconds(us));
    Py_END_ALLOW_THREADS;
    if (PyErr_CheckSignals()) return false;
  }
  return waited(sync);
}

PyObject* none_if(bool good) { return good ? Py_NewRef(Py_None) : nullptr; }

PyObject* props(PyObject*, PyObject* o) {
  Target t;
  if (!find(o, &t)) return nullptr;
  auto p = sized<aj_device_props>();
  if (t.table->props && failed(t.table->props(t.self(), t.id(), &p))) return nullptr;
  return Py_BuildValue("{s:s,s:s,s:s,s:K,s:I,s:I}", "name", p.name, "arch", p.arch, "bus_id",
                       p.bus_id, "total_memory", static_cast<Handle>(p.total_memory),
                       "multiprocessors", p.multiprocessors, "flags", t.table->flags);
}

PyObject* memory_info(PyObject*, PyObject* o) {
  Target t;
  uint64_t unused = 0, all = 0;
  if (!find(o, &t)) return nullptr;
  if (!t.table->mem_info) return lacks(t, "word on its memory");
  if (failed(t.table->mem_info(t.self(), t.id(), &unused, &all))) return nullptr;
  return Py_BuildValue("KK", static_cast<Handle>(unused), static_cast<Handle>(all));
}

PyObject* memory_limit(PyObject*, PyObject* args) {
  PyObject* o;
  Handle bytes;
  Target t;
  if (!PyArg_ParseTuple(args, "OK", &o, &bytes) || !find(o, &t)) return nullptr;
  return none_if(!failed(core->memory_limit(t.device, bytes)));
}

PyObject* stream_new(PyObject*, PyObject* args) {
  PyObject* o;
  int priority = 0;
  Target t;
  void* made = nullptr;
  if (!PyArg_ParseTuple(args, "O|i", &o, &priority) || !find(o, &t)) return nullptr;
  if (t.table->stream_new && failed(t.table->stream_new(t.self(), t.id(), priority, &made)))
    return nullptr;
  return number(made);  // 0: the device has one order of work, and it is the host's
}

PyObject* stream_sync(PyObject*, PyObject* args) {
  PyObject* o;
  Handle stream;
  Target t;
  if (!PyArg_ParseTuple(args, "OK", &o, &stream) || !find(o, &t)) return nullptr;
  if (!t.table->stream_sync) Py_RETURN_NONE;
  return none_if(waited_for(
      t.table->stream_query,
      [&](int32_t* done) { return t.table->stream_query(t.self(), t.id(), pointer(stream), done); },
      [&] { return t.table->stream_sync(t.self(), t.id(), pointer(stream)); }));
}

PyObject* stream_query(PyObject*, PyObject* args) {
  PyObject* o;
  Handle stream;
  Target t;
  int32_t done = 1;
  if (!PyArg_ParseTuple(args, "OK", &o, &stream) || !find(o, &t)) return nullptr;
  if (t.table->stream_query &&
      failed(t.table->stream_query(t.self(), t.id(), pointer(stream), &done)))
    return nullptr;
  return PyBool_FromLong(done);
}

PyObject* stream_wait(PyObject*, PyObject* args) {
  PyObject* o;
  Handle stream, event;
  Target t;
  if (!PyArg_ParseTuple(args, "OKK", &o, &stream, &event) || !find(o, &t)) return nullptr;
  if (!t.table->stream_wait || !event) Py_RETURN_NONE;
  return none_if(!failed(t.table->stream_wait(t.self(), t.id(), pointer(stream), pointer(event))));
}

PyObject* stream_current(PyObject*, PyObject* o) {
  Target t;
  void* stream = nullptr;
  if (!find(o, &t) || failed(core->stream_current(t.device, &stream))) return nullptr;
  return number(stream);
}

PyObject* stream_set(PyObject*, PyObject* args) {
  PyObject* o;
  Handle stream;
  Target t;
  if (!PyArg_ParseTuple(args, "OK", &o, &stream) || !find(o, &t)) return nullptr;
  return none_if(!failed(core->stream_set(t.device, pointer(stream))));
}

PyObject* event_new(PyObject*, PyObject* o) {
  Target t;
  void* made = nullptr;
  if (!find(o, &t)) return nullptr;
  if (t.table->event_new && failed(t.table->event_new(t.self(), t.id(), 0, &made))) return nullptr;
  return number(made);
}

PyObject* event_free(PyObject*, PyObject* args) {
  PyObject* o;
  Handle event;
  Target t;
  if (!PyArg_ParseTuple(args, "OK", &o, &event) || !find(o, &t)) return nullptr;
  if (!t.table->event_free || !event) Py_RETURN_NONE;
  return none_if(!failed(t.table->event_free(t.self(), t.id(), pointer(event))));
}

PyObject* event_record(PyObject*, PyObject* args) {
  PyObject* o;
  Handle event, stream;
  Target t;
  if (!PyArg_ParseTuple(args, "OKK", &o, &event, &stream) || !find(o, &t)) return nullptr;
  if (!t.table->event_record || !event) Py_RETURN_NONE;
  return none_if(!failed(t.table->event_record(t.self(), t.id(), pointer(event), pointer(stream))));
}

PyObject* event_query(PyObject*, PyObject* args) {
  PyObject* o;
  Handle event;
  Target t;
  int32_t done = 1;
  if (!PyArg_ParseTuple(args, "OK", &o, &event) || !find(o, &t)) return nullptr;
  if (t.table->event_query && event &&
      failed(t.table->event_query(t.self(), t.id(), pointer(event), &done)))
    return nullptr;
  return PyBool_FromLong(done);
}

PyObject* event_sync(PyObject*, PyObject* args) {
  PyObject* o;
  Handle event;
  Target t;
  if (!PyArg_ParseTuple(args, "OK", &o, &event) || !find(o, &t)) return nullptr;
  if (!t.table->event_sync || !event) Py_RETURN_NONE;
  return none_if(waited_for(
      t.table->event_query,
      [&](int32_t* done) { return t.table->event_query(t.self(), t.id(), pointer(event), done); },
      [&] { return t.table->event_sync(t.self(), t.id(), pointer(event)); }));
}

PyObject* event_elapsed(PyObject*, PyObject* args) {
  PyObject* o;
  Handle start, stop;
  Target t;
  double ms = 0;
  if (!PyArg_ParseTuple(args, "OKK", &o, &start, &stop) || !find(o, &t)) return nullptr;
  if (!t.table->event_elapsed) return lacks(t, "times of events");
  if (failed(t.table->event_elapsed(t.self(), t.id(), pointer(start), pointer(stop), &ms)))
    return nullptr;
  return PyFloat_FromDouble(ms);
}

// capture_begin(device, stream, graph that shares its memory, or None); capture_end gives the
// graph.
PyObject* capture_begin(PyObject*, PyObject* args) {
  PyObject *o, *with;
  Handle stream;
  Target t;
  if (!PyArg_ParseTuple(args, "OKO", &o, &stream, &with) || !find(o, &t)) return nullptr;
  return none_if(
      waited([&] { return core->capture_begin(t.device, pointer(stream), object_in(with)); }));
}

PyObject* capture_end(PyObject*, PyObject* args) {
  PyObject* o;
  Handle stream;
  Target t;
  aj_object* graph = nullptr;
  if (!PyArg_ParseTuple(args, "OK", &o, &stream) || !find(o, &t)) return nullptr;
  return waited([&] { return core->capture_end(t.device, pointer(stream), &graph); })
             ? take_object(graph)
             : nullptr;
}

PyObject* graph_launch(PyObject*, PyObject* args) {
  PyObject* graph;
  Handle stream;
  if (!PyArg_ParseTuple(args, "OK", &graph, &stream)) return nullptr;
  return none_if(waited([&] { return core->graph_launch(object_in(graph), pointer(stream)); }));
}

// pin(tensor, device): a copy in memory of the host that such devices copy from and to by
// themselves. The core says which of them it goes through.
PyObject* pin(PyObject*, PyObject* args) {
  PyObject *tensor, *o;
  DLDevice device;
  if (!PyArg_ParseTuple(args, "OO", &tensor, &o) || !is_device(o, &device)) return nullptr;
  if (!is_tensor(tensor))
    return PyErr_Format(PyExc_TypeError, "wanted a tensor, not %s", Py_TYPE(tensor)->tp_name);
  HeldTensor made;
  if (failed(core->tensor_pin(tensor_of(tensor), device.device_type, made.out()))) return nullptr;
  return wrap(made.release());
}

PyObject* is_pinned(PyObject*, PyObject* tensor) {
  if (!is_tensor(tensor))
    return PyErr_Format(PyExc_TypeError, "wanted a tensor, not %s", Py_TYPE(tensor)->tp_name);
  return PyBool_FromLong(core->tensor_pinned(tensor_of(tensor)));
}

// current_index(device): which one a name without an index means; set_current_index(device) sets
// it.
PyObject* get_index(PyObject*, PyObject* o) {
  DLDevice d;
  if (!as_device(o, &d))
    return PyErr_Occurred() ? nullptr : PyErr_Format(PyExc_TypeError, "wanted a device");
  return PyLong_FromLong(current_index[d.device_type]);
}

PyObject* set_index(PyObject*, PyObject* o) {
  Target t;
  if (!find(o, &t)) return nullptr;  // there is such a device
  current_index[t.device.device_type] = t.id();
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"device_props", props, METH_O, nullptr},
    {"memory_info", memory_info, METH_O, nullptr},
    {"memory_limit", memory_limit, METH_VARARGS, nullptr},
    {"stream_new", stream_new, METH_VARARGS, nullptr},
    {"stream_sync", stream_sync, METH_VARARGS, nullptr},
    {"stream_query", stream_query, METH_VARARGS, nullptr},
    {"stream_wait", stream_wait, METH_VARARGS, nullptr},
    {"stream_current", stream_current, METH_O, nullptr},
    {"stream_set", stream_set, METH_VARARGS, nullptr},
    {"event_new", event_new, METH_O, nullptr},
    {"event_free", event_free, METH_VARARGS, nullptr},
    {"event_record", event_record, METH_VARARGS, nullptr},
    {"event_query", event_query, METH_VARARGS, nullptr},
    {"event_sync", event_sync, METH_VARARGS, nullptr},
    {"event_elapsed", event_elapsed, METH_VARARGS, nullptr},
    {"capture_begin", capture_begin, METH_VARARGS, nullptr},
    {"capture_end", capture_end, METH_VARARGS, nullptr},
    {"graph_launch", graph_launch, METH_VARARGS, nullptr},
    {"pin", pin, METH_VARARGS, nullptr},
    {"is_pinned", is_pinned, METH_O, nullptr},
    {"current_index", get_index, METH_O, nullptr},
    {"set_current_index", set_index, METH_O, nullptr},
    {},
};

}  // namespace

int init_streams(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py
