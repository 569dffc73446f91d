// frontends/python/src/memory.cpp: what the core has counted of a device's memory, and its pieces
// (abi/memory.h), for adjoin/_memory.py.
#include <adjoin/abi/memory.h>

#include <string>
#include <vector>

#include "device.hpp"
#include "line.hpp"
#include "methods.hpp"

namespace adjoin::py {
namespace {

const aj_memory* table;

using Number = unsigned long long;

bool found(PyObject* o, DLDevice* out) {
  if (as_device(o, out)) return true;
  if (!PyErr_Occurred())
    PyErr_Format(PyExc_TypeError, "wanted a device, not %s", Py_TYPE(o)->tp_name);
  return false;
}

// memory_counts(device): {name: (current, peak, total) or a number}; None where the memory is the
// host's.
PyObject* memory_counts(PyObject*, PyObject* o) {
  DLDevice d;
  if (!found(o, &d)) return nullptr;
  auto c = sized<aj_memory_counts>();
  aj_status* s = table->counts(concrete(d), &c);
  if (s && core->status_code(s) == AJ_UNIMPLEMENTED) {
    core->status_free(s);
    Py_RETURN_NONE;
  }
  if (failed(s)) return nullptr;
  Ref all(PyDict_New());
  bool good = bool(all);
  auto put = [&](const char* name, PyObject* value) {
    Ref held(value);
    good = good && held && PyDict_SetItemString(all.get(), name, held.get()) == 0;
  };
  auto tally = [&](const char* name, const uint64_t(&t)[3]) {
    put(name, Py_BuildValue("KKK", Number(t[AJ_TALLY_NOW]), Number(t[AJ_TALLY_PEAK]),
                            Number(t[AJ_TALLY_ALL])));
  };
  tally("small_blocks", c.small_blocks);
  tally("small_bytes", c.small_bytes);
  tally("large_blocks", c.large_blocks);
  tally("large_bytes", c.large_bytes);
  tally("blocks", c.blocks);
  tally("bytes", c.bytes);
  tally("segments", c.segments);
  tally("segment_bytes", c.segment_bytes);
  for (auto [name, n] : {std::pair{"waiting_blocks", c.waiting_blocks},
                         {"waiting_bytes", c.waiting_bytes},
                         {"retries", c.retries},
                         {"refusals", c.refusals}})
    put(name, PyLong_FromUnsignedLongLong(n));
  return good ? all.release() : nullptr;
}

struct Piece {
  aj_memory_piece said;
  std::string op;
};

// memory_pieces(device): by address, tuples of state (AJ_PIECE_...), address, bytes, stream, pool,
// op, line.
PyObject* memory_pieces(PyObject*, PyObject* o) {
  DLDevice d;
  std::vector<Piece> pieces;
  if (!found(o, &d) ||
      failed(table->pieces(concrete(d), &pieces, [](void* self, const aj_memory_piece* p) {
        static_cast<std::vector<Piece>*>(self)->push_back({*p, std::string(p->op.data, p->op.len)});
      })))
    return nullptr;
  Ref list(PyList_New(Py_ssize_t(pieces.size())));
  for (size_t i = 0; list && i < pieces.size(); i++) {
    const aj_memory_piece& p = pieces[i].said;
    PyObject* line = line_text(p.line);
    PyObject* tuple =
        line ? Py_BuildValue("(IKKKKsN)", p.state, Number(reinterpret_cast<uintptr_t>(p.data)),
                             Number(p.bytes), Number(reinterpret_cast<uintptr_t>(p.stream)),
                             Number(p.pool), pieces[i].op.c_str(), line)
             : nullptr;
    if (!tuple) return nullptr;
    PyList_SET_ITEM(list.get(), Py_ssize_t(i), tuple);
  }
  return list.release();
}

PyMethodDef functions[] = {
    {"memory_counts", memory_counts, METH_O, nullptr},
    {"memory_pieces", memory_pieces, METH_O, nullptr},
    {},
};

}  // namespace

int init_memory(PyObject* module) {
  table = static_cast<const aj_memory*>(aj_get_interface("x.memory", 1));
  if (!table)
    return PyErr_SetString(PyExc_ImportError, "adjoin: libadjoin.so has no interface 'x.memory'"),
           -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace adjoin::py
