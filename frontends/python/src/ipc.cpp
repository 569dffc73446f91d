// frontends/python/src/ipc.cpp: a device's memory seen by several processes, through the device's
// own table; adjoin._lent decides who keeps it until when.
#include <cstring>
#include <memory>

#include "table.hpp"
#include "tensor.hpp"

namespace adjoin::py {
namespace {

constexpr Py_ssize_t kHandle = 128;

bool shows_memory(const aj_device_vtbl& t) { return t.ipc_export && t.ipc_open && t.ipc_close; }

// The last user of memory may go with and without the interpreter's lock.
struct Unlocked {
  PyThreadState* state = PyGILState_Check() ? PyEval_SaveThread() : nullptr;
  ~Unlocked() {
    if (state) PyEval_RestoreThread(state);
  }
};

// ipc_export(tensor): what names the memory under it to other processes; None where the device
// shows none.
PyObject* ipc_export(PyObject*, PyObject* o) {
  if (!is_tensor(o)) return PyErr_Format(PyExc_TypeError, "ipc_export: wanted a tensor");
  aj_tensor* t = tensor_of(o);
  Target at{t->dl.device, nullptr};
  if (failed(plugins->device_table(at.device, &at.table))) return nullptr;
  if (!shows_memory(*at.table)) Py_RETURN_NONE;
  void* data;
  uint64_t bytes, offset, id;
  uint8_t handle[kHandle] = {};
  if (failed(core->tensor_storage(t, &data, &bytes, &offset, &id))) return nullptr;
  if (!bytes) Py_RETURN_NONE;
  if (!waited([&] { return at.table->ipc_export(at.self(), at.id(), data, handle); }))
    return nullptr;
  return PyBytes_FromStringAndSize(reinterpret_cast<char*>(handle), kHandle);
}

struct Opened {
  Target at;
  void* memory;
  PyObject* guard;  // by which the lender knows that the memory is in use
};

// The lender may use the memory anew once the guard is gone, so nothing of ours may be queued then.
void close_memory(void* ctx) {
  std::unique_ptr<Opened> o(static_cast<Opened*>(ctx));
  {
    Unlocked others;
    core->status_free(core->device_synchronize(o->at.device));
    core->status_free(o->at.table->ipc_close(o->at.self(), o->at.id(), o->memory));
  }
  drop_object(o->guard);
}

// ipc_open(device, handle, bytes, guard): the memory as a tensor of bytes, which keeps the guard.
PyObject* ipc_open(PyObject*, PyObject* args) {
  PyObject *where, *guard;
  const char* handle;
  Py_ssize_t length;
  unsigned long long bytes;
  if (!PyArg_ParseTuple(args, "Oy#KO", &where, &handle, &length, &bytes, &guard)) return nullptr;
  if (length != kHandle)
    return PyErr_Format(PyExc_ValueError, "ipc_open: a handle has %zd bytes, not %zd", kHandle,
                        length);
  Target at;
  if (!find(where, &at)) return nullptr;
  if (!shows_memory(*at.table)) return lacks(at, "memory that other processes see");
  void* memory = nullptr;
  uint8_t named[kHandle];
  std::memcpy(named, handle, kHandle);
  if (!waited([&] { return at.table->ipc_open(at.self(), at.id(), named, &memory); }))
    return nullptr;
  int64_t size = static_cast<int64_t>(bytes);
  DLTensor like{};
  like.data = memory;
  like.device = at.device;
  like.dtype = {kDLUInt, 8, 1};
  like.ndim = 1;
  like.shape = &size;
  auto opened = std::make_unique<Opened>(Opened{at, memory, Py_NewRef(guard)});
  aj_tensor* t = nullptr;
  if (!failed(core->tensor_from_memory(&like, bytes, 0, opened.get(), close_memory, &t))) {
    (void)opened.release();
    return wrap(t);
  }
  close_memory(opened.release());
  return nullptr;
}

PyMethodDef functions[] = {
    {"ipc_export", ipc_export, METH_O, nullptr},
    {"ipc_open", ipc_open, METH_VARARGS, nullptr},
    {},
};

}  // namespace

int init_ipc(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py
