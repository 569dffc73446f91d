// frontends/python/src/generator.cpp: Generator, and the default ones that manual_seed sets.
#include "generator.hpp"

#include <random>

#include "device.hpp"
#include "errors.hpp"
#include "plain.hpp"

namespace adjoin::py {
namespace {

GeneratorObject* cast(PyObject* o) { return reinterpret_cast<GeneratorObject*>(o); }

PyObject* make(aj_object* steal, DLDevice device) {
  auto* o = PyObject_New(GeneratorObject, &generator_type);
  if (!o) {
    core->release(steal);
    return nullptr;
  }
  o->object = steal;
  o->device = device;
  return reinterpret_cast<PyObject*>(o);
}

bool device_argument(PyObject* o, DLDevice* out) {
  *out = host_device();
  if (!o || o == Py_None) return true;
  if (as_device(o, out)) {
    *out = concrete(*out);
    return true;
  }
  if (!PyErr_Occurred())
    PyErr_Format(PyExc_TypeError,
                 "Generator(): argument 'device' must be adjoin.device or str, not %s",
                 Py_TYPE(o)->tp_name);
  return false;
}

PyObject* new_generator(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  PyObject* where = nullptr;
  constexpr const char* names[] = {"device", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names), &where))
    return nullptr;
  DLDevice device;
  aj_object* g = nullptr;
  if (!device_argument(where, &device) || failed(core->generator_new(device, &g))) return nullptr;
  return make(g, device);
}

void dealloc(PyObject* self) {
  core->release(cast(self)->object);
  PyObject_Free(self);
}

bool seed_of(PyObject* o, uint64_t* out) {
  Ref number(PyNumber_Index(o));
  if (!number) return false;
  *out = PyLong_AsUnsignedLongLongMask(number.get());  // negative seeds wrap, as in PyTorch
  return !PyErr_Occurred();
}

PyObject* set_seed(PyObject* self, PyObject* seed) {
  uint64_t s;
  if (!seed_of(seed, &s) || failed(core->generator_set(cast(self)->object, s, 0))) return nullptr;
  return Py_NewRef(self);
}

PyObject* random_seed(PyObject* self, PyObject*) {
  std::random_device random;
  uint64_t s = (uint64_t{random()} << 32 | random()) >> 1;
  if (failed(core->generator_set(cast(self)->object, s, 0))) return nullptr;
  return PyLong_FromUnsignedLongLong(s);
}

bool read(PyObject* self, uint64_t (&state)[2]) {
  return !failed(core->generator_get(cast(self)->object, &state[0], &state[1]));
}

PyObject* initial_seed(PyObject* self, PyObject*) {
  uint64_t state[2];
  return read(self, state) ? PyLong_FromUnsignedLongLong(state[0]) : nullptr;
}

// (seed, offset): everything there is to a counter-based generator.
PyObject* get_pair(PyObject* self, PyObject*) {
  uint64_t state[2];
  return read(self, state) ? Py_BuildValue("KK", state[0], state[1]) : nullptr;
}

PyObject* set_pair(PyObject* self, PyObject* args) {
  unsigned long long seed, offset;
  if (!PyArg_ParseTuple(args, "KK", &seed, &offset)) return nullptr;
  if (failed(core->generator_set(cast(self)->object, seed, offset))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* get_state(PyObject* self, PyObject*) {
  return call_helper("adjoin.random", "_state_of", &self, 1);
}
PyObject* set_state(PyObject* self, PyObject* state) {
  PyObject* args[] = {self, state};
  return call_helper("adjoin.random", "_set_state_of", args, 2);
}

PyObject* clone_state(PyObject* self, PyObject*) {
  return call_helper("adjoin.random", "_copy_of", &self, 1);
}

PyObject* get_device(PyObject* self, void*) { return device_object(cast(self)->device); }

PyMethodDef methods[] = {
    {"manual_seed", set_seed, METH_O, "Begins the sequence of a seed."},
    {"seed", random_seed, METH_NOARGS,
     "Begins the sequence of a seed from the system, and returns that."},
    {"initial_seed", initial_seed, METH_NOARGS, "The seed."},
    {"get_state", get_state, METH_NOARGS, "The state as a tensor of bytes."},
    {"set_state", set_state, METH_O, "Goes back to a state."},
    {"clone_state", clone_state, METH_NOARGS, "Another generator in the same state."},
    {"_get", get_pair, METH_NOARGS, nullptr},
    {"_set", set_pair, METH_VARARGS, nullptr},
    {},
};
PyGetSetDef properties[] = {{"device", get_device, nullptr, "Whose numbers these are.", nullptr},
                            {}};

PyObject* manual_seed(PyObject*, PyObject* seed) {
  uint64_t s;
  if (!seed_of(seed, &s) || failed(core->manual_seed(s))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* default_generator(PyObject*, PyObject* const* args, Py_ssize_t n) {
  DLDevice device;
  aj_object* g = nullptr;
  if (!device_argument(n ? args[0] : nullptr, &device) ||
      failed(core->generator_default(device, &g)))
    return nullptr;
  return make(g, device);
}

PyMethodDef functions[] = {
    {"manual_seed", manual_seed, METH_O, "Seeds the default generator of every device."},
    {"default_generator", method(default_generator), METH_FASTCALL,
     "The default generator of a device."},
    {},
};

}  // namespace

PyTypeObject generator_type = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "adjoin.Generator",
    .tp_basicsize = sizeof(GeneratorObject),
    .tp_dealloc = dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A sequence of random numbers: Philox 4x32-10, the same on every device.",
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_new = new_generator,
};

PyObject* generator_object(aj_object* steal) { return make(steal, host_device()); }

int init_generator(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) return -1;
  return add_type(module, &generator_type, "Generator");
}

}  // namespace adjoin::py
