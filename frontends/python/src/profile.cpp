// frontends/python/src/profile.cpp: events of the core (abi/profile.h) and work of devices
// (abi/device_times.h) written down for adjoin.profiler, and labels.
#include <adjoin/abi/device_times.h>
#include <adjoin/abi/profile.h>
#include <adjoin/abi/service.h>

#include <cstring>
#include <mutex>
#include <vector>

#include "errors.hpp"
#include "line.hpp"

namespace adjoin::py {

namespace {

const aj_profile* table;

// What listens while a profile runs. Events come on any thread, with the interpreter's lock or
// without: it is not needed.
struct Recorder {
  struct Event {
    aj_event said;  // its texts are the copies below
    std::string name, provider;
  };
  std::mutex lock;
  std::vector<Event> events;
  HeldObject listening;
};
constexpr const char* kRecorder = "adjoin.profile";

void write_down(void* self, const aj_event* e) {
  auto* r = static_cast<Recorder*>(self);
  Recorder::Event copy{{}, std::string(view(e->name)), std::string(view(e->provider))};
  std::memcpy(&copy.said, e, std::min<size_t>(e->struct_size, sizeof copy.said));
  std::lock_guard guard(r->lock);
  r->events.push_back(std::move(copy));
}

void drop(void* self) { delete static_cast<Recorder*>(self); }

void let_go(Recorder* r) {
  HeldObject listening = std::move(r->listening);  // the last call of write_down drops the recorder
}

// profile_start(kinds): a token for profile_stop.
PyObject* profile_start(PyObject*, PyObject* kinds) {
  uint64_t mask = PyLong_AsUnsignedLongLong(kinds);
  if (PyErr_Occurred()) return nullptr;
  auto* r = new Recorder;
  aj_listener l{sizeof l, 0, mask, r, write_down, drop};
  if (failed(table->listen(&l, r->listening.out()))) return delete r, nullptr;
  PyObject* token = PyCapsule_New(r, kRecorder, [](PyObject* capsule) {
    if (PyCapsule_IsValid(capsule, kRecorder))
      let_go(static_cast<Recorder*>(PyCapsule_GetPointer(capsule, kRecorder)));
  });
  if (!token) let_go(r);
  return token;
}

PyObject* to_tuple(const Recorder::Event& e) {
  const aj_event& s = e.said;
  aj_str device =
      s.kind == AJ_EVENT_LABEL ? aj_str{"", 0} : core->device_name(s.device.device_type);
  PyObject* line = line_text(s.line);
  if (!line) return nullptr;
  return Py_BuildValue("(IKKs#s#s#iKINKKLK)", s.kind, (unsigned long long)s.id,
                       (unsigned long long)s.parent, e.name.data(), Py_ssize_t(e.name.size()),
                       e.provider.data(), Py_ssize_t(e.provider.size()), device.data,
                       Py_ssize_t(device.len), s.device.device_id,
                       (unsigned long long)reinterpret_cast<uintptr_t>(s.stream), s.thread, line,
                       (unsigned long long)s.begin_ns, (unsigned long long)s.end_ns,
                       (long long)s.bytes, (unsigned long long)s.in_use);
}

// profile_stop(token): what was told, a tuple an event: kind, id, parent, name, provider, device,
// index, stream, thread, line, begin and end in nanoseconds, bytes, bytes in use.
PyObject* profile_stop(PyObject*, PyObject* capsule) {
  auto* r = static_cast<Recorder*>(PyCapsule_GetPointer(capsule, kRecorder));
  if (!r || PyCapsule_SetName(capsule, "adjoin.profile.over")) return nullptr;
  std::vector<Recorder::Event> events;
  {
    std::lock_guard guard(r->lock);
    events.swap(r->events);
  }
  let_go(r);
  Ref list(PyList_New(Py_ssize_t(events.size())));
  for (size_t i = 0; list && i < events.size(); i++) {
    PyObject* tuple = to_tuple(events[i]);
    if (!tuple) return nullptr;
    PyList_SET_ITEM(list.get(), Py_ssize_t(i), tuple);
  }
  return list.release();
}

// Of a device that has no such service: NULL, and an error.
const aj_device_times* times_of(PyObject* device) {
  const char* name = PyUnicode_AsUTF8(device);
  auto* services = static_cast<const aj_services*>(aj_get_interface("aj.service", 1));
  if (!name) return nullptr;
  if (!services) {
    PyErr_SetString(PyExc_NotImplementedError, "libadjoin.so has no interface 'aj.service'");
    return nullptr;
  }
  std::string slot = std::string("aj.device_times/") + name;
  auto d = sized<aj_service_def>();
  if (failed(services->at(str(slot), 0, &d))) return nullptr;
  return static_cast<const aj_device_times*>(d.table);
}

// device_times_start(device): from now on it is noted when the device works.
PyObject* device_times_start(PyObject*, PyObject* device) {
  const aj_device_times* times = times_of(device);
  if (!times || failed(times->start(times->self))) return nullptr;
  Py_RETURN_NONE;
}

void list_work(void* list, const aj_device_work* w) {
  if (PyErr_Occurred()) return;
  Ref tuple(Py_BuildValue("(IKs#KKKKi)", w->kind, (unsigned long long)w->event, w->name.data,
                          Py_ssize_t(w->name.len), (unsigned long long)w->begin_ns,
                          (unsigned long long)w->end_ns, (unsigned long long)w->bytes,
                          (unsigned long long)w->stream, w->device));
  if (tuple) PyList_Append(static_cast<PyObject*>(list), tuple.get());
}

// device_times_stop(device): a tuple for each piece of work that has ended: kind, event, name,
// begin and end in nanoseconds, bytes, stream, index of the device.
PyObject* device_times_stop(PyObject*, PyObject* device) {
  const aj_device_times* times = times_of(device);
  Ref list(times ? PyList_New(0) : nullptr);
  if (!list || failed(times->stop(times->self, list_work, list.get())) || PyErr_Occurred())
    return nullptr;
  return list.release();
}

// label_begin(name): its number, or 0 where nobody listens.
PyObject* label_begin(PyObject*, PyObject* name) {
  Py_ssize_t n;
  const char* text = PyUnicode_AsUTF8AndSize(name, &n);
  uint64_t made = 0;
  if (!text || failed(table->label_begin({text, uint64_t(n)}, &made))) return nullptr;
  return PyLong_FromUnsignedLongLong(made);
}

PyObject* label_end(PyObject*, PyObject* number) {
  uint64_t label = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred() || failed(table->label_end(label))) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"profile_start", profile_start, METH_O, nullptr},
    {"profile_stop", profile_stop, METH_O, nullptr},
    {"label_begin", label_begin, METH_O, nullptr},
    {"label_end", label_end, METH_O, nullptr},
    {"device_times_start", device_times_start, METH_O, nullptr},
    {"device_times_stop", device_times_stop, METH_O, nullptr},
    {},
};

}  // namespace

int init_profile(PyObject* module) {
  table = static_cast<const aj_profile*>(aj_get_interface("x.profile", 1));
  if (!table)
    return PyErr_SetString(PyExc_ImportError, "adjoin: libadjoin.so has no interface 'x.profile'"),
           -1;
  line_keys = table->line_keys;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace adjoin::py
