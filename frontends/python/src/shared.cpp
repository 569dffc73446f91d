// frontends/python/src/shared.cpp: segments of shared memory and their blocks as Python objects;
// adjoin._shared decides.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "device.hpp"
#include "dtype.hpp"
#include "segment.hpp"
#include "tensor.hpp"

namespace adjoin::py {
namespace {

struct SegmentObject {
  PyObject_HEAD Segment segment;
  PyObject* weakrefs;
};

// This process's claim on a block; there is one object for a block at a time.
struct BlockObject {
  PyObject_HEAD PyObject* owner;  // the segment's object
  uint64_t offset, bytes;
  uint32_t generation;
  PyObject* dict;
  PyObject* weakrefs;
};

extern PyTypeObject segment_type, block_type;

Segment& segment_of(PyObject* o) { return reinterpret_cast<SegmentObject*>(o)->segment; }
BlockObject* block_of(PyObject* o) { return reinterpret_cast<BlockObject*>(o); }
Segment& segment_of(BlockObject* b) { return segment_of(b->owner); }

PyObject* system_error(const char* what) {
  PyErr_SetFromErrnoWithFilename(PyExc_OSError, what);
  return nullptr;
}

// make(bytes) or make(descriptor=...)
PyObject* new_segment(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  unsigned long long bytes = 0;
  int descriptor = -1;
  constexpr const char* names[] = {"bytes", "descriptor", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Ki:SharedSegment", const_cast<char**>(names),
                                   &bytes, &descriptor))
    return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  auto* s = new (&segment_of(self)) Segment;
  if (descriptor >= 0 ? s->attach(descriptor) : s->create(bytes)) return self;
  system_error("shared memory");
  Py_DECREF(self);
  return nullptr;
}

void delete_segment(PyObject* self) {
  auto* o = reinterpret_cast<SegmentObject*>(self);
  if (o->weakrefs) PyObject_ClearWeakRefs(self);
  o->segment.~Segment();
  Py_TYPE(self)->tp_free(self);
}

PyObject* make_block(PyObject* self, uint64_t offset) {
  PyObject* o = block_type.tp_alloc(&block_type, 0);
  if (!o) {
    segment_of(self).drop(offset);
    return nullptr;
  }
  const BlockHeader& b = segment_of(self).block(offset);
  block_of(o)->owner = Py_NewRef(self);
  block_of(o)->offset = offset;
  block_of(o)->bytes = b.bytes;
  block_of(o)->generation = b.generation;
  return o;
}

bool good_place(PyObject* self, uint64_t offset, uint64_t bytes) {
  const Segment& s = segment_of(self);
  if (s.open() && offset >= kFirstBlock && offset % sizeof(BlockHeader) == 0 &&
      offset < s.bytes() && bytes <= s.bytes() - offset &&
      sizeof(BlockHeader) <= s.bytes() - offset - bytes)
    return true;
  PyErr_Format(PyExc_ValueError,
               "shared memory: no room for %llu bytes at %llu of a segment of %llu",
               static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(offset),
               static_cast<unsigned long long>(s.bytes()));
  return false;
}

PyObject* start(PyObject* self, PyObject* args) {  // (offset, bytes, room)
  unsigned long long offset, bytes, room;
  if (!PyArg_ParseTuple(args, "KKK", &offset, &bytes, &room)) return nullptr;
  if (!good_place(self, offset, bytes)) return nullptr;
  segment_of(self).start(offset, bytes, room);
  return make_block(self, offset);
}

// take(offset, generation): the block that a message named, None if it is gone.
PyObject* take(PyObject* self, PyObject* args) {
  unsigned long long offset;
  unsigned int generation;
  if (!PyArg_ParseTuple(args, "KI", &offset, &generation)) return nullptr;
  Segment& s = segment_of(self);
  if (!good_place(self, offset, 0) || !s.is_block(offset) || !s.take(offset, generation)) {
    forget_error();
    Py_RETURN_NONE;
  }
  return make_block(self, offset);
}

PyObject* is_free(PyObject* self, PyObject* offset) {
  unsigned long long at = PyLong_AsUnsignedLongLong(offset);
  if (PyErr_Occurred() || !good_place(self, at, 0)) return nullptr;
  return PyBool_FromLong(segment_of(self).is_free(at));
}

PyObject* is_travelling(PyObject* self, PyObject* offset) {
  unsigned long long at = PyLong_AsUnsignedLongLong(offset);
  if (PyErr_Occurred() || !good_place(self, at, 0)) return nullptr;
  return PyBool_FromLong(segment_of(self).block(at).travelling.load() != 0);
}

PyObject* reap(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLong(segment_of(self).reap());
}

// before_fork(blocks): the number of a slot for the child, which then holds the blocks too.
PyObject* before_fork(PyObject* self, PyObject* blocks) {
  Segment& s = segment_of(self);
  uint32_t slot = s.reserve_slot();
  Ref all(PySequence_Fast(blocks, "before_fork: wanted a list"));
  if (!all) return nullptr;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(all.get()); ++i) {
    PyObject* b = PySequence_Fast_GET_ITEM(all.get(), i);
    if (PyObject_TypeCheck(b, &block_type) && block_of(b)->owner == self)
      s.hold(block_of(b)->offset, slot);
  }
  return PyLong_FromUnsignedLong(slot);
}

PyObject* after_fork(PyObject* self, PyObject* slot) {
  unsigned long n = PyLong_AsUnsignedLong(slot);
  if (PyErr_Occurred()) return nullptr;
  segment_of(self).adopt_slot(static_cast<uint32_t>(n));
  Py_RETURN_NONE;
}

PyObject* populate(PyObject* self, PyObject* args) {
  unsigned long long offset, bytes;
  if (!PyArg_ParseTuple(args, "KK", &offset, &bytes)) return nullptr;
  if (!segment_of(self).populate(offset, bytes)) return system_error("shared memory");
  Py_RETURN_NONE;
}

PyObject* punch(PyObject* self, PyObject* args) {
  unsigned long long offset, bytes;
  if (!PyArg_ParseTuple(args, "KK", &offset, &bytes) || !good_place(self, offset, bytes))
    return nullptr;
  segment_of(self).punch(offset + sizeof(BlockHeader), bytes);  // the header says where the next is
  Py_RETURN_NONE;
}

PyObject* get_name(PyObject* self, void*) {
  const uint64_t* n = segment_of(self).header().name;
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(n), 16);
}
PyObject* get_descriptor(PyObject* self, void*) {
  return PyLong_FromLong(segment_of(self).descriptor());
}
PyObject* get_address(PyObject* self, void*) {
  return PyLong_FromVoidPtr(segment_of(self).address());
}
PyObject* get_bytes(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(segment_of(self).bytes());
}
PyObject* get_owner_alive(PyObject* self, void*) {
  return PyBool_FromLong(segment_of(self).owner_alive());
}

PyObject* get_resident(PyObject* self, void*) {
  struct stat s;
  if (fstat(segment_of(self).descriptor(), &s) != 0) return system_error("shared memory");
  return PyLong_FromLongLong(static_cast<long long>(s.st_blocks) * 512);
}

PyMethodDef segment_methods[] = {
    {"start", start, METH_VARARGS, nullptr},
    {"take", take, METH_VARARGS, nullptr},
    {"is_free", is_free, METH_O, nullptr},
    {"is_travelling", is_travelling, METH_O, nullptr},
    {"reap", reap, METH_NOARGS, "Takes back what dead processes held; how many there were."},
    {"before_fork", before_fork, METH_O, nullptr},
    {"after_fork", after_fork, METH_O, nullptr},
    {"populate", populate, METH_VARARGS, nullptr},
    {"punch", punch, METH_VARARGS, nullptr},
    {},
};
PyGetSetDef segment_properties[] = {
    {"name", get_name, nullptr, nullptr, nullptr},
    {"descriptor", get_descriptor, nullptr, nullptr, nullptr},
    {"address", get_address, nullptr, nullptr, nullptr},
    {"bytes", get_bytes, nullptr, nullptr, nullptr},
    {"resident", get_resident, nullptr, "Bytes of the system's memory that it takes.", nullptr},
    {"owner_alive", get_owner_alive, nullptr, nullptr, nullptr},
    {},
};

// The claim goes before anybody else may run: a message that names the block makes a new one.
void delete_block(PyObject* self) {
  BlockObject* b = block_of(self);
  if (b->owner) segment_of(b).drop(b->offset);
  if (b->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(b->dict);
  Py_CLEAR(b->owner);
  Py_TYPE(self)->tp_free(self);
}

PyObject* send(PyObject* self, PyObject*) {
  segment_of(block_of(self)).block(block_of(self)->offset).travelling.fetch_add(1);
  Py_RETURN_NONE;
}

// arrive(generation): a message that named this block is here; False if there was none.
PyObject* arrive(PyObject* self, PyObject* generation) {
  unsigned long g = PyLong_AsUnsignedLong(generation);
  if (PyErr_Occurred()) return nullptr;
  BlockObject* b = block_of(self);
  return PyBool_FromLong(g == b->generation && segment_of(b).take(b->offset, b->generation));
}

void drop_claim(void* block) { drop_object(static_cast<PyObject*>(block)); }

// tensor(dtype, size, stride, offset): a tensor on the block, all of which is its storage.
PyObject* tensor(PyObject* self, PyObject* args) {
  PyObject *dtype, *size, *stride;
  long long offset;
  if (!PyArg_ParseTuple(args, "OO!O!L", &dtype, &PyTuple_Type, &size, &PyTuple_Type, &stride,
                        &offset))
    return nullptr;
  int64_t dims[64], steps[64];
  Py_ssize_t n = PyTuple_GET_SIZE(size);
  DLTensor like{};
  if (n > 64 || PyTuple_GET_SIZE(stride) != n || offset < 0 || !as_dtype(dtype, &like.dtype)) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_ValueError, "shared memory: bad size, stride, offset or dtype");
    return nullptr;
  }
  int64_t last = offset;
  bool empty = false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    dims[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(size, i));
    steps[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(stride, i));
    if (PyErr_Occurred()) return nullptr;
    int64_t reach = 0;
    bool over = dims[i] < 0 || steps[i] < 0 ||
                __builtin_mul_overflow(dims[i] > 0 ? dims[i] - 1 : 0, steps[i], &reach);
    if (over || __builtin_add_overflow(last, reach, &last)) last = INT64_MAX / 16;
    empty = empty || dims[i] == 0;
  }
  BlockObject* b = block_of(self);
  int64_t item = item_bytes(like.dtype);
  if (!empty && (last >= INT64_MAX / 16 - 1 || static_cast<uint64_t>((last + 1) * item) > b->bytes))
    return PyErr_Format(PyExc_ValueError,
                        "shared memory: the tensor reaches outside of its block of %llu bytes",
                        static_cast<unsigned long long>(b->bytes));
  like.data = segment_of(b).data(b->offset);
  like.device = host_device();
  like.ndim = static_cast<int32_t>(n);
  like.shape = dims;
  like.strides = steps;
  like.byte_offset = empty ? 0 : static_cast<uint64_t>(offset * item);
  aj_tensor* t = nullptr;
  Py_INCREF(self);
  if (!failed(core->tensor_from_memory(&like, b->bytes, 0, self, drop_claim, &t))) return wrap(t);
  Py_DECREF(self);
  return nullptr;
}

PyObject* get_block_address(PyObject* self, void*) {
  return PyLong_FromVoidPtr(segment_of(block_of(self)).data(block_of(self)->offset));
}

PyMethodDef block_methods[] = {
    {"send", send, METH_NOARGS, "A message that names the block is about to leave."},
    {"arrive", arrive, METH_O, nullptr},
    {"tensor", tensor, METH_VARARGS, nullptr},
    {},
};
PyObject* get_segment(PyObject* self, void*) { return Py_NewRef(block_of(self)->owner); }
PyObject* get_offset(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(block_of(self)->offset);
}
PyObject* get_block_bytes(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(block_of(self)->bytes);
}
PyObject* get_generation(PyObject* self, void*) {
  return PyLong_FromUnsignedLong(block_of(self)->generation);
}

PyObject* get_alone(PyObject* self, void*) {
  return PyBool_FromLong(segment_of(block_of(self)).is_alone(block_of(self)->offset));
}

PyGetSetDef block_properties[] = {
    {"segment", get_segment, nullptr, nullptr, nullptr},
    {"offset", get_offset, nullptr, nullptr, nullptr},
    {"bytes", get_block_bytes, nullptr, nullptr, nullptr},
    {"generation", get_generation, nullptr, nullptr, nullptr},
    {"address", get_block_address, nullptr, nullptr, nullptr},
    {"alone", get_alone, nullptr, "Whether no other process holds it and no message names it.",
     nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {},
};

PyTypeObject segment_type = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "adjoin._C.SharedSegment",
    .tp_basicsize = sizeof(SegmentObject),
    .tp_dealloc = delete_segment,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Memory without a name that several processes map.",
    .tp_weaklistoffset = offsetof(SegmentObject, weakrefs),
    .tp_methods = segment_methods,
    .tp_getset = segment_properties,
    .tp_new = new_segment,
};

PyTypeObject block_type = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "adjoin._C.SharedBlock",
    .tp_basicsize = sizeof(BlockObject),
    .tp_dealloc = delete_block,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "This process's claim on a part of a segment.",
    .tp_weaklistoffset = offsetof(BlockObject, weakrefs),
    .tp_methods = block_methods,
    .tp_getset = block_properties,
    .tp_dictoffset = offsetof(BlockObject, dict),
};

// is_alone(tensor): no other tensor is a view of its memory, except the one that it is a view of
// itself.
PyObject* is_alone(PyObject*, PyObject* o) {
  if (!is_tensor(o))
    return PyErr_Format(PyExc_TypeError, "is_alone: wanted a Tensor, not %s", Py_TYPE(o)->tp_name);
  aj_tensor* root = nullptr;
  if (failed(autograd->base(tensor_of(o), &root))) return nullptr;
  core->release(root);  // the view holds it
  return PyBool_FromLong(core->tensor_unique(root ? root : tensor_of(o)));
}

bool fits(PyObject* o, const aj_tensor* row) {
  if (!is_tensor(o)) return false;
  aj_tensor* t = tensor_of(o);
  return on_host(t) && t->obj.flags & AJ_TENSOR_DENSE && !requires_grad(t) &&
         same(t->dl.dtype, row->dl.dtype) && t->dl.ndim == row->dl.ndim &&
         std::equal(t->dl.shape, t->dl.shape + t->dl.ndim, row->dl.shape);
}

// stack_into(address, list): tensors of one form, one behind the other; how many bytes, or None if
// they are not of one form or their elements do not lie in order. None for the address: only looks.
PyObject* stack_into(PyObject*, PyObject* args) {
  PyObject *where, *list;
  if (!PyArg_ParseTuple(args, "OO!", &where, &PyList_Type, &list)) return nullptr;
  Py_ssize_t n = PyList_GET_SIZE(list);
  PyObject* first = n ? PyList_GET_ITEM(list, 0) : nullptr;
  if (!first || !is_tensor(first)) Py_RETURN_NONE;
  aj_tensor* row = tensor_of(first);
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!fits(PyList_GET_ITEM(list, i), row)) Py_RETURN_NONE;
  auto bytes = static_cast<size_t>(core->tensor_numel(row) * item_bytes(row->dl.dtype));
  if (where != Py_None && bytes) {
    auto* to = static_cast<char*>(PyLong_AsVoidPtr(where));
    if (!to) return nullptr;
    for (Py_ssize_t i = 0; i < n; ++i)
      std::memcpy(to + static_cast<size_t>(i) * bytes, data_of(tensor_of(PyList_GET_ITEM(list, i))),
                  bytes);
  }
  return PyLong_FromSize_t(bytes * static_cast<size_t>(n));
}

PyMethodDef functions[] = {
    {"is_alone", is_alone, METH_O, nullptr},
    {"stack_into", stack_into, METH_VARARGS, nullptr},
    {},
};

}  // namespace

int init_shared(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) return -1;
  if (add_type(module, &segment_type, "SharedSegment") < 0) return -1;
  return add_type(module, &block_type, "SharedBlock");
}

}  // namespace adjoin::py
