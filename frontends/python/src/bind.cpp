// frontends/python/src/bind.cpp: positional and keyword arguments of one call against one program.
#include "device.hpp"
#include "dtype.hpp"
#include "program.hpp"

namespace adjoin::py {
namespace {

PyObject *out_name, *requires_grad_name, *pin_memory_name, *layout_name, *inplace_name;

Match mismatch(Frame& f, Why why, int at, int converted, PyObject* what) {
  f.why = why;
  f.at = static_cast<int8_t>(at);
  f.converted = static_cast<uint8_t>(converted);
  f.what = what;
  return Match::No;
}

// What people coming from NumPy write.
int alias_of(const Program& p, PyObject* name) {
  constexpr const char* aliases[][2] = {{"axis", "dim"}, {"keepdims", "keepdim"}, {"x", "input"},
                                        {"x1", "input"}, {"x2", "other"},         {"self", "input"},
                                        {"axis", "dims"}};
  for (auto& a : aliases) {
    if (PyUnicode_CompareWithASCIIString(name, a[0]) != 0) continue;
    for (int i = 0; i < p.nparams; ++i)
      if (PyUnicode_CompareWithASCIIString(p.params[i].name, a[1]) == 0) return i;
  }
  return -1;
}

int find_param(const Program& p, PyObject* name) {
  for (int i = 0; i < p.nparams; ++i)
    if (p.params[i].name == name) return i;
  for (int i = 0; i < p.nparams; ++i)
    if (PyUnicode_Compare(p.params[i].name, name) == 0) return i;
  return alias_of(p, name);
}

// What a factory makes is strided, or as sparse as its argument: another layout is its caller's
// wish.
bool take_layout(PyObject* layout, Frame& f) {
  if (layout == Py_None || layout == layout_object(AJ_LAYOUT_STRIDED)) return true;
  if (Py_TYPE(layout) != &layout_type) {
    PyErr_Format(PyExc_TypeError, "layout must be adjoin.layout, not %s", Py_TYPE(layout)->tp_name);
    return true;
  }
  const int64_t number = reinterpret_cast<TagObject*>(layout)->value;
  if (number == AJ_LAYOUT_OPAQUE || number == AJ_LAYOUT_JAGGED)
    PyErr_Format(PyExc_NotImplementedError, "layout=%R: only strided tensors are made so far",
                 layout);
  f.wishes |= static_cast<uint8_t>(number << kLayoutBits);
  return true;
}

// Keywords that every op of a sort has without naming them in its schema.
bool common_keyword(const Program& p, PyObject* name, PyObject* value, Frame& f) {
  if ((p.out || p.puts) && PyUnicode_Compare(name, out_name) == 0) {
    if (value != Py_None) f.out = value;
    return true;
  }
  if (p.network && PyUnicode_Compare(name, inplace_name) == 0) {
    f.in_place = PyObject_IsTrue(value) == 1;
    return true;
  }
  if (!p.factory) return false;
  if (PyUnicode_Compare(name, requires_grad_name) == 0) {
    f.wishes |= PyObject_IsTrue(value) == 1 ? kWantsGrad : 0;
    return true;
  }
  if (PyUnicode_Compare(name, pin_memory_name) == 0) {
    f.wishes |= PyObject_IsTrue(value) == 1 ? kWantsPinned : 0;
    return true;
  }
  return PyUnicode_Compare(name, layout_name) == 0 && take_layout(value, f);
}

Match bind_keywords(const Program& p, PyObject* const* values, PyObject* names,
                    Py_ssize_t positional, uint32_t given, Frame& f) {
  Py_ssize_t n = PyTuple_GET_SIZE(names);
  for (Py_ssize_t k = 0; k < n; ++k) {
    PyObject* name = PyTuple_GET_ITEM(names, k);
    int converted = static_cast<int>(positional + k);
    if (name == out_name && (p.out || p.puts) && values[k] != Py_None) {
      f.out = values[k];
      continue;
    }
    int i = find_param(p, name);
    if (i < 0) {
      if (common_keyword(p, name, values[k], f)) {
        if (PyErr_Occurred()) return Match::Error;
        continue;
      }
      return mismatch(f, kUnknownKeyword, -1, converted, name);
    }
    if (given >> i & 1) return mismatch(f, kTwice, i, converted, name);
    Match m = convert(p.params[i], values[k], &f.values[i], f);
    if (unlikely(m != Match::Bound))
      return m == Match::No ? mismatch(f, kWrongType, i, converted, values[k]) : m;
    given |= 1u << i;
  }
  for (int i = 0; i < p.nparams; ++i)
    if (!(given >> i & 1) && f.values[i].tag == kMissing)
      return mismatch(f, kMissingArgument, i, static_cast<int>(positional + n), nullptr);
  return Match::Bound;
}

// x.view(2, 3), zeros(2, 3): the list parameter takes all that is left.
Match bind_varargs(const Param& p, PyObject* const* args, Py_ssize_t n, aj_value* v, Frame& f) {
  if (n == 1) {
    Match m = convert(p, args[0], v, f);
    if (m != Match::No) return m;
  }
  Ref all(PyTuple_New(n));
  if (!all) return Match::Error;
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(all.get(), i, Py_NewRef(args[i]));
  return convert(p, all.get(), v, f);
}

// The same without a tuple, for ints.
bool quick_sizes(PyObject* const* args, Py_ssize_t n, aj_value* v, Frame& f) {
  auto* data = static_cast<int64_t*>(f.scratch.take(static_cast<size_t>(n)));
  for (Py_ssize_t i = 0; i < n; ++i) {
    int overflow;
    if (!PyLong_CheckExact(args[i])) return false;
    data[i] = PyLong_AsLongLongAndOverflow(args[i], &overflow);
    if (overflow) return false;
  }
  v->tag = AJ_INTS;
  v->aux = static_cast<uint32_t>(n);
  v->v.ints = data;
  return true;
}

void set_defaults(const Program& p, int from, Frame& f) {
  for (int i = from; i < p.nparams; ++i) f.values[i] = p.params[i].value;
}

}  // namespace

Match bind(const Program& p, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, Frame& f) {
  f.keys = 0;
  f.out = nullptr;
  f.in_place = false;
  f.wishes = 0;
  f.large = nullptr;
  f.scratch.reset();
  bool spread = p.varargs >= 0 && n > p.varargs;
  const Py_ssize_t all = n;
  if (unlikely(n > p.npositional && !spread)) {
    // relu(x, True): inplace is the last argument of what has that form.
    bool last = p.activation && n == p.npositional + 1 && PyBool_Check(args[n - 1]);
    if (!last) return mismatch(f, kTooMany, -1, p.npositional, nullptr);
    f.in_place = args[--n] == Py_True;
  }
  int bound = static_cast<int>(n);
  if (spread) bound = p.varargs;
  for (int i = 0; i < bound; ++i) {
    Match m = convert(p.params[i], args[i], &f.values[i], f);
    if (unlikely(m != Match::Bound))
      return m == Match::No ? mismatch(f, kWrongType, i, i, args[i]) : m;
  }
  if (spread) {
    const Param& list = p.params[bound];
    bool ints =
        list.kind == AJ_PARAM_INT || list.kind == AJ_PARAM_DIM || list.kind == AJ_PARAM_SIZE;
    if (!ints || !quick_sizes(args + bound, n - bound, &f.values[bound], f)) {
      Match m = bind_varargs(list, args + bound, n - bound, &f.values[bound], f);
      if (m != Match::Bound) {
        Py_ssize_t bad = bound;  // the first that is no whole number, among several
        while (ints && bad + 1 < n && PyLong_Check(args[bad])) ++bad;
        return m == Match::No ? mismatch(f, kWrongType, bound, bound, args[bad]) : m;
      }
    }
    ++bound;
  }
  set_defaults(p, bound, f);
  if (kwnames) {
    Match m = bind_keywords(p, args + all, kwnames, all, (1u << bound) - 1, f);
    if (m != Match::Bound) return m;
  }
  for (int i = bound; i < p.nrequired; ++i) {
    if (likely(f.values[i].tag != kMissing)) continue;
    if (i != p.varargs || p.params[i].kind != AJ_PARAM_TENSOR)
      return mismatch(f, kMissingArgument, i, bound, nullptr);
    f.values[i].tag = AJ_TENSORS;  // block_diag(): no tensors are tensors, too
    f.values[i].aux = 0;
    f.values[i].v.tensors = nullptr;
  }
  if (unlikely(p.factory && default_device.device_type && p.device >= 0 &&
               f.values[p.device].tag == AJ_NONE)) {
    f.values[p.device].tag = AJ_DEVICE;  // device=None says as little as no device
    f.values[p.device].v.device = default_device;
  }
  if (unlikely(f.large != nullptr)) return settle_large(p, f);
  return Match::Bound;
}

int init_binding() {
  out_name = PyUnicode_InternFromString("out");
  requires_grad_name = PyUnicode_InternFromString("requires_grad");
  pin_memory_name = PyUnicode_InternFromString("pin_memory");
  layout_name = PyUnicode_InternFromString("layout");
  inplace_name = PyUnicode_InternFromString("inplace");
  return PyErr_Occurred() ? -1 : 0;
}

}  // namespace adjoin::py
